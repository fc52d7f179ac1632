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
    #[error("`{path}` is in use by another training")]
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
            match Checkpoint::load(&path) {
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

/// Removes checkpoints that are damaged, so that they do not count among the last good ones.
pub(crate) fn remove_damaged(problems: &[ReadCheckpointError]) {
    for problem in problems {
        if let ReadCheckpointError::Damaged { path, .. } = problem {
            let _ = fs::remove_file(path);
        }
    }
}
