//! The header of a weights file: metadata and the places of tensors in JSON.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::Serialize;

use super::{LoadWeightsError, MAX_METADATA, Precision, SaveOptions};
use crate::config::ModelConfig;
use crate::params::{Layout, Tensor};

/// The most bytes a header may have; a model of 100 layers needs less than 60,000.
pub const MAX_HEADER_BYTES: u64 = 1 << 20;

/// The version of what is written here; another version is refused.
const FORMAT: &str = "1";

/// Metadata of every file.
const KEYS: [&str; 5] = ["format", "architecture", "classes", "blank", "model"];

/// Bytes before the header: its size.
const SIZE_BYTES: u64 = size_of::<u64>() as u64;

/// Sorted maps, so that the same model gives the same bytes; the crate's own writer takes a map of random order.
#[derive(Serialize)]
struct OrderedHeader<'a> {
    #[serde(rename = "__metadata__")]
    metadata: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    tensors: BTreeMap<&'a str, TensorInfo>,
}

/// The header of this model, filled with spaces so that the numbers start at a multiple of 8.
pub(super) fn format(config: &ModelConfig, layout: &Layout, options: &SaveOptions) -> Vec<u8> {
    let mut end = 0;
    let mut info = |tensor: &Tensor| {
        let is_half = options.precision == Precision::F16 && tensor.slot.offset < layout.n_trainable();
        let (dtype, n_bytes) = if is_half { (Dtype::F16, 2) } else { (Dtype::F32, 4) };
        let start = end;
        end += tensor.slot.len * n_bytes;
        TensorInfo { dtype, shape: tensor.shape.clone(), data_offsets: (start, end) }
    };
    let tensors = layout.tensors().iter().map(|tensor| (tensor.name.as_str(), info(tensor))).collect();
    let standard = metadata(config);
    let further = options.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let metadata = further.chain(standard.iter().map(|(key, value)| (*key, value.as_str()))).collect();
    let mut json =
        serde_json::to_vec(&OrderedHeader { metadata, tensors }).expect("words and numbers have a JSON form");
    json.resize(json.len().next_multiple_of(8), b' ');
    json
}

/// Checks further metadata against its bounds; the key at fault and what is wrong with it.
pub(super) fn check_metadata(metadata: &super::Metadata) -> Result<(), (String, String)> {
    let [max_entries, max_key, max_value] = MAX_METADATA;
    for (index, (key, value)) in metadata.iter().enumerate() {
        let problem = if index >= max_entries {
            format!("is one of {} entries, expected at most {max_entries}", metadata.len())
        } else if key.is_empty() || key.len() > max_key {
            format!("has a key of {} bytes, expected 1 to {max_key}", key.len())
        } else if KEYS.contains(&key.as_str()) {
            "has a key that every file has already".to_owned()
        } else if value.len() > max_value {
            format!("has {} bytes, expected at most {max_value}", value.len())
        } else {
            continue;
        };
        return Err((key.chars().take(max_key).collect(), problem));
    }
    Ok(())
}

