//! Whether the paper's claims hold here: figures and tests of each seed in, a verdict for each claim out.
//!
//! Errors are tested as `srf compare` does, by matched pairs of segments (MAPSSWE) of two runs with the same seed; ends
//! of sentences and distances by a sign test on utterances, which for ends is McNemar's.
//! Of several seeds the test in the middle counts, and its p is doubled: at least half of the tests are then that clear,
//! and twice the median of p-values is a p-value however much the tests have in common, as those of one test set do.

use serde::Serialize;
use srf_score::compare::{FEWEST_SEGMENTS, Outcome, SIGNIFICANT, Side};

use super::shelf::Shelf;
use super::statistics::{correlation_interval, mean};
use super::table::{Claim, Column, Figure, Quantity, Relation, Row};

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// The opposite does.
    DoesNotHold,
    /// What was measured does not tell, or nothing was.
    NotDecided,
}

impl Verdict {
    fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::DoesNotHold }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::NotDecided => "not decided",
        }
    }
}

/// How two figures are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// The second minus the first.
    Difference,
    /// The second over the first.
    Ratio,
    /// One figure as it stands.
    Value,
}

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The claim.
    pub says: &'static str,
    /// What it is about.
    pub quantity: Quantity,
    /// Names of the rows: less, more; or the one.
    pub rows: Vec<&'static str>,
    /// The part of the corpus it was checked on.
    pub part: &'static str,
    /// How `paper` and `ours` are to be read.
    pub compared: Compared,
    /// In the paper.
    pub paper: Option<f64>,
    /// Here.
    pub ours: Option<f64>,
    /// How likely a difference this large is between equals, where that was tested.
    pub p: Option<f64>,
    /// Segments or utterances that were compared, of one seed.
    pub n_compared: usize,
    /// Seeds that both rows have.
    pub n_seeds: usize,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// The tests of all seeds as one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Combined {
    /// Which one has less.
    less: Option<Side>,
    p: f64,
    n_compared: usize,
}

impl Combined {
    fn of(outcomes: &[Outcome]) -> Option<Self> {
        let mut tests: Vec<(f64, &Outcome)> = outcomes.iter().map(|outcome| (clarity(outcome), outcome)).collect();
        tests.sort_by(|a, b| a.0.total_cmp(&b.0));
        let n = tests.len();
        // Of an even number, the one of the two in the middle that says less.
        let middle = [tests.get(n.checked_sub(1)? / 2)?, tests.get(n / 2)?];
        let (_, outcome) = middle.into_iter().min_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
        let p = if n == 1 { outcome.p } else { (2.0 * outcome.p).min(1.0) };
        Some(Self { less: outcome.better, p, n_compared: outcome.n_compared })
    }
}

/// From -1, where the first clearly has less, over 0 to 1, where the second does.
fn clarity(outcome: &Outcome) -> f64 {
    match outcome.better {
        Some(Side::First) => outcome.p - 1.0,
        Some(Side::Second) => 1.0 - outcome.p,
        None => 0.0,
    }
}

/// Checks one claim on a part of the corpus.
pub(super) fn judge(claim: &Claim, part: &'static str, shelf: &Shelf) -> Judged {
    match claim.relation {
        Relation::Less(first, second) | Relation::Alike(first, second) => {
            judge_pair(claim, [first, second], part, shelf)
        }
        Relation::AtLeast(name, bound) => judge_bound(claim, (name, bound), part, shelf),
    }
}

fn judge_pair(claim: &Claim, names: [&'static str; 2], part: &'static str, shelf: &Shelf) -> Judged {
    let &Claim { says, quantity, relation } = claim;
    let (column, compared) = (Column { quantity, part }, compared(quantity));
    let rows = names.map(|name| shelf.table.row(name).expect("claims are about rows of their table"));
    let paper = rows.map(|row| paper_figure(shelf, row, column).map(|figure| figure.value));
    let ours = between(compared, rows.map(|row| shelf.figure(row, column).map(|measured| measured.mean)));
    let tests = shelf.tests(rows, column);
    let test = Combined::of(&tests);
    // The normal distribution behind MAPSSWE needs segments; the sign test is exact.
    let fewest = if quantity == Quantity::Error { FEWEST_SEGMENTS } else { 1 };
    let counted = test.filter(|test| fewest <= test.n_compared);
    let verdict = match (relation, compared) {
        (Relation::Alike(..), _) => alike(counted),
        (_, Compared::Ratio) => ours.map_or(Verdict::NotDecided, |ratio| Verdict::of(1.0 < ratio)),
        _ => less(counted),
    };
    Judged {
        says,
        quantity,
        rows: names.to_vec(),
        part,
        compared,
        paper: between(compared, paper),
        ours,
        p: test.map(|test| test.p),
        n_compared: test.map_or(0, |test| test.n_compared),
        n_seeds: tests.len(),
        verdict,
    }
}

fn judge_bound(claim: &Claim, (name, bound): (&'static str, f64), part: &'static str, shelf: &Shelf) -> Judged {
    let column = Column { quantity: claim.quantity, part };
    let row = shelf.table.row(name).expect("claims are about rows of their table");
    let measured = shelf.figure(row, column);
    let n_compared = shelf.paired_times(row, 1).map_or(0, |pairs| pairs.len());
    let ours = measured.as_ref().and_then(|measured| mean(&measured.each));
    Judged {
        says: claim.says,
        quantity: claim.quantity,
        rows: vec![name],
        part,
        compared: Compared::Value,
        paper: paper_figure(shelf, row, column).map(|figure| figure.value),
        ours,
        p: None,
        n_compared,
        n_seeds: measured.map_or(0, |measured| measured.each.len()),
        verdict: ours.map_or(Verdict::NotDecided, |r| at_least(r, n_compared, bound)),
    }
}

fn paper_figure(shelf: &Shelf, row: &Row, column: Column) -> Option<Figure> {
    if column.quantity == Quantity::Parameters {
        return Some(Figure { value: 1e6 * row.millions, spread: None });
    }
    shelf.table.columns.iter().zip(row.paper).find(|(known, _)| **known == column).and_then(|(_, figure)| *figure)
}

fn compared(quantity: Quantity) -> Compared {
    match quantity {
        Quantity::TrainingTime | Quantity::DecodingTime | Quantity::Parameters => Compared::Ratio,
        _ => Compared::Difference,
    }
}

fn between(compared: Compared, figures: [Option<f64>; 2]) -> Option<f64> {
    let [first, second] = figures;
    let (first, second) = (first?, second?);
    match compared {
        Compared::Ratio => (first != 0.0).then(|| second / first),
        _ => Some(second - first),
    }
}

/// Whether the first has less.
fn less(test: Option<Combined>) -> Verdict {
    let significant = test.filter(|test| test.p < SIGNIFICANT).and_then(|test| test.less);
    significant.map_or(Verdict::NotDecided, |less| Verdict::of(less == Side::First))
}

/// Whether no significant difference was found.
fn alike(test: Option<Combined>) -> Verdict {
    test.map_or(Verdict::NotDecided, |test| Verdict::of(SIGNIFICANT <= test.p))
}

/// Whether a correlation is at least `bound`: all of its interval must be on one side.
fn at_least(r: f64, n: usize, bound: f64) -> Verdict {
    match correlation_interval(r, n) {
        Some((low, _)) if bound <= low => Verdict::Holds,
        Some((_, high)) if high < bound => Verdict::DoesNotHold,
        _ => Verdict::NotDecided,
    }
}

#[cfg(test)]
mod tests;
