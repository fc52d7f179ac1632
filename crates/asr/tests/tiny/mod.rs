//! A tiny model with random weights and sounds to give it, the same for every test.

use std::path::Path;

use srf::directory::ModelParts;
use srf_audio::{I16_SCALE, Samples};
use srf_model::config::{Cmvn, FeaturesConfig, ModelConfig, PerLayer, SrfConfig};
use srf_model::params::Layout;
use srf_model::random::Random;
use srf_text::labels::{LabelSet, Units};

/// A network of two capsule layers over 18 values a frame.
pub(crate) fn parts(cmvn: Cmvn, units: Units, symbols: &[&str]) -> ModelParts {
    let features = FeaturesConfig { mel_bins: 5, delta_order: 2, cmvn, ..FeaturesConfig::default() };
    let labels = LabelSet::new(units, symbols.iter().copied()).unwrap();
    let srf = SrfConfig {
        features: features.n_features(),
        filters: 3,
        layers: 2,
        primary_height: 4,
        hidden_height: PerLayer::Same(5),
        primary_depth: 4,
        hidden_depth: PerLayer::Same(4),
        class_depth: 4,
        ..SrfConfig::new(labels.n_classes())
    };
    let model = ModelConfig::Srf(srf);
    let mut parts = ModelParts::untrained(model, features, labels, 3);
    let mut random = Random::new(3, "tiny model");
    // Zeros and ones in every bias and scale would hide mistakes, and write next to nothing.
    parts.values.iter_mut().for_each(|value| *value += (0.8 * random.uniform() - 0.4) as f32);
    parts.values.iter_mut().for_each(|value| *value = value.max(-0.9));
    make_variances_positive(&parts.model, &mut parts.values);
    ModelParts {
        card: "# A tiny model
"
        .to_owned(),
        ..parts
    }
}

fn make_variances_positive(model: &ModelConfig, values: &mut [f32]) {
    for tensor in Layout::new(model).tensors().iter().filter(|tensor| tensor.name.ends_with("moving_var")) {
        tensor.slot.of_mut(values).iter_mut().for_each(|value| *value = value.abs() + 0.5);
    }
}

/// Six letters and the space.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn letters(cmvn: Cmvn) -> ModelParts {
    parts(cmvn, Units::Chars, &[" ", "a", "b", "c", "d", "e", "f"])
}

/// Tones, hiss and pauses by a seed, loud enough to matter.
pub(crate) fn sound(seed: u64, n_samples: usize) -> Vec<f32> {
    let mut random = Random::new(seed, "sound");
    let mut values = Vec::with_capacity(n_samples);
    while values.len() < n_samples {
        let n = 400 + (random.uniform() * 4000.0) as usize;
        let [loud, hiss, pitch] = [0; 3].map(|_| random.uniform());
        let loud = if loud < 0.2 { 0.0 } else { 6000.0 * loud };
        let step = 0.02 + 0.8 * pitch;
        values.extend((0..n).map(|i| (loud * ((i as f64 * step).sin() + hiss * random.normal())) as f32 / I16_SCALE));
    }
    values.truncate(n_samples);
    values
}

/// A WAV file of 16-bit samples.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn save(path: &Path, values: &[f32], rate_hz: u32) {
    srf_audio::wav::save(path, &Samples { rate_hz, values: values.to_vec() }).unwrap();
}
