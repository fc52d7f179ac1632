//! Prefix beam search: finds the most probable label sequences, each summed over its alignments.
//!
//! For every prefix of the beam two sums are kept: over the alignments that end in a blank and over those that end in
//! the last label. A slice with log-probabilities p changes them to
//!
//! ```text
//! blank'(l)     = total(l) + p(blank)
//! label'(l + c) = log(exp(label(l + c)) + exp(from(l, c))) + p(c)
//! from(l, c)    = blank(l) where c is the last label of l, total(l) otherwise
//! ```
//!
//! and the prefixes with the largest total, plus what language model and hotwords add, survive: the width asked for and
//! a quarter more. A new prefix has one parent only, so its score is `from + p(c) + bonus`, and with prefixes and labels
//! in falling order most pairs need not be looked at: none after the first that cannot beat the worst of `width`
//! prefixes already found. Nothing that would be in the beam is lost by that.
//!
//! With a lexicon, prefixes of the same state (place in the tree of words, context of the language model, hotwords) and
//! the same last label have the same future, so that only the best of them need survive: the beam then holds different
//! futures instead of many pasts of one.

use std::collections::HashMap;
use std::sync::Arc;

use super::prefixes::{NONE, Prefixes};
use super::timing::{Path, Run, Timings};
use super::{FLOOR, Hypothesis, Settled, Token, WordSpan};
use crate::fusion::{Ending, Extension, Fusion, State};

/// After so many slices the tokens that all prefixes share leave the tree.
const SETTLE_EVERY_SLICES: usize = 64;

/// After so many slices (a minute at 40 ms) prefixes that disagree with the best one are dropped.
///
/// Without this, two equally good readings survive forever and everything after them is kept twice.
const MAX_OPEN_SLICES: usize = 1500;

/// One in so many prefixes more than asked for survives: those at the edge of a beam have lost so many alignments that
/// their order says little, and some of them win in the end.
const RESERVE: usize = 4;

/// At most so many prefixes of one state survive if alternatives are wanted.
const MAX_PASTS: usize = 4;

/// A prefix in the beam.
#[derive(Clone, Debug)]
struct Entry {
    node: u32,
    class: u32,
    /// Log-probability of the alignments that end in a blank, in the last label, and in either.
    blank: f64,
    label: f64,
    total: f64,
    /// What language model, words and hotwords added.
    bonus: f64,
    state: State,
    /// The best alignment that ends in a blank, and in the last label.
    by_blank: Path,
    by_label: Path,
}

impl Entry {
    fn score(&self) -> f64 {
        self.total + self.bonus
    }

    /// What alignments that go on with `class` start from.
    fn from(&self, class: u32) -> f64 {
        if class == self.class { self.blank } else { self.total }
    }

    fn best_path(&self) -> &Path {
        if self.by_label.score <= self.by_blank.score { &self.by_blank } else { &self.by_label }
    }

    fn path_from(&self, class: u32) -> &Path {
        if class == self.class { &self.by_blank } else { self.best_path() }
    }
}

/// A prefix that was not in the beam.
struct Candidate {
    parent: u32,
    class: u32,
    word: u32,
    label: f64,
    bonus: f64,
    state: State,
}

/// The new sums of a prefix that was in the beam: over alignments that end in a blank, in its last label, in either.
#[derive(Clone, Copy)]
struct Stay {
    blank: f64,
    label: f64,
    total: f64,
}

/// The state after some slices.
pub(super) struct Beam {
    width: usize,
    /// How many prefixes of one state survive; `None` for all.
    n_pasts: Option<usize>,
    blank: u32,
    first_class: u32,
    fusion: Option<Arc<Fusion>>,
    prefixes: Prefixes,
    timings: Timings,
    /// In falling order of their scores.
    entries: Vec<Entry>,
    settled: Shared,
    n_slices: usize,
    scratch: Scratch,
}

