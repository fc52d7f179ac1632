//! What a model does with an utterance: probabilities, sums of couplings to each class, and the couplings of every
//! capsule layer.
//!
//! The recording goes through the recogniser's own stream, once for each layer that is looked at, so that only one
//! layer's couplings are ever held in full precision. The caller limits the length by the utterance's selection.

use srf::{AcceptError, Recognizer, StartStreamError};
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_audio::{ReadAudioError, Recording};
use srf_model::config::{ModelConfig, SrfConfig};
use srf_model::stream::{TapConfig, Taps};
use srf_text::labels::PADDING;
use srf_text::words::Clock;

/// The name of the blank in pictures; labels may be called anything else.
pub const BLANK: &str = "∅";

/// A coefficient is stored as a number up to this.
const LEVELS: f32 = 65_535.0;

/// Most coefficients held of one utterance and model, 512 MB.
const MAX_COUPLINGS: usize = 1 << 28;

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The sums of couplings to each class, enough for counting.
    Classes,
    /// The coefficients of every layer too, for figures.
    Layers,
}

/// Why an utterance was not analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum AnalyzeError {
    #[error(transparent)]
    Read(#[from] ReadAudioError),
    #[error("`{path}`: {cause}")]
    Accept { path: String, cause: AcceptError },
    #[error(transparent)]
    Start(#[from] StartStreamError),
    #[error("model `{model}` is a `{architecture}`, expected `srf`: only capsules are routed")]
    NoCapsules { model: String, architecture: String },
    #[error("utterance `{id}` is too short for a frame of features")]
    TooShort { id: String },
    #[error("model `{model}` has {per_second} coefficients per second, {found} in `{id}`, expected at most {most}")]
    TooMany { model: String, id: String, per_second: usize, found: usize, most: usize },
}

impl AnalyzeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Start(cause) => cause.hint(),
            Self::TooMany { per_second, most, .. } => {
                Some(format!("look at `--seconds {}` or less", most / per_second))
            }
            _ => None,
        }
    }
}

/// The couplings of one capsule layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name, as in the names of its tensors.
    pub name: String,
    /// Capsules of a slice below it.
    pub in_height: usize,
    /// Slices before and after the current one that it sees.
    pub window: [usize; 2],
    /// Its capsules, without the padding class.
    pub n_out: usize,
    /// Square roots of the coefficients, `[slices, n_in, n_out]`: small ones keep more digits.
    roots: Vec<u16>,
}

impl Layer {
    /// A layer with coefficients `[slices, n_in, n_out]`.
    pub fn new(name: &str, in_height: usize, window: [usize; 2], n_out: usize, couplings: &[f32]) -> Self {
        let mut layer = Self { name: name.to_owned(), in_height, window, n_out, roots: Vec::new() };
        layer.extend(couplings.iter().copied());
        layer
    }

    /// Number of capsules that are routed: those of a window.
    pub fn n_in(&self) -> usize {
        self.in_height * (self.window[0] + 1 + self.window[1])
    }

    /// Number of slices.
    pub fn n_slices(&self) -> usize {
        self.roots.len() / (self.n_in() * self.n_out)
    }

    /// The coefficients of a slice, `[n_in, n_out]`.
    #[track_caller]
    pub fn couplings(&self, slice: usize) -> Vec<f32> {
        let n = self.n_in() * self.n_out;
        self.roots[slice * n..][..n].iter().map(|root| (f32::from(*root) / LEVELS).powi(2)).collect()
    }

    /// The square roots of all coefficients, `[slices, n_in, n_out]`, where 65535 is 1.
    pub fn roots(&self) -> &[u16] {
        &self.roots
    }

    fn extend(&mut self, couplings: impl Iterator<Item = f32>) {
        self.roots.extend(couplings.map(|c| (LEVELS * c.clamp(0.0, 1.0).sqrt()).round() as u16));
    }
}

