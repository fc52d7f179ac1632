//! Turns adjusted counts into interpolated probabilities and back-off weights, from short n-grams to long ones.
//!
//! Every sum, product and quotient is in single precision and in KenLM's order, so that the digits are the same.

use crate::EstimateError;
use crate::count::{Adjusted, AdjustedCounts, Discounts};
use crate::key::{Key, Layout};
use crate::sort::{Keyed, Queue, QueueRecords, Record, Room, Sorted, Sorter};
use crate::vocab::{SENTENCE_END, SENTENCE_START, UNKNOWN};

/// Takes the n-grams of a model, order by order, each order in suffix order.
pub(crate) trait Sink<K: Key> {
    /// Starts the n-grams of `k` words.
    fn start_order(&mut self, k: usize) -> Result<(), EstimateError>;
    /// One n-gram with its probability and back-off weight, not as logarithms.
    fn ngram(&mut self, ngram: Ngram<K>) -> Result<(), EstimateError>;
}

/// An n-gram of the model, not as logarithms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ngram<K> {
    pub(crate) key: K,
    pub(crate) prob: f32,
    pub(crate) backoff: f32,
}

/// An n-gram with two numbers.
#[derive(Clone, Copy, Debug)]
struct Weighted<K, const N: usize> {
    key: K,
    weights: [f32; N],
}

impl<K: Key, const N: usize> Record for Weighted<K, N> {
    const BYTES: usize = K::BYTES + 4 * N;

    fn put(&self, bytes: &mut Vec<u8>) {
        self.key.put(bytes);
        self.weights.iter().for_each(|weight| bytes.extend_from_slice(&weight.to_le_bytes()));
    }

    fn get(bytes: &[u8]) -> Self {
        let (key, rest) = bytes.split_at(K::BYTES);
        let weight = |i: usize| f32::from_le_bytes(rest[4 * i..4 * i + 4].try_into().expect("four bytes"));
        Self { key: K::get(key), weights: std::array::from_fn(weight) }
    }
}

impl<K: Key, const N: usize> Keyed for Weighted<K, N> {
    type Key = K;

    fn key(&self) -> K {
        self.key
    }
}

/// What the discounts and the dropped n-grams of one context leave for shorter n-grams.
#[derive(Clone, Copy, Debug, Default)]
struct Mass {
    total: u64,
    dropped: u64,
    n_with_count: [u64; 3],
}

impl Mass {
    fn add(&mut self, count: u64, is_dropped: bool) {
        self.total += count;
        if is_dropped {
            self.dropped += count;
        } else if count > 0 {
            self.n_with_count[count.min(3) as usize - 1] += 1;
        }
    }

    /// The sum of all counts, and the share that is left over.
    fn weigh(&self, discounts: &Discounts) -> (f32, f32) {
        let mut left = 0.0;
        for (amount, n) in discounts.amounts.iter().zip(self.n_with_count) {
            left += amount * n as f32;
        }
        left += self.dropped as f32;
        let total = self.total as f32;
        (total, left / total)
    }
}

/// The orders of a model that are estimated but not yet interpolated.
struct Uninterpolated<K: Key> {
    /// In suffix order: n-gram, its discounted share, the share left over in its context.
    ngrams: Sorted<Weighted<K, 2>>,
    /// In suffix order: contexts and the share left over.
    contexts: Merged<K>,
}

/// Weights by n-gram, looked up in ascending order.
struct Merged<K: Key> {
    records: QueueRecords<Weighted<K, 1>>,
    next: Option<Weighted<K, 1>>,
}

impl<K: Key> Merged<K> {
    fn new(queue: Queue<Weighted<K, 1>>) -> Result<Self, EstimateError> {
        let mut records = queue.into_records()?;
        let next = records.next()?;
        Ok(Self { records, next })
    }

    /// The weight of `key`; keys must not fall from call to call.
    fn get(&mut self, key: K) -> Result<Option<f32>, EstimateError> {
        while self.next.is_some_and(|record| record.key < key) {
            self.next = self.records.next()?;
        }
        Ok(self.next.filter(|record| record.key == key).map(|record| record.weights[0]))
    }
}

