//! Any bytes as a checkpoint of a training, an evaluation, and a table of window sizes, which are read from files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use srf_train::analyze::windows;
use srf_train::evaluate::summary::Summary;
use srf_train::trainer::checkpoint::Checkpoint;

fuzz_target!(|bytes: &[u8]| {
    let dir = std::env::temp_dir();
    let [binary, csv, json] =
        ["ckpt", "csv", "json"].map(|extension| dir.join(format!("srf-fuzz-{}.{extension}", std::process::id())));
    for path in [&binary, &csv, &json] {
        std::fs::write(path, bytes).expect("there is a place for temporary files");
    }
    if let Ok(checkpoint) = Checkpoint::load(&binary) {
        let _ = checkpoint.check();
    }
    let _ = (windows::load(&csv), windows::load(&json), Summary::load(&json));
    for path in [binary, csv, json] {
        let _ = std::fs::remove_file(path);
    }
});
