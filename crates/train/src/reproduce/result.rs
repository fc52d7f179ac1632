//! A table as it came out: the files of a reproduction in, rows and judged claims out.

use serde::Serialize;
use srf_model::config::{ModelConfig, Recipe};

use super::claims::{Judged, Verdict, judge};
use super::shelf::{Measured, Shelf};
use super::statistics::mean;
use super::table::{Column, Figure, Quantity, Row};

/// What is common to all rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Circumstances {
    /// Whether it was only tried out: the figures mean nothing.
    pub is_smoke: bool,
    /// The prepared corpus.
    pub corpus: String,
    /// What its labels are.
    pub units: String,
    /// `PER` or `WER`.
    pub measure: &'static str,
    /// The set that phones were mapped to.
    pub mapping: Option<String>,
    /// How hypotheses were searched for.
    pub search: String,
    /// How long rows were trained.
    pub budget: String,
    /// Changes to the recipes, as typed.
    pub changes: Vec<String>,
    /// The command line.
    pub command: String,
    /// Processor and threads.
    pub machine: String,
    /// Of this program.
    pub version: &'static str,
    /// What else a reader should know.
    pub remarks: Vec<String>,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Its name.
    pub table: &'static str,
    /// Its number.
    pub number: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Seeds that were asked for.
    pub n_seeds: u64,
    /// What is common to all rows.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// The rows.
    pub rows: Vec<RowReport>,
    /// The paper's claims.
    pub claims: Vec<Judged>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowReport {
    /// Of its runs.
    pub name: &'static str,
    /// As the paper calls it.
    pub title: &'static str,
    /// Its recipe.
    pub recipe: &'static str,
    /// Numbers in the model, with the classes of this corpus.
    pub n_parameters: u64,
    /// Millions of them, as the paper says.
    pub paper_millions: f64,
    /// Frames it must hear beyond the current one; none if all.
    pub look_ahead_frames: Option<usize>,
    /// What that and half a window take.
    pub delay_ms: Option<f64>,
    /// Slices before and after the current one that the first capsule layer sees; none without capsules.
    pub window: Option<[usize; 2]>,
    /// Seeds whose training is finished.
    pub n_seeds: usize,
    /// Epochs trained.
    pub n_epochs: Option<usize>,
    /// How long a training took, the mean of the seeds.
    pub training_s: Option<f64>,
    /// How long the recognition of the last part took, the mean of the seeds.
    pub recognition_s: Option<f64>,
    /// The figures, in the order of the columns.
    pub cells: Vec<Cell>,
}

/// A figure in the paper and here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// What it is.
    pub quantity: Quantity,
    /// On which part.
    pub part: &'static str,
    /// In the paper.
    pub paper: Option<Figure>,
    /// Here.
    pub ours: Option<Measured>,
}

impl Report {
    /// Everything that is known so far of `rows`; a recipe for each.
    pub(super) fn of(
        shelf: &Shelf,
        rows: &[(&'static Row, Recipe)],
        claims_on: &'static str,
        circumstances: Circumstances,
    ) -> Self {
        let has = |name: &str| rows.iter().any(|(row, _)| row.name() == name);
        let mut claims: Vec<Judged> = shelf.table.claims.iter().map(|claim| judge(claim, claims_on, shelf)).collect();
        claims.retain(|judged| judged.rows.iter().all(|name| has(name)));
        if circumstances.is_smoke {
            claims.iter_mut().for_each(|judged| judged.verdict = Verdict::NotDecided);
        }
        Self {
            table: shelf.table.name,
            number: shelf.table.number,
            title: shelf.table.title,
            n_seeds: shelf.n_seeds,
            circumstances,
            rows: rows.iter().map(|(row, recipe)| RowReport::of(shelf, row, recipe)).collect(),
            claims,
        }
    }

    /// Whether some figure is the mean of several seeds.
    pub fn has_means(&self) -> bool {
        self.rows.iter().any(|row| 1 < row.n_seeds)
    }
}

impl RowReport {
    fn of(shelf: &Shelf, row: &Row, recipe: &Recipe) -> Self {
        let summary = recipe.summary();
        let runs: Vec<_> = (1..=shelf.n_seeds).filter_map(|seed| Some((seed, shelf.run(row, seed)?))).collect();
        let last_part = shelf.table.columns.last().map_or("", |column| column.part);
        let recognition: Vec<f64> =
            runs.iter().filter_map(|(seed, _)| Some(shelf.summary(row, *seed, last_part)?.recognition_s)).collect();
        let cell = |(column, paper): (&Column, &Option<Figure>)| Cell {
            quantity: column.quantity,
            part: column.part,
            paper: *paper,
            ours: shelf.figure(row, *column),
        };
        Self {
            name: row.name(),
            title: row.title,
            recipe: row.recipe,
            n_parameters: summary.parameters.total,
            paper_millions: row.millions,
            look_ahead_frames: summary.look_ahead_frames,
            delay_ms: summary.delay_ms,
            window: window(&recipe.model),
            n_seeds: runs.iter().filter(|(_, run)| ["completed", "stopped early"].contains(&run.state)).count(),
            n_epochs: runs.first().map(|(_, run)| run.n_epochs),
            training_s: mean(&runs.iter().map(|(_, run)| run.time_s).collect::<Vec<_>>()),
            recognition_s: mean(&recognition),
            cells: shelf.table.columns.iter().zip(row.paper).map(cell).collect(),
        }
    }
}

fn window(model: &ModelConfig) -> Option<[usize; 2]> {
    let ModelConfig::Srf(capsules) = model else { return None };
    let shape = capsules.capsule_shape(0);
    Some([shape.window_left, shape.window_right])
}
