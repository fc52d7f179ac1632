//! The model directory: everything that recognition needs, in files.
//!
//! | file | holds |
//! |---|---|
//! | `config.toml` | the tables `[model]` and `[features]` of a recipe |
//! | `weights.safetensors` | the weights of the network ([`srf_model::weights`]) |
//! | `labels.txt` | the labels of its classes ([`srf_text::labels`]) |
//! | `cmvn.json` | sums of the training set's features; required where they are normalised by them |
//! | `times.json` | corrections of the start and end of each label, in seconds; optional |
//! | `card.md` | the model card for people; optional |
//! | `words.bin`, `decoding.json` | lexicon and language model, and how much they count ([`crate::words`]); optional |
//!
//! Directories are not trusted: every file has a limit, sizes are checked before anything of that size is allocated,
//! and parts that do not fit together are reported in one line.
//!
//! ```
//! use std::path::Path;
//! use srf::directory::{InvalidParts, ModelParts, ReadModelError, WriteModelError, read, resolve, write};
//! use srf::model::config::{ModelConfig, SrfConfig};
//! use srf::{FeaturesConfig, LabelSet, Recognizer, Units};
//!
//! let labels = LabelSet::new(Units::Chars, [" ", "a", "b"])?;
//! let features = FeaturesConfig { mel_bins: 4, ..FeaturesConfig::default() };
//! let config = SrfConfig { features: features.n_features(), layers: 1, ..SrfConfig::new(labels.n_classes()) };
//! let parts = ModelParts::untrained(ModelConfig::Srf(config), features, labels, 1);
//!
//! let dir = tempfile::tempdir()?;
//! let path = dir.path().join("run/model");
//! std::fs::create_dir_all(&path)?;
//! match write(&path, &parts) {
//!     Err(WriteModelError::Parts(InvalidParts::NoStatistics)) => println!("normalised over the corpus, needs `cmvn`"),
//!     other => other?,
//! }
//! // The directory of a training run stands for the model in it.
//! assert_eq!(resolve(&dir.path().join("run")), path);
//! assert_eq!(read(&path)?.values, parts.values);
//! assert!(matches!(read(Path::new("nowhere")), Err(ReadModelError::NotADirectory { .. })));
//!
//! // The same without files.
//! parts.check()?;
//! let recognizer = Recognizer::from_parts(parts)?;
//! assert_eq!(recognizer.labels().n_classes(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod model_files;

pub use error::{InvalidParts, ReadModelError, WriteModelError};
pub(crate) use model_files::ModelFiles;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use srf_audio::features::cmvn::CmvnStats;
use srf_audio::features::{Cmvn, FeaturesConfig};
use srf_base::files;
use srf_base::random::hash_of;
use srf_model::config::{ModelConfig, Recipe};
use srf_model::params::{Layout, Params};
use srf_model::weights::{self, Metadata, SaveOptions};
use srf_text::label_timing::LabelTiming;
use srf_text::labels::LabelSet;

const CONFIG: &str = "config.toml";
const WEIGHTS: &str = "weights.safetensors";
const LABELS: &str = "labels.txt";
const CMVN: &str = "cmvn.json";
const TIMES: &str = "times.json";
const CARD: &str = "card.md";
const FILES: [&str; 6] = [CONFIG, WEIGHTS, LABELS, CMVN, TIMES, CARD];

const MAX_CMVN_BYTES: u64 = 4 << 20;
const MAX_TIMES_BYTES: u64 = 16 << 20;
const MAX_CARD_BYTES: u64 = 1 << 20;

/// Everything that a model directory holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelParts {
    /// The network.
    pub model: ModelConfig,
    /// The features it reads.
    pub features: FeaturesConfig,
    /// The labels of its classes.
    pub labels: LabelSet,
    /// Sums over the features of the training set.
    pub cmvn: Option<CmvnStats>,
    /// Corrects the times of labels; empty if it was not fitted.
    pub label_timing: LabelTiming,
    /// The weights, in the order of [`Layout`].
    pub values: Vec<f32>,
    /// The model card, in Markdown.
    pub card: String,
}

