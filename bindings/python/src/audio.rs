//! Recordings and arrays of samples, and their features.

use std::path::PathBuf;

use anyhow::Context as _;
use numpy::{PyArray1, PyArray2, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use srf::{AcceptError, Channel, Selection, TranscribeError, Utterance};
use srf_audio::Recording;
use srf_audio::bulk::UtteranceError;
use srf_audio::features::cmvn::{CmvnStats, Normalizer};
use srf_audio::features::{Cmvn, Extractor, FeaturesConfig};
use srf_audio::resample::Resampler;

use crate::errors::compute;

/// What is listened to.
pub(crate) enum Audio {
    /// A file, or a part or channel of it.
    File(Utterance),
    /// Mono samples from -1 to 1; a copy, because Python may change its array meanwhile.
    Samples { values: Vec<f32>, rate_hz: u32 },
}

/// Which part of a file: start, end and channel.
pub(crate) type Part = (f64, Option<f64>, Option<usize>);

impl Audio {
    /// A path, or an array of samples with its rate.
    pub(crate) fn new(audio: &Bound<'_, PyAny>, rate_hz: Option<u32>, part: Part) -> PyResult<Self> {
        if let Ok(samples) = audio.extract::<PyReadonlyArray1<'_, f32>>() {
            let rate_hz = rate_hz.ok_or_else(|| PyTypeError::new_err("samples need their rate in Hz"))?;
            let values = samples.as_array().to_vec();
            return Ok(Self::Samples { values, rate_hz });
        }
        let (start_s, end_s, channel) = part;
        let channel = channel.map_or(Channel::Mix, Channel::Only);
        let path: PathBuf = audio.extract()?;
        Ok(Self::File(Utterance { selection: Selection { channel, start_s, end_s }, ..path.into() }))
    }

    /// What errors call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(utterance) => utterance.path.display().to_string(),
            Self::Samples { .. } => "samples".to_owned(),
        }
    }

    /// Hands all samples to `accept`, block by block.
    pub(crate) fn feed(
        &self,
        mut accept: impl FnMut(&[f32], u32) -> Result<(), AcceptError>,
    ) -> Result<(), TranscribeError> {
        let failed = |cause| TranscribeError::Accept { name: self.name(), cause };
        match self {
            Self::Samples { values, rate_hz } => accept(values, *rate_hz).map_err(failed),
            Self::File(utterance) => {
                let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
                let rate_hz = blocks.rate_hz();
                while let Some(block) = blocks.next_block()? {
                    accept(block, rate_hz).map_err(failed)?;
                }
                Ok(())
            }
        }
    }
}

/// Rows of `n` values as a numpy array.
pub(crate) fn matrix<'py>(py: Python<'py>, values: Vec<f32>, n: usize) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let n_rows = values.len() / n.max(1);
    PyArray1::from_vec(py, values).reshape([n_rows, n])
}

/// Filterbank features, `[frames, values]`; `settings` are the table `[features]` of a recipe, as JSON.
#[pyfunction]
pub(crate) fn features<'py>(
    audio: &Bound<'py, PyAny>,
    rate_hz: Option<u32>,
    part: Part,
    settings: &str,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let py = audio.py();
    let audio = Audio::new(audio, rate_hz, part)?;
    let (values, n) = compute(py, || {
        let config: FeaturesConfig = from_json(settings).context("settings of features")?;
        Ok((compute_features(&audio, &config)?, config.n_features()))
    })?;
    matrix(py, values, n)
}

/// Like `serde_json::from_str`, without positions in a text that nobody typed.
fn from_json<'a, T: serde::Deserialize<'a>>(text: &'a str) -> anyhow::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let end = message.rfind(" at line ").unwrap_or(message.len());
        anyhow::anyhow!("{}", &message[..end])
    })
}

fn compute_features(audio: &Audio, config: &FeaturesConfig) -> anyhow::Result<Vec<f32>> {
    let mut extractor = Extractor::new(config)?;
    let (mut resampler, mut samples, mut frames) = (None, Vec::new(), Vec::new());
    let (mut n_samples, mut rate_hz) = (0, 1);
    audio.feed(|block, from_hz| {
        (n_samples, rate_hz) = (n_samples + block.len(), from_hz);
        if let Some(at) = block.iter().position(|value| !value.is_finite()) {
            return Err(AcceptError::NotFinite { index: (n_samples - block.len() + at) as u64, found: block[at] });
        }
        let resampler = match &mut resampler {
            Some(resampler) => resampler,
            none => none.insert(Resampler::new(from_hz, config.sample_rate_hz)?),
        };
        samples.clear();
        resampler.accept(block, &mut samples);
        extractor.accept(&samples, &mut frames);
        Ok(())
    })?;
    samples.clear();
    if let Some(resampler) = &mut resampler {
        resampler.finish(&mut samples);
    }
    extractor.accept(&samples, &mut frames);
    extractor.finish(&mut frames);
    if frames.is_empty() {
        let (path, id) = (audio.name().into(), audio.name());
        let duration_ms = 1000.0 * n_samples as f64 / f64::from(rate_hz);
        return Err(UtteranceError::TooShort { path, id, duration_ms, window_ms: config.window_ms }.into());
    }
    let is_fixed = !matches!(config.cmvn, Cmvn::None | Cmvn::Online);
    let own = is_fixed.then(|| CmvnStats::of(config.n_features(), &frames));
    Normalizer::new(config, own.as_ref(), own.as_ref()).apply(&mut frames);
    Ok(frames)
}
