//! Hotwords: phrases that are made more or less probable.
//!
//! All phrases are one automaton (Aho and Corasick) over labels, or over words if there is a lexicon of phones: a state
//! is the longest end of the prefix that begins a phrase. A phrase earns its score when it is complete. On the way
//! the prefix holds a loan that grows with every step, so that it is not pruned before the phrase is complete; the
//! loan is taken back if the phrase is not completed. In the end a prefix has exactly the scores of its phrases.
//! For sets with a space, phrases begin and end at the ends of words.

use std::collections::VecDeque;

use super::phrases::{ReadListError, check_length, check_phrase};
use crate::edges::Edges;

const ROOT: u32 = 0;

/// A phrase to favour or to avoid.
#[derive(Clone, Debug, PartialEq)]
pub struct Hotword {
    /// The phrase in words or labels.
    pub phrase: String,
    /// What each of its labels adds to the score (natural logarithm); negative to avoid the phrase.
    pub score: f32,
}

/// The score of a label where none is given.
pub const DEFAULT_HOTWORD_SCORE: f32 = 1.5;

/// Largest absolute score of a label.
const MAX_SCORE: f32 = 100.0;

impl Hotword {
    /// Reads one phrase per line, with its score after a colon or a tab if it has one; empty lines and lines that begin
    /// with `#` are skipped.
    pub fn parse_list(text: &str, default_score: f32) -> Result<Vec<Self>, ReadListError> {
        let mut hotwords = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (phrase, score) = match line.rsplit_once('\t').or_else(|| line.rsplit_once(':')) {
                Some((phrase, score)) => (phrase.trim(), parse_score(score, index + 1)?),
                None => (line, default_score),
            };
            check_phrase(phrase, index + 1)?;
            hotwords.push(Self { phrase: phrase.to_owned(), score });
        }
        check_length(hotwords.len())?;
        Ok(hotwords)
    }
}

fn parse_score(field: &str, line: usize) -> Result<f32, ReadListError> {
    let score = field.trim().parse().ok().filter(|score: &f32| score.abs() <= MAX_SCORE);
    score.ok_or_else(|| ReadListError::Score { line, found: field.trim().chars().take(40).collect() })
}

/// A step of the automaton.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) state: u32,
    /// What is added to the score.
    pub(super) gain: f64,
    /// How many edges were looked for.
    #[allow(dead_code, reason = "tests bound the cost with it")]
    pub(super) n_lookups: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The longest end of this node's labels that is a node too.
    fallback: u32,
    /// Scores of all phrases that end here.
    earned: f64,
    /// What is held on the way to phrases that are not complete here.
    loan: f64,
}

/// The automaton of all phrases.
#[derive(Debug)]
pub(super) struct Automaton {
    nodes: Vec<Node>,
    edges: Edges,
    /// The label between words, with which phrases begin and end, if they are phrases of characters.
    space: Option<u32>,
    start: u32,
    max_gain: f64,
}

impl Automaton {
    /// Phrases as labels or words with the score of each.
    pub(super) fn new(space: Option<u32>, phrases: &[Vec<(u32, f64)>]) -> Self {
        let mut automaton =
            Self { nodes: vec![Node::default()], edges: Edges::default(), space, start: ROOT, max_gain: 0.0 };
        phrases.iter().filter(|phrase| !phrase.is_empty()).for_each(|phrase| automaton.insert(phrase));
        automaton.link();
        automaton.start = space.map_or(ROOT, |space| automaton.step(ROOT, space).state);
        automaton
    }

    fn insert(&mut self, phrase: &[(u32, f64)]) {
        let space = || self.space.map(|space| (space, 0.0));
        let all: Vec<(u32, f64)> = space().into_iter().chain(phrase.iter().copied()).chain(space()).collect();
        let (mut at, mut score) = (ROOT, 0.0);
        for (index, (label, added)) in all.iter().enumerate() {
            at = self.edges.get(at, *label).unwrap_or_else(|| {
                let child = self.nodes.len() as u32;
                self.nodes.push(Node::default());
                self.edges.insert(at, *label, child);
                child
            });
            score += added;
            let node = &mut self.nodes[at as usize];
            if index + 1 < all.len() {
                node.loan = node.loan.max(score);
            } else {
                node.earned += score;
            }
        }
    }

    /// Fallbacks, breadth first, so that those of shorter nodes are known.
    fn link(&mut self) {
        let mut children: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.nodes.len()];
        self.edges.all().into_iter().for_each(|(node, label, child)| children[node as usize].push((label, child)));
        let mut pending = VecDeque::from([ROOT]);
        while let Some(node) = pending.pop_front() {
            for &(label, child) in &children[node as usize] {
                let fallback = if node == ROOT { ROOT } else { self.find(self.nodes[node as usize].fallback, label).0 };
                let shorter = self.nodes[fallback as usize];
                let parent = self.nodes[node as usize];
                let below = &mut self.nodes[child as usize];
                below.fallback = fallback;
                below.earned += shorter.earned;
                // Never less than after a fallback, so that the best step is one along an edge.
                below.loan = below.loan.max(shorter.loan);
                self.max_gain = self.max_gain.max(below.earned + below.loan - parent.loan);
                pending.push_back(child);
            }
        }
    }

    fn find(&self, mut state: u32, label: u32) -> (u32, u32) {
        let mut n_lookups = 0;
        loop {
            n_lookups += 1;
            match self.edges.get(state, label) {
                Some(child) => return (child, n_lookups),
                None if state == ROOT => return (ROOT, n_lookups),
                None => state = self.nodes[state as usize].fallback,
            }
        }
    }

    pub(super) fn start(&self) -> u32 {
        self.start
    }

    /// No label adds more than this.
    pub(super) fn max_gain(&self) -> f64 {
        self.max_gain
    }

    pub(super) fn step(&self, state: u32, label: u32) -> Step {
        let (next, n_lookups) = self.find(state, label);
        let node = self.nodes[next as usize];
        Step { state: next, gain: node.earned + node.loan - self.nodes[state as usize].loan, n_lookups }
    }

    /// What the end of the utterance adds: it ends a word, and loans go back.
    pub(super) fn end(&self, state: u32) -> f64 {
        let (last, earned) = match self.space {
            Some(space) => {
                let step = self.step(state, space);
                (step.state, step.gain)
            }
            None => (state, 0.0),
        };
        earned - self.nodes[last as usize].loan
    }
}

#[cfg(test)]
mod tests;