/// What all prefixes begin with: tokens, and words with the token each one ends before.
#[derive(Default)]
struct Shared {
    tokens: Vec<Token>,
    ends: Vec<(u32, usize)>,
}

/// Memory used again for every slice.
#[derive(Default)]
struct Scratch {
    /// The classes of a slice, the most probable first.
    labels: Vec<(f32, u32)>,
    stays: Vec<Stay>,
    /// For every entry a bit for each class by which a child is in the beam.
    children: Vec<u64>,
    candidates: Vec<Candidate>,
    /// Scores, each with the number of an entry, or after those of a candidate.
    ranking: Vec<(f64, u32)>,
    extensions: Vec<Extension>,
    word_ends: Vec<Ending>,
    pasts: HashMap<(State, u32), Pasts>,
    next: Vec<Entry>,
}

/// The best prefixes of one state so far: their scores and numbers in the ranking.
#[derive(Clone, Copy, Default)]
struct Pasts {
    best: [(f64, u32); MAX_PASTS],
    n: usize,
}

impl Pasts {
    /// Whether a prefix is among the best `max` so far.
    fn offer(&mut self, score: f64, number: u32, max: usize) -> bool {
        if self.n < max {
            self.best[self.n] = (score, number);
            self.n += 1;
            return true;
        }
        let worst = self.best[..max].iter_mut().min_by(|a, b| a.0.total_cmp(&b.0)).expect("at least one is kept");
        let is_better = worst.0 < score;
        if is_better {
            *worst = (score, number);
        }
        is_better
    }
}

impl Beam {
    pub(super) fn new(n_classes: usize, width: usize, first_class: usize, fusion: Option<Arc<Fusion>>) -> Self {
        let mut beam = Self {
            width: width.max(1) + width / RESERVE,
            n_pasts: None,
            blank: n_classes as u32 - 1,
            first_class: first_class as u32,
            fusion,
            prefixes: Prefixes::new(),
            timings: Timings::default(),
            entries: Vec::new(),
            settled: Shared::default(),
            n_slices: 0,
            scratch: Scratch::default(),
        };
        beam.clear();
        beam
    }

    /// With a lexicon, keeps only the best prefix of each state, or a few if `alternatives` are wanted.
    pub(super) fn merge_pasts(&mut self, alternatives: bool) {
        if self.fusion.as_ref().is_some_and(|fusion| fusion.has_words()) {
            self.n_pasts = Some(if alternatives { MAX_PASTS } else { 1 });
        }
    }

    /// Back to the empty prefix.
    pub(super) fn clear(&mut self) {
        self.prefixes = Prefixes::new();
        self.timings = Timings::default();
        self.settled = Shared::default();
        self.n_slices = 0;
        self.entries.clear();
        let node = self.prefixes.hold_root();
        self.prefixes.set_entry(node, 0);
        self.entries.push(Entry {
            node,
            class: NONE,
            blank: 0.0,
            label: f64::NEG_INFINITY,
            total: 0.0,
            bonus: 0.0,
            state: self.fusion.as_ref().map_or_else(State::default, |fusion| fusion.start()),
            by_blank: Path::EMPTY,
            by_label: Path::IMPOSSIBLE,
        });
    }

    pub(super) fn step(&mut self, slice: &[f32], at: usize) {
        self.rank_labels(slice);
        self.stay(slice);
        self.grow();
        self.select(slice, at);
        self.n_slices += 1;
        if self.n_slices.is_multiple_of(SETTLE_EVERY_SLICES) {
            self.drop_dissent(at);
            self.settle();
        }
    }

