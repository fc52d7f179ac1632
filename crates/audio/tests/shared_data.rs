//! Against recordings that are not part of the project: skipped, with a line saying so, where they are absent.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::PathBuf;

use audio::{Channel, Recording, Selection};

/// `../shared/NAME` beside the workspace, if it is there.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if !path.exists() {
        println!("skipped: there is no `{}`", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn sphere_files_decode_to_exactly_the_wavs_beside_them() {
    let Some(dir) = shared("data/sphere") else { return };
    for stem in ["123_1pcle_shn", "123_1ulaw_shn", "123_2alaw"] {
        let sphere = Recording::open(dir.join(format!("{stem}.sph"))).unwrap();
        let wav = Recording::open(dir.join(format!("{stem}.wav"))).unwrap();
        assert_eq!(sphere.info().n_channels, wav.info().n_channels);
        for channel in 0..wav.info().n_channels {
            let selection = Selection { channel: Channel::Only(channel), ..Selection::default() };
            assert_eq!(sphere.read(selection).unwrap(), wav.read(selection).unwrap(), "{stem} channel {channel}");
            let part = Selection { start_s: 0.5, end_s: Some(1.25), ..selection };
            assert_eq!(sphere.read(part).unwrap(), wav.read(part).unwrap(), "{stem} channel {channel}");
        }
    }
}
