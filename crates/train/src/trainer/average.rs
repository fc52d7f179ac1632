//! Averages models: the mean of their weights and moving statistics.

use std::path::{Path, PathBuf};

use srf::directory::{self, ModelParts, ReadModelError};
use srf_audio::features::cmvn::CmvnStats;
use srf_model::config::{ReadConfigError, Recipe};
use srf_text::label_timing::LabelTiming;
use srf_text::labels::{LabelSet, ParseLabelsError};

use super::checkpoint::{Checkpoint, ReadCheckpointError};

/// Why models have no mean.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum AverageError {
    #[error(transparent)]
    Checkpoint(#[from] ReadCheckpointError),
    #[error(transparent)]
    Model(#[from] ReadModelError),
    #[error(transparent)]
    Recipe(#[from] ReadConfigError),
    #[error("`{path}`: {cause}")]
    Labels { path: PathBuf, cause: ParseLabelsError },
    #[error("`{path}` has other {what} than `{first}`")]
    Different { path: PathBuf, what: &'static str, first: PathBuf },
    #[error("`{path}` has {n} weights that are not finite")]
    NotFinite { path: PathBuf, n: usize },
    #[error("`{path}` keeps {found} epochs, {asked} were asked for")]
    Epochs { path: PathBuf, found: usize, asked: usize },
}

impl AverageError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Epochs { .. } => Some(
                "a checkpoint keeps the last `training.average_epochs` epochs, and those so far at most".to_owned(),
            ),
            _ => None,
        }
    }
}

/// The mean of each number, summed in double precision in the order given.
///
/// # Panics
/// Without any model, or with models of different sizes.
pub fn mean(models: &[&[f32]]) -> Vec<f32> {
    let n_values = models.first().expect("the mean of at least one model").len();
    assert!(models.iter().all(|model| model.len() == n_values), "the mean of models of one size");
    let n = models.len() as f64;
    (0..n_values).map(|at| (models.iter().map(|model| f64::from(model[at])).sum::<f64>() / n) as f32).collect()
}

/// The mean of checkpoints (as they are) and model directories.
///
/// # Panics
/// Without any path.
pub fn average(paths: &[PathBuf]) -> Result<ModelParts, AverageError> {
    let all = paths.iter().map(|path| load(path)).collect::<Result<Vec<_>, _>>()?;
    let first = all.first().expect("the mean of at least one model");
    for (path, parts) in paths.iter().zip(&all) {
        let same = [
            ("model", parts.model == first.model),
            ("features", parts.features == first.features),
            ("labels", parts.labels == first.labels),
        ];
        if let Some((what, _)) = same.into_iter().find(|(_, is_same)| !is_same) {
            return Err(AverageError::Different { path: path.clone(), what, first: paths[0].clone() });
        }
    }
    let models: Vec<&[f32]> = all.iter().map(|parts| parts.values.as_slice()).collect();
    let names: Vec<String> = paths.iter().map(|path| format!("- `{}`\n", path.display())).collect();
    let card = format!("# Mean of {} models\n\n{}", paths.len(), names.concat());
    Ok(ModelParts { values: mean(&models), card, ..first.clone() })
}

/// The mean of the last `n_epochs` epochs that a checkpoint keeps.
pub fn average_epochs(path: &Path, n_epochs: usize) -> Result<ModelParts, AverageError> {
    let checkpoint = load_checkpoint(path)?;
    let found = checkpoint.kept.len();
    if !(1..=found).contains(&n_epochs) {
        return Err(AverageError::Epochs { path: path.to_owned(), found, asked: n_epochs });
    }
    let models: Vec<&[f32]> = checkpoint.kept.iter().skip(found - n_epochs).map(Vec::as_slice).collect();
    let values = mean(&models);
    check_finite(path, &values)?;
    let card = format!("# Mean of {n_epochs} epochs\n\n- `{}`\n", path.display());
    Ok(ModelParts { values, card, ..parts(path, checkpoint)? })
}

fn load(path: &Path) -> Result<ModelParts, AverageError> {
    let parts = if path.is_dir() { directory::read(path)? } else { parts(path, load_checkpoint(path)?)? };
    check_finite(path, &parts.values)?;
    Ok(parts)
}

fn load_checkpoint(path: &Path) -> Result<Checkpoint, AverageError> {
    let checkpoint = Checkpoint::load(path)?;
    let damaged = |problem| ReadCheckpointError::Damaged { path: path.to_owned(), problem };
    checkpoint.check().map_err(damaged)?;
    Ok(checkpoint)
}

fn check_finite(path: &Path, values: &[f32]) -> Result<(), AverageError> {
    match values.iter().filter(|value| !value.is_finite()).count() {
        0 => Ok(()),
        n => Err(AverageError::NotFinite { path: path.to_owned(), n }),
    }
}

/// The model that a checkpoint holds.
fn parts(path: &Path, checkpoint: Checkpoint) -> Result<ModelParts, AverageError> {
    let Checkpoint { head, values, .. } = checkpoint;
    let recipe = Recipe::parse(&head.recipe, path)?;
    let labels =
        LabelSet::parse(&head.labels).map_err(|cause| AverageError::Labels { path: path.to_owned(), cause })?;
    let cmvn = head.cmvn.as_deref().and_then(CmvnStats::from_kaldi);
    let label_timing = LabelTiming::default();
    Ok(ModelParts {
        model: recipe.model,
        features: recipe.features,
        labels,
        cmvn,
        label_timing,
        values,
        card: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_arithmetic_mean() {
        assert_eq!(mean(&[&[1.0, -2.0], &[2.0, 0.0], &[6.0, 2.0]]), [3.0, 0.0]);
        // In single precision the sum would lose the small one.
        assert_eq!(mean(&[&[1e8], &[1.0], &[-1e8], &[1.0]]), [0.5]);
    }

    #[test]
    fn the_mean_of_one_model_is_that_model_to_the_bit() {
        let model: Vec<f32> = (0..1000).map(|n| (n as f32).sin() * 1e-3).collect();
        assert_eq!(mean(&[&model]), model);
        assert_eq!(mean(&[&model, &model, &model]), model);
    }
}
