//! The directory of a run: its lock, its checkpoints and its files.
//!
//! | name | holds |
//! |---|---|
//! | `recipe.toml` | the recipe with all changes |
//! | `run.json` | command, versions, seed, data and machine |
//! | `log.jsonl` | everything that happened ([`crate::events`]) |
//! | `checkpoints/` | the last good states ([`super::checkpoint`]) |
//! | `model/` | the finished model |
//! | `failed/` | state and batch at which a run gave up |
//! | `damaged/`, `old-N/` | checkpoints that could not be used, and runs before a restart |

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use srf_base::files::write_atomically;

use super::checkpoint::{Checkpoint, ReadCheckpointError};

/// Checkpoints that stay.
const N_CHECKPOINTS: usize = 2;
const EXTENSION: &str = "ckpt";

/// Why a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum RunDirError {
    #[error("could not write `{path}`: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("`{path}` is in use by another training run")]
    InUse { path: PathBuf },
}

impl RunDirError {
    pub(crate) fn write(path: &Path) -> impl Fn(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path: path.clone(), source }
    }
}

/// A run directory that belongs to this process.
pub(crate) struct RunDir {
    path: PathBuf,
    /// Held, not read: the system lets go of the lock when the process ends, however it ends.
    _lock: File,
}

/// A checkpoint that can be used.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) checkpoint: Checkpoint,
}

impl RunDir {
    /// Makes the directory if it is not there, and takes its lock.
    pub(crate) fn open(path: &Path) -> Result<Self, RunDirError> {
        let checkpoints = path.join("checkpoints");
        fs::create_dir_all(&checkpoints).map_err(RunDirError::write(&checkpoints))?;
        let lock_path = path.join("lock");
        let lock = OpenOptions::new().create(true).append(true).open(&lock_path);
        let lock = lock.map_err(RunDirError::write(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(RunDirError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => Err(RunDirError::Write { path: lock_path, source }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The checkpoint after `n_steps` steps.
    pub(crate) fn checkpoint(&self, n_steps: u64) -> PathBuf {
        self.path.join("checkpoints").join(format!("step-{n_steps:010}.{EXTENSION}"))
    }

    /// All checkpoints, the newest first.
    fn checkpoints(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path.join("checkpoints")).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        paths.sort();
        paths.reverse();
        paths
    }

    /// The newest checkpoint that can be used, and why newer ones cannot.
    pub(crate) fn latest(&self) -> (Option<Found>, Vec<ReadCheckpointError>) {
        let mut problems = Vec::new();
        for path in self.checkpoints() {
            let damaged = |problem| ReadCheckpointError::Damaged { path: path.clone(), problem };
            let loaded = Checkpoint::load(&path);
            match loaded.and_then(|checkpoint| checkpoint.check().map(|()| checkpoint).map_err(damaged)) {
                Ok(checkpoint) => return (Some(Found { path, checkpoint }), problems),
                Err(problem) => problems.push(problem),
            }
        }
        (None, problems)
    }

    /// Removes old checkpoints, and what a killed process left half written; whatever cannot be removed stays.
    pub(crate) fn tidy(&self) {
        for old in self.checkpoints().into_iter().skip(N_CHECKPOINTS) {
            let _ = fs::remove_file(old);
        }
        let entries = fs::read_dir(self.path.join("checkpoints")).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "partial") {
                let _ = fs::remove_file(path);
            }
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), RunDirError> {
        let path = self.path.join(name);
        write_atomically(&path, text.as_bytes()).map_err(RunDirError::write(&path))
    }
}

/// Moves damaged checkpoints to the folder `damaged` of the run: they do not count among the last good ones, and can
/// still be looked at.
pub(crate) fn set_damaged_aside(run: &Path, problems: &[ReadCheckpointError]) {
    for problem in problems {
        if let ReadCheckpointError::Damaged { path, .. } = problem {
            let aside = run.join("damaged");
            // What cannot be moved stays, and is reported again next time.
            let _ = fs::create_dir_all(&aside);
            let _ = fs::rename(path, aside.join(path.file_name().unwrap_or_default()));
        }
    }
}

/// Moves everything that a run wrote to a new folder `old-N` in its directory, so that the run starts from the beginning.
pub fn set_run_aside(run: &Path) -> Result<Option<PathBuf>, RunDirError> {
    let held: Vec<PathBuf> = WRITTEN.iter().map(|name| run.join(name)).filter(|path| path.exists()).collect();
    if held.is_empty() {
        return Ok(None);
    }
    // Whoever trains here now must not lose its files.
    let _lock = RunDir::open(run)?;
    let old =
        (1..u32::MAX).map(|n| run.join(format!("old-{n}"))).find(|path| !path.exists()).expect("numbers do not end");
    fs::create_dir(&old).map_err(RunDirError::write(&old))?;
    for path in held {
        let to = old.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &to).map_err(RunDirError::write(&to))?;
    }
    Ok(Some(old))
}

/// Whether a directory is missing, empty or that of a run.
pub fn is_run_or_empty(path: &Path) -> bool {
    let is_empty = fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
    is_empty || WRITTEN.iter().chain(&["lock"]).any(|name| path.join(name).exists())
}

/// What a run writes into its directory, besides its lock.
const WRITTEN: [&str; 8] =
    ["checkpoints", "log.jsonl", "run.json", "recipe.toml", "model", "failed", "tensorboard", "report.html"];