    /// The labels that can matter, the most probable first.
    ///
    /// With `width + 1` labels every entry has `width` that are not its last one again, and whichever of those lead to
    /// a prefix of the beam already fill it with a score at least as high; lower-ranked labels cannot enter the beam.
    fn rank_labels(&mut self, slice: &[f32]) {
        let labels = &mut self.scratch.labels;
        labels.clear();
        labels.extend((self.first_class..self.blank).map(|class| (log_prob(slice, class), class)));
        let by_rank = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        // What fusion adds changes the order, so that with it every label counts.
        if self.fusion.is_none() && self.width + 1 < labels.len() {
            labels.select_nth_unstable_by(self.width, by_rank);
            labels.truncate(self.width + 1);
        }
        labels.sort_unstable_by(by_rank);
    }

    /// The new sums of the prefixes that are in the beam.
    fn stay(&mut self, slice: &[f32]) {
        let n_words = (self.blank as usize).div_ceil(64);
        let Scratch { stays, children, ranking, pasts, .. } = &mut self.scratch;
        pasts.clear();
        children.clear();
        children.resize(n_words * self.entries.len(), 0);
        stays.clear();
        ranking.clear();
        let log_blank = f64::from(log_prob(slice, self.blank));
        for (index, entry) in self.entries.iter().enumerate() {
            let blank = entry.total + log_blank;
            let mut label = f64::NEG_INFINITY;
            if entry.class != NONE {
                label = entry.label;
                if let Some(parent) = parent(&self.prefixes, entry) {
                    label = log_add(label, self.entries[parent].from(entry.class));
                    children[parent * n_words + entry.class as usize / 64] |= 1 << (entry.class % 64);
                }
                label += f64::from(log_prob(slice, entry.class));
            }
            let total = log_add(blank, label);
            stays.push(Stay { blank, label, total });
            let (score, number) = (total + entry.bonus, index as u32);
            ranking.push((score, number));
            if let Some(max) = self.n_pasts {
                pasts.entry((entry.state, entry.class)).or_default().offer(score, number, max);
            }
        }
    }

