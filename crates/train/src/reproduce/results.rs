//! What was measured so far: the files of a reproduction, and the figures and tests of differences they give.
//!
//! Nothing is kept but the files, so a table is the same whether its runs were made just now or last year.
//!
//! | path below OUT | holds |
//! |---|---|
//! | `ROW/seed-N/` | a run, as `srf train` makes it; ROW of WSJ is `wsj/NAME` |
//! | `ROW/seed-N/dev/`, `.../test/` | its evaluations, as `srf evaluate --out` writes them |
//! | `ROW/seed-N/decoding.json` | how long each utterance of the test part takes |
//! | `ROW/seed-N/distance-PART.json` | how far routing and softmax are apart, by utterance |
//! | `ROW/pace.json` | how fast the row trains, where the budget is time |
//! | `TABLE.md`, `TABLE.json`, `TABLE.html` | the table |

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use srf_base::files::{read_at_most, write_atomically};
use srf_score::System;
use srf_score::compare::{Outcome, Paired, mapsswe, tosses};
use srf_score::files::{self, FileOptions, Missing};
use srf_score::formats::Source;

use super::paper::{Column, Quantity, Table, TableRow};
use super::statistics::{Equivalence, correlation, equivalence, half_interval, mean};
use crate::analyze::distance::Distance;
use crate::evaluate::summary::{self, RateSummary, Summary};
use crate::events::log::{self, History};
use crate::runs::Run;

/// Far more than any of our files has.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Where everything of a reproduction is.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The directory that holds all of it.
    pub out: PathBuf,
}

impl Paths {
    /// What belongs to a row.
    pub fn row(&self, row: &TableRow) -> PathBuf {
        self.out.join(row.directory())
    }

    /// The run of a row with a seed.
    pub fn run(&self, row: &TableRow, seed: u64) -> PathBuf {
        self.row(row).join(format!("seed-{seed}"))
    }

    /// The evaluation of a run on a part.
    pub fn evaluation(&self, row: &TableRow, seed: u64, part: &str) -> PathBuf {
        self.run(row, seed).join(part)
    }

    /// The decoding times of a run.
    pub fn decoding(&self, row: &TableRow, seed: u64) -> PathBuf {
        self.run(row, seed).join("decoding.json")
    }

    /// The distances of a run on a part.
    pub fn distance(&self, row: &TableRow, seed: u64, part: &str) -> PathBuf {
        self.run(row, seed).join(format!("distance-{part}.json"))
    }

    /// How fast a row trains.
    pub fn pace(&self, row: &TableRow) -> PathBuf {
        self.row(row).join("pace.json")
    }
}

/// Reads a JSON file; `None` if there is none, or it holds something else: it is then made again.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&read_at_most(path, MAX_FILE_BYTES).ok()??).ok()
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    write_atomically(path, (text + "\n").as_bytes())
}

/// Decoding times of a whole part, as `decoding.json` holds them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decoding {
    /// How hypotheses were searched for.
    pub search: String,
    /// Every utterance that could be recognised, in the order of the list.
    pub utterances: Vec<UtteranceTime>,
}

/// The decoding time of one utterance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct UtteranceTime {
    pub id: String,
    pub duration_s: f64,
    pub decoding_s: f64,
}

impl Decoding {
    fn total_s(&self) -> f64 {
        self.utterances.iter().map(|utterance| utterance.decoding_s).sum()
    }

    /// Time per second of audio; `None` without audio.
    fn real_time_factor(&self) -> Option<f64> {
        let audio_s: f64 = self.utterances.iter().map(|utterance| utterance.duration_s).sum();
        (0.0 < audio_s).then(|| self.total_s() / audio_s)
    }

    /// The times of the utterances that both have.
    fn pairs(&self, other: &Self) -> Vec<(f64, f64)> {
        let others: HashMap<&str, f64> = other.utterances.iter().map(|u| (u.id.as_str(), u.decoding_s)).collect();
        self.utterances.iter().filter_map(|u| Some((u.decoding_s, *others.get(u.id.as_str())?))).collect()
    }
}

/// How far apart routing and softmax are in an utterance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UtteranceDistance {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) distance: Distance,
}

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
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Interval {
    pub low: f64,
    pub high: f64,
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

/// The files of a reproduction, and which of them belong to a table.
pub(super) struct Results<'a> {
    pub(super) paths: &'a Paths,
    pub(super) table: &'static Table,
    pub(super) n_seeds: u64,
}

