//! What the routing does: figures, a page with a time slider, and how far routing and softmax are apart.
//!
//! Everything comes from the recogniser that users run, with taps on its capsule layers ([`Routes`]).
//! [`pictures`] are those of the paper's analysis, [`windows`] shows errors by window, [`distance`] counts how often the
//! class with the largest sum of couplings is not the most probable one, and [`page`] lets a reader move in time.

pub mod distance;
pub mod page;
pub mod pictures;
pub mod routes;
pub mod windows;

#[cfg(test)]
pub(crate) mod tests;

pub use self::routes::{AnalyzeError, Detail, Layer, Routes};
pub use crate::draw::Picture;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::{fs, io};

use srf::Recognizer;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_audio::features::{FeaturesConfig, extract};
use srf_audio::resample::resample;
use srf_audio::{Recording, Samples};
use srf_base::files::write_atomically;
use srf_base::random::hash_of;
use srf_text::labels::{LabelSet, Units};

use crate::corpus::{self, TRAIN, Timed, manifest};
use crate::events::log::{self, History};

/// The page in the folder of an utterance.
pub const PAGE: &str = "routing.html";
/// Times shown where none are asked for.
pub const N_TIMES: usize = 5;

/// An utterance, and what several models do with it.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Its id.
    pub id: String,
    /// Length of the part that was analysed, in seconds.
    pub duration_s: f64,
    /// Its samples, for pages with sound; may be left out.
    pub sound: Option<Samples>,
    /// Its mel bands.
    pub spectrogram: Spectrogram,
    /// The reference labels with times; empty if unknown.
    pub reference: Vec<Timed>,
    /// What each model does; at least one.
    pub models: Vec<Routes>,
}

/// A model with the name it has in figures.
pub struct Named {
    /// The name.
    pub name: String,
    /// The model.
    pub recognizer: Recognizer,
    /// Labels that its training data does not have; see [`unused_labels`].
    pub unused: Vec<String>,
}

impl Named {
    /// Checks that there is a routing to look at.
    pub fn check(&self) -> Result<(), AnalyzeError> {
        routes::capsules(&self.name, self.recognizer.model()).map(|_| ())
    }
}

impl Analysis {
    /// Analyses an utterance with all models; `statistics` holds the speaker's for each model that needs them.
    ///
    /// Memory grows with the length of the utterance: the caller limits its selection.
    #[track_caller]
    pub fn compute(
        models: &[Named],
        utterance: &Utterance,
        statistics: &[Option<CmvnStats>],
        reference: Vec<Timed>,
    ) -> Result<Self, AnalyzeError> {
        let first = &models.first().expect("an analysis is of at least one model").recognizer;
        assert_eq!(models.len(), statistics.len(), "analysis: statistics, or none, for each model");
        let routes = models.iter().zip(statistics).map(|(Named { name, recognizer, unused }, statistics)| {
            let routes = Routes::compute(recognizer, name, utterance, statistics.as_ref(), Detail::Layers)?;
            Ok::<_, AnalyzeError>(routes.without(unused))
        });
        let routes: Vec<Routes> = routes.collect::<Result<_, _>>()?;
        let samples = samples(first, utterance)?;
        Ok(Self {
            id: utterance.id.clone(),
            duration_s: samples.duration_s(),
            spectrogram: Spectrogram::of(first, &samples),
            sound: Some(samples),
            reference,
            models: routes,
        })
    }

    /// The reference label at a time, if known.
    pub fn reference_at(&self, time_s: f64) -> Option<&str> {
        let label = self.reference.iter().find(|label| label.start_s <= time_s && time_s < label.end_s);
        // The last label holds to the end of the recording.
        let last = || self.reference.last().filter(|last| last.end_s <= time_s);
        label.or_else(last).map(|label| label.name.as_str())
    }

    /// Times worth looking at, in seconds and in order: the first and the last slice, and between them places where the
    /// first model is sure of a label, spread as evenly as possible.
    pub fn choose_times(&self, n: usize) -> Vec<f64> {
        let Some(routes) = self.models.first() else { return Vec::new() };
        let last = routes.n_slices() - 1;
        let labels: Vec<usize> = peaks(routes).into_iter().filter(|slice| (1..last).contains(slice)).collect();
        let n_between = n.saturating_sub(2);
        let between = (1..=n_between).filter_map(|k| {
            let wanted = k * last / (n_between + 1);
            labels.iter().copied().min_by_key(|slice| slice.abs_diff(wanted)).or(Some(wanted))
        });
        let mut slices: Vec<usize> = [0].into_iter().chain(between).chain([last]).collect();
        slices.sort_unstable();
        slices.dedup();
        slices.into_iter().take(n.max(1)).map(|slice| routes.time_s(slice)).collect()
    }

