//! Making a table: trains and measures what is missing, then writes the table; nothing is done twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use srf_base::files::write_atomically;
use srf_base::shell::command_line;
use srf_model::config::Recipe;
use srf_text::decode::DecoderConfig;
use srf_text::labels::Units;
use srf_text::labels::timit::PhoneSet;

use super::ReproduceError;
use super::paper::{Quantity, Table, TableRow};
use super::report::{Circumstances, Report};
use super::results::{Paths, Results, end_label, read_json, write_json};
use super::settings::{Budget, Length, Settings};
use crate::builtin::Voices;
use crate::builtin::layout::{PlainConfig, write_plain};
use crate::corpus::prepare::{Found, PrepareConfig, prepare};
use crate::corpus::split::SplitConfig;
use crate::corpus::targets::{self, TargetConfig};
use crate::corpus::{DEV, Problem, TEST, Utterance, manifest};
use crate::events::Machine;
use crate::events::log::{self, History};
use crate::runs::Run;
use crate::trainer::prepared::Prepared;
use crate::trainer::{self, TrainError, TrainJob, TrainWatcher, train};

/// A part that models are measured on.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Part {
    /// `dev` or `test`.
    pub name: &'static str,
    pub manifest: PathBuf,
    pub utterances: Vec<Utterance>,
}

/// A table to make.
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Job {
    pub table: &'static Table,
    pub rows: Vec<&'static TableRow>,
    pub data: Arc<Prepared>,
    /// What is measured on: `dev`, `test` or both, in this order.
    pub parts: Vec<Part>,
    pub n_seeds: u64,
    pub settings: Settings,
    pub budget: Budget,
    pub decoder: DecoderConfig,
    pub paths: Paths,
    pub command: Vec<String>,
    pub machine: Machine,
}

/// How making a table ended.
#[derive(Debug)]
pub enum Outcome {
    /// Every row is there, except those that failed, which were reported.
    Finished {
        /// The table.
        report: Box<Report>,
        /// Rows that failed and utterances that were left out.
        n_problems: usize,
    },
    /// Stopped on request; the same command continues from here.
    Interrupted,
}

/// Time between checkpoints; one is also written after each epoch.
const SAVE_EVERY: Duration = Duration::from_mins(3);
/// Most memory for cached features.
const MAX_CACHE_BYTES: u64 = 6 << 30;

impl Job {
    /// Trains and measures what is missing, and writes the table after each run.
    pub fn run(&self, watcher: &dyn TrainWatcher, stop: &AtomicBool) -> Result<Outcome, ReproduceError> {
        self.check()?;
        fs::create_dir_all(&self.paths.out).map_err(ReproduceError::write(&self.paths.out))?;
        self.refuse_other_settings(watcher)?;
        let mut n_problems = 0;
        for seed in 1..=self.n_seeds {
            for (at, row) in self.rows.iter().enumerate() {
                watcher.remark(&format!("row {} of {}: {}, seed {seed}", at + 1, self.rows.len(), row.name()));
                match self.run_row(row, seed, watcher, stop)? {
                    Some(n_more) => n_problems += n_more,
                    None => return Ok(Outcome::Interrupted),
                }
                self.write(&self.report()?)?;
            }
        }
        Ok(Outcome::Finished { report: Box::new(self.report()?), n_problems })
    }

