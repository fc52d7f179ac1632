//! Checkpoints: everything that a restart needs, in one file.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `SRFCKPT1` |
//! | 8 | length of the head, little endian |
//! | n | the head, JSON ([`Head`]) |
//! | 4 each | numbers, `f32` little endian: parameters, Adam's means, Adam's squares, parameters after the last epochs |
//! | 4 | CRC-32 of everything before |
//!
//! Files are written atomically, so that a name always belongs to a complete file.
//! Files are not trusted: sizes are checked against the file before anything of that size is allocated.
//! The same state gives the same bytes.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use srf_audio::features::cmvn::CmvnStats;
use srf_base::files::write_atomically_with;
use srf_model::config::{MAX_PARAMETERS, Recipe};
use srf_model::params::Layout;

const MAGIC: &[u8; 8] = b"SRFCKPT1";
const MAX_HEAD_BYTES: u64 = 64 << 20;
const MAX_KEPT: usize = 10_000;
/// Numbers converted at once.
const CHUNK: usize = 1 << 14;

/// Where a run is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The epoch under way, counted from 1.
    pub epoch: usize,
    /// Batches of it that are done.
    pub n_batches: usize,
    /// Batches done since the start, those left out included.
    pub n_steps: u64,
    /// Updates of the parameters.
    pub n_updates: u64,
    /// Batches left out since the start.
    pub n_skipped: usize,
    /// Those of this epoch.
    pub n_skipped_in_epoch: usize,
    /// Sum of the losses of this epoch.
    pub loss_sum: f64,
    /// Utterances it was taken over.
    pub n_losses: u64,
    /// The rate of the last update.
    pub rate: f64,
    /// The smallest loss on `dev` so far.
    pub best_loss: Option<f64>,
    /// Epochs since then.
    pub n_worse: usize,
    /// Whether nothing is left to do.
    pub is_finished: bool,
}

/// What stands before the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The recipe with all changes, as TOML.
    pub recipe: String,
    /// The labels, as in `labels.txt`.
    pub labels: String,
    /// Changes when the data do.
    pub data_fingerprint: String,
    /// Changes when the model does that this one started from.
    pub from_fingerprint: Option<String>,
    /// Sums over the features of the training set, as Kaldi's matrix.
    pub cmvn: Option<Vec<f64>>,
    /// Where the run is.
    pub state: State,
    /// Numbers in the model.
    pub n_values: usize,
    /// Numbers that gradients change.
    pub n_trainable: usize,
    /// Models after the last epochs.
    pub n_kept: usize,
}

/// The state of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// All but the numbers.
    pub head: Head,
    /// The parameters.
    pub values: Vec<f32>,
    /// Adam's means of gradients.
    pub means: Vec<f32>,
    /// Adam's means of squares.
    pub squares: Vec<f32>,
    /// The parameters after the last epochs, the oldest first.
    pub kept: VecDeque<Vec<f32>>,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum ReadCheckpointError {
    #[error("could not read `{path}`: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("`{path}` is damaged: {problem}")]
    Damaged { path: PathBuf, problem: String },
}

/// A checkpoint that could not be written; the ones before it are untouched.
#[derive(Debug, thiserror::Error)]
#[error("could not write `{path}`: {source}")]
#[allow(missing_docs)] // the messages say what the fields are
pub struct WriteCheckpointError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl Checkpoint {
    fn numbers(&self) -> impl Iterator<Item = &[f32]> {
        let kept = self.kept.iter().map(Vec::as_slice);
        [self.values.as_slice(), &self.means, &self.squares].into_iter().chain(kept)
    }

    /// Writes the file atomically: after a failure the file that was there before is untouched.
    pub fn save(&self, path: &Path) -> Result<(), WriteCheckpointError> {
        let written = write_atomically_with(path, |out| self.write(out));
        written.map_err(|source| WriteCheckpointError { path: path.to_owned(), source })
    }