/// What a model does with an utterance. Classes are counted without padding, from 0; the last one is the blank.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The name of the model.
    pub model: String,
    /// What its classes are called.
    pub classes: Vec<String>,
    /// The times of slices.
    pub clock: Clock,
    /// Probabilities, `[slices, classes]`.
    pub probabilities: Vec<f32>,
    /// The mass of each class: its coefficients summed over the capsules that are routed, `[slices, classes]`.
    pub masses: Vec<f32>,
    /// Classes whose mass is set to 0, because training has no such label.
    pub unused: Vec<usize>,
    /// The capsule layers from the lowest, if asked for.
    pub layers: Vec<Layer>,
}

impl Routes {
    /// Runs a model called `name` on an utterance; `statistics` are the speaker's, where the model needs them.
    pub fn compute(
        recognizer: &Recognizer,
        name: &str,
        utterance: &Utterance,
        statistics: Option<&CmvnStats>,
        detail: Detail,
    ) -> Result<Self, AnalyzeError> {
        let source = Source { recognizer, name, utterance, statistics };
        let (mut log_probs, mut masses) = (Vec::new(), Vec::new());
        source.run(TapConfig::default(), &mut log_probs, |taps| masses.extend_from_slice(taps.class_mass()))?;
        if log_probs.is_empty() {
            return Err(AnalyzeError::TooShort { id: utterance.id.clone() });
        }
        let n_classes = recognizer.labels().n_classes();
        let mut routes = Self {
            model: name.to_owned(),
            classes: class_names(recognizer),
            clock: recognizer.timing().clock(),
            probabilities: without_padding(&log_probs, n_classes).map(f32::exp).collect(),
            masses: without_padding(&masses, n_classes).collect(),
            unused: Vec::new(),
            layers: Vec::new(),
        };
        if detail == Detail::Layers {
            routes.layers = source.layers(routes.n_slices())?;
        }
        Ok(routes)
    }

    /// Leaves these labels out of the masses.
    #[must_use]
    pub fn without(mut self, unused: &[String]) -> Self {
        self.unused = (0..self.classes.len()).filter(|class| unused.contains(&self.classes[*class])).collect();
        for masses in self.masses.chunks_exact_mut(self.classes.len()) {
            self.unused.iter().for_each(|class| masses[*class] = 0.0);
        }
        self
    }

    /// Number of slices.
    pub fn n_slices(&self) -> usize {
        self.probabilities.len() / self.classes.len()
    }

    /// The blank's number.
    pub fn blank(&self) -> usize {
        self.classes.len() - 1
    }

    /// The probabilities of a slice.
    #[track_caller]
    pub fn probabilities_at(&self, slice: usize) -> &[f32] {
        &self.probabilities[slice * self.classes.len()..][..self.classes.len()]
    }

    /// The masses of a slice.
    #[track_caller]
    pub fn masses_at(&self, slice: usize) -> &[f32] {
        &self.masses[slice * self.classes.len()..][..self.classes.len()]
    }

    /// The most probable class of every slice.
    pub fn most_probable(&self) -> Vec<usize> {
        self.probabilities.chunks_exact(self.classes.len()).map(largest).collect()
    }

    /// The class with the largest mass of every slice.
    pub fn most_coupled(&self) -> Vec<usize> {
        self.masses.chunks_exact(self.classes.len()).map(largest).collect()
    }

    /// The middle of a slice, in seconds.
    pub fn time_s(&self, slice: usize) -> f64 {
        self.clock.time_s(slice) + self.clock.slice_s / 2.0
    }

    /// The slice that a time lies in, or the nearest one.
    pub fn slice_at(&self, time_s: f64) -> usize {
        // What is negative or not a number becomes 0.
        let slice = ((time_s - self.clock.start_s) / self.clock.slice_s) as usize;
        slice.min(self.n_slices() - 1)
    }
}

/// Where the largest value is; the first of equals.
pub(super) fn largest(row: &[f32]) -> usize {
    (1..row.len()).fold(0, |best, at| if row[best] < row[at] { at } else { best })
}

