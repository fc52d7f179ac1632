//! Whose directory it is: settings in, a directory that belongs to this demo out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

const FILE_NAME: &str = "demo.json";

/// What a demo is made from; with others it is another demo.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) seed: u64,
    pub(super) hours: f64,
    pub(super) n_speakers: usize,
    /// Those of the recipe if not given.
    pub(super) n_epochs: Option<usize>,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// It holds something else.
    #[error("`{dir}` is not empty, and no demo was begun in it")]
    Foreign {
        /// The directory.
        dir: PathBuf,
    },
    /// It holds another demo.
    #[error("the demo in `{dir}` was begun with other settings: {found}")]
    Other {
        /// The directory.
        dir: PathBuf,
        /// Its settings.
        found: String,
    },
    /// The system would not let us.
    #[error("could not use `{path}`: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ClaimError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let what = match self {
            Self::Foreign { .. } => "name another directory: `srf demo DIR`",
            Self::Other { .. } => "name another directory (`srf demo DIR`), remove this one, or give the same options",
            Self::Io { .. } => return None,
        };
        Some(what.to_owned())
    }
}

impl Settings {
    /// Makes `dir`, or finds that this very demo was begun there.
    pub(super) fn claim(&self, dir: &Path) -> Result<(), ClaimError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ClaimError::Io { path, source }
        };
        fs::create_dir_all(dir).map_err(failed(dir))?;
        let (file, dir) = (dir.join(FILE_NAME), dir.to_owned());
        let ours = serde_json::to_string(self).expect("numbers have a JSON form");
        match fs::read_to_string(&file) {
            Ok(found) if serde_json::from_str(&found).is_ok_and(|found: Self| found == *self) => Ok(()),
            Ok(found) => Err(ClaimError::Other { dir, found: found.trim().chars().take(200).collect() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_empty = fs::read_dir(&dir).map_err(failed(&dir))?.next().is_none();
                if is_empty { fs::write(&file, ours + "\n").map_err(failed(&file)) } else { Err(ClaimError::Foreign { dir }) }
            }
            Err(error) => Err(failed(&file)(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Settings = Settings { seed: 1, hours: 0.1, n_speakers: 3, n_epochs: None };

    #[test]
    fn a_demo_goes_on_in_its_own_directory_only() {
        let dir = tempfile::tempdir().expect("there is a place for temporary files");
        let at = dir.path().join("demo");
        ONE.claim(&at).expect("it is new");
        ONE.claim(&at).expect("it is the same demo");
        let other = Settings { seed: 2, ..ONE }.claim(&at);
        assert!(matches!(other, Err(ClaimError::Other { .. })), "{other:?}");
        let above = ONE.claim(dir.path());
        assert!(matches!(above, Err(ClaimError::Foreign { .. })), "{above:?}");
    }
}
