//! Alignment of a reference and a hypothesis at the least cost.
//!
//! A deletion or an insertion costs 3 and a substitution 4, so one substitution is cheaper than a deletion and an
//! insertion, and those are cheaper than two substitutions. Deleting an optional word costs 2, and `@`, the empty
//! alternative, 0.001. Of equal costs a pair wins over a deletion or insertion, an insertion over a deletion, and
//! otherwise what comes first in the file. Sums are kept in `f32`, as in NIST's scorer, because that decides between
//! nearly equal readings.

use crate::network::Network;
use crate::word::Word;

/// How a pair of words counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the usual ones")]
pub enum Verdict {
    Correct,
    Substitution,
    Deletion,
    Insertion,
}

impl Verdict {
    /// The letter that NIST's reports show.
    pub(crate) fn letter(self) -> u8 {
        match self {
            Self::Correct => b'C',
            Self::Substitution => b'S',
            Self::Deletion => b'D',
            Self::Insertion => b'I',
        }
    }
}

/// A word of the reference and the recognised word.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// `None` for an insertion.
    pub reference: Option<Word>,
    /// `None` for a deletion; an empty word for an optional word left out.
    pub hypothesis: Option<Word>,
    /// How this pair counts.
    pub verdict: Verdict,
}

/// All pairs of an utterance, from the first word to the last.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the name says it")]
pub struct Alignment {
    pub pairs: Vec<Pair>,
}

/// What the cost of a pair of words depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// Whether the spellings are equal.
    #[default]
    Spelling,
    /// How far apart the times are; the spelling decides between equal costs.
    Times,
}

/// The alignment would not fit in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{n_reference} against {n_hypothesis} words is too much for one alignment, at most {MAX_CELLS} pairs fit")]
#[allow(missing_docs, reason = "the message says what the fields are")]
pub struct TooLongError {
    pub n_reference: usize,
    pub n_hypothesis: usize,
}

const MAX_CELLS: usize = 1 << 30;
const FAR: f32 = 999_999_999.9;

impl Cost {
    fn of_gap(self, word: &Word) -> f32 {
        match self {
            _ if word.is_nothing() => 0.001,
            Self::Times => word.duration_s as f32,
            Self::Spelling if word.is_optional() => 2.0,
            Self::Spelling => 3.0,
        }
    }

    fn of_pair(self, a: &Word, b: &Word) -> f32 {
        match self {
            Self::Times => {
                let apart_s = (a.start_s - b.start_s).abs() + (a.end_s - b.end_s).abs();
                (apart_s + if a.matches(b) { 0.0 } else { 0.001 }) as f32
            }
            Self::Spelling if a.is_nothing() && b.is_nothing() => 1.0,
            Self::Spelling if a.matches(b) => 0.0,
            Self::Spelling => 4.0,
        }
    }

    fn of_gaps(self, words: &[Word]) -> Vec<f32> {
        words.iter().map(|word| self.of_gap(word)).collect()
    }
}

/// Pairs the words of `reference` with those of `hypothesis` at the least cost.
///
/// ```
/// use srf_score::{Alignment, Cost, Network, Pair, Reading, TooLongError, Verdict, align};
///
/// let words = |text: &str| Network::parse(text.as_bytes(), Reading::default()).expect("no brackets to close");
/// let found: Result<Alignment, TooLongError> = align(&words("a cat"), &words("cat"), Cost::Spelling);
/// let Pair { reference, hypothesis, verdict } = &found?.pairs[0];
/// assert_eq!(*verdict, Verdict::Deletion);
/// assert!(reference.is_some() && hypothesis.is_none());
/// # Ok::<(), TooLongError>(())
/// ```
pub fn align(reference: &Network, hypothesis: &Network, cost: Cost) -> Result<Alignment, TooLongError> {
    let (n_reference, n_hypothesis) = (reference.words.len(), hypothesis.words.len());
    let is_linear = reference.is_linear() && hypothesis.is_linear();
    let n_cells = (n_reference + 1).saturating_mul(n_hypothesis + 1);
    // A general cell holds a cost and two places, a linear one a single step.
    if n_cells.saturating_mul(if is_linear { 1 } else { 12 }) > MAX_CELLS {
        return Err(TooLongError { n_reference, n_hypothesis });
    }
    let path = if is_linear {
        align_sequences(&reference.words, &hypothesis.words, cost)
    } else {
        align_networks(reference, hypothesis, cost)
    };
    let pairs = path.into_iter().filter_map(|step| pair(step, reference, hypothesis)).collect();
    Ok(Alignment { pairs })
}

