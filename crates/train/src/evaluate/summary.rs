//! An evaluation in numbers: what `evaluation.json` holds, and what other commands read of it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use srf_score::{Counts, Speaker};
use srf_text::decode::{DecoderConfig, Search};
use srf_text::labels::mapping::PhoneMapping;

use super::{Evaluation, Rate};

/// Name of the file in the directory of an evaluation.
pub const FILE_NAME: &str = "evaluation.json";

/// Far more than any evaluation has.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// What a model is worth on some utterances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The model.
    pub model: String,
    /// The manifest.
    pub manifest: String,
    /// How hypotheses were searched for.
    pub search: String,
    /// The set that phones were mapped to.
    pub mapping: Option<String>,
    /// Utterances that were scored.
    pub n_utterances: usize,
    /// Their length.
    pub audio_s: f64,
    /// How long recognition took.
    pub recognition_s: f64,
    /// Time of recognition for each second of audio.
    pub real_time_factor: Option<f64>,
    /// Threads it ran on.
    pub n_threads: usize,
    /// Error rates, the one that matters most first.
    pub rates: Vec<RateSummary>,
    /// Utterances that are in no figure.
    pub left_out: Vec<LeftOutSummary>,
}

/// One error rate; shares are between 0 and 1, but for insertions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateSummary {
    /// `PER`, `WER` or `CER`.
    pub measure: String,
    /// Errors for each label of the reference.
    pub rate: Option<f64>,
    /// 2.5 % of the draws lie below.
    pub low: f64,
    /// 2.5 % of the draws lie above.
    pub high: f64,
    /// The sums.
    #[serde(flatten)]
    pub counts: CountsSummary,
    /// Utterances with an error.
    pub n_utterances_wrong: usize,
    /// Their share.
    pub sentence_error_rate: Option<f64>,
    /// Normalised cross entropy of confidences.
    pub nce: Option<f64>,
    /// Expected calibration error of confidences.
    pub ece: Option<f64>,
    /// The same by speaker.
    pub speakers: Vec<SpeakerSummary>,
}

/// Right and wrong labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CountsSummary {
    /// Labels of the reference.
    pub n_reference: usize,
    /// All errors.
    pub n_errors: usize,
    /// Others in their place.
    pub substitutions: usize,
    /// Missing ones.
    pub deletions: usize,
    /// Extra ones.
    pub insertions: usize,
}

/// Errors of one speaker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeakerSummary {
    /// Who.
    pub name: String,
    /// Utterances.
    pub n_utterances: usize,
    /// Utterances with an error.
    pub n_utterances_wrong: usize,
    /// Errors for each label of the reference.
    pub rate: Option<f64>,
    /// The sums.
    #[serde(flatten)]
    pub counts: CountsSummary,
}

/// An utterance that is in no figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOutSummary {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// What was evaluated and how, as it is to be named.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The model.
    pub model: String,
    /// The manifest.
    pub manifest: String,
    /// How hypotheses were searched for.
    pub search: String,
    /// The set that phones were mapped to.
    pub mapping: Option<String>,
}

impl Subject {
    /// A model that is to be evaluated on a manifest in this way.
    pub fn new(model: &Path, manifest: &Path, decoder: &DecoderConfig, mapping: Option<PhoneMapping>) -> Self {
        let search = match decoder.search {
            Search::Greedy => "greedy".to_owned(),
            Search::Beam { width } => format!("beam {width}"),
        };
        Self {
            model: model.display().to_string(),
            manifest: manifest.display().to_string(),
            search: if decoder.fusion.is_some() { search + " with fusion" } else { search },
            mapping: mapping.map(|mapping| mapping.to_string()),
        }
    }
}

impl Summary {
    /// The numbers of an evaluation.
    pub fn of(evaluation: &Evaluation, subject: &Subject) -> Self {
        let Subject { model, manifest, search, mapping } = subject.clone();
        let left_out = evaluation.left_out.iter();
        Self {
            model,
            manifest,
            search,
            mapping,
            n_utterances: evaluation.answers.len(),
            audio_s: evaluation.audio_s,
            recognition_s: evaluation.recognition_s,
            real_time_factor: evaluation.real_time_factor(),
            n_threads: evaluation.n_threads,
            rates: evaluation.rates.iter().map(RateSummary::from).collect(),
            left_out: left_out.map(|l| LeftOutSummary { id: l.id.clone(), reason: l.reason.clone() }).collect(),
        }
    }

    /// Reads the numbers at `path`.
    pub fn load(path: &Path) -> Result<Self, LoadSummaryError> {
        let read = |source| LoadSummaryError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        File::open(path).map_err(read)?.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(read)?;
        serde_json::from_str(&text).map_err(|source| LoadSummaryError::Json { path: path.to_owned(), source })
    }
}

/// Why the numbers of an evaluation could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadSummaryError {
    /// The system would not let us.
    #[error("could not read `{path}`: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("`{path}` is no evaluation: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

impl From<&Rate> for RateSummary {
    fn from(rate: &Rate) -> Self {
        let Rate { measure, system, interval, confidences } = rate;
        let (counts, n_wrong, n) = (system.counts(), system.n_wrong(), system.n_utterances());
        Self {
            measure: measure.name().to_owned(),
            rate: counts.error_rate(),
            low: interval.low,
            high: interval.high,
            counts: counts.into(),
            n_utterances_wrong: n_wrong,
            sentence_error_rate: (n > 0).then(|| n_wrong as f64 / n as f64),
            nce: confidences.as_ref().and_then(|confidences| confidences.nce),
            ece: confidences.as_ref().map(|confidences| confidences.ece),
            speakers: system.speakers.iter().map(SpeakerSummary::from).collect(),
        }
    }
}

impl From<&Speaker> for SpeakerSummary {
    fn from(speaker: &Speaker) -> Self {
        Self {
            name: String::from_utf8_lossy(&speaker.name).into_owned(),
            n_utterances: speaker.utterances.len(),
            n_utterances_wrong: speaker.n_wrong,
            rate: speaker.counts.error_rate(),
            counts: speaker.counts.into(),
        }
    }
}

impl From<Counts> for CountsSummary {
    fn from(counts: Counts) -> Self {
        Self {
            n_reference: counts.n_reference(),
            n_errors: counts.n_errors(),
            substitutions: counts.substitutions,
            deletions: counts.deletions,
            insertions: counts.insertions,
        }
    }
}