impl ModelParts {
    /// A model with random weights by `seed`, for benchmarks and tests.
    pub fn untrained(model: ModelConfig, features: FeaturesConfig, labels: LabelSet, seed: u64) -> Self {
        let values = Params::<f32>::initialize(Arc::new(Layout::new(&model)), seed).values;
        Self { model, features, labels, cmvn: None, label_timing: LabelTiming::default(), values, card: String::new() }
    }

    /// Whether the parts fit each other.
    pub fn check(&self) -> Result<(), InvalidParts> {
        self.recipe().validate()?;
        let (found, expected) = (self.labels.n_classes(), self.model.n_classes());
        if found != expected {
            return Err(InvalidParts::Classes { found, expected });
        }
        let (found, expected) = (self.values.len(), Layout::new(&self.model).n_values());
        if found != expected {
            return Err(InvalidParts::Weights { found, expected });
        }
        match &self.cmvn {
            Some(stats) if stats.n_dims() != self.features.n_features() => {
                Err(InvalidParts::CmvnWidth { found: stats.n_dims(), expected: self.features.n_features() })
            }
            None if self.features.cmvn == Cmvn::Global => Err(InvalidParts::NoStatistics),
            _ => Ok(()),
        }
    }

    /// The configuration file.
    fn recipe(&self) -> Recipe {
        Recipe { model: self.model.clone(), features: self.features.clone(), training: None }
    }
}

/// The model directory that `path` means: `path` itself, or `model` in it if it is the directory of a training run.
pub fn resolve(path: &Path) -> PathBuf {
    let inside = path.join("model");
    let is_run = !path.join(CONFIG).exists() && inside.join(CONFIG).exists();
    if is_run { inside } else { path.to_owned() }
}

/// Reads the model directory `dir`.
pub fn read(dir: &Path) -> Result<ModelParts, ReadModelError> {
    let dir = &*resolve(dir);
    if !dir.is_dir() {
        return Err(ReadModelError::NotADirectory { path: dir.to_owned() });
    }
    read_files(&ModelFiles::Folder(dir))
}

/// Reads a model from its files.
pub(crate) fn read_files(files: &ModelFiles<'_>) -> Result<ModelParts, ReadModelError> {
    let Recipe { model, features, .. } = files.recipe()?;
    let labels = files.labels()?;
    let cmvn = read_statistics(files)?;
    let label_timing = read_times(files, &labels)?;
    let card = files.text(CARD, MAX_CARD_BYTES)?.unwrap_or_default();
    let (found, params, metadata) = files.weights()?;
    if found != model {
        return Err(ReadModelError::OtherModel { weights: files.path(WEIGHTS), config: files.path(CONFIG) });
    }
    let parts = ModelParts { model, features, labels, cmvn, label_timing, values: params.values, card };
    parts.check().map_err(|cause| ReadModelError::Parts { path: files.name(), cause })?;
    check_hashes(files, &metadata)?;
    Ok(parts)
}

/// Writes a model directory and replaces the one that is there as a whole.
///
/// The hashes of its files go into the metadata of the weights, so that files of different models are not mixed
/// unnoticed. On failure the old directory stays as it was. Files that are not part of a model are kept.
pub fn write(dir: &Path, parts: &ModelParts) -> Result<(), WriteModelError> {
    parts.check()?;
    // A link or `.` cannot be renamed.
    let dir = &fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let partial = files::partial_path(dir);
    let written = write_files(&partial, parts)
        .and_then(|()| replace(&partial, dir).map_err(|source| WriteModelError::Io { path: dir.clone(), source }));
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

fn write_files(dir: &Path, parts: &ModelParts) -> Result<(), WriteModelError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        |source| WriteModelError::Io { path, source }
    };
    if dir.exists() {
        // Left over by a program that was killed.
        fs::remove_dir_all(dir).map_err(io(dir))?;
    }
    fs::create_dir_all(dir).map_err(io(dir))?;
    let texts = [
        (CONFIG, Some(parts.recipe().format())),
        (LABELS, Some(parts.labels.format())),
        (CMVN, parts.cmvn.as_ref().map(format_statistics)),
        (TIMES, (!parts.label_timing.is_empty()).then(|| parts.label_timing.format(&parts.labels))),
    ];
    let mut metadata = Metadata::new();
    for (name, text) in texts {
        let Some(text) = text else { continue };
        let path = dir.join(name);
        files::write_atomically(&path, text.as_bytes()).map_err(io(&path))?;
        metadata.insert(hash_key(name), hash(&text));
    }
    let card = dir.join(CARD);
    files::write_atomically(&card, parts.card.as_bytes()).map_err(io(&card))?;
    let params = Params { values: parts.values.clone(), layout: Arc::new(Layout::new(&parts.model)) };
    let options = SaveOptions { metadata, ..SaveOptions::default() };
    Ok(weights::save_with(&dir.join(WEIGHTS), &parts.model, &params, &options)?)
}