    /// Checks that table, corpus and changes belong together.
    fn check(&self) -> Result<(), ReproduceError> {
        let (table, corpus) = (self.table, self.data.names());
        let units = self.data.labels.units();
        if !table.is_for(units) {
            let (table, expected) = (table.name.clone(), if table.phones { "phones" } else { "words" });
            return Err(ReproduceError::Units { table, expected, corpus, found: units.to_string() });
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

    /// Refuses before any work if a run was started with other settings.
    fn refuse_other_settings(&self, watcher: &dyn TrainWatcher) -> Result<(), ReproduceError> {
        for row in &self.rows {
            let Some(length) = self.known_length(row)? else { continue };
            for seed in 1..=self.n_seeds {
                let job = self.train_job(row, self.settings.recipe(row, length, seed)?, seed);
                trainer::is_finished(&job, watcher)?;
            }
        }
        Ok(())
    }

    /// Trains and measures one row with one seed. Returns the number of problems, `None` if interrupted.
    fn run_row(
        &self,
        row: &TableRow,
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
    pub(super) fn train_job(&self, row: &TableRow, recipe: Recipe, seed: u64) -> TrainJob {
        TrainJob {
            recipe,
            recipe_name: row.name().to_owned(),
            data: Arc::clone(&self.data),
            run: self.paths.run(row, seed),
            from: None,
            command: self.command.clone(),
            machine: self.machine.clone(),
            save_every: SAVE_EVERY,
            max_cache_bytes: MAX_CACHE_BYTES,
        }
    }

    /// The table as far as it is known.
    pub fn report(&self) -> Result<Report, ReproduceError> {
        let results = Results { paths: &self.paths, table: self.table, n_seeds: self.n_seeds };
        let recipe = |row: &&'static TableRow| Ok((*row, self.settings.recipe(row, Length::OfRecipe, 1)?));
        let rows: Vec<_> = self.rows.iter().map(recipe).collect::<Result<_, ReproduceError>>()?;
        let is_in_table = |part: &&Part| self.table.columns.iter().any(|column| column.part == part.name);
        let claims_on = self.parts.iter().rfind(is_in_table).map_or(TEST, |part| part.name);
        Ok(Report::of(&results, &rows, claims_on, self.circumstances()))
    }

    fn circumstances(&self) -> Circumstances {
        let units = self.data.labels.units();
        let subject = self.parts.first().map(|part| self.subject(&PathBuf::new(), part)).unwrap_or_default();
        let budget = match self.budget {
            Budget::Recipe => "as in the recipes".to_owned(),
            Budget::Epochs(n_epochs) => format!("{n_epochs} epochs per row, with the schedule compressed"),
            Budget::Minutes(minutes) => {
                format!("{minutes} minutes of training steps per row, with the schedule compressed")
            }
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
            command: command_line(&self.command),
            machine: format!("{}, {} threads", self.machine.processor, self.machine.n_threads),
            version: env!("CARGO_PKG_VERSION"),
            remarks: self.remarks(),
        }
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = [self.table.note.clone()].into_iter().filter(|note| !note.is_empty()).collect();
        if let [part] = &self.parts[..] {
            remarks.push(format!("The corpus has only the part `{}` to measure on.", part.name));
        }
        if self.table.measures(&[Quantity::EosRate]) {
            let texts = self.parts.iter().flat_map(|part| &part.utterances).map(|utterance| utterance.text.as_str());
            remarks.push(match end_label(texts) {
                Some(label) => {
                    format!(
                        "EOS: share of utterances whose last label is `{label}`, the one that ends every reference."
                    )
                }
                None => "EOS is not counted: references do not all end with the same label.".to_owned(),
            });
        }
        remarks
    }

    /// Writes the table in all its forms.
    fn write(&self, report: &Report) -> Result<(), ReproduceError> {
        let picture = report.windows_picture();
        let path = |extension: &str| self.paths.out.join(format!("{}.{extension}", self.table.name));
        let (text, page) = (report.markdown(), report.page(picture.as_ref()));
        write_atomically(&path("md"), text.as_bytes()).map_err(ReproduceError::write(&path("md")))?;
        write_json(&path("json"), report).map_err(ReproduceError::write(&path("json")))?;
        page.save(&path("html")).map_err(ReproduceError::write(&path("html")))?;
        if let Some(picture) = picture {
            picture.save(&self.paths.out, &self.table.name).map_err(ReproduceError::write(&self.paths.out))?;
        }
        Ok(())
    }
}

/// The parts of the prepared corpus at `dir` that models are measured on, and problems of their manifests.
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

/// Batches that are timed to find how fast a row trains.
///
/// Rows are compared after the same time, but the schedule must know its end beforehand. So a few batches
/// are timed, once per row: the speed is written down, and every seed and every resumption gets the same epochs.
const N_TIMED_BATCHES: usize = 4;
/// Feature frames.
const FRAMES_PER_S: f64 = 100.0;

/// The speed of a row, and what it depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Pace {
    /// The network and the frames of a batch.
    of: String,
    frames_per_s: f64,
}

impl Job {
    /// How long a row is trained; times it first where needed. `None` if interrupted.
    pub(super) fn length(
        &self,
        row: &TableRow,
        watcher: &dyn TrainWatcher,
        stop: &AtomicBool,
    ) -> Result<Option<Length>, ReproduceError> {
        if let Some(length) = self.known_length(row)? {
            return Ok(Some(length));
        }
        let recipe = self.settings.recipe(row, Length::OfRecipe, 1)?;
        let of = subject(&recipe);
        if let Some(frames_per_s) = self.time(row, recipe, watcher, stop)? {
            let path = self.paths.pace(row);
            write_json(&path, &Pace { of, frames_per_s }).map_err(ReproduceError::write(&path))?;
        }
        self.known_length(row)
    }

    /// The same, where it is known without timing anything.
    pub(super) fn known_length(&self, row: &TableRow) -> Result<Option<Length>, ReproduceError> {
        let minutes = match self.budget {
            Budget::Recipe => return Ok(Some(Length::OfRecipe)),
            Budget::Epochs(n_epochs) => return Ok(Some(Length::Epochs(n_epochs))),
            Budget::Minutes(minutes) => minutes,
        };
        let recipe = self.settings.recipe(row, Length::OfRecipe, 1)?;
        let most = recipe.training.as_ref().map_or(1, |training| training.epochs);
        let pace = read_json::<Pace>(&self.paths.pace(row)).filter(|pace| pace.of == subject(&recipe));
        let n_frames = n_frames(&self.data.train);
        Ok(pace.map(|pace| Length::Epochs(epochs_in(minutes, pace.frames_per_s, n_frames, most))))
    }

    /// Frames per second when training on a little of the corpus, in a temporary directory; `None` if interrupted.
    fn time(
        &self,
        row: &TableRow,
        mut recipe: Recipe,
        watcher: &dyn TrainWatcher,
        stop: &AtomicBool,
    ) -> Result<Option<f64>, ReproduceError> {
        let run = self.paths.row(row).join("pace");
        let _ = fs::remove_dir_all(&run);
        let mut n_wanted = 0.0;
        if let Some(training) = &mut recipe.training {
            n_wanted = (N_TIMED_BATCHES * training.batch_frames) as f64;
            (training.epochs, training.average_epochs) = (1, 1);
        }
        watcher.remark(&format!("{}: timing a few batches", row.name()));
        let data = Prepared {
            paths: self.data.paths.clone(),
            labels: self.data.labels.clone(),
            train: first(&self.data.train, n_wanted),
            dev: Vec::new(),
            fingerprint: String::new(),
            sizes_fingerprint: String::new(),
            problems: Vec::new(),
        };
        let job = TrainJob { data: Arc::new(data), run, ..self.train_job(row, recipe, 1) };
        train(&job, watcher, stop)?;
        let history = History::load(&job.run.join(log::FILE_NAME)).unwrap_or_default();
        let _ = fs::remove_dir_all(&job.run);
        Ok(history.is_finished().then(|| Run::of(&history).frames_per_s))
    }
}

fn subject(recipe: &Recipe) -> String {
    let batch_frames = recipe.training.as_ref().map_or(0, |training| training.batch_frames);
    format!("{:?}, {batch_frames} frames per batch", recipe.model)
}

/// The first utterances that have `n_wanted` frames together.
fn first(utterances: &[Utterance], n_wanted: f64) -> Vec<Utterance> {
    let mut n_taken = 0.0;
    let few = utterances.iter().take_while(|utterance| {
        let is_taken = n_taken < n_wanted;
        n_taken += n_frames(std::slice::from_ref(utterance));
        is_taken
    });
    few.cloned().collect()
}

fn n_frames(utterances: &[Utterance]) -> f64 {
    utterances.iter().filter_map(|utterance| utterance.audio.duration_s).sum::<f64>() * FRAMES_PER_S
}

/// Epochs of `n_frames` that fit into `minutes`: one at least, and no more than the recipe has.
fn epochs_in(minutes: f64, frames_per_s: f64, n_frames: f64, most: usize) -> usize {
    let n_epochs = (60.0 * minutes * frames_per_s / n_frames.max(1.0)).round();
    (n_epochs as usize).clamp(1, most.max(1))
}

/// The corpus of a smoke test: hours and speakers.
const SMOKE_CORPUS: (f64, usize) = (0.012, 6);
/// Utterances that a smoke test keeps of a corpus: for training, and of each part to measure on.
const N_SMOKE: (usize, usize) = (12, 4);

/// Synthesises and prepares a corpus of half a minute for `table` in `dir`, unless it is there.
pub fn smoke_corpus(table: &Table, dir: &Path, watcher: &dyn TrainWatcher) -> Result<(), ReproduceError> {
    // Written last, so everything else is there too.
    if dir.join("summary.json").is_file() {
        return Ok(());
    }
    watcher.remark("synthesising a corpus of half a minute");
    let (hours, n_speakers) = SMOKE_CORPUS;
    let config = PlainConfig { seed: 1, n_speakers, hours, voices: Voices::Flite };
    let corpus = write_plain(&config, dir, watcher)?;
    let targets = if table.phones {
        TargetConfig { labels: targets::Labels::Timit(PhoneSet::All61), ..TargetConfig::new(Units::Phones) }
    } else {
        TargetConfig::new(Units::Chars)
    };
    let split = SplitConfig { shares: "60/20/20".parse().ok(), seed: 1, ..SplitConfig::default() };
    let config = PrepareConfig { split, targets, kaldi: false };
    let found = Found { src: dir.to_owned(), corpus, problems: Vec::new() };
    prepare(found, &config, &|_| Vec::new(), dir, watcher).0?;
    Ok(())
}

/// Keeps a little of a corpus, so that a table is made in a minute.
pub fn cut_for_smoke(data: &mut Prepared, parts: &mut [Part]) {
    data.train.truncate(N_SMOKE.0);
    data.dev.truncate(N_SMOKE.1);
    for part in parts {
        part.utterances.truncate(N_SMOKE.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_fill_the_time_within_bounds() {
        // 10 minutes at 2,000 frames/s are 1.2 million frames.
        assert_eq!(epochs_in(10.0, 2000.0, 100_000.0, 200), 12);
        assert_eq!(epochs_in(0.01, 2000.0, 100_000.0, 200), 1);
        assert_eq!(epochs_in(1e9, 2000.0, 100_000.0, 200), 200);
        assert_eq!(epochs_in(10.0, f64::NAN, 0.0, 200), 1);
    }
}
