//! Making a table: what is missing is trained and measured, then the table is written; anything done is not done again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use srf_model::config::Recipe;
use srf_text::decode::DecoderConfig;
use srf_text::labels::Units;

use super::error::ReproduceError;
use super::place::{Place, write_json};
use super::result::{Circumstances, Report};
use super::settings::{Budget, Length, Settings};
use super::shelf::Shelf;
use super::table::{Quantity, Row, Table};
use super::{ends, html, markdown, picture};
use crate::corpus::{DEV, Problem, TEST, Utterance, manifest};
use crate::events::Machine;
use crate::trainer::prepared::Prepared;
use crate::trainer::{self, TrainError, TrainJob, TrainWatcher, train};

/// A part that models are measured on.
#[derive(Clone, Debug)]
pub struct Part {
    /// `dev` or `test`.
    pub name: &'static str,
    /// Its manifest.
    pub manifest: PathBuf,
    /// Its utterances.
    pub utterances: Vec<Utterance>,
}

/// A table to be made.
pub struct Job {
    /// Which.
    pub table: &'static Table,
    /// Its rows, or some of them.
    pub rows: Vec<&'static Row>,
    /// The corpus.
    pub data: Arc<Prepared>,
    /// What is measured on: `dev`, `test` or both, in this order.
    pub parts: Vec<Part>,
    /// Seeds 1 to this many.
    pub n_seeds: u64,
    /// How recipes become runs.
    pub settings: Settings,
    /// How long rows are trained.
    pub budget: Budget,
    /// How hypotheses are searched for.
    pub decoder: DecoderConfig,
    /// Where everything lies.
    pub place: Place,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// Where it runs, for the record.
    pub machine: Machine,
}

/// How a table that could be begun ended.
#[derive(Debug)]
pub enum Outcome {
    /// Every row is there, but for those that failed, which were told.
    Finished {
        /// The table.
        report: Box<Report>,
        /// Rows that failed and utterances that were left out.
        n_problems: usize,
    },
    /// Somebody stopped it; the same command goes on from here.
    Interrupted,
}

/// From one checkpoint to the next; one is written after each epoch besides.
const SAVE_EVERY: Duration = Duration::from_mins(3);
/// The most memory for features.
const MAX_CACHE_BYTES: u64 = 6 << 30;

impl Job {
    /// Trains and measures what is missing, and writes the table after each run.
    pub fn go(&self, watcher: &dyn TrainWatcher, stop: &AtomicBool) -> Result<Outcome, ReproduceError> {
        self.check()?;
        fs::create_dir_all(&self.place.out).map_err(ReproduceError::write(&self.place.out))?;
        self.refuse_others(watcher)?;
        let mut n_problems = 0;
        for seed in 1..=self.n_seeds {
            for (at, row) in self.rows.iter().enumerate() {
                watcher.remark(&format!("row {} of {}: {}, seed {seed}", at + 1, self.rows.len(), row.name()));
                match self.run(row, seed, watcher, stop)? {
                    Some(n_more) => n_problems += n_more,
                    None => return Ok(Outcome::Interrupted),
                }
                self.write(&self.report()?)?;
            }
        }
        Ok(Outcome::Finished { report: Box::new(self.report()?), n_problems })
    }