    /// Prefixes of the beam with one more label, as far as they can come into it.
    fn grow(&mut self) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.candidates.clear();
        let mut worst = f64::NEG_INFINITY;
        if self.width <= self.entries.len() {
            worst = scratch.ranking.iter().map(|(score, _)| *score).fold(f64::INFINITY, f64::min);
        }
        let best_label = scratch.labels.first().map_or(f64::NEG_INFINITY, |label| f64::from(label.0));
        for index in 0..self.entries.len() {
            let entry = &self.entries[index];
            let gain = self.fusion.as_ref().map_or(0.0, |fusion| fusion.max_gain(&entry.state));
            let base = entry.score() + gain;
            if base + best_label <= worst {
                if self.fusion.is_none() {
                    break;
                }
                continue;
            }
            self.grow_entry(index, base, &mut scratch, &mut worst);
        }
        self.scratch = scratch;
    }

    fn grow_entry(&self, index: usize, base: f64, scratch: &mut Scratch, worst: &mut f64) {
        let entry = &self.entries[index];
        let n_words = (self.blank as usize).div_ceil(64);
        let Scratch { labels, children, candidates, ranking, extensions, word_ends, pasts, .. } = scratch;
        word_ends.clear();
        if let Some(fusion) = &self.fusion {
            fusion.word_ends(&entry.state, word_ends);
        }
        for &(log_prob, class) in labels.iter() {
            if base + f64::from(log_prob) <= *worst {
                break;
            }
            if self.fusion.as_ref().is_some_and(|fusion| !fusion.may_follow(&entry.state, class)) {
                continue;
            }
            let has_child = children[index * n_words + class as usize / 64] >> (class % 64) & 1 == 1;
            let label = entry.from(class) + f64::from(log_prob);
            extensions.clear();
            match &self.fusion {
                Some(fusion) => fusion.extend(&entry.state, class, word_ends, extensions),
                None => extensions.push(Extension { word: NONE, gain: 0.0, state: entry.state }),
            }
            for extension in extensions.iter() {
                let bonus = entry.bonus + extension.gain;
                if label + bonus <= *worst || has_child && self.is_in_beam(entry.node, class, extension.word) {
                    continue;
                }
                let number = (self.entries.len() + candidates.len()) as u32;
                let (word, state) = (extension.word, extension.state);
                if let Some(max) = self.n_pasts
                    && !pasts.entry((state, class)).or_default().offer(label + bonus, number, max)
                {
                    continue;
                }
                ranking.push((label + bonus, number));
                candidates.push(Candidate { parent: index as u32, class, word, label, bonus, state });
                if ranking.len() == 2 * self.width + 2 {
                    keep_best(ranking, self.width);
                    *worst = ranking[self.width - 1].0;
                }
            }
        }
    }

    fn is_in_beam(&self, parent: u32, class: u32, word: u32) -> bool {
        self.prefixes.find(parent, class, word).is_some_and(|child| self.prefixes.entry(child) != NONE)
    }

    /// The best of both make the next beam.
    fn select(&mut self, slice: &[f32], at: usize) {
        let mut scratch = std::mem::take(&mut self.scratch);
        if self.n_pasts.is_some() {
            let Scratch { ranking, candidates, pasts, .. } = &mut scratch;
            ranking.retain(|&(_, which)| {
                let key = match (which as usize).checked_sub(self.entries.len()) {
                    None => (self.entries[which as usize].state, self.entries[which as usize].class),
                    Some(candidate) => (candidates[candidate].state, candidates[candidate].class),
                };
                pasts.get(&key).is_some_and(|pasts| pasts.best[..pasts.n].iter().any(|(_, number)| *number == which))
            });
        }
        keep_best(&mut scratch.ranking, self.width);
        scratch.ranking.sort_unstable_by(by_score);
        for &(_, which) in &scratch.ranking {
            let entry = match (which as usize).checked_sub(self.entries.len()) {
                None => self.stayed(which as usize, scratch.stays[which as usize], slice, at),
                Some(candidate) => self.grown(&scratch.candidates[candidate], slice, at),
            };
            scratch.next.push(entry);
        }
        for entry in &self.entries {
            self.prefixes.set_entry(entry.node, NONE);
        }
        for entry in &self.entries {
            self.prefixes.release(entry.node);
            self.timings.release(&entry.by_blank);
            self.timings.release(&entry.by_label);
        }
        for (index, entry) in scratch.next.iter().enumerate() {
            self.prefixes.set_entry(entry.node, index as u32);
        }
        std::mem::swap(&mut self.entries, &mut scratch.next);
        scratch.next.clear();
        self.scratch = scratch;
    }

    fn stayed(&mut self, index: usize, stay: Stay, slice: &[f32], at: usize) -> Entry {
        let entry = &self.entries[index];
        let by_blank = self.timings.pause(entry.best_path(), f64::from(log_prob(slice, self.blank)));
        let mut by_label = Path::IMPOSSIBLE;
        if entry.class != NONE {
            let here = log_prob(slice, entry.class);
            let parent = parent(&self.prefixes, entry).map(|parent| self.entries[parent].path_from(entry.class));
            by_label = match parent.filter(|path| entry.by_label.score < path.score) {
                Some(path) => self.timings.start(path, f64::from(here), Run::new(entry.class, at, here)),
                None => self.timings.extend(&entry.by_label, at, here),
            };
        }
        self.prefixes.hold_again(entry.node);
        let (node, class, bonus, state) = (entry.node, entry.class, entry.bonus, entry.state);
        let Stay { blank, label, total } = stay;
        Entry { node, class, blank, label, total, bonus, state, by_blank, by_label }
    }

    fn grown(&mut self, candidate: &Candidate, slice: &[f32], at: usize) -> Entry {
        let &Candidate { parent, class, word, label, bonus, state } = candidate;
        let parent = &self.entries[parent as usize];
        let here = log_prob(slice, class);
        let run = Run::new(class, at, here);
        let by_label = self.timings.start(parent.path_from(class), f64::from(here), run);
        let node = self.prefixes.hold(parent.node, class, word);
        let (blank, by_blank) = (f64::NEG_INFINITY, Path::IMPOSSIBLE);
        Entry { node, class, blank, label, total: label, bonus, state, by_blank, by_label }
    }
}

