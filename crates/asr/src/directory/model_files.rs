//! The files of a model: in a folder, or in memory where there are no folders.

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use srf_base::files;
use srf_model::config::{ModelConfig, Recipe};
use srf_model::params::Params;
use srf_model::weights::{self, Metadata};
use srf_text::labels::{LabelSet, LoadLabelsError};

use super::{CONFIG, LABELS, ReadModelError, WEIGHTS};

/// Where the files of a model are.
pub(crate) enum ModelFiles<'a> {
    /// In this folder.
    Folder(&'a Path),
    /// Here, by their names.
    Memory(&'a BTreeMap<String, Vec<u8>>),
}

impl ModelFiles<'_> {
    /// What messages call a file.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match self {
            Self::Folder(dir) => dir.join(name),
            Self::Memory(_) => name.into(),
        }
    }

    /// What messages call all of them.
    pub(crate) fn name(&self) -> PathBuf {
        match self {
            Self::Folder(dir) => (*dir).to_owned(),
            Self::Memory(_) => "the model".into(),
        }
    }

    /// The text of a file of limited size; `None` where there is no such file.
    pub(crate) fn text(&self, name: &str, most: u64) -> Result<Option<String>, ReadModelError> {
        let path = || self.path(name);
        let text = match self {
            Self::Folder(_) => files::read_text_at_most(&path(), most),
            Self::Memory(_) => self.bytes(name).and_then(|bytes| {
                let fits = bytes.len() as u64 <= most;
                if fits { files::text(bytes.to_vec()).map(Some) } else { Ok(None) }
            }),
        };
        match text {
            Ok(Some(text)) => Ok(Some(text)),
            Ok(None) => Err(ReadModelError::TooLarge { path: path(), most }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ReadModelError::Io { path: path(), source }),
        }
    }

    pub(super) fn recipe(&self) -> Result<Recipe, ReadModelError> {
        match self {
            Self::Folder(_) => Ok(Recipe::load(&self.path(CONFIG))?),
            Self::Memory(_) => Ok(Recipe::parse(&self.required(CONFIG)?, &self.path(CONFIG))?),
        }
    }

    pub(super) fn labels(&self) -> Result<LabelSet, ReadModelError> {
        let path = self.path(LABELS);
        match self {
            Self::Folder(_) => Ok(LabelSet::load(&path)?),
            Self::Memory(_) => {
                Ok(LabelSet::parse(&self.required(LABELS)?).map_err(|cause| LoadLabelsError::Parse { path, cause })?)
            }
        }
    }

    pub(super) fn weights(&self) -> Result<(ModelConfig, Params<f32>, Metadata), ReadModelError> {
        let path = self.path(WEIGHTS);
        match self {
            Self::Folder(_) => Ok(weights::load_with_metadata(&path)?),
            Self::Memory(_) => {
                let bytes = self.bytes(WEIGHTS).map_err(|source| ReadModelError::Io { path: path.clone(), source })?;
                Ok(weights::read(&mut Cursor::new(bytes), bytes.len() as u64, &path)?)
            }
        }
    }

    /// The text of a file in memory that every model has.
    fn required(&self, name: &str) -> Result<String, ReadModelError> {
        let text = self.bytes(name).and_then(|bytes| files::text(bytes.to_vec()));
        text.map_err(|source| ReadModelError::Io { path: self.path(name), source })
    }

    /// A file in memory.
    fn bytes(&self, name: &str) -> io::Result<&[u8]> {
        let file = match self {
            Self::Folder(_) => None,
            Self::Memory(files) => files.get(name),
        };
        file.map(Vec::as_slice).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such file"))
    }
}
