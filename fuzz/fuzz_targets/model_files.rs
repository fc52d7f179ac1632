//! A model directory of which one file has any bytes; the first byte chooses the file.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use srf::Recognizer;

macro_rules! files {
    ($($name:literal),+) => { [$(($name, include_bytes!(concat!("../../models/en-digits/", $name)).as_slice())),+] };
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let files = files!("cmvn.json", "config.toml", "labels.txt", "times.json", "weights.safetensors");
    let mut files: BTreeMap<String, Vec<u8>> =
        files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    let names = ["cmvn.json", "config.toml", "labels.txt", "times.json", "words.bin", "decoding.json"];
    files.insert(names[usize::from(choice) % names.len()].to_owned(), bytes.to_vec());
    let _ = Recognizer::from_files(&files);
});
