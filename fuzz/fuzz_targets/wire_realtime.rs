//! Any bytes as an event of OpenAI's realtime protocol.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_server::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    Dialect::Realtime.accepts(bytes);
});