fn parent(prefixes: &Prefixes, entry: &Entry) -> Option<usize> {
    let parent = prefixes.parent(entry.node);
    let index = if parent == NONE { NONE } else { prefixes.entry(parent) };
    (index != NONE).then_some(index as usize)
}

fn log_prob(slice: &[f32], class: u32) -> f32 {
    slice[class as usize].max(FLOOR)
}

/// Falling scores; of equal ones the one found first.
fn by_score(a: &(f64, u32), b: &(f64, u32)) -> std::cmp::Ordering {
    b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
}

/// Moves the best `width` to the front, the worst of them last, and drops the others.
fn keep_best(ranking: &mut Vec<(f64, u32)>, width: usize) {
    if width < ranking.len() {
        ranking.select_nth_unstable_by(width - 1, by_score);
        ranking.truncate(width);
    }
}

/// log(exp(a) + exp(b)).
fn log_add(a: f64, b: f64) -> f64 {
    let (large, small) = if a < b { (b, a) } else { (a, b) };
    // Below this distance the sum is `large` to the last bit; infinities end here too.
    if small - large < -40.0 || small == f64::NEG_INFINITY { large } else { large + (small - large).exp().ln_1p() }
}

/// Results.
impl Beam {
    /// Up to `n` hypotheses so far, the most probable first.
    pub(super) fn n_best(&self, n: usize) -> Vec<Hypothesis> {
        self.entries.iter().take(n).map(|entry| self.hypothesis(entry, Ending::default())).collect()
    }

    /// Up to `n` hypotheses that may end here, the most probable first.
    ///
    /// If none may (the utterance was cut inside a word or phrase), the best one up to its last complete word.
    pub(super) fn finished(&self, n: usize) -> Vec<Hypothesis> {
        let Some(fusion) = &self.fusion else { return self.n_best(n) };
        let mut endings: Vec<(f64, &Entry, Ending)> = Vec::new();
        for entry in &self.entries {
            let ending = fusion.end(&entry.state);
            endings.extend(ending.map(|ending| (entry.score() + ending.gain, entry, ending)));
        }
        endings.sort_by(|a, b| b.0.total_cmp(&a.0));
        if endings.is_empty() {
            let whole = self.entries.first().map(|entry| self.whole_words(entry, fusion));
            return whole.into_iter().take(n).collect();
        }
        endings.into_iter().take(n).map(|(_, entry, ending)| self.hypothesis(entry, ending)).collect()
    }

    fn whole_words(&self, entry: &Entry, fusion: &Fusion) -> Hypothesis {
        let mut hypothesis = self.hypothesis(entry, Ending::default());
        let n_tokens = if fusion.is_phrase_bound() { 0 } else { hypothesis.words.last().map_or(0, |w| w.end_token) };
        hypothesis.tokens.truncate(n_tokens);
        hypothesis.words.retain(|word| word.end_token <= n_tokens);
        hypothesis
    }

    fn hypothesis(&self, entry: &Entry, ending: Ending) -> Hypothesis {
        let (tokens, mut ends) = self.tokens(entry);
        if ending.word != NONE {
            ends.push((ending.word, tokens.len()));
        }
        let words = self.spans(&tokens, &ends);
        Hypothesis { tokens, words, score: entry.score() + ending.gain, log_prob: entry.total }
    }

