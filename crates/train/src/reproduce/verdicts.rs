//! Whether the paper's claims hold here: a verdict for each claim, from the figures and tests of each seed.
//!
//! Errors are tested as `srf compare` does, by matched pairs of segments (MAPSSWE) of two runs with the same seed; end
//! labels and distances by a sign test on utterances, which for end labels is McNemar's.
//! That two rows are alike needs a test of its own (TOST): a test too weak to see a difference shows nothing.
//! With several seeds the median test counts, and its p is doubled: at least half of the tests are then that clear, and
//! twice the median of p-values is a p-value however dependent the tests are, as those on one test set are.

use serde::Serialize;
use srf_score::compare::{FEWEST_SEGMENTS, Outcome, SIGNIFICANT, Side};

use super::paper::{Claim, Column, Quantity, Relation, TableRow};
use super::results::Results;
use super::statistics::{Equivalence, correlation_interval, mean};

/// Error rates this close, as a share of their mean, count as alike: less than the smallest improvement that the paper
/// claims (SRF-5L to SRF-7L, 18.1 to 17.5 %).
pub const ALIKE_WITHIN: f64 = 0.03;

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does.
    Holds,
    /// The opposite does.
    DoesNotHold,
    /// What was measured is not enough to tell, or nothing was measured.
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
    /// One figure as it is.
    Value,
}

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct JudgedClaim {
    pub says: &'static str,
    pub quantity: Quantity,
    /// Names of the rows: less, more; or the one.
    pub rows: Vec<&'static str>,
    pub part: &'static str,
    /// How `paper` and `ours` are to be read.
    pub compared: Compared,
    pub paper: Option<f64>,
    pub ours: Option<f64>,
    /// How probable a difference this large is between equals; of a claim that two are alike, how probable one this
    /// small is between rows that differ by the margin. `None` where nothing was tested.
    pub p: Option<f64>,
    /// The margin within which two count as alike, in points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    pub n_compared: usize,
    pub n_seeds: usize,
    pub verdict: Verdict,
}

/// The tests of all seeds as one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CombinedTest {
    /// Which one has less.
    less: Option<Side>,
    p: f64,
    n_compared: usize,
}

impl CombinedTest {
    fn of(outcomes: &[Outcome]) -> Option<Self> {
        let mut tests: Vec<(f64, &Outcome)> = outcomes.iter().map(|outcome| (clarity(outcome), outcome)).collect();
        tests.sort_by(|a, b| a.0.total_cmp(&b.0));
        let n = tests.len();
        // Of the two medians of an even number, the one that says less.
        let middle = [tests.get(n.checked_sub(1)? / 2)?, tests.get(n / 2)?];
        let (_, outcome) = middle.into_iter().min_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
        let p = if n == 1 { outcome.p } else { (2.0 * outcome.p).min(1.0) };
        Some(Self { less: outcome.better, p, n_compared: outcome.n_compared })
    }

    fn is_significant(&self) -> bool {
        self.p < SIGNIFICANT
    }
}

/// From -1, where the first clearly has less, through 0 to 1, where the second does.
fn clarity(outcome: &Outcome) -> f64 {
    match outcome.better {
        Some(Side::First) => outcome.p - 1.0,
        Some(Side::Second) => 1.0 - outcome.p,
        None => 0.0,
    }
}

/// The tests of equivalence of all seeds as one: the larger median of p, doubled.
fn combined_equivalence(mut tests: Vec<Equivalence>) -> Option<Equivalence> {
    tests.sort_by(|a, b| a.p.total_cmp(&b.p));
    let (n, margins) = (tests.len(), tests.iter().map(|test| test.margin).collect::<Vec<_>>());
    let middle = tests.get(n / 2)?;
    let p = if n == 1 { middle.p } else { (2.0 * middle.p).min(1.0) };
    Some(Equivalence { p, margin: mean(&margins)? })
}

