//! What was measured so far: the files of a reproduction in, figures and tests of differences out.
//!
//! Nothing is kept but the files, so a table is the same whether its runs were made just now or last year.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use srf_score::System;
use srf_score::compare::{Outcome, Paired, mapsswe, tosses};
use srf_score::files::{self, FileOptions, Missing};
use srf_score::read::Source;

use super::decoding::Decoding;
use super::ends;
use super::place::{Place, read_json};
use super::statistics::{correlation, half_interval, mean};
use super::table::{Column, Quantity, Row, Table};
use crate::analyze::distance::Distance;
use crate::evaluate::summary::{self, RateSummary, Summary};
use crate::events::log::{self, History};
use crate::runs::Run;

/// What an interval is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Seeds: Student's interval of the mean.
    Seeds,
    /// Draws of the utterances: the bootstrap of the one run there is.
    Utterances,
}

/// The ends of a 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The lower one.
    pub low: f64,
    /// The upper one.
    pub high: f64,
    /// What it is taken over.
    pub over: Over,
}

/// A figure of ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The mean over seeds.
    pub mean: f64,
    /// Its 95 % interval, where there is one.
    pub interval: Option<Interval>,
    /// The figure of each seed.
    pub each: Vec<f64>,
}

/// How far apart routing and softmax are in an utterance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DistanceOf {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) distance: Distance,
}

/// The files, and which of them belong to the table.
pub(super) struct Shelf<'a> {
    pub(super) place: &'a Place,
    pub(super) table: &'static Table,
    pub(super) n_seeds: u64,
}

