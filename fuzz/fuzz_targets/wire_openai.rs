//! Any bytes as a form with a file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_server::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    Dialect::OpenAi.accepts(bytes);
});
