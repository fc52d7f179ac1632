//! Entropy pruning (Stolcke 1998): drops n-grams that change the model little.
//!
//! Dropping `w` after the context h moves its probability to the back-off. With N and D what is left after h for words
//! without an n-gram, by the longer and by the shorter context, and b the back-off weight, the new weight is
//!
//! ```text
//! b' = (N + p(w | h)) / (D + p(w | h'))        h' is h without its first word
//! ```
//!
//! and the relative entropy of the two models is `-p(h) (p(w|h) ln(b' p(w|h') / p(w|h)) + N ln(b' / b))`. The n-gram
//! goes if `exp(entropy) - 1`, the relative change of the perplexity, is below the threshold. N-grams with which a kept
//! longer one starts or ends stay, so that every context and every shorter n-gram of what remains can be looked up.
//!
//! The model is in memory here, about 40 bytes per n-gram.

use std::io::Write;

use rayon::slice::ParallelSliceMut as _;

use crate::EstimateError;
use crate::arpa::Writer;
use crate::key::{Key, Layout};
use crate::probs::{Ngram, Sink};
use crate::vocab::{SENTENCE_END, SENTENCE_START};

/// A model in memory: for each order its n-grams in suffix order.
pub(crate) struct Model<K> {
    layout: Layout,
    orders: Vec<Vec<Ngram<K>>>,
}

/// How an order of n-grams hangs together with the order below it.
struct Links {
    /// For each n-gram the index of its context, and of the n-gram without its first word.
    contexts: Vec<u32>,
    shorter: Vec<u32>,
    /// The n-grams sorted by context.
    by_context: Vec<u32>,
}

impl<K: Key> Model<K> {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, orders: Vec::new() }
    }

    /// N-grams of each order.
    pub(crate) fn n_kept(&self) -> Vec<u64> {
        self.orders.iter().map(|ngrams| ngrams.len() as u64).collect()
    }

    /// Drops all n-grams that change the perplexity by less than the share `threshold`.
    pub(crate) fn prune(&mut self, threshold: f64) {
        let links: Vec<Links> = (2..=self.orders.len()).map(|k| self.links(k)).collect();
        let histories = self.history_probs(&links);
        let mut is_needed = vec![Vec::new(); self.orders.len()];
        is_needed[self.orders.len() - 1] = vec![false; self.orders.last().map_or(0, Vec::len)];
        for k in (2..=self.orders.len()).rev() {
            let links = &links[k - 2];
            let is_kept = self.prune_order(k, links, &histories[k - 2], &is_needed[k - 1], threshold);
            let mut is_needed_below = vec![false; self.orders[k - 2].len()];
            for (index, _) in is_kept.iter().enumerate().filter(|(_, is_kept)| **is_kept) {
                is_needed_below[links.contexts[index] as usize] = true;
                is_needed_below[links.shorter[index] as usize] = true;
            }
            is_needed[k - 2] = is_needed_below;
            let mut kept = is_kept.iter();
            // Links of this order are not used any more, but the order below still has its indices.
            self.orders[k - 1].retain(|_| *kept.next().expect("one flag per n-gram"));
        }
    }

    fn links(&self, k: usize) -> Links {
        let (ngrams, below, layout) = (&self.orders[k - 1], &self.orders[k - 2], self.layout);
        let mut by_context: Vec<u32> = (0..ngrams.len() as u32).collect();
        by_context.par_sort_unstable_by_key(|index| layout.by_context(ngrams[*index as usize].key, k));
        let mut contexts = vec![0; ngrams.len()];
        let mut at = 0;
        for index in &by_context {
            at = seek(below, at, layout.context(ngrams[*index as usize].key, k));
            contexts[*index as usize] = at as u32;
        }
        let mut at = 0;
        let shorter = |ngram: &Ngram<K>| {
            at = seek(below, at, layout.shorter(ngram.key));
            at as u32
        };
        Links { contexts, shorter: ngrams.iter().map(shorter).collect(), by_context }
    }

    /// For each n-gram that can be a context the probability that a text is in it.
    fn history_probs(&self, links: &[Links]) -> Vec<Vec<f64>> {
        let end = f64::from(self.orders[0][SENTENCE_END as usize].prob);
        let prob = |ngram: &Ngram<K>| f64::from(ngram.prob);
        let mut unigrams: Vec<f64> = self.orders[0].iter().map(prob).collect();
        // There are as many starts of sentences as ends.
        unigrams[SENTENCE_START as usize] = end;
        let mut histories = vec![unigrams];
        for (ngrams, links) in self.orders[1..].iter().zip(links) {
            let below = histories.last().expect("starts with one");
            let joint = ngrams.iter().zip(&links.contexts).map(|(ngram, at)| below[*at as usize] * prob(ngram));
            histories.push(joint.collect());
        }
        histories
    }

    /// Decides which k-grams stay and sets the back-off weights of their contexts.
    fn prune_order(
        &mut self,
        k: usize,
        links: &Links,
        histories: &[f64],
        is_needed: &[bool],
        threshold: f64,
    ) -> Vec<bool> {
        let (lower_orders, orders) = self.orders.split_at_mut(k - 1);
        let (below, ngrams) = (&mut lower_orders[k - 2], &orders[0]);
        let mut is_kept = vec![true; ngrams.len()];
        let context_of = |index: &u32| links.contexts[*index as usize];
        for group in links.by_context.chunk_by(|a, b| context_of(a) == context_of(b)) {
            let context = context_of(&group[0]) as usize;
            let pair = |index: u32| {
                let lower = below[links.shorter[index as usize] as usize].prob;
                (f64::from(ngrams[index as usize].prob), f64::from(lower))
            };
            let mut left = Left::new(group.iter().map(|index| pair(*index)), below[context].backoff.into());
            let all = left;
            for index in group.iter().filter(|index| !is_needed[**index as usize]) {
                let (prob, lower) = pair(*index);
                if all.perplexity_change(prob, lower, histories[context]) < threshold {
                    is_kept[*index as usize] = false;
                    left.give_back(prob, lower);
                }
            }
            if left.n_dropped > 0 {
                let is_empty = left.n_dropped == group.len();
                below[context].backoff = if is_empty { 1.0 } else { left.weight() as f32 };
            }
        }
        is_kept
    }

    /// Writes all n-grams.
    pub(crate) fn write<W: Write>(&self, writer: &mut Writer<'_, K, W>) -> Result<(), EstimateError> {
        for (index, ngrams) in self.orders.iter().enumerate() {
            writer.start_order(index + 1)?;
            for ngram in ngrams {
                writer.ngram(*ngram)?;
            }
        }
        writer.finish()
    }
}