/// Puts the folder `new` in the place of `dir`.
fn replace(new: &Path, dir: &Path) -> io::Result<()> {
    if !dir.exists() {
        fs::rename(new, dir)?;
        return files::sync_folder_of(dir);
    }
    let mut old = dir.as_os_str().to_owned();
    old.push(".old");
    let old = PathBuf::from(old);
    if old.exists() {
        fs::remove_dir_all(&old)?;
    }
    fs::rename(dir, &old)?;
    if let Err(error) = fs::rename(new, dir) {
        fs::rename(&old, dir)?;
        return Err(error);
    }
    for entry in fs::read_dir(&old)? {
        let name = entry?.file_name();
        if !FILES.iter().any(|file| name == *file) {
            fs::rename(old.join(&name), dir.join(&name))?;
        }
    }
    fs::remove_dir_all(&old)?;
    files::sync_folder_of(dir)
}

/// Whether the files are those that the weights were written with; models of earlier versions do not say.
fn check_hashes(files: &ModelFiles<'_>, metadata: &Metadata) -> Result<(), ReadModelError> {
    if !metadata.contains_key(&hash_key(CONFIG)) {
        return Ok(());
    }
    for name in [CONFIG, LABELS, CMVN, TIMES] {
        let found = files.text(name, MAX_TIMES_BYTES)?.map(|text| hash(&text));
        if found.as_ref() != metadata.get(&hash_key(name)) {
            return Err(ReadModelError::OtherFile { path: files.path(name), weights: files.path(WEIGHTS) });
        }
    }
    Ok(())
}

/// The metadata of the weights that holds the hash of a file.
fn hash_key(name: &str) -> String {
    format!("hash.{name}")
}

fn hash(text: &str) -> String {
    format!("{:016x}", hash_of(text))
}

fn read_statistics(files: &ModelFiles<'_>) -> Result<Option<CmvnStats>, ReadModelError> {
    let Some(text) = files.text(CMVN, MAX_CMVN_BYTES)? else { return Ok(None) };
    let statistics =
        parse_statistics(&text).map_err(|message| ReadModelError::Cmvn { path: files.path(CMVN), message });
    statistics.map(Some)
}

fn read_times(files: &ModelFiles<'_>, labels: &LabelSet) -> Result<LabelTiming, ReadModelError> {
    let Some(text) = files.text(TIMES, MAX_TIMES_BYTES)? else { return Ok(LabelTiming::default()) };
    LabelTiming::parse(&text, labels).map_err(|message| ReadModelError::Times { path: files.path(TIMES), message })
}

/// The object in `cmvn.json`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statistics {
    n_frames: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

fn format_statistics(stats: &CmvnStats) -> String {
    let values = stats.to_kaldi();
    let (sums, squares) = values.split_at(values.len() / 2);
    let without_last = |row: &[f64]| row[..stats.n_dims()].to_vec();
    let statistics =
        Statistics { n_frames: stats.n_frames(), sums: without_last(sums), squares: without_last(squares) };
    serde_json::to_string(&statistics).expect("numbers and lists of them have a JSON form") + "\n"
}

fn parse_statistics(text: &str) -> Result<CmvnStats, String> {
    let Statistics { n_frames, sums, squares } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if sums.len() != squares.len() {
        return Err(format!("found {} sums and {} squares, expected as many of each", sums.len(), squares.len()));
    }
    let expected = "expected at least one frame and finite numbers";
    CmvnStats::from_kaldi(&[sums.as_slice(), &[n_frames], &squares, &[0.0]].concat())
        .ok_or_else(|| format!("found statistics of {n_frames} frames, {expected}"))
}