/// One move of the best path, with the indices of the words it consumes.
#[derive(Clone, Copy)]
enum Step {
    Match(usize, usize),
    Skip(usize),
    Insert(usize),
}

fn pair(step: Step, reference: &Network, hypothesis: &Network) -> Option<Pair> {
    let empty = || Some(Word::new(*b""));
    let (reference, hypothesis, verdict) = match step {
        Step::Match(a, b) => {
            let (a, b) = (&reference.words[a - 1], &hypothesis.words[b - 1]);
            let verdict = if a.matches(b) { Verdict::Correct } else { Verdict::Substitution };
            (Some(a.clone()), Some(b.clone()), verdict)
        }
        Step::Skip(a) => match &reference.words[a - 1] {
            word if word.is_nothing() => return None,
            word if word.is_optional() => (Some(word.clone()), empty(), Verdict::Correct),
            word => (Some(word.clone()), None, Verdict::Deletion),
        },
        Step::Insert(b) => match &hypothesis.words[b - 1] {
            word if word.is_nothing() => return None,
            word if word.is_optional() => (empty(), Some(word.clone()), Verdict::Correct),
            word => (None, Some(word.clone()), Verdict::Insertion),
        },
    };
    Some(Pair { reference, hypothesis, verdict })
}

/// The usual table for two plain sequences, of which only the steps are kept.
fn align_sequences(reference: &[Word], hypothesis: &[Word], cost: Cost) -> Vec<Step> {
    let width = hypothesis.len() + 1;
    let insert_costs = cost.of_gaps(hypothesis);
    let mut steps = vec![b'i'; (reference.len() + 1) * width];
    let mut above = vec![0.0_f32; width];
    for (b, insert_cost) in insert_costs.iter().enumerate() {
        above[b + 1] = above[b] + insert_cost;
    }
    let mut row = vec![0.0_f32; width];
    for (a, word) in reference.iter().enumerate() {
        let skip_cost = cost.of_gap(word);
        row[0] = above[0] + skip_cost;
        let steps = &mut steps[(a + 1) * width..(a + 2) * width];
        steps[0] = b'd';
        for b in 1..width {
            let matched = above[b - 1] + cost.of_pair(word, &hypothesis[b - 1]);
            let skipped = above[b] + skip_cost;
            let inserted = row[b - 1] + insert_costs[b - 1];
            (row[b], steps[b]) = if matched <= skipped && matched <= inserted {
                (matched, b'm')
            } else if skipped < inserted {
                (skipped, b'd')
            } else {
                (inserted, b'i')
            };
        }
        std::mem::swap(&mut above, &mut row);
    }
    trace_sequences(&steps, reference.len(), hypothesis.len())
}

fn trace_sequences(steps: &[u8], mut a: usize, mut b: usize) -> Vec<Step> {
    let width = b + 1;
    let mut path = Vec::with_capacity(a.max(b));
    while a > 0 || b > 0 {
        match steps[a * width + b] {
            b'm' => {
                path.push(Step::Match(a, b));
                (a, b) = (a - 1, b - 1);
            }
            b'd' => {
                path.push(Step::Skip(a));
                a -= 1;
            }
            _ => {
                path.push(Step::Insert(b));
                b -= 1;
            }
        }
    }
    path.reverse();
    path
}

/// A cell of the table over two networks: the least cost of ending with these two words, and where from.
#[derive(Clone, Copy)]
struct Cell {
    cost: f32,
    from: (u32, u32),
}

