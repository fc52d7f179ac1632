//! Tests with a recogniser whose weights are drawn.

use srf_audio::Samples;
use srf_audio::Selection;
use srf_audio::wav;

use super::super::distance::Distance;
use super::super::tests::recognizer;
use super::super::{Analysis, Named};
use super::*;

/// A recording of some length: two tones, so that slices differ.
fn recording(dir: &std::path::Path, n_samples: usize) -> Utterance {
    let path = dir.join("tones.wav");
    let tone = |at: usize| 0.09 * ((at * at) as f32 * 1e-6).sin() + 0.03 * (at as f32 * 0.05).sin();
    wav::save(&path, &Samples { rate_hz: 16_000, values: (0..n_samples).map(tone).collect() }).unwrap();
    Utterance { id: "tones".to_owned(), speaker: "tones".to_owned(), path, selection: Selection::default() }
}

fn routes_of(n_samples: usize) -> Result<Routes, AnalyzeError> {
    let dir = tempfile::tempdir().unwrap();
    Routes::compute(&recognizer(), "drawn", &recording(dir.path(), n_samples), None, Detail::Layers)
}

#[test]
fn couplings_of_a_capsule_sum_to_one_and_those_of_a_class_to_its_mass() {
    let routes = routes_of(16_000).unwrap();
    assert_eq!(routes.classes, ["a", "b", "c", "∅"]);
    assert_eq!(routes.layers.len(), 2);
    assert_eq!(routes.n_slices(), 25);
    for layer in &routes.layers {
        assert_eq!(layer.n_slices(), 25);
        for slice in 0..25 {
            for row in layer.couplings(slice).chunks_exact(layer.n_out) {
                // A root is known to half of 1/65535, its square to twice that times the root.
                assert!((row.iter().sum::<f32>() - 1.0).abs() < layer.n_out as f32 / 65_535.0, "{row:?}");
            }
        }
    }
    let last = &routes.layers[1];
    for slice in 0..25 {
        let couplings = last.couplings(slice);
        for (class, mass) in routes.masses_at(slice).iter().enumerate() {
            let sum: f32 = couplings.iter().skip(class).step_by(last.n_out).sum();
            assert!((sum - mass).abs() < last.n_in() as f32 / 65_535.0, "{sum} {mass}");
        }
    }
}

#[test]
fn routes_are_those_of_the_recogniser() {
    let dir = tempfile::tempdir().unwrap();
    let utterance = recording(dir.path(), 20_000);
    let recognizer = recognizer();
    let routes = Routes::compute(&recognizer, "drawn", &utterance, None, Detail::Classes).unwrap();
    let log_probs = recognizer.log_probs(&utterance, None).unwrap();
    let expected: Vec<f32> = without_padding(&log_probs, 5).map(f32::exp).collect();
    assert_eq!(routes.probabilities, expected);
    assert!(routes.layers.is_empty());
}

#[test]
fn the_distance_is_what_the_taps_count_as_disagreement() {
    let dir = tempfile::tempdir().unwrap();
    let utterance = recording(dir.path(), 30_000);
    let recognizer = recognizer();
    let distance = Distance::of(&Routes::compute(&recognizer, "drawn", &utterance, None, Detail::Classes).unwrap());
    let mut listener = recognizer.listener(None).unwrap();
    listener.tap(Some(TapConfig { has_health: true, ..TapConfig::default() }));
    let samples = Recording::open(&utterance.path).unwrap().read(Selection::default()).unwrap();
    listener.accept(&samples.values, 16_000, &mut Vec::new()).unwrap();
    listener.flush(&mut Vec::new());
    let agreement = listener.taps().unwrap().health()[0].agreement.unwrap();
    assert!((distance.rate().unwrap() - (1.0 - agreement)).abs() < 1e-12, "{distance:?} {agreement}");
}

#[test]
fn a_time_and_its_slice_belong_together() {
    let routes = routes_of(16_000).unwrap();
    for slice in 0..routes.n_slices() {
        assert_eq!(routes.slice_at(routes.time_s(slice)), slice);
    }
    assert_eq!(routes.slice_at(0.0), 0);
    assert_eq!(routes.slice_at(1e9), 24);
}

#[test]
fn an_utterance_without_a_frame_is_an_error() {
    assert_eq!(routes_of(100).unwrap_err().to_string(), "utterance `tones` is too short for a frame of features");
}

#[test]
fn what_does_not_fit_is_refused_with_a_length_that_does() {
    let (model, id) = ("m".to_owned(), "u".to_owned());
    let error = AnalyzeError::TooMany { model, id, per_second: 1000, found: 60_000, most: 30_000 };
    assert_eq!(error.hint().as_deref(), Some("look at `--seconds 30` or less"));
}

#[test]
fn an_analysis_is_saved_as_pictures_and_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let utterance = recording(dir.path(), 16_000);
    let models = [Named { name: "drawn".to_owned(), recognizer: recognizer(), unused: Vec::new() }];
    let analysis = Analysis::compute(&models, &utterance, &[None], Vec::new()).unwrap();
    assert_eq!(analysis.duration_s, 1.0);
    assert_eq!(analysis.spectrogram.values.len(), 98 * 40);
    let out = dir.path().join("out");
    analysis.save(&[0.5], &out).unwrap();
    let mut names: Vec<String> =
        std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = [
        "couplings-drawn-0.49s.png",
        "couplings-drawn-0.49s.svg",
        "grid.png",
        "grid.svg",
        "routing.html",
        "softmax.png",
        "softmax.svg",
    ];
    assert_eq!(names, expected);
    for name in names.iter().filter(|name| name.ends_with("png")) {
        let inked = super::super::tests::inked(&std::fs::read(out.join(name)).unwrap());
        assert!(inked > 0.01, "{name}: {inked}");
    }
}

#[test]
fn a_network_without_capsules_is_named() {
    let lstm = ModelConfig::Lstm(srf_model::config::LstmConfig::new(5));
    let told = capsules("baseline", &lstm).unwrap_err().to_string();
    assert_eq!(told, "model `baseline` is a `lstm`, expected `srf`: only capsules are routed");
}
