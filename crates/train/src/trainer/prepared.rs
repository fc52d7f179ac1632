//! Loads what `srf prepare` made: utterances, labels and a fingerprint of the data.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use srf_text::labels::{LabelSet, LoadLabelsError};

use crate::corpus::{DEV, Problem, TRAIN, Utterance, manifest};

/// A corpus to train on.
#[derive(Debug)]
pub struct Prepared {
    /// The folders.
    pub paths: Vec<PathBuf>,
    /// What a model is to write.
    pub labels: LabelSet,
    /// Trained on.
    pub train: Vec<Utterance>,
    /// Measured on after each epoch; may be empty.
    pub dev: Vec<Utterance>,
    /// Changes when a manifest or the labels do, or the size, the start or the end of a recording.
    pub fingerprint: String,
    /// What earlier versions called the fingerprint: without the contents of recordings.
    pub(crate) sizes_fingerprint: String,
    /// Lines of the manifests that are none.
    pub problems: Vec<Problem>,
}

/// Why a folder cannot be trained on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum LoadPreparedError {
    #[error(transparent)]
    Labels(#[from] LoadLabelsError),
    #[error("could not read `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("the labels of `{path}` ({found} classes) are not those of `{first}` ({expected} classes)")]
    OtherLabels { path: PathBuf, found: usize, first: PathBuf, expected: usize },
    #[error("`{path}` has the utterance `{id}` again")]
    Repeated { path: PathBuf, id: String },
    #[error("`{path}` lists no utterance to train on")]
    Nothing { path: PathBuf },
}

impl LoadPreparedError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::OtherLabels { .. } => {
                "prepare them with the same `--map`, or the second with `--labels` of the first"
            }
            Self::Repeated { .. } => "give each corpus once, with names of its own",
            Self::Labels(_) | Self::Read { .. } | Self::Nothing { .. } => {
                "`--data` is a folder that `srf prepare` made, with `train.jsonl` and `labels.txt`"
            }
        };
        Some(hint.to_owned())
    }
}

impl Prepared {
    /// Reads the folder at `path`.
    pub fn load(path: &Path) -> Result<Self, LoadPreparedError> {
        let labels_path = path.join("labels.txt");
        let labels = LabelSet::load(&labels_path)?;
        let mut sum = Fingerprints::default();
        sum.update(labels.format().as_bytes());
        let mut problems = Vec::new();
        let train_path = path.join(format!("{TRAIN}.jsonl"));
        let train = part(&train_path, &mut sum, &mut problems)?;
        if train.is_empty() {
            return Err(LoadPreparedError::Nothing { path: train_path });
        }
        let dev_path = path.join(format!("{DEV}.jsonl"));
        let dev = if dev_path.is_file() { part(&dev_path, &mut sum, &mut problems)? } else { Vec::new() };
        let [fingerprint, sizes_fingerprint] = sum.finalize();
        Ok(Self { paths: vec![path.to_owned()], labels, train, dev, fingerprint, sizes_fingerprint, problems })
    }

    /// Reads several folders as one corpus.
    #[track_caller]
    pub fn load_all(paths: &[PathBuf]) -> Result<Self, LoadPreparedError> {
        let (first, rest) = paths.split_first().expect("a corpus is at least one folder");
        rest.iter().try_fold(Self::load(first)?, |all, path| all.join(Self::load(path)?))
    }

    fn join(mut self, mut next: Self) -> Result<Self, LoadPreparedError> {
        self.check_joins(&next)?;
        self.paths.append(&mut next.paths);
        self.train.append(&mut next.train);
        self.dev.append(&mut next.dev);
        self.fingerprint.push_str(&next.fingerprint);
        self.sizes_fingerprint.push_str(&next.sizes_fingerprint);
        self.problems.append(&mut next.problems);
        Ok(self)
    }

    fn check_joins(&self, next: &Self) -> Result<(), LoadPreparedError> {
        let [first, path] = [self, next].map(|corpus| corpus.paths[0].clone());
        if self.labels != next.labels {
            let [expected, found] = [self, next].map(|corpus| corpus.labels.n_classes());
            return Err(LoadPreparedError::OtherLabels { path, found, first, expected });
        }
        let known: HashSet<&str> = self.ids().collect();
        match next.ids().find(|id| known.contains(id)) {
            Some(id) => Err(LoadPreparedError::Repeated { path, id: id.to_owned() }),
            None => Ok(()),
        }
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        self.train.iter().chain(&self.dev).map(|utterance| utterance.id.as_str())
    }

    /// The folders for people: `a + b`.
    pub fn names(&self) -> String {
        joined(self.paths.iter().map(PathBuf::as_path))
    }

    /// The manifests of a part for people: `a/dev.jsonl + b/dev.jsonl`.
    pub fn manifests(&self, part: &str) -> String {
        let paths: Vec<PathBuf> = self.paths.iter().map(|path| path.join(format!("{part}.jsonl"))).collect();
        joined(paths.iter().map(PathBuf::as_path))
    }
}

fn joined<'a>(paths: impl Iterator<Item = &'a Path>) -> String {
    let names: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    names.join(" + ")
}

/// Checksums of a corpus: of all that is looked at, and of what earlier versions looked at.
#[derive(Default)]
struct Fingerprints {
    all: crc32fast::Hasher,
    sizes: crc32fast::Hasher,
}

impl Fingerprints {
    fn update(&mut self, bytes: &[u8]) {
        self.all.update(bytes);
        self.sizes.update(bytes);
    }

    fn finalize(self) -> [String; 2] {
        [self.all, self.sizes].map(|sum| format!("{:08x}", sum.finalize()))
    }
}

fn part(path: &Path, sum: &mut Fingerprints, problems: &mut Vec<Problem>) -> Result<Vec<Utterance>, LoadPreparedError> {
    let bytes = fs::read(path).map_err(|source| LoadPreparedError::Read { path: path.to_owned(), source })?;
    sum.update(&bytes);
    let (listed, found) = manifest::read(bytes.as_slice(), path);
    problems.extend(found);
    let utterances: Vec<Utterance> = listed.into_iter().map(|listed| listed.utterance).collect();
    // Utterances of one recording follow each other: it is looked at once.
    let mut runs: Vec<&[Utterance]> = utterances.chunk_by(|a, b| a.audio.path == b.audio.path).collect();
    let looks: Vec<(u64, u32)> = runs.par_iter().map(|run| look_at(&run[0].audio.path)).collect();
    for (run, (n_bytes, content)) in runs.drain(..).zip(looks) {
        sum.all.update(&content.to_le_bytes());
        run.iter().for_each(|_| sum.update(&n_bytes.to_le_bytes()));
    }
    Ok(utterances)
}

/// Bytes at the start and at the end of a recording that its fingerprint covers.
const EDGE_BYTES: u64 = 4096;

/// The size of a recording, and a checksum of its start and its end; one that is missing is reported when it is read.
fn look_at(path: &Path) -> (u64, u32) {
    let mut sum = crc32fast::Hasher::new();
    let mut look = || -> io::Result<u64> {
        let mut file = fs::File::open(path)?;
        let n_bytes = file.metadata()?.len();
        for start in [0, n_bytes.saturating_sub(EDGE_BYTES)] {
            let mut edge = Vec::new();
            file.seek(io::SeekFrom::Start(start))?;
            file.by_ref().take(EDGE_BYTES).read_to_end(&mut edge)?;
            sum.update(&edge);
        }
        Ok(n_bytes)
    };
    let n_bytes = look().unwrap_or(0);
    (n_bytes, sum.finalize())
}
