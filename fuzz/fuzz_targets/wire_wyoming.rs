//! Any bytes as events of the Wyoming protocol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_server::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    Dialect::Wyoming.accepts(bytes);
});