    /// Writes into `dir`, which is made if needed: the couplings of every model at every time, the grid of them all, the
    /// softmax at start and end (each as PNG and SVG) and the page.
    pub fn save(&self, times_s: &[f64], dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        for (model, routes) in self.models.iter().enumerate() {
            for time_s in times_s {
                let time_s = routes.time_s(routes.slice_at(*time_s));
                let stem = format!("couplings-{}-{time_s:.2}s", folder_name(&routes.model));
                pictures::couplings(self, model, time_s).save(dir, &stem)?;
            }
        }
        pictures::grid(self, times_s).save(dir, "grid")?;
        pictures::softmax(self, pictures::N_SLICES).save(dir, "softmax")?;
        write_atomically(&dir.join(PAGE), page::page(self).html().as_bytes())
    }
}

/// The slice of each run of a label where it is most probable.
fn peaks(routes: &Routes) -> Vec<usize> {
    let most_probable = routes.most_probable();
    let mut peaks: Vec<usize> = Vec::new();
    for (slice, class) in most_probable.iter().copied().enumerate().filter(|(_, class)| *class != routes.blank()) {
        let goes_on = 0 < slice && most_probable[slice - 1] == class;
        match peaks.last_mut().filter(|_| goes_on) {
            Some(peak) if routes.probabilities_at(*peak)[class] < routes.probabilities_at(slice)[class] => {
                *peak = slice;
            }
            Some(_) => {}
            None => peaks.push(slice),
        }
    }
    peaks
}

/// A name for a folder or file, different for different ids: those with characters that are not safe in paths, and very
/// long ones, get a hash of the id.
pub fn folder_name(id: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = id.chars().map(|c| if is_plain(c) { c } else { '-' }).take(MAX_NAME).collect();
    // Neither hidden nor a way up.
    let plain = plain.trim_start_matches('.');
    if plain == id && !plain.is_empty() { plain.to_owned() } else { format!("{plain}-{:016x}", hash_of(id)) }
}

/// Most characters of an id in the name of a folder; file systems take 255 bytes.
const MAX_NAME: usize = 50;

/// The labels that none of `texts` has: what is routed to their classes means nothing, for training never constrains it.
pub fn unused_labels<'a>(labels: &LabelSet, texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let used: HashSet<Cow<'_, str>> = texts.flat_map(|text| labels.split(text)).collect();
    let is_unused = |label: &&String| !used.is_empty() && !used.contains(label.as_str());
    labels.symbols().iter().filter(is_unused).cloned().collect()
}

/// The same for the model in `dir`, if it is in a run whose training manifests can still be read; otherwise empty.
pub fn unused_in_training(dir: &Path, labels: &LabelSet) -> Vec<String> {
    let history = dir.parent().and_then(|run| History::load(&run.join(log::FILE_NAME)).ok()).unwrap_or_default();
    let parts = history.start().map_or(&[][..], |start| &start.data).iter().filter(|part| part.name == TRAIN);
    let manifests = parts.flat_map(|part| part.path.split(" + ")).map(Path::new).filter(|path| path.is_file());
    let utterances: Vec<_> = manifests.flat_map(|path| manifest::load(path).0).collect();
    unused_labels(labels, utterances.iter().map(|listed| listed.utterance.text.as_str()))
}

/// The labels of an utterance in the units of a model; empty where their times are not known.
pub fn reference_labels(utterance: &corpus::Utterance, units: Units) -> Vec<Timed> {
    match units {
        Units::Phones => utterance.phones.clone(),
        // Characters and pieces have no times of their own: their words are the nearest thing.
        Units::Words | Units::Chars | Units::Pieces => utterance.words.clone(),
    }
}

/// Log energies of mel bands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spectrogram {
    /// Bands of a frame, the lowest first.
    pub n_bands: usize,
    /// From one frame to the next.
    pub shift_s: f64,
    /// `[frames, n_bands]`.
    pub values: Vec<f32>,
}

impl Spectrogram {
    /// The bands of samples at the model's rate, as its features have them, without deltas and normalisation.
    pub fn of(recognizer: &Recognizer, samples: &Samples) -> Self {
        let config = recognizer.features();
        let config = FeaturesConfig { delta_order: 0, energy: false, dither: 0.0, ..config.clone() };
        let frames =
            extract(&config, &samples.values).expect("features without deltas are valid where those with deltas are");
        Self { n_bands: config.mel_bins, shift_s: config.shift_ms / 1000.0, values: frames.values }
    }

    /// The range of almost all values: what is quieter or louder is shown as its ends.
    pub fn range(&self) -> (f32, f32) {
        let mut sorted = self.values.clone();
        sorted.sort_unstable_by(f32::total_cmp);
        let at = |share: f64| sorted.get((share * sorted.len().saturating_sub(1) as f64) as usize).copied();
        (at(0.05).unwrap_or(0.0), at(0.998).unwrap_or(1.0))
    }
}

/// The samples of an utterance at the rate of a model.
pub fn samples(recognizer: &Recognizer, utterance: &Utterance) -> Result<Samples, AnalyzeError> {
    let samples = Recording::open(&utterance.path)?.read(utterance.selection)?;
    let path = || utterance.path.display().to_string();
    resample(samples, recognizer.features().sample_rate_hz)
        .map_err(|cause| AnalyzeError::Accept { path: path(), cause: cause.into() })
}