fn class_names(recognizer: &Recognizer) -> Vec<String> {
    let name = |symbol: &String| if symbol == " " { "␣".to_owned() } else { symbol.clone() };
    recognizer.labels().symbols().iter().map(name).chain([BLANK.to_owned()]).collect()
}

/// Rows of `n` without the first value of each: padding never gets anything.
fn without_padding(values: &[f32], n: usize) -> impl Iterator<Item = f32> + '_ {
    values.chunks_exact(n).flat_map(|row| row[PADDING + 1..].iter().copied())
}

/// The settings of a network of capsules called `name`.
pub(super) fn capsules<'a>(name: &str, model: &'a ModelConfig) -> Result<&'a SrfConfig, AnalyzeError> {
    match model {
        ModelConfig::Srf(config) => Ok(config),
        _ => Err(AnalyzeError::NoCapsules { model: name.to_owned(), architecture: model.architecture().to_owned() }),
    }
}

/// One recording, run through one model as often as needed.
struct Source<'a> {
    recognizer: &'a Recognizer,
    name: &'a str,
    utterance: &'a Utterance,
    statistics: Option<&'a CmvnStats>,
}

impl Source<'_> {
    /// Feeds the recording to a stream whose taps `take` reads after each piece.
    fn run(
        &self,
        config: TapConfig,
        log_probs: &mut Vec<f32>,
        mut take: impl FnMut(&Taps<f32>),
    ) -> Result<(), AnalyzeError> {
        let mut blocks = Recording::open(&self.utterance.path)?.blocks(self.utterance.selection)?;
        capsules(self.name, self.recognizer.model())?;
        let mut listener = self.recognizer.listener(self.statistics.cloned())?;
        listener.tap(Some(config));
        let mut read_taps = |listener: &mut srf::Listener| {
            if let Some(taps) = listener.taps() {
                take(taps);
                taps.clear();
            }
        };
        let rate_hz = blocks.rate_hz();
        while let Some(block) = blocks.next_block()? {
            let path = || self.utterance.path.display().to_string();
            listener.accept(block, rate_hz, log_probs).map_err(|cause| AnalyzeError::Accept { path: path(), cause })?;
            read_taps(&mut listener);
        }
        listener.flush(log_probs);
        read_taps(&mut listener);
        Ok(())
    }

    /// All layers, one run each.
    fn layers(&self, n_slices: usize) -> Result<Vec<Layer>, AnalyzeError> {
        let config = capsules(self.name, self.recognizer.model())?;
        let shapes: Vec<_> = config.capsule_shapes().collect();
        let per_slice: usize = shapes.iter().map(|shape| shape.n_inputs() * shape.out_height).sum();
        self.check_size(per_slice, n_slices)?;
        let mut layers = Vec::new();
        for (index, shape) in shapes.iter().enumerate() {
            let n_padding = usize::from(shape.is_last);
            let name = format!("caps{}", index + 1);
            let window = [shape.window_left, shape.window_right];
            let mut layer = Layer::new(&name, shape.in_height, window, shape.out_height - n_padding, &[]);
            let config = TapConfig { full_layer: Some(index), ..TapConfig::default() };
            self.run(config, &mut Vec::new(), |taps| {
                let rows = taps.couplings().chunks_exact(shape.out_height);
                layer.extend(rows.flat_map(|row| row[n_padding..].iter().copied()));
            })?;
            layers.push(layer);
        }
        Ok(layers)
    }

    fn check_size(&self, per_slice: usize, n_slices: usize) -> Result<(), AnalyzeError> {
        let (found, most) = (per_slice * n_slices, MAX_COUPLINGS);
        if found <= most {
            return Ok(());
        }
        let per_second = (per_slice as f64 / self.recognizer.timing().slice_s()) as usize;
        let (model, id) = (self.name.to_owned(), self.utterance.id.clone());
        Err(AnalyzeError::TooMany { model, id, per_second, found, most })
    }
}

#[cfg(test)]
mod tests;