fn metadata(config: &ModelConfig) -> [(&'static str, String); 5] {
    let values = [
        FORMAT.to_owned(),
        config.architecture().to_owned(),
        config.n_classes().to_string(),
        config.blank_class().to_string(),
        config.format(),
    ];
    let mut values = values.into_iter();
    KEYS.map(|key| (key, values.next().unwrap_or_default()))
}

/// A header that has been read.
pub(super) struct Header {
    n_bytes: u64,
    content: Metadata,
}

/// Reads the header of a file of `n_bytes`.
pub(super) fn read(file: &mut impl Read, n_bytes: u64, path: &Path) -> Result<Header, LoadWeightsError> {
    let io = |source| LoadWeightsError::Io { path: path.to_owned(), source };
    let file_size = |expected| LoadWeightsError::FileSize { path: path.to_owned(), found: n_bytes, expected };
    if n_bytes < SIZE_BYTES {
        return Err(file_size(SIZE_BYTES));
    }
    let mut size = [0; SIZE_BYTES as usize];
    file.read_exact(&mut size).map_err(io)?;
    let header_bytes = u64::from_le_bytes(size);
    if header_bytes > MAX_HEADER_BYTES {
        let most = MAX_HEADER_BYTES;
        return Err(LoadWeightsError::HeaderSize { path: path.to_owned(), found: header_bytes, most });
    }
    if n_bytes - SIZE_BYTES < header_bytes {
        return Err(file_size(SIZE_BYTES + header_bytes));
    }
    let mut json = vec![0; header_bytes as usize];
    file.read_exact(&mut json).map_err(io)?;
    let content = serde_json::from_slice(&json)
        .map_err(|error| LoadWeightsError::Header { path: path.to_owned(), message: error.to_string() })?;
    Ok(Header { n_bytes: header_bytes, content })
}

impl Header {
    /// The configuration in the metadata, and a check that the rest of it agrees.
    pub(super) fn config(&self, path: &Path) -> Result<ModelConfig, LoadWeightsError> {
        self.check_metadata("format", FORMAT, path)?;
        let model = self.metadata("model").ok_or_else(|| metadata_error(path, "model", None, "a configuration"))?;
        let origin = format!("{} (metadata `model`)", path.display());
        let config = ModelConfig::parse(model, Path::new(&origin))?;
        for (key, expected) in metadata(&config).iter().filter(|(key, _)| *key != "model") {
            self.check_metadata(key, expected, path)?;
        }
        Ok(config)
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.content.metadata().as_ref()?.get(key).map(String::as_str)
    }

    fn check_metadata(&self, key: &'static str, expected: &str, path: &Path) -> Result<(), LoadWeightsError> {
        match self.metadata(key) {
            Some(found) if found == expected => Ok(()),
            found => Err(metadata_error(path, key, found, &format!("`{expected}`"))),
        }
    }

    /// Names, types and shapes must be those of the layout, no more and no fewer.
    pub(super) fn check_tensors(&self, layout: &Layout, path: &Path) -> Result<(), LoadWeightsError> {
        for tensor in layout.tensors() {
            let missing = || LoadWeightsError::MissingTensor {
                path: path.to_owned(),
                tensor: tensor.name.clone(),
                expected: tensor.shape.clone(),
            };
            check_form(tensor, self.content.info(&tensor.name).ok_or_else(missing)?, path)?;
        }
        let names = self.content.offset_keys();
        let extra = names.into_iter().find(|name| layout.find(name).is_none());
        extra.map_or(Ok(()), |tensor| Err(LoadWeightsError::ExtraTensor { path: path.to_owned(), tensor }))
    }

    /// The file must end where its last tensor does.
    pub(super) fn check_size(&self, found: u64, path: &Path) -> Result<(), LoadWeightsError> {
        let expected = SIZE_BYTES + self.n_bytes + self.content.data_len() as u64;
        let wrong = LoadWeightsError::FileSize { path: path.to_owned(), found, expected };
        if found == expected { Ok(()) } else { Err(wrong) }
    }

    /// Where the numbers of a tensor that was checked start in the file, and their type.
    pub(super) fn place(&self, tensor: &str) -> (u64, Dtype) {
        let info = self.content.info(tensor).expect("all tensors of the layout were found before");
        (SIZE_BYTES + self.n_bytes + info.data_offsets.0 as u64, info.dtype)
    }

    /// Metadata besides that of every file.
    pub(super) fn further_metadata(&self) -> super::Metadata {
        let all = self.content.metadata().iter().flatten();
        let further = all.filter(|(key, _)| !KEYS.contains(&key.as_str()));
        further.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

fn check_form(tensor: &Tensor, found: &TensorInfo, path: &Path) -> Result<(), LoadWeightsError> {
    if matches!(found.dtype, Dtype::F32 | Dtype::F16) && found.shape == tensor.shape {
        return Ok(());
    }
    Err(LoadWeightsError::TensorForm {
        path: path.to_owned(),
        tensor: tensor.name.clone(),
        found: format!("{} {:?}", found.dtype, found.shape),
        expected: format!("F32 or F16 {:?}", tensor.shape),
    })
}

fn metadata_error(path: &Path, key: &'static str, found: Option<&str>, expected: &str) -> LoadWeightsError {
    // Metadata may be anything, of any length: its start, on one line, is enough.
    let found = found.map_or("nothing".to_owned(), |found| format!("{:?}", found.chars().take(40).collect::<String>()));
    LoadWeightsError::Metadata { path: path.to_owned(), key, found, expected: expected.to_owned() }
}
