//! The words of a lexicon as a tree of labels: where a prefix stands inside of a word.

use crate::edges::Edges;

pub(super) const ROOT: u32 = 0;
/// In a word that is not in the tree.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// Words by their labels.
#[derive(Debug)]
pub(super) struct WordTree {
    edges: Edges,
    /// For every node where its words begin in `words`; one more at the end.
    first_word: Vec<u32>,
    words: Vec<u32>,
    /// For every node the largest value of a word at or below it.
    best: Vec<f32>,
}

impl WordTree {
    /// Words with their labels and a value each (the log-probability of the word by itself).
    pub(super) fn new(entries: &[(u32, Vec<usize>)], value: impl Fn(u32) -> f32) -> Self {
        let mut edges = Edges::default();
        let mut best = vec![f32::NEG_INFINITY];
        let mut ends: Vec<(u32, u32)> = Vec::with_capacity(entries.len());
        for (word, classes) in entries {
            let value = value(*word);
            let mut at = ROOT;
            best[0] = best[0].max(value);
            for class in classes {
                at = edges.get(at, *class as u32).unwrap_or_else(|| {
                    let child = best.len() as u32;
                    best.push(f32::NEG_INFINITY);
                    edges.insert(at, *class as u32, child);
                    child
                });
                best[at as usize] = best[at as usize].max(value);
            }
            ends.push((at, *word));
        }
        ends.sort_unstable();
        ends.dedup();
        let n_nodes = best.len() as u32;
        let first_word = (0..=n_nodes).map(|node| ends.partition_point(|(at, _)| *at < node) as u32).collect();
        Self { edges, first_word, words: ends.into_iter().map(|(_, word)| word).collect(), best }
    }

    pub(super) fn child(&self, node: u32, class: u32) -> Option<u32> {
        if node == OUTSIDE { None } else { self.edges.get(node, class) }
    }

    /// The words that end in a node.
    pub(super) fn words(&self, node: u32) -> &[u32] {
        if node == OUTSIDE {
            return &[];
        }
        &self.words[self.first_word[node as usize] as usize..self.first_word[node as usize + 1] as usize]
    }

    /// The largest value of a word that a prefix may still become.
    pub(super) fn best(&self, node: u32) -> f32 {
        self.best[node as usize]
    }
}