struct Table<'a> {
    reference: &'a Network,
    hypothesis: &'a Network,
    cells: Vec<Cell>,
}

fn align_networks(reference: &Network, hypothesis: &Network, cost: Cost) -> Vec<Step> {
    let n_cells = (reference.words.len() + 1) * (hypothesis.words.len() + 1);
    let cells = vec![Cell { cost: 0.0, from: (0, 0) }; n_cells];
    let mut table = Table { reference, hypothesis, cells };
    table.fill(cost);
    table.trace()
}

/// The indices that may precede `index`.
fn before(network: &Network, index: u32) -> impl Iterator<Item = u32> + Clone + '_ {
    let listed = network.before.get(index as usize - 1).map_or(&[][..], |before| &before[..]);
    let only = if network.is_linear() { Some(index - 1) } else { None };
    only.into_iter().chain(listed.iter().copied())
}

impl Table<'_> {
    fn at(&self, a: u32, b: u32) -> Cell {
        self.cells[a as usize * (self.hypothesis.words.len() + 1) + b as usize]
    }

    fn set(&mut self, a: u32, b: u32, cell: Cell) {
        let width = self.hypothesis.words.len() + 1;
        self.cells[a as usize * width + b as usize] = cell;
    }

    /// The cheapest of the cells at `places`, the first of equals.
    fn cheapest(&self, places: impl Iterator<Item = (u32, u32)>) -> Cell {
        places.fold(Cell { cost: FAR, from: (0, 0) }, |best, from| {
            let cost = self.at(from.0, from.1).cost;
            if cost < best.cost { Cell { cost, from } } else { best }
        })
    }

    fn skipped(&self, a: u32, b: u32, cost: f32) -> Cell {
        let best = self.cheapest(before(self.reference, a).map(|a| (a, b)));
        Cell { cost: best.cost + cost, ..best }
    }

    fn inserted(&self, a: u32, b: u32, cost: f32) -> Cell {
        let best = self.cheapest(before(self.hypothesis, b).map(|b| (a, b)));
        Cell { cost: best.cost + cost, ..best }
    }

    fn matched(&self, a: u32, b: u32, cost: Cost) -> Cell {
        let bs = before(self.hypothesis, b);
        let best = self.cheapest(before(self.reference, a).flat_map(|a| bs.clone().map(move |b| (a, b))));
        let (a, b) = (&self.reference.words[a as usize - 1], &self.hypothesis.words[b as usize - 1]);
        Cell { cost: best.cost + cost.of_pair(a, b), ..best }
    }

    fn fill(&mut self, cost: Cost) {
        let skip_costs = cost.of_gaps(&self.reference.words);
        let insert_costs = cost.of_gaps(&self.hypothesis.words);
        for (b, insert_cost) in (1..).zip(&insert_costs) {
            self.set(0, b, self.inserted(0, b, *insert_cost));
        }
        for (a, skip_cost) in (1..).zip(&skip_costs) {
            self.set(a, 0, self.skipped(a, 0, *skip_cost));
            for (b, insert_cost) in (1..).zip(&insert_costs) {
                let inserted = self.inserted(a, b, *insert_cost);
                let skipped = self.skipped(a, b, *skip_cost);
                let matched = self.matched(a, b, cost);
                let best = if matched.cost <= skipped.cost && matched.cost <= inserted.cost {
                    matched
                } else if skipped.cost < inserted.cost {
                    skipped
                } else {
                    inserted
                };
                self.set(a, b, best);
            }
        }
    }

    fn trace(&self) -> Vec<Step> {
        let ends = self.reference.last.iter().flat_map(|a| self.hypothesis.last.iter().map(move |b| (*a, *b)));
        let (mut a, mut b) = self.cheapest(ends).from;
        let mut path = Vec::new();
        while a > 0 || b > 0 {
            let (from_a, from_b) = self.at(a, b).from;
            path.push(if a == from_a {
                Step::Insert(b as usize)
            } else if b == from_b {
                Step::Skip(a as usize)
            } else {
                Step::Match(a as usize, b as usize)
            });
            (a, b) = (from_a, from_b);
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests;