    /// Whether it is a state of the training that its recipe describes. The checksum says that the bytes are those that
    /// were written, not that they make sense.
    pub fn check(&self) -> Result<(), String> {
        let Head { recipe, state, cmvn, n_values, n_trainable, .. } = &self.head;
        let recipe = Recipe::parse(recipe, Path::new("its recipe")).map_err(|error| error.to_string())?;
        let training = recipe.training.as_ref().ok_or("its recipe has no table `[training]`")?;
        let layout = Layout::new(&recipe.model);
        let counts = [("values", *n_values, layout.n_values()), ("gradients", *n_trainable, layout.n_trainable())];
        for (what, found, expected) in counts {
            if found != expected {
                return Err(format!("it has {found} {what}, the network of its recipe {expected}"));
            }
        }
        let n_statistics = 2 * (recipe.features.n_features() + 1);
        if let Some(cmvn) = cmvn.as_deref().filter(|v| v.len() != n_statistics || CmvnStats::from_kaldi(v).is_none()) {
            return Err(format!("its {} statistics of features are not the {n_statistics} expected", cmvn.len()));
        }
        let n_done = state.epoch.wrapping_sub(1);
        if training.epochs < n_done || state.n_steps < state.n_batches as u64 || state.n_steps < state.n_updates {
            let State { epoch, n_batches, n_steps, .. } = state;
            return Err(format!(
                "it is at batch {n_batches} of epoch {epoch} after {n_steps} steps, but there are {} epochs",
                training.epochs
            ));
        }
        let n_kept = n_done.min(training.average_epochs);
        if self.kept.len() != n_kept || (state.is_finished && n_kept == 0) {
            return Err(format!("it keeps {} epochs, expected {n_kept}", self.kept.len()));
        }
        Ok(())
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut out = Summed { inner: out, sum: crc32fast::Hasher::new() };
        let head = serde_json::to_vec(&self.head).expect("a head has only text keys");
        out.write_all(MAGIC)?;
        out.write_all(&(head.len() as u64).to_le_bytes())?;
        out.write_all(&head)?;
        let mut bytes = Vec::with_capacity(CHUNK * 4);
        for chunk in self.numbers().flat_map(|numbers| numbers.chunks(CHUNK)) {
            bytes.clear();
            chunk.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            out.write_all(&bytes)?;
        }
        let sum = out.sum.clone().finalize();
        out.inner.write_all(&sum.to_le_bytes())
    }

    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self, ReadCheckpointError> {
        let io = |source| ReadCheckpointError::Io { path: path.to_owned(), source };
        let damaged = |problem: String| ReadCheckpointError::Damaged { path: path.to_owned(), problem };
        let file = File::open(path).map_err(io)?;
        let n_bytes = file.metadata().map_err(io)?.len();
        let mut reader = Summed { inner: BufReader::with_capacity(1 << 20, file), sum: crc32fast::Hasher::new() };
        match read(&mut reader, n_bytes) {
            Ok(checkpoint) => Ok(checkpoint),
            Err(Fault::Damaged(problem)) => Err(damaged(problem)),
            Err(Fault::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(damaged(format!("it ends after {n_bytes} bytes, within its numbers")))
            }
            Err(Fault::Io(error)) => Err(io(error)),
        }
    }
}

enum Fault {
    Io(io::Error),
    Damaged(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn read(reader: &mut Summed<impl Read>, n_bytes: u64) -> Result<Checkpoint, Fault> {
    let head = read_head(reader, n_bytes)?;
    let values = read_numbers(reader, head.n_values)?;
    let means = read_numbers(reader, head.n_trainable)?;
    let squares = read_numbers(reader, head.n_trainable)?;
    let kept = (0..head.n_kept).map(|_| read_numbers(reader, head.n_values)).collect::<Result<_, _>>()?;
    let expected = reader.sum.clone().finalize();
    let mut sum = [0; 4];
    reader.inner.read_exact(&mut sum)?;
    let found = u32::from_le_bytes(sum);
    if found != expected {
        return Err(Fault::Damaged(format!("its checksum is {found:08x}, that of its bytes {expected:08x}")));
    }
    Ok(Checkpoint { head, values, means, squares, kept })
}

fn read_head(reader: &mut Summed<impl Read>, n_bytes: u64) -> Result<Head, Fault> {
    let (mut magic, mut n_head) = ([0; 8], [0; 8]);
    reader.read_exact(&mut magic)?;
    reader.read_exact(&mut n_head)?;
    let n_head = u64::from_le_bytes(n_head);
    if magic != *MAGIC || n_head > MAX_HEAD_BYTES.min(n_bytes) {
        return Err(Fault::Damaged("it does not start as a checkpoint does".to_owned()));
    }
    let mut bytes = vec![0; n_head as usize];
    reader.read_exact(&mut bytes)?;
    let head: Head = serde_json::from_slice(&bytes).map_err(|error| Fault::Damaged(format!("its head: {error}")))?;
    let is_sane =
        head.n_values as u64 <= MAX_PARAMETERS && head.n_trainable <= head.n_values && head.n_kept <= MAX_KEPT;
    let n_numbers = || head.n_values as u64 * (1 + head.n_kept as u64) + 2 * head.n_trainable as u64;
    let expected = if is_sane { 8 + 8 + n_head + 4 * n_numbers() + 4 } else { 0 };
    if expected != n_bytes {
        return Err(Fault::Damaged(format!("it has {n_bytes} bytes, its head says {expected}")));
    }
    Ok(head)
}

fn read_numbers(reader: &mut impl Read, n: usize) -> io::Result<Vec<f32>> {
    let mut numbers = Vec::with_capacity(n);
    let mut bytes = vec![0; 4 * CHUNK.min(n)];
    while numbers.len() < n {
        let part = &mut bytes[..4 * CHUNK.min(n - numbers.len())];
        reader.read_exact(part)?;
        let (words, _) = part.as_chunks::<4>();
        numbers.extend(words.iter().map(|word| f32::from_le_bytes(*word)));
    }
    Ok(numbers)
}

/// Bytes and the checksum of those that went through.
struct Summed<T> {
    inner: T,
    sum: crc32fast::Hasher,
}

impl<W: Write> Write for Summed<&mut W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.sum.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(bytes)?;
        self.sum.update(&bytes[..n]);
        Ok(n)
    }
}

#[cfg(test)]
mod tests;