    /// All tokens of an entry, and the words with the token each one ends before.
    fn tokens(&self, entry: &Entry) -> (Vec<Token>, Vec<(u32, usize)>) {
        let mut tokens = self.settled.tokens.clone();
        let n_settled = tokens.len();
        let recent = self.timings.tokens(entry.best_path());
        let mut ends = Vec::new();
        let mut node = entry.node;
        for at in (0..recent.len()).rev() {
            if self.prefixes.word(node) != NONE {
                ends.push((self.prefixes.word(node), n_settled + at));
            }
            node = self.prefixes.parent(node);
        }
        ends.extend(self.settled.ends.iter().rev());
        ends.reverse();
        tokens.extend(recent);
        (tokens, ends)
    }

    /// Where each word lies, without the silence before it.
    fn spans(&self, tokens: &[Token], ends: &[(u32, usize)]) -> Vec<WordSpan> {
        let is_between = |token: &Token| self.fusion.as_ref().is_some_and(|f| f.is_between(token.class as u32));
        let mut first = 0;
        let mut spans = Vec::with_capacity(ends.len());
        for &(word, end_token) in ends {
            while first < end_token && is_between(&tokens[first]) {
                first += 1;
            }
            spans.push(WordSpan { word, first_token: first, end_token });
            first = end_token;
        }
        spans
    }

    /// Drops prefixes that disagree with the best one on tokens that ended long before slice `at`.
    fn drop_dissent(&mut self, at: usize) {
        let tokens = self.timings.tokens(self.entries[0].best_path());
        let n_agreed = tokens.partition_point(|token| token.end_slice + MAX_OPEN_SLICES <= at);
        if n_agreed == 0 {
            return;
        }
        let ancestor = self.prefixes.ancestor(self.entries[0].node, n_agreed);
        let Self { entries, prefixes, timings, .. } = self;
        entries.retain(|entry| {
            let agrees = prefixes.ancestor(entry.node, n_agreed) == ancestor;
            if !agrees {
                prefixes.set_entry(entry.node, NONE);
                prefixes.release(entry.node);
                timings.release(&entry.by_blank);
                timings.release(&entry.by_label);
            }
            agrees
        });
        for (index, entry) in self.entries.iter().enumerate() {
            self.prefixes.set_entry(entry.node, index as u32);
        }
    }

    /// Moves the tokens that all prefixes begin with out of the tree, with the times of the best one.
    fn settle(&mut self) {
        let mut n_settled = 0;
        let before = self.settled.tokens.len();
        while self.prefixes.advance_root() {
            let word = self.prefixes.word(self.prefixes.root());
            if word != NONE {
                self.settled.ends.push((word, before + n_settled));
            }
            n_settled += 1;
        }
        if n_settled == 0 {
            return;
        }
        let tokens = self.timings.tokens(self.entries[0].best_path());
        self.settled.tokens.extend(&tokens[..n_settled]);
        let Self { entries, prefixes, timings, .. } = self;
        for entry in entries {
            let depth = prefixes.depth(entry.node);
            timings.cut(&mut entry.by_blank, depth - 1);
            timings.cut(&mut entry.by_label, depth - 1);
        }
    }

    /// Takes the settled tokens; with words, only up to the end of the last settled one.
    pub(super) fn take_settled(&mut self) -> Settled {
        let has_words = self.fusion.as_ref().is_some_and(|fusion| fusion.has_words());
        let last_end = self.settled.ends.last().map_or(0, |(_, end)| *end);
        let n_taken = if has_words { last_end } else { self.settled.tokens.len() };
        let words = self.spans(&self.settled.tokens, &self.settled.ends);
        self.settled.ends.clear();
        Settled { tokens: self.settled.tokens.drain(..n_taken).collect(), words }
    }

    /// The last slice of the best hypothesis with a token in it, and whether it has a token at all.
    pub(super) fn last_token(&self) -> Option<Token> {
        let entry = &self.entries[0];
        entry.best_path().last_token().or_else(|| self.settled.tokens.last().copied())
    }

    /// Nodes and finished tokens in memory.
    #[cfg(test)]
    pub(super) fn n_living(&self) -> usize {
        self.prefixes.n_living() + self.timings.n_living()
    }
}