    /// Whether table, corpus and changes belong together.
    fn check(&self) -> Result<(), ReproduceError> {
        let (table, corpus) = (self.table, self.data.names());
        let units = self.data.labels.units();
        if !table.is_for(units) {
            let expected = if table.is_of_phones { "phones" } else { "words" };
            return Err(ReproduceError::Units { table: table.name, expected, corpus, found: units.to_string() });
        }
        if self.parts.is_empty() {
            return Err(ReproduceError::NoParts { corpus });
        }
        for change in &self.settings.changes {
            if change.change.key == "training.seed" {
                return Err(ReproduceError::Seed { n_seeds: self.n_seeds });
            }
            if !table.rows.iter().any(|row| change.is_for(row.name())) {
                return Err(table.unknown_row(change.rows.as_deref().unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Refuses before any work if some run was started otherwise.
    fn refuse_others(&self, watcher: &dyn TrainWatcher) -> Result<(), ReproduceError> {
        for row in &self.rows {
            let Some(length) = self.known_length(row)? else { continue };
            for seed in 1..=self.n_seeds {
                let job = self.train_job(row, self.settings.recipe(row, length, seed)?, seed);
                trainer::is_finished(&job, watcher)?;
            }
        }
        Ok(())
    }

    /// Trains and measures one row with one seed; the number of problems, or none if somebody stopped it.
    fn run(
        &self,
        row: &Row,
        seed: u64,
        watcher: &dyn TrainWatcher,
        stop: &AtomicBool,
    ) -> Result<Option<usize>, ReproduceError> {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(length) = self.length(row, watcher, stop)? else { return Ok(None) };
        let job = self.train_job(row, self.settings.recipe(row, length, seed)?, seed);
        if !trainer::is_finished(&job, watcher)? {
            match train(&job, watcher, stop) {
                Ok(trainer::Outcome::Finished { .. }) => {}
                Ok(trainer::Outcome::Interrupted { .. }) => return Ok(None),
                // The other rows may do better.
                Err(error @ TrainError::TooManySkipped { .. }) => {
                    watcher.remark(&format!("problem: row {} failed: {error}", row.name()));
                    return Ok(Some(1));
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.measure(row, seed, watcher).map(Some)
    }

    /// The training of a row with a seed, as `srf train` would do it.
    pub(super) fn train_job(&self, row: &Row, recipe: Recipe, seed: u64) -> TrainJob {
        TrainJob {
            recipe,
            recipe_name: row.name().to_owned(),
            data: Arc::clone(&self.data),
            run: self.place.run(row, seed),
            from: None,
            command: self.command.clone(),
            machine: self.machine.clone(),
            save_every: SAVE_EVERY,
            max_cache_bytes: MAX_CACHE_BYTES,
        }
    }

    /// The table as far as it is known.
    pub fn report(&self) -> Result<Report, ReproduceError> {
        let shelf = Shelf { place: &self.place, table: self.table, n_seeds: self.n_seeds };
        let recipe = |row: &&'static Row| Ok((*row, self.settings.recipe(row, Length::OfRecipe, 1)?));
        let rows: Vec<_> = self.rows.iter().map(recipe).collect::<Result<_, ReproduceError>>()?;
        let is_in_table = |part: &&Part| self.table.columns.iter().any(|column| column.part == part.name);
        let claims_on = self.parts.iter().rfind(is_in_table).map_or(TEST, |part| part.name);
        Ok(Report::of(&shelf, &rows, claims_on, self.circumstances()))
    }

    fn circumstances(&self) -> Circumstances {
        let units = self.data.labels.units();
        let subject = self.parts.first().map(|part| self.subject(&PathBuf::new(), part)).unwrap_or_default();
        let budget = match self.budget {
            Budget::Recipe => "as the recipes say".to_owned(),
            Budget::Epochs(n_epochs) => format!("{n_epochs} epochs a row, the schedule compressed"),
            Budget::Minutes(minutes) => format!("{minutes} minutes of training steps a row, the schedule compressed"),
        };
        let changes = self.settings.changes.iter().map(ToString::to_string);
        Circumstances {
            is_smoke: self.settings.is_smoke,
            corpus: self.data.names(),
            units: units.to_string(),
            measure: if units == Units::Phones { "PER" } else { "WER" },
            mapping: subject.mapping,
            search: subject.search,
            budget,
            changes: changes.collect(),
            command: srf_base::shell::command_line(&self.command),
            machine: format!("{}, {} threads", self.machine.processor, self.machine.n_threads),
            version: env!("CARGO_PKG_VERSION"),
            remarks: self.remarks(),
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> =
            [self.table.note.to_owned()].into_iter().filter(|note| !note.is_empty()).collect();
        if let [part] = &self.parts[..] {
            remarks.push(format!("The corpus has no other part than `{}` to measure on.", part.name));
        }
        if self.table.measures(&[Quantity::EndsFound]) {
            let texts = self.parts.iter().flat_map(|part| &part.utterances).map(|utterance| utterance.text.as_str());
            remarks.push(match ends::end_label(texts) {
                Some(label) => {
                    format!("An end is found where the last label is `{label}`, which ends every reference.")
                }
                None => "Ends are not counted: references do not all end with the same label.".to_owned(),
            });
        }
        remarks
    }

    /// Writes the table in all its forms.
    fn write(&self, report: &Report) -> Result<(), ReproduceError> {
        let picture = picture::windows(report);
        let path = |extension: &str| self.place.out.join(format!("{}.{extension}", self.table.name));
        let (text, page) = (markdown::format(report), html::page(report, picture.as_ref()));
        srf_base::files::write_atomically(&path("md"), text.as_bytes()).map_err(ReproduceError::write(&path("md")))?;
        write_json(&path("json"), report).map_err(ReproduceError::write(&path("json")))?;
        page.save(&path("html")).map_err(ReproduceError::write(&path("html")))?;
        if let Some(picture) = picture {
            picture.save(&self.place.out, self.table.name).map_err(ReproduceError::write(&self.place.out))?;
        }
        Ok(())
    }
}

/// The parts of the prepared corpus at `dir` that models are measured on, and lines of their manifests that are none.
pub fn load_parts(dir: &Path) -> (Vec<Part>, Vec<Problem>) {
    let (mut parts, mut problems) = (Vec::new(), Vec::new());
    for name in [DEV, TEST] {
        let path = dir.join(format!("{name}.jsonl"));
        let (listed, found) = if path.is_file() { manifest::load(&path) } else { Default::default() };
        problems.extend(found);
        let utterances: Vec<Utterance> = listed.into_iter().map(|listed| listed.utterance).collect();
        if !utterances.is_empty() {
            parts.push(Part { name, manifest: path, utterances });
        }
    }
    (parts, problems)
}