impl Shelf<'_> {
    /// The figure of a row in a column, of the seeds that are done; none if none is.
    pub(super) fn figure(&self, row: &Row, column: Column) -> Option<Measured> {
        let each: Vec<f64> = self.seeds().filter_map(|seed| self.value(row, seed, column)).collect();
        let mean = mean(&each)?;
        let over_seeds =
            half_interval(&each).map(|half| Interval { low: mean - half, high: mean + half, over: Over::Seeds });
        let interval = over_seeds.or_else(|| self.drawn(row, column));
        Some(Measured { mean, interval, each })
    }

    fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        1..=self.n_seeds
    }

    /// What was measured of one run.
    fn value(&self, row: &Row, seed: u64, Column { quantity, part }: Column) -> Option<f64> {
        let decoding = |row| Decoding::load(&self.place.decoding(row, seed));
        match quantity {
            Quantity::Error => Some(100.0 * self.rate(row, seed, part)?.rate?),
            Quantity::EndsFound => {
                let found = self.ends(row, seed, part)?;
                Some(100.0 * found.iter().filter(|(_, is_found)| *is_found).count() as f64 / found.len() as f64)
            }
            Quantity::Distance => {
                self.distances(row, seed, part)?.into_iter().map(|of| of.distance).sum::<Distance>().rate()
            }
            Quantity::TrainingTime => self.epoch_s(row, seed),
            Quantity::DecodingTime => Some(decoding(row)?.total_s()),
            Quantity::RealTimeFactor => decoding(row)?.real_time_factor(),
            Quantity::Correlation => correlation(&self.paired_times(row, seed)?),
            Quantity::Parameters => self.run(row, seed).map(|run| run.n_parameters as f64),
        }
    }

    /// Decoding times of a row and of the last row, by utterance.
    pub(super) fn paired_times(&self, row: &Row, seed: u64) -> Option<Vec<(f64, f64)>> {
        let of = |row| Decoding::load(&self.place.decoding(row, seed));
        Some(of(row)?.pairs(&of(self.table.rows.last()?)?))
    }

    fn rate(&self, row: &Row, seed: u64, part: &str) -> Option<RateSummary> {
        self.summary(row, seed, part)?.rates.into_iter().next()
    }

    /// The evaluation of a run on a part.
    pub(super) fn summary(&self, row: &Row, seed: u64, part: &str) -> Option<Summary> {
        Summary::load(&self.place.evaluation(row, seed, part).join(summary::FILE_NAME)).ok()
    }

    fn ends(&self, row: &Row, seed: u64, part: &str) -> Option<Vec<(String, bool)>> {
        ends::found(&ends::load(&self.place.evaluation(row, seed, part))?)
    }

    fn distances(&self, row: &Row, seed: u64, part: &str) -> Option<Vec<DistanceOf>> {
        read_json(&self.place.distance(row, seed, part))
    }

    /// What the run came to, so far.
    pub(super) fn run(&self, row: &Row, seed: u64) -> Option<Run> {
        Run::load(&self.place.run(row, seed)).ok()
    }

    /// Seconds of training steps in an epoch; a resumed epoch would be timed in part, the speed of all is not.
    fn epoch_s(&self, row: &Row, seed: u64) -> Option<f64> {
        let history = History::load(&self.place.run(row, seed).join(log::FILE_NAME)).ok()?;
        let n_frames = history.start()?.data.first()?.n_frames as f64;
        let frames_per_s = Run::of(&history).frames_per_s;
        (0.0 < frames_per_s).then(|| n_frames / frames_per_s)
    }

    /// The interval of a single run, where its evaluation drew one.
    fn drawn(&self, row: &Row, Column { quantity, part }: Column) -> Option<Interval> {
        let seed = self.seeds().find(|seed| self.summary(row, *seed, part).is_some())?;
        let rate = (quantity == Quantity::Error).then(|| self.rate(row, seed, part))??;
        Some(Interval { low: 100.0 * rate.low, high: 100.0 * rate.high, over: Over::Utterances })
    }

    /// Of each seed that both rows have, whether the first has less of a quantity than the second.
    pub(super) fn tests(&self, rows: [&Row; 2], column: Column) -> Vec<Outcome> {
        self.seeds().filter_map(|seed| self.test(rows, seed, column)).collect()
    }

    fn test(&self, rows: [&Row; 2], seed: u64, Column { quantity, part }: Column) -> Option<Outcome> {
        match quantity {
            Quantity::Error => {
                let [first, second] = rows.map(|row| self.system(row, seed, part));
                Some(mapsswe(&Paired::new(&first?, &second?)))
            }
            Quantity::EndsFound => {
                let value = |(id, is_found): (String, bool)| (id, f64::from(u8::from(is_found)));
                let [first, second] = rows.map(|row| self.ends(row, seed, part));
                Some(test_values(first?.into_iter().map(value), second?.into_iter().map(value)))
            }
            Quantity::Distance => {
                let value = |of: DistanceOf| (of.id, of.distance.n_different as f64);
                let [first, second] = rows.map(|row| self.distances(row, seed, part));
                Some(test_values(first?.into_iter().map(value), second?.into_iter().map(value)))
            }
            _ => None,
        }
    }

    /// What a run recognised, aligned with what was said.
    fn system(&self, row: &Row, seed: u64, part: &str) -> Option<System> {
        let dir = self.place.evaluation(row, seed, part);
        let source = |name: &str| Source::load(&dir.join(name)).ok();
        let options = FileOptions {
            missing: Missing::Refuse,
            // Words were written in small letters; phones may differ in nothing but capitals.
            is_case_sensitive: true,
            ..FileOptions::default()
        };
        Some(files::score(&source("ref.trn")?, &source("hyp.trn")?, row.title, options).ok()?.system)
    }
}

/// A sign test: in how many of the utterances that both have is the first value the smaller one, in how many the second?
fn test_values(first: impl Iterator<Item = (String, f64)>, second: impl Iterator<Item = (String, f64)>) -> Outcome {
    let second: HashMap<String, f64> = second.collect();
    let differences: Vec<f64> = first.filter_map(|(id, value)| Some(value - second.get(&id)?)).collect();
    let n = |is_won: fn(&f64) -> bool| differences.iter().filter(|difference| is_won(difference)).count();
    tosses(n(|difference| *difference < 0.0), n(|difference| 0.0 < *difference), differences.len())
}
