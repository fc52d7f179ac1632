//! Any bytes as a text message of Deepgram's protocol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_server::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    Dialect::Deepgram.accepts(bytes);
});
