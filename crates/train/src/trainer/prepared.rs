//! What `srf prepare` made: a folder in, utterances, labels and a fingerprint out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use text::labels::{LabelSet, LoadLabelsError};

use crate::corpus::{DEV, Problem, TRAIN, Utterance, manifest};

/// A corpus to train on.
#[derive(Debug)]
pub struct Prepared {
    /// The folder.
    pub path: PathBuf,
    /// What a model is to write.
    pub labels: LabelSet,
    /// Trained on.
    pub train: Vec<Utterance>,
    /// Measured on after each epoch; may be empty.
    pub dev: Vec<Utterance>,
    /// Changes when a manifest, the labels or the size of a recording does.
    pub fingerprint: String,
    /// Lines of the manifests that are none.
    pub problems: Vec<Problem>,
}

/// Why a folder cannot be trained on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadPreparedError {
    /// The labels.
    #[error(transparent)]
    Labels(#[from] LoadLabelsError),
    /// A manifest.
    #[error("could not read `{path}`: {source}")]
    Read {
        /// The manifest.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody says anything.
    #[error("`{path}` lists no utterance to train on")]
    Nothing {
        /// The manifest.
        path: PathBuf,
    },
}

impl LoadPreparedError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some("`--data` is a folder that `srf prepare` made, with `train.jsonl` and `labels.txt`".to_owned())
    }
}

impl Prepared {
    /// Reads the folder at `path`.
    pub fn load(path: &Path) -> Result<Self, LoadPreparedError> {
        let labels_path = path.join("labels.txt");
        let labels = LabelSet::load(&labels_path)?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(labels.format().as_bytes());
        let mut problems = Vec::new();
        let train_path = path.join(format!("{TRAIN}.jsonl"));
        let train = part(&train_path, &mut sum, &mut problems)?;
        if train.is_empty() {
            return Err(LoadPreparedError::Nothing { path: train_path });
        }
        let dev_path = path.join(format!("{DEV}.jsonl"));
        let dev = if dev_path.is_file() { part(&dev_path, &mut sum, &mut problems)? } else { Vec::new() };
        let fingerprint = format!("{:08x}", sum.finalize());
        Ok(Self { path: path.to_owned(), labels, train, dev, fingerprint, problems })
    }
}

fn part(
    path: &Path,
    sum: &mut crc32fast::Hasher,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Utterance>, LoadPreparedError> {
    let bytes = fs::read(path).map_err(|source| LoadPreparedError::Read { path: path.to_owned(), source })?;
    sum.update(&bytes);
    let (listed, found) = manifest::read(bytes.as_slice(), path);
    problems.extend(found);
    let utterances: Vec<Utterance> = listed.into_iter().map(|listed| listed.utterance).collect();
    for utterance in &utterances {
        // A recording that is not there is told when it is read.
        let n_bytes = fs::metadata(&utterance.audio.path).map_or(0, |metadata| metadata.len());
        sum.update(&n_bytes.to_le_bytes());
    }
    Ok(utterances)
}
