//! A closed list of phrases: decides which label, or which word if there is a lexicon of phones, may follow a prefix.
//!
//! The phrases are a tree; an utterance is one of them, or several in a row. The set of nodes that a prefix may have
//! reached is one state of an automaton that is built beforehand, so that a prefix has one state however it is parsed.

use std::collections::HashMap;

use super::{FusionError, Separators};
use crate::edges::Edges;

const MAX_LIST: usize = 2_000_000;
const MAX_PHRASE_CHARS: usize = 1000;

/// A closed list of phrases.
///
/// ```
/// use srf_text::fusion::{Fusion, FusionError, Hotword, Phrases, ReadListError, Sources};
/// use srf_text::labels::{LabelSet, Units};
///
/// let labels = LabelSet::new(Units::Chars, [" ", "a", "b", "c"])?;
/// let phrases = Some(Phrases::parse("cab\nback\n", false)?);
/// let error = Fusion::new(&labels, Sources { phrases, ..Sources::default() }).err();
/// assert!(matches!(error, Some(FusionError::Phrase { .. })), "`k` is no label");
/// assert!(matches!(Hotword::parse_list("cab :loud\n", 1.5), Err(ReadListError::Score { line: 1, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Phrases {
    /// In labels, or in words if there is a lexicon of phones.
    pub phrases: Vec<String>,
    /// Whether an utterance may be several of them in a row.
    pub repeats: bool,
}

impl Phrases {
    /// Reads one phrase per line; empty lines and lines that begin with `#` are skipped.
    pub fn parse(text: &str, repeats: bool) -> Result<Self, ReadListError> {
        let mut phrases = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                check_phrase(line, index + 1)?;
                phrases.push(line.to_owned());
            }
        }
        check_length(phrases.len())?;
        Ok(Self { phrases, repeats })
    }
}

/// Why a list of hotwords, phrases or words could not be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ReadListError {
    #[error("line {line}: the score is `{found}`, expected a number from -100 to 100")]
    Score { line: usize, found: String },
    #[error("line {line}: a phrase of {found} characters, at most {limit} are allowed")]
    Long { line: usize, found: usize, limit: usize },
    #[error("line {line}: a score without a phrase")]
    NoPhrase { line: usize },
    #[error("line {line}: `{word}` has no labels after it")]
    NoLabels { line: usize, word: String },
    #[error("line {line}: `{phrase}` has the label `{found}`, which the model cannot write")]
    Label { line: usize, found: String, phrase: String },
    #[error("{found} lines, at most {limit} are allowed")]
    TooMany { found: usize, limit: usize },
}

pub(super) fn check_phrase(phrase: &str, line: usize) -> Result<(), ReadListError> {
    let (found, limit) = (phrase.chars().count(), MAX_PHRASE_CHARS);
    match found {
        0 => Err(ReadListError::NoPhrase { line }),
        _ if limit < found => Err(ReadListError::Long { line, found, limit }),
        _ => Ok(()),
    }
}

pub(super) fn check_length(found: usize) -> Result<(), ReadListError> {
    if MAX_LIST < found { Err(ReadListError::TooMany { found, limit: MAX_LIST }) } else { Ok(()) }
}

const ROOT: u32 = 0;
/// After the one phrase of an utterance.
const END: u32 = u32::MAX;
const MAX_STATES: usize = 1 << 20;

/// The automaton of a list of phrases.
#[derive(Debug)]
pub(super) struct PhraseGraph {
    edges: Edges,
    /// Whether an utterance may end in a state.
    may_end: Vec<bool>,
}

#[derive(Default)]
struct Tree {
    children: Vec<Vec<(u32, u32)>>,
    is_phrase: Vec<bool>,
}

impl Tree {
    fn new(phrases: &[Vec<u32>]) -> Self {
        let mut tree = Self { children: vec![Vec::new()], is_phrase: vec![false] };
        for phrase in phrases.iter().filter(|phrase| !phrase.is_empty()) {
            let mut at = ROOT;
            for class in phrase {
                at = tree.child(at, *class).unwrap_or_else(|| tree.add(at, *class));
            }
            tree.is_phrase[at as usize] = true;
        }
        tree
    }

    fn child(&self, node: u32, class: u32) -> Option<u32> {
        self.children[node as usize].iter().find(|(label, _)| *label == class).map(|(_, child)| *child)
    }

    fn add(&mut self, node: u32, class: u32) -> u32 {
        let child = self.children.len() as u32;
        self.children.push(Vec::new());
        self.is_phrase.push(false);
        self.children[node as usize].push((class, child));
        child
    }

    fn may_end(&self, node: u32) -> bool {
        node == ROOT || node == END || self.is_phrase[node as usize]
    }

    /// All nodes after `node` by each label.
    fn next(&self, node: u32, separators: &Separators, repeats: bool, out: &mut Vec<(u32, u32)>) {
        if self.may_end(node) {
            let behind = if node == ROOT || repeats { ROOT } else { END };
            out.extend(separators.classes().map(|class| (class, behind)));
        }
        if node == END {
            return;
        }
        out.extend(&self.children[node as usize]);
        if node != ROOT && self.is_phrase[node as usize] && repeats && !separators.has_space() {
            out.extend(&self.children[ROOT as usize]);
        }
    }
}

impl PhraseGraph {
    pub(super) fn new(phrases: &[Vec<u32>], separators: &Separators, repeats: bool) -> Result<Self, FusionError> {
        let tree = Tree::new(phrases);
        let mut graph = Self { edges: Edges::default(), may_end: Vec::new() };
        let mut numbers = HashMap::from([(vec![ROOT], 0u32)]);
        let mut pending = vec![vec![ROOT]];
        graph.may_end.push(true);
        while let Some(nodes) = pending.pop() {
            let from = numbers[&nodes];
            for (class, behind) in steps(&tree, &nodes, separators, repeats) {
                let to = *numbers.entry(behind).or_insert_with_key(|behind| {
                    graph.may_end.push(behind.iter().any(|node| tree.may_end(*node)));
                    pending.push(behind.clone());
                    graph.may_end.len() as u32 - 1
                });
                graph.edges.insert(from, class, to);
            }
            if MAX_STATES < graph.may_end.len() {
                return Err(FusionError::LargePhraseList { limit: MAX_STATES });
            }
        }
        Ok(graph)
    }

    pub(super) fn next(&self, state: u32, class: u32) -> Option<u32> {
        self.edges.get(state, class)
    }

    pub(super) fn may_end(&self, state: u32) -> bool {
        self.may_end[state as usize]
    }
}

/// For every label the set of nodes it leads to, in the order of the labels.
fn steps(tree: &Tree, nodes: &[u32], separators: &Separators, repeats: bool) -> Vec<(u32, Vec<u32>)> {
    let mut all = Vec::new();
    nodes.iter().for_each(|node| tree.next(*node, separators, repeats, &mut all));
    all.sort_unstable();
    all.dedup();
    all.chunk_by(|a, b| a.0 == b.0).map(|step| (step[0].0, step.iter().map(|(_, node)| *node).collect())).collect()
}
