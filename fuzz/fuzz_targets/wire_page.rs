//! Any bytes as the first message of the page.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_server::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    Dialect::Page.accepts(bytes);
});
