//! Against recordings that are not part of the project: skipped, with a line saying so, where they are absent.

use std::io::Write as _;
use std::path::PathBuf;

use srf_audio::features::{FeaturesConfig, extract};
use srf_audio::{Channel, Recording, Selection};

/// `../shared/NAME` beside the workspace, if it is there.
fn shared(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if !path.exists() {
        // Past the test runner, which shows only what failing tests print.
        let _ = writeln!(std::io::stderr().lock(), "skipped: there is no `{}`", path.display());
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

#[test]
fn features_are_within_a_thousandth_of_kaldis() {
    let Some(golden) = shared("spec/features/kaldi-fbank.safetensors") else { return };
    let Some(dir) = shared("data/timit-nltk/audio") else { return };
    let bytes = std::fs::read(golden).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(tensors.names().len(), 6);
    for (name, tensor) in tensors.tensors() {
        let (id, kind) = name.rsplit_once('.').unwrap();
        let delta_order = if kind == "feats123" { 2 } else { 0 };
        let config = FeaturesConfig { dither: 0.0, delta_order, ..FeaturesConfig::default() };
        let samples = Recording::open(dir.join(format!("{id}.flac"))).unwrap().read(Selection::default()).unwrap();
        let frames = extract(&config, &samples.values).unwrap();
        assert_eq!([frames.n_frames(), frames.n_dims], tensor.shape());
        let expected = tensor.data().as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b));
        let worst = frames.values.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        println!("{name}: at most {worst:e} from Kaldi's");
        assert!(worst < 1e-3, "{name}: {worst}");
    }
}
