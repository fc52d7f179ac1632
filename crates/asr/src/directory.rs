//! A model as a directory: everything that recognition needs in, the same out.
//!
//! | file | holds |
//! |---|---|
//! | `config.toml` | the tables `[model]` and `[features]` of a recipe |
//! | `weights.safetensors` | the numbers of the network ([`srf_model::weights`]) |
//! | `labels.txt` | what its classes stand for ([`srf_text::labels`]) |
//! | `cmvn.json` | sums of the training set's features; needed where they are normalised by them |
//! | `times.json` | what to add to the start and end of each label, in seconds; absent where it was not learned |
//! | `card.md` | what a person should know of the model; may be absent |
//!
//! Directories are not trusted: every file has a limit, sizes are checked before anything of that size is allocated,
//! and what does not fit together is told in one line.

mod error;
mod statistics;

pub use error::{InvalidParts, ReadModelError, WriteModelError};

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use srf_audio::features::cmvn::{CmvnMode, CmvnStats};
use srf_model::config::{FeaturesConfig, ModelConfig, Recipe};
use srf_model::init::initialise;
use srf_model::params::{Layout, Params};
use srf_model::weights;
use srf_text::label_timing::LabelTiming;
use srf_text::labels::LabelSet;

use crate::features::mapping;

const CONFIG: &str = "config.toml";
const WEIGHTS: &str = "weights.safetensors";
const LABELS: &str = "labels.txt";
const CMVN: &str = "cmvn.json";
const TIMES: &str = "times.json";
const CARD: &str = "card.md";

const MAX_CMVN_BYTES: u64 = 4 << 20;
const MAX_TIMES_BYTES: u64 = 16 << 20;
const MAX_CARD_BYTES: u64 = 1 << 20;

/// Everything that a model directory holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelParts {
    /// The network.
    pub model: ModelConfig,
    /// What it reads.
    pub features: FeaturesConfig,
    /// What its classes stand for.
    pub labels: LabelSet,
    /// Sums over the features of the training set.
    pub cmvn: Option<CmvnStats>,
    /// Corrects the times of labels; empty if it was not fitted.
    pub label_timing: LabelTiming,
    /// The numbers of the network, as [`Layout`] orders them.
    pub values: Vec<f32>,
    /// What a person should know of it, in Markdown.
    pub card: String,
}

impl ModelParts {
    /// A model with the first weights that `seed` gives: what it writes is nonsense, how it does so is not.
    pub fn untrained(model: ModelConfig, features: FeaturesConfig, labels: LabelSet, seed: u64) -> Self {
        let values = initialise::<f32>(Arc::new(Layout::new(&model)), seed).values;
        Self { model, features, labels, cmvn: None, label_timing: LabelTiming::default(), values, card: String::new() }
    }

    /// Whether the parts fit each other.
    pub fn check(&self) -> Result<(), InvalidParts> {
        self.recipe().validate()?;
        let front_end = mapping(&self.features);
        front_end.check()?;
        let (found, expected) = (self.labels.n_classes(), self.model.n_classes());
        if found != expected {
            return Err(InvalidParts::Classes { found, expected });
        }
        let (found, expected) = (self.values.len(), Layout::new(&self.model).n_values());
        if found != expected {
            return Err(InvalidParts::Weights { found, expected });
        }
        match &self.cmvn {
            Some(stats) if stats.n_dims() != front_end.n_dims() => {
                Err(InvalidParts::CmvnWidth { found: stats.n_dims(), expected: front_end.n_dims() })
            }
            None if front_end.cmvn.mode == CmvnMode::Global => Err(InvalidParts::NoStatistics),
            _ => Ok(()),
        }
    }

    /// The configuration file.
    fn recipe(&self) -> Recipe {
        Recipe { model: self.model.clone(), features: self.features.clone(), training: None }
    }
}

/// Reads the model directory `dir`.
pub fn read(dir: &Path) -> Result<ModelParts, ReadModelError> {
    if !dir.is_dir() {
        return Err(ReadModelError::NotADirectory { path: dir.to_owned() });
    }
    let config = dir.join(CONFIG);
    let Recipe { model, features, .. } = Recipe::load(&config)?;
    let labels = LabelSet::load(&dir.join(LABELS))?;
    let cmvn = read_statistics(dir.join(CMVN))?;
    let label_timing = read_times(dir.join(TIMES), &labels)?;
    let card = read_text(&dir.join(CARD), MAX_CARD_BYTES)?.unwrap_or_default();
    let weights = dir.join(WEIGHTS);
    let (found, params) = weights::load(&weights)?;
    if found != model {
        return Err(ReadModelError::OtherModel { weights, config });
    }
    let parts = ModelParts { model, features, labels, cmvn, label_timing, values: params.values, card };
    parts.check().map_err(|cause| ReadModelError::Parts { path: dir.to_owned(), cause })?;
    Ok(parts)
}

/// Writes a model directory, the weights last and all at once.
pub fn write(dir: &Path, parts: &ModelParts) -> Result<(), WriteModelError> {
    parts.check()?;
    let io = |path: &Path| {
        let path = path.to_owned();
        |source| WriteModelError::Io { path, source }
    };
    fs::create_dir_all(dir).map_err(io(dir))?;
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        fs::write(&path, text).map_err(io(&path))
    };
    write(CONFIG, &parts.recipe().format())?;
    write(LABELS, &parts.labels.format())?;
    write(CARD, &parts.card)?;
    let times = (!parts.label_timing.is_empty()).then(|| parts.label_timing.format(&parts.labels));
    for (name, text) in [(CMVN, parts.cmvn.as_ref().map(statistics::format)), (TIMES, times)] {
        match text {
            Some(text) => write(name, &text)?,
            // What was learned of an earlier model must not outlive it.
            None if dir.join(name).exists() => fs::remove_file(dir.join(name)).map_err(io(&dir.join(name)))?,
            None => {}
        }
    }
    let params = Params { values: parts.values.clone(), layout: Arc::new(Layout::new(&parts.model)) };
    Ok(weights::save(&dir.join(WEIGHTS), &parts.model, &params)?)
}

fn read_statistics(path: PathBuf) -> Result<Option<CmvnStats>, ReadModelError> {
    let Some(text) = read_text(&path, MAX_CMVN_BYTES)? else { return Ok(None) };
    statistics::parse(&text).map(Some).map_err(|message| ReadModelError::Cmvn { path, message })
}

fn read_times(path: PathBuf, labels: &LabelSet) -> Result<LabelTiming, ReadModelError> {
    let Some(text) = read_text(&path, MAX_TIMES_BYTES)? else { return Ok(LabelTiming::default()) };
    LabelTiming::parse(&text, labels).map_err(|message| ReadModelError::Times { path, message })
}

/// The text of a file of limited size; `None` where there is no such file.
fn read_text(path: &Path, most: u64) -> Result<Option<String>, ReadModelError> {
    let io = |source| ReadModelError::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(io)?,
    };
    let mut limited = file.take(most + 1);
    let mut text = String::new();
    limited.read_to_string(&mut text).map_err(io)?;
    if limited.limit() == 0 {
        return Err(ReadModelError::TooLarge { path: path.to_owned(), most });
    }
    Ok(Some(text))
}