impl Results<'_> {
    /// The figure of a row in a column, over the seeds that are done; `None` if none is.
    pub(super) fn figure(&self, row: &TableRow, column: Column) -> Option<Measured> {
        let each: Vec<f64> = self.seeds().filter_map(|seed| self.value(row, seed, column)).collect();
        let mean = mean(&each)?;
        let over_seeds =
            half_interval(&each).map(|half| Interval { low: mean - half, high: mean + half, over: Over::Seeds });
        let interval = over_seeds.or_else(|| self.bootstrap_interval(row, column));
        Some(Measured { mean, interval, each })
    }

    fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        1..=self.n_seeds
    }

    fn value(&self, row: &TableRow, seed: u64, Column { quantity, part }: Column) -> Option<f64> {
        match quantity {
            Quantity::Error => Some(100.0 * self.rate(row, seed, part)?.rate?),
            Quantity::EosRate => {
                let found = self.eos_found(row, seed, part)?;
                Some(100.0 * found.iter().filter(|(_, is_found)| *is_found).count() as f64 / found.len() as f64)
            }
            Quantity::Distance => {
                self.distances(row, seed, part)?.into_iter().map(|of| of.distance).sum::<Distance>().rate()
            }
            Quantity::TrainingTime => self.epoch_s(row, seed),
            Quantity::DecodingTime => Some(self.decoding(row, seed)?.total_s()),
            Quantity::RealTimeFactor => self.decoding(row, seed)?.real_time_factor(),
            Quantity::Correlation => correlation(&self.paired_times(row, seed)?),
            Quantity::Parameters => self.run(row, seed).map(|run| run.n_parameters as f64),
        }
    }

    fn decoding(&self, row: &TableRow, seed: u64) -> Option<Decoding> {
        read_json(&self.paths.decoding(row, seed))
    }

    /// Decoding times of a row and of the last row, by utterance.
    pub(super) fn paired_times(&self, row: &TableRow, seed: u64) -> Option<Vec<(f64, f64)>> {
        Some(self.decoding(row, seed)?.pairs(&self.decoding(self.table.rows.last()?, seed)?))
    }

    fn rate(&self, row: &TableRow, seed: u64, part: &str) -> Option<RateSummary> {
        self.summary(row, seed, part)?.rates.into_iter().next()
    }

    /// The evaluation of a run on a part.
    pub(super) fn summary(&self, row: &TableRow, seed: u64, part: &str) -> Option<Summary> {
        Summary::load(&self.paths.evaluation(row, seed, part).join(summary::FILE_NAME)).ok()
    }

    fn eos_found(&self, row: &TableRow, seed: u64, part: &str) -> Option<Vec<(String, bool)>> {
        eos_found(&load_hypotheses(&self.paths.evaluation(row, seed, part))?)
    }

    fn distances(&self, row: &TableRow, seed: u64, part: &str) -> Option<Vec<UtteranceDistance>> {
        read_json(&self.paths.distance(row, seed, part))
    }

    /// What the run came to, so far.
    pub(super) fn run(&self, row: &TableRow, seed: u64) -> Option<Run> {
        Run::load(&self.paths.run(row, seed)).ok()
    }

    /// Seconds of training steps in an epoch, from the speed of all epochs: a resumed epoch is timed only in part.
    fn epoch_s(&self, row: &TableRow, seed: u64) -> Option<f64> {
        let history = History::load(&self.paths.run(row, seed).join(log::FILE_NAME)).ok()?;
        let n_frames = history.start()?.data.first()?.n_frames as f64;
        let frames_per_s = Run::of(&history).frames_per_s;
        (0.0 < frames_per_s).then(|| n_frames / frames_per_s)
    }

    fn bootstrap_interval(&self, row: &TableRow, Column { quantity, part }: Column) -> Option<Interval> {
        let seed = self.seeds().find(|seed| self.summary(row, *seed, part).is_some())?;
        let rate = (quantity == Quantity::Error).then(|| self.rate(row, seed, part))??;
        Some(Interval { low: 100.0 * rate.low, high: 100.0 * rate.high, over: Over::Utterances })
    }

    /// For each seed that both rows have, whether the first has less of a quantity than the second.
    pub(super) fn tests(&self, rows: [&TableRow; 2], column: Column) -> Vec<Outcome> {
        self.seeds().filter_map(|seed| self.test(rows, seed, column)).collect()
    }

    fn test(&self, rows: [&TableRow; 2], seed: u64, Column { quantity, part }: Column) -> Option<Outcome> {
        match quantity {
            Quantity::Error => {
                let [first, second] = rows.map(|row| self.system(row, seed, part));
                Some(mapsswe(&Paired::new(&first?, &second?)))
            }
            Quantity::EosRate => {
                let value = |(id, is_found): (String, bool)| (id, f64::from(u8::from(is_found)));
                let [first, second] = rows.map(|row| self.eos_found(row, seed, part));
                Some(sign_test(first?.into_iter().map(value), second?.into_iter().map(value)))
            }
            Quantity::Distance => {
                let value = |of: UtteranceDistance| (of.id, of.distance.n_different as f64);
                let [first, second] = rows.map(|row| self.distances(row, seed, part));
                Some(sign_test(first?.into_iter().map(value), second?.into_iter().map(value)))
            }
            _ => None,
        }
    }

    /// For each seed that both rows have, whether their error rates are the same within `margin`, a share of them.
    pub(super) fn equivalences(&self, rows: [&TableRow; 2], part: &str, margin: f64) -> Vec<Equivalence> {
        let of_seed = |seed| {
            let [first, second] = rows.map(|row| self.system(row, seed, part));
            let (first, second) = (first?, second?);
            let paired = Paired::new(&first, &second);
            let errors = paired.utterances.iter().map(|(a, b)| [a, b].map(|u| u.counts().n_errors() as f64));
            let n_reference = paired.utterances.iter().map(|(a, _)| a.counts().n_reference()).sum();
            equivalence(&errors.collect::<Vec<_>>(), n_reference, margin)
        };
        self.seeds().filter_map(of_seed).collect()
    }

    /// What a run recognised, aligned with the references.
    fn system(&self, row: &TableRow, seed: u64, part: &str) -> Option<System> {
        let dir = self.paths.evaluation(row, seed, part);
        let source = |name: &str| Source::load(&dir.join(name)).ok();
        let options = FileOptions {
            missing: Missing::Refuse,
            // Words were written in lower case; phones may differ in case alone.
            is_case_sensitive: true,
            ..FileOptions::default()
        };
        Some(files::score(&source("ref.trn")?, &source("hyp.trn")?, &row.title, options).ok()?.system)
    }
}

