//! Any bytes as the query of an address and samples after it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_server::wire::Dialect;

fuzz_target!(|bytes: &[u8]| {
    Dialect::Query.accepts(bytes);
});