impl<K: Key> Sink<K> for Model<K> {
    fn start_order(&mut self, _k: usize) -> Result<(), EstimateError> {
        self.orders.push(Vec::new());
        Ok(())
    }

    fn ngram(&mut self, ngram: Ngram<K>) -> Result<(), EstimateError> {
        self.orders.last_mut().expect("an order is started").push(ngram);
        Ok(())
    }
}

/// The index of `key`, which is not before index `from`.
fn seek<K: Key>(ngrams: &[Ngram<K>], from: usize, key: K) -> usize {
    let n_before = ngrams[from..].iter().take_while(|ngram| ngram.key < key).count();
    debug_assert!(ngrams[from + n_before].key == key, "contexts and ends of n-grams are in the model");
    from + n_before
}

/// The probability that is left in a context for words without an n-gram, by it and by the shorter context.
#[derive(Clone, Copy, Debug)]
struct Left {
    by_context: f64,
    by_shorter: f64,
    backoff: f64,
    n_dropped: usize,
}

impl Left {
    fn new(pairs: impl Iterator<Item = (f64, f64)>, backoff: f64) -> Self {
        let by_shorter = pairs.fold(1.0, |left, (_, lower)| left - lower).max(0.0);
        // Exact by definition, where the difference of 1 and a sum of rounded probabilities is not.
        Self { by_context: backoff * by_shorter, by_shorter, backoff, n_dropped: 0 }
    }

    fn give_back(&mut self, prob: f64, lower: f64) {
        self.by_context += prob;
        self.by_shorter += lower;
        self.n_dropped += 1;
    }

    fn weight(&self) -> f64 {
        self.by_context / self.by_shorter
    }

    /// By how much the perplexity changes, relative to what it is, if a word is dropped.
    fn perplexity_change(&self, prob: f64, lower: f64, history: f64) -> f64 {
        let mut without = *self;
        without.give_back(prob, lower);
        let weight = without.weight();
        let moved = prob * (weight * lower / prob).ln();
        // Nothing is left for other words: the weight does not matter.
        let others = if self.by_context > 0.0 { self.by_context * (weight / self.backoff).ln() } else { 0.0 };
        (-history * (moved + others)).exp_m1()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_is_the_relative_entropy_over_all_words() {
        // Words 0 and 1 have n-grams in the context, words 2 and 3 do not.
        let lower = [0.2, 0.1, 0.3, 0.4];
        let backoff: f64 = 0.3 / 0.7;
        let before: [f64; 4] = [0.4, 0.3, backoff * lower[2], backoff * lower[3]];
        let weight = 0.6 / 0.8;
        let after = [0.4, weight * lower[1], weight * lower[2], weight * lower[3]];
        let entropy: f64 = before.iter().zip(after).map(|(p, q)| 0.05 * p * (p / q).ln()).sum();
        let left = Left::new([(0.4, 0.2), (0.3, 0.1)].into_iter(), backoff);
        let found = left.perplexity_change(0.3, 0.1, 0.05);
        assert!((found - entropy.exp_m1()).abs() < 1e-12, "{found} {entropy}");
    }
}