/// Checks one claim on a part of the corpus.
pub(super) fn judge(claim: &'static Claim, part: &'static str, results: &Results) -> JudgedClaim {
    match &claim.relation {
        Relation::Less(first, second) | Relation::Alike(first, second) => {
            judge_pair(claim, [first, second], part, results)
        }
        Relation::AtLeast(name, bound) => judge_bound(claim, (name, *bound), part, results),
    }
}

fn judge_pair(claim: &'static Claim, names: [&'static str; 2], part: &'static str, results: &Results) -> JudgedClaim {
    let Claim { says, quantity, relation } = claim;
    let (column, compared) = (Column { quantity: *quantity, part }, compared(*quantity));
    let rows = names.map(|name| results.table.row(name).expect("claims are about rows of their table"));
    let ours = between(compared, rows.map(|row| results.figure(row, column).map(|measured| measured.mean)));
    let tests = results.tests(rows, column);
    let test = CombinedTest::of(&tests);
    // MAPSSWE assumes a normal distribution, which needs segments; the sign test is exact.
    let fewest = if *quantity == Quantity::Error { FEWEST_SEGMENTS } else { 1 };
    let reliable = test.filter(|test| fewest <= test.n_compared);
    let equivalence = match relation {
        Relation::Alike(..) => combined_equivalence(results.equivalences(rows, part, ALIKE_WITHIN)),
        _ => None,
    };
    let verdict = match (relation, compared) {
        (Relation::Alike(..), _) => alike(reliable, equivalence, ours),
        (_, Compared::Ratio) => ours.map_or(Verdict::NotDecided, |ratio| Verdict::of(1.0 < ratio)),
        _ => less(reliable),
    };
    JudgedClaim {
        says,
        quantity: *quantity,
        rows: names.to_vec(),
        part,
        compared,
        paper: between(compared, rows.map(|row| paper_figure(results, row, column))),
        ours,
        p: equivalence.map(|test| test.p).or(test.map(|test| test.p)),
        margin: equivalence.map(|test| test.margin),
        n_compared: test.map_or(0, |test| test.n_compared),
        n_seeds: tests.len(),
        verdict,
    }
}

fn judge_bound(
    claim: &'static Claim,
    (name, bound): (&'static str, f64),
    part: &'static str,
    results: &Results,
) -> JudgedClaim {
    let column = Column { quantity: claim.quantity, part };
    let row = results.table.row(name).expect("claims are about rows of their table");
    let measured = results.figure(row, column);
    let n_compared = results.paired_times(row, 1).map_or(0, |pairs| pairs.len());
    let ours = measured.as_ref().and_then(|measured| mean(&measured.each));
    JudgedClaim {
        says: &claim.says,
        quantity: claim.quantity,
        rows: vec![name],
        part,
        compared: Compared::Value,
        paper: paper_figure(results, row, column),
        ours,
        p: None,
        margin: None,
        n_compared,
        n_seeds: measured.map_or(0, |measured| measured.each.len()),
        verdict: ours.map_or(Verdict::NotDecided, |r| at_least(r, n_compared, bound)),
    }
}

fn paper_figure(results: &Results, row: &TableRow, column: Column) -> Option<f64> {
    if column.quantity == Quantity::Parameters {
        return Some(1e6 * row.millions);
    }
    let at = results.table.columns.iter().position(|known| *known == column)?;
    row.figures().nth(at)?.map(|figure| figure.value)
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
fn less(test: Option<CombinedTest>) -> Verdict {
    let significant = test.filter(CombinedTest::is_significant).and_then(|test| test.less);
    significant.map_or(Verdict::NotDecided, |less| Verdict::of(less == Side::First))
}

/// Whether the two are the same within the margin: shown so by the test of equivalence, or shown to differ by more.
fn alike(test: Option<CombinedTest>, equivalence: Option<Equivalence>, difference: Option<f64>) -> Verdict {
    let Some(Equivalence { p, margin }) = equivalence else { return Verdict::NotDecided };
    let is_larger = difference.is_some_and(|difference| margin < difference.abs());
    if p < SIGNIFICANT {
        Verdict::Holds
    } else if is_larger && test.is_some_and(|test| test.is_significant()) {
        Verdict::DoesNotHold
    } else {
        Verdict::NotDecided
    }
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