/// Estimates all orders and gives their n-grams to `sink`.
pub(crate) fn interpolate<K: Key>(
    adjusted: AdjustedCounts<K>,
    discounts: &[Discounts],
    layout: Layout,
    room: &Room,
    sink: &mut impl Sink<K>,
) -> Result<(), EstimateError> {
    let AdjustedCounts { unigrams, ngrams, .. } = adjusted;
    let mut longer = ngrams.into_iter();
    let mut next_order = |k: usize| match longer.next() {
        Some(counts) => estimate_order(counts, k, &discounts[k - 1], layout, room).map(Some),
        None => Ok(None),
    };
    let mut next = next_order(2)?;
    let mut shorter = interpolate_unigrams(&unigrams, &discounts[0], next.as_mut(), room, sink)?;
    drop(unigrams);
    for k in 2..=layout.order {
        let Some(Uninterpolated { mut ngrams, .. }) = next else { break };
        next = next_order(k + 1)?;
        let mut probs = Queue::new(room.share(1, 8));
        sink.start_order(k)?;
        while let Some(Weighted { key, weights: [share, left] }) = ngrams.next()? {
            let lower = shorter.get(layout.shorter(key))?.expect("the end of a kept n-gram is kept");
            let prob = share + left * lower;
            let backoff = backoff_of(key, layout.word(key, k - 1), next.as_mut())?;
            sink.ngram(Ngram { key, prob, backoff })?;
            if next.is_some() {
                probs.push(Weighted { key, weights: [prob] })?;
            }
        }
        shorter = Merged::new(probs)?;
    }
    Ok(())
}

fn backoff_of<K: Key>(key: K, last_word: u32, next: Option<&mut Uninterpolated<K>>) -> Result<f32, EstimateError> {
    let is_context = last_word != SENTENCE_END && last_word != UNKNOWN;
    match next.filter(|_| is_context) {
        Some(next) => Ok(next.contexts.get(key)?.unwrap_or(1.0)),
        None => Ok(1.0),
    }
}

/// Discounted shares of the k-grams, and what is left over for each context.
fn estimate_order<K: Key>(
    counts: Sorter<Adjusted<K>>,
    k: usize,
    discounts: &Discounts,
    layout: Layout,
    room: &Room,
) -> Result<Uninterpolated<K>, EstimateError> {
    let mut counts = counts.into_sorted()?;
    let mut ngrams = Sorter::new(room.share(1, 8));
    let mut contexts = Queue::new(room.share(1, 16));
    let mut group: Vec<Adjusted<K>> = Vec::new();
    loop {
        let next = counts.next()?;
        let context = group.first().map(|first| layout.context_of(first.by_context));
        let is_same = next.is_some_and(|next| Some(layout.context_of(next.by_context)) == context);
        if let Some(context) = context.filter(|_| !is_same) {
            let mut mass = Mass::default();
            group.iter().for_each(|ngram| mass.add(ngram.count(), ngram.is_dropped()));
            let (total, left) = mass.weigh(discounts);
            for ngram in group.drain(..).filter(|ngram| !ngram.is_dropped()) {
                let key = layout.ngram_of(ngram.by_context, k);
                ngrams.push(Weighted { key, weights: [discounts.apply(ngram.count()) / total, left] })?;
            }
            contexts.push(Weighted { key: context, weights: [left] })?;
        }
        match next {
            Some(next) => group.push(next),
            None => break,
        }
    }
    Ok(Uninterpolated { ngrams: ngrams.into_sorted()?, contexts: Merged::new(contexts)? })
}

/// 1-grams are interpolated with equal probabilities of all words but `<s>`.
fn interpolate_unigrams<K: Key>(
    unigrams: &[(u64, bool)],
    discounts: &Discounts,
    mut next: Option<&mut Uninterpolated<K>>,
    room: &Room,
    sink: &mut impl Sink<K>,
) -> Result<Merged<K>, EstimateError> {
    let mut mass = Mass::default();
    unigrams.iter().for_each(|(count, is_dropped)| mass.add(*count, *is_dropped));
    let (total, left) = mass.weigh(discounts);
    let n_kept = unigrams.iter().filter(|(_, is_dropped)| !is_dropped).count();
    let uniform = 1.0 / (n_kept - 1) as f32;
    let mut probs = Queue::new(room.share(1, 8));
    sink.start_order(1)?;
    for (word, (count, _)) in (0u32..).zip(unigrams).filter(|(_, (_, is_dropped))| !is_dropped) {
        let prob = match word {
            // Probability 1, so that a sentence may be scored with its `<s>`.
            SENTENCE_START => 1.0,
            UNKNOWN => left * uniform,
            _ => discounts.apply(*count) / total + left * uniform,
        };
        let key = K::from_word(word);
        let backoff = backoff_of(key, word, next.as_deref_mut())?;
        sink.ngram(Ngram { key, prob, backoff })?;
        probs.push(Weighted { key, weights: [prob] })?;
    }
    Merged::new(probs)
}
