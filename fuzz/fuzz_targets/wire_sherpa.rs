//! Any bytes as a first message of sherpa-onnx's protocols.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_server::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    Dialect::Sherpa.accepts(bytes);
});