/// A sign test over the utterances that both have: in how many is the first value smaller, in how many the second?
fn sign_test(first: impl Iterator<Item = (String, f64)>, second: impl Iterator<Item = (String, f64)>) -> Outcome {
    let second: HashMap<String, f64> = second.collect();
    let differences: Vec<f64> = first.filter_map(|(id, value)| Some(value - second.get(&id)?)).collect();
    let n = |is_won: fn(&f64) -> bool| differences.iter().filter(|difference| is_won(difference)).count();
    tosses(n(|difference| *difference < 0.0), n(|difference| 0.0 < *difference), differences.len())
}

/// A line of `hyp.jsonl`, before any mapping of phones.
#[derive(Clone, Debug, Deserialize)]
struct HypothesisLine {
    id: String,
    text: String,
    pred_text: String,
}

fn load_hypotheses(evaluation: &Path) -> Option<Vec<HypothesisLine>> {
    let file = BufReader::new(File::open(evaluation.join("hyp.jsonl")).ok()?);
    file.lines().map(|line| serde_json::from_str(&line.ok()?).ok()).collect()
}

/// Whether the last recognised label is the one that ends every reference, by utterance; `None` if references end
/// differently, or there are none.
fn eos_found(lines: &[HypothesisLine]) -> Option<Vec<(String, bool)>> {
    let label = end_label(lines.iter().map(|line| line.text.as_str()))?;
    let is_found = |line: &HypothesisLine| line.pred_text.split_whitespace().next_back() == Some(label);
    Some(lines.iter().map(|line| (line.id.clone(), is_found(line))).collect())
}

/// The label that ends every one of `references`, as `h#` does in TIMIT.
pub(super) fn end_label<'a>(mut references: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |reference: &'a str| reference.split_whitespace().next_back();
    let label = last(references.next()?)?;
    references.all(|reference| last(reference) == Some(label)).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, pred_text: &str) -> HypothesisLine {
        HypothesisLine { id: text.to_owned(), text: text.to_owned(), pred_text: pred_text.to_owned() }
    }

    fn are_found(lines: &[HypothesisLine]) -> Option<Vec<bool>> {
        eos_found(lines).map(|found| found.into_iter().map(|(_, is_found)| is_found).collect())
    }

    #[test]
    fn an_end_is_found_where_the_last_label_is_that_of_every_reference() {
        let lines = [line("h# a h#", "a b h#"), line("h# b h#", "h# b"), line("h#", "")];
        assert_eq!(are_found(&lines), Some(vec![true, false, false]));
    }

    #[test]
    fn references_that_end_differently_or_not_at_all_have_no_end_to_find() {
        assert_eq!(are_found(&[line("a h#", "h#"), line("a b", "h#")]), None);
        assert_eq!(are_found(&[line("a h#", "h#"), line("", "h#")]), None);
        assert_eq!(are_found(&[]), None);
    }

    fn decoding(times: &[(&str, f64)]) -> Decoding {
        let timed = |(id, decoding_s): &(&str, f64)| UtteranceTime {
            id: (*id).to_owned(),
            duration_s: 2.0,
            decoding_s: *decoding_s,
        };
        Decoding { search: "greedy".to_owned(), utterances: times.iter().map(timed).collect() }
    }

    #[test]
    fn times_are_summed_and_paired_by_utterance() {
        let (a, b) = (decoding(&[("x", 0.5), ("y", 1.5)]), decoding(&[("y", 3.0), ("z", 4.0), ("x", 1.0)]));
        assert_eq!((a.total_s(), a.real_time_factor()), (2.0, Some(0.5)));
        assert_eq!(a.pairs(&b), [(0.5, 1.0), (1.5, 3.0)]);
        assert_eq!(Decoding::default().real_time_factor(), None);
    }
}
