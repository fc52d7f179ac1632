//! The recipe of a run: that of its row with the classes of the corpus, the budget, the changes and the seed.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use srf_model::config::{ModelConfig, Override, OverrideError, Recipe};

use super::ReproduceError;
use super::paper::TableRow;
use crate::recipes;
use crate::trainer::in_epochs;

/// A change to the recipes of all rows, or of some: `training.epochs=12`, `tf-*:training.batch_frames=5000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The rows, by name; a `*` at the end matches anything. `None`: all rows.
    pub rows: Option<String>,
    /// The change.
    pub change: Override,
}

impl FromStr for RowChange {
    type Err = OverrideError;

    fn from_str(typed: &str) -> Result<Self, OverrideError> {
        match typed.split_once(':').filter(|(rows, _)| !rows.contains('=')) {
            Some((rows, change)) => Ok(Self { rows: Some(rows.trim().to_owned()), change: change.parse()? }),
            None => Ok(Self { rows: None, change: typed.parse()? }),
        }
    }
}

impl RowChange {
    /// Whether it applies to the row of this name.
    pub fn is_for(&self, name: &str) -> bool {
        match self.rows.as_deref().map(|rows| (rows, rows.strip_suffix('*'))) {
            None => true,
            Some((_, Some(start))) => name.starts_with(start),
            Some((rows, None)) => name == rows,
        }
    }
}

impl fmt::Display for RowChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Override { key, value } = &self.change;
        match &self.rows {
            Some(rows) => write!(f, "{rows}:{key}={value}"),
            None => write!(f, "{key}={value}"),
        }
    }
}

/// How long every row is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Budget {
    /// As its recipe says.
    #[default]
    Recipe,
    /// This many epochs, with the schedule compressed into them.
    Epochs(usize),
    /// About this many minutes of training steps; the epochs that fit are measured beforehand.
    Minutes(f64),
}

/// How long a run is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// As its recipe says.
    OfRecipe,
    /// This many epochs, with the schedule compressed into them.
    Epochs(usize),
}

/// What all runs of a table have in common.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Classes of the corpus.
    pub n_classes: usize,
    /// Changes, in their order.
    pub changes: Vec<RowChange>,
    /// Whether networks are made as small as possible.
    pub is_smoke: bool,
}

impl Settings {
    /// The recipe of a run of `row`.
    pub fn recipe(&self, row: &TableRow, length: Length, seed: u64) -> Result<Recipe, ReproduceError> {
        let recipe = self.changed(row, length, seed);
        recipe.map_err(|source| ReproduceError::Recipe { row: row.name().to_owned(), source: Box::new(source) })
    }

    fn changed(&self, row: &TableRow, length: Length, seed: u64) -> Result<Recipe, OverrideError> {
        let text = recipes::text(&row.recipe).expect("the tables name recipes that are there");
        let path = Path::new(&row.recipe);
        let mut recipe = Recipe::parse_with(text, path, &[set("model.classes", self.n_classes)], self.n_classes)?;
        if self.is_smoke {
            recipe = Recipe::parse_with(&recipe.format(), path, &shrunken(&recipe.model), self.n_classes)?;
        }
        if let (Some(training), Length::Epochs(n_epochs)) = (&mut recipe.training, length) {
            *training = in_epochs(training, n_epochs);
        }
        let changes =
            self.changes.iter().filter(|change| change.is_for(row.name())).map(|change| change.change.clone());
        let changes: Vec<Override> = changes.chain([set("training.seed", seed)]).collect();
        Recipe::parse_with(&recipe.format(), path, &changes, self.n_classes)
    }
}

fn set(key: &str, value: impl ToString) -> Override {
    Override { key: key.to_owned(), value: value.to_string() }
}

