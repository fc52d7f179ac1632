//! Reads golden files: named arrays and metadata.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use safetensors::{Dtype, SafeTensors};

/// Tensors and metadata of one file.
pub(super) struct Golden {
    metadata: HashMap<String, String>,
    tensors: HashMap<String, Tensor>,
}

pub(super) struct Tensor {
    pub(super) shape: Vec<usize>,
    pub(super) values: Vec<f32>,
}

impl Golden {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path)?;
        let (_, header) = SafeTensors::read_metadata(&bytes)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let mut tensors = HashMap::new();
        for (name, view) in SafeTensors::deserialize(&bytes)?.tensors() {
            let words = view.data().as_chunks::<4>().0.iter();
            let values = match view.dtype() {
                Dtype::F32 => words.map(|&word| f32::from_le_bytes(word)).collect(),
                // Counts and labels: far below where a float skips a whole number.
                Dtype::I32 => words.map(|&word| i32::from_le_bytes(word) as f32).collect(),
                other => bail!("tensor `{name}` has type {other:?}, expected F32 or I32"),
            };
            tensors.insert(name, Tensor { shape: view.shape().to_vec(), values });
        }
        Ok(Self { metadata, tensors })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    pub(super) fn tensor(&self, name: &str) -> anyhow::Result<&Tensor> {
        self.tensors.get(name).with_context(|| format!("it has no tensor `{name}`"))
    }

    pub(super) fn wide(&self, name: &str) -> anyhow::Result<Vec<f64>> {
        Ok(self.tensor(name)?.values.iter().map(|&x| f64::from(x)).collect())
    }

    pub(super) fn counts(&self, name: &str) -> anyhow::Result<Vec<usize>> {
        Ok(self.tensor(name)?.values.iter().map(|&x| x as usize).collect())
    }

    /// A word of the metadata.
    pub(super) fn text(&self, key: &str) -> anyhow::Result<&str> {
        self.metadata.get(key).map(String::as_str).with_context(|| format!("its metadata has no `{key}`"))
    }

    /// A number of the metadata.
    pub(super) fn number(&self, key: &str) -> anyhow::Result<usize> {
        let text = self.text(key)?;
        text.parse().with_context(|| format!("its metadata has `{key}` = `{text}`, expected a whole number"))
    }
}