/// Changes that keep the structure of a network (layers, windows, routing), make it narrow and train it for a moment.
fn shrunken(model: &ModelConfig) -> Vec<Override> {
    let n_classes = model.n_classes();
    let widths: &[(&str, usize)] = match model {
        ModelConfig::Srf(_) => &[("filters", 2), ("primary_height", 4), ("hidden_height", 3)],
        ModelConfig::Lstm(_) => &[("filters", 2), ("cells", 4)],
        ModelConfig::Cnn(_) => {
            &[("filters", 2), ("narrow_filters", 2), ("wide_filters", 2), ("dense_width", n_classes)]
        }
        ModelConfig::Transformer(_) => &[("filters", 2), ("width", 8), ("heads", 2), ("inner", 8)],
    };
    let widths = widths.iter().map(|(key, value)| set(&format!("model.{key}"), value));
    let training = [("epochs", 1), ("average_epochs", 1), ("batch_frames", 1500), ("validation_utterances", 1)];
    let training = training.iter().map(|(key, value)| set(&format!("training.{key}"), value));
    widths.chain(training).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use srf_model::config::{ScheduleConfig, TrainingConfig};

    use super::*;
    use crate::reproduce::paper::TABLES;

    fn settings(changes: &[&str]) -> Settings {
        let changes = changes.iter().map(|typed| typed.parse().unwrap()).collect();
        Settings { n_classes: 41, changes, is_smoke: false }
    }

    fn row(name: &str) -> &'static TableRow {
        TABLES.iter().find_map(|table| table.row(name)).unwrap()
    }

    fn training(name: &str, changes: &[&str], length: Length) -> TrainingConfig {
        settings(changes).recipe(row(name), length, 3).unwrap().training.unwrap()
    }

    #[test]
    fn a_recipe_gets_the_classes_of_the_corpus_the_seed_and_the_changes() {
        let recipe = settings(&["training.epochs=12", "features.cmvn=online", "tf-*:training.batch_frames=99"]);
        let recipe = |name| recipe.recipe(row(name), Length::OfRecipe, 3).unwrap();
        let (srf, transformer) = (recipe("srf-7l"), recipe("tf-5l"));
        assert_eq!(srf.model.n_classes(), 41);
        let (srf, transformer) = (srf.training.unwrap(), transformer.training.unwrap());
        assert_eq!((srf.epochs, srf.seed, srf.batch_frames), (12, 3, 7000));
        assert_eq!((transformer.epochs, transformer.batch_frames), (12, 99));
    }

    #[test]
    fn changes_name_all_rows_one_row_or_those_that_begin_alike() {
        let is_for = |typed: &str, name| typed.parse::<RowChange>().unwrap().is_for(name);
        assert!(is_for("training.epochs=1", "srf-7l"));
        assert!(is_for("srf-7l:training.epochs=1", "srf-7l") && !is_for("srf-7l:training.epochs=1", "srf-7"));
        assert!(is_for("srf-*:training.epochs=1", "srf-7l") && !is_for("srf-*:training.epochs=1", "tf-5l"));
        // A colon in a value names no row.
        assert!(is_for("model.x=a:b", "srf-7l"));
        assert!("srf-7l:epochs".parse::<RowChange>().is_err());
    }

    #[test]
    fn fewer_epochs_compress_the_schedule_and_changes_come_last() {
        let shorter = training("srf-7l", &[], Length::Epochs(20));
        let ScheduleConfig::Warmup { steps, kappa, .. } = &shorter.schedule else { panic!("{shorter:?}") };
        assert_eq!((shorter.epochs, shorter.average_epochs, *steps), (20, 1, 120));
        assert_eq!(kappa.iter().map(|step| step.from_epoch).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(training("srf-7l", &["training.average_epochs=2"], Length::Epochs(20)).average_epochs, 2);
        // The factors of one epoch: only the last one is left.
        let shortest = training("srf-7l", &[], Length::Epochs(1));
        let ScheduleConfig::Warmup { kappa, .. } = &shortest.schedule else { panic!("{shortest:?}") };
        assert_eq!(kappa.len(), 1);
        assert_eq!(
            training("blstm-5l-250h", &[], Length::Epochs(20)).schedule,
            ScheduleConfig::Constant { rate: 1e-4 }
        );
    }

    proptest! {
        #[test]
        fn a_compressed_schedule_has_the_rates_of_the_whole_one_at_the_same_share(share in 1..40u64, step in 1..2000u64) {
            let whole = training("srf-7l", &[], Length::OfRecipe);
            let n_epochs = 5 * share as usize;
            let shorter = training("srf-7l", &[], Length::Epochs(n_epochs));
            // The recipe has 200 epochs: one step for every 40 / share of it. Both are in their first factor or last.
            for (epoch, whole_epoch) in [(1, 1), (n_epochs, 200)] {
                let found = shorter.schedule.rate(step * share, epoch);
                let expected = whole.schedule.rate(step * 40, whole_epoch);
                prop_assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
            }
        }
    }

    #[test]
    fn every_row_of_every_table_shrinks_to_next_to_nothing() {
        let settings = Settings { is_smoke: true, ..settings(&[]) };
        for row in TABLES.iter().flat_map(|table| &table.rows) {
            let recipe = settings.recipe(row, Length::OfRecipe, 1).unwrap();
            let n = recipe.summary().parameters.total;
            assert!(n < 600_000, "{}: {n}", row.recipe);
        }
    }
}
