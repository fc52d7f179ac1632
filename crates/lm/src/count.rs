//! Counts the longest n-grams of a text and derives the adjusted counts of all orders from them.
//!
//! An n-gram of the highest order, or one that starts with `<s>`, keeps its count. The adjusted count of any other is
//! the number of different words before it. With n-grams in suffix order both fall out of one pass.

use crate::EstimateError;
use crate::key::{Key, Layout};
use crate::sort::{Keyed, Queue, Record, Room, Sorted, Sorter};
use crate::vocab::{SENTENCE_END, SENTENCE_START, SPECIAL};

/// Which n-grams are dropped.
pub(crate) struct Restriction {
    /// For each order, the highest count that is dropped.
    pub(crate) thresholds: Vec<u64>,
    /// For each word, whether n-grams with it are dropped; empty if no words are.
    pub(crate) is_dropped: Vec<bool>,
}

impl Restriction {
    fn drops<K: Key>(&self, layout: Layout, ngram: K, k: usize, count: u64) -> bool {
        count <= self.thresholds[k - 1]
            || (!self.is_dropped.is_empty() && (0..k).any(|index| self.is_dropped[layout.word(ngram, index) as usize]))
    }
}

/// An n-gram and how often it occurs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<K> {
    pub(crate) ngram: K,
    pub(crate) count: u64,
}

impl<K: Key> Record for Counted<K> {
    const BYTES: usize = K::BYTES + 8;

    fn put(&self, bytes: &mut Vec<u8>) {
        self.ngram.put(bytes);
        self.count.put(bytes);
    }

    fn get(bytes: &[u8]) -> Self {
        let (ngram, count) = bytes.split_at(K::BYTES);
        Self { ngram: K::get(ngram), count: u64::get(count) }
    }
}

impl<K: Key> Keyed for Counted<K> {
    type Key = K;

    fn key(&self) -> K {
        self.ngram
    }

    fn combine(&mut self, other: &Self) -> bool {
        self.count += other.count;
        true
    }
}

/// An n-gram under the number by which it is sorted by its context, with its adjusted count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adjusted<K> {
    pub(crate) by_context: K,
    /// The count, and in the lowest bit whether the n-gram is dropped.
    packed: u64,
}

impl<K: Key> Adjusted<K> {
    fn new(by_context: K, count: u64, is_dropped: bool) -> Self {
        Self { by_context, packed: count << 1 | u64::from(is_dropped) }
    }

    pub(crate) fn count(&self) -> u64 {
        self.packed >> 1
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.packed & 1 == 1
    }
}

impl<K: Key> Record for Adjusted<K> {
    const BYTES: usize = K::BYTES + 8;

    fn put(&self, bytes: &mut Vec<u8>) {
        self.by_context.put(bytes);
        self.packed.put(bytes);
    }

    fn get(bytes: &[u8]) -> Self {
        let (by_context, packed) = bytes.split_at(K::BYTES);
        Self { by_context: K::get(by_context), packed: u64::get(packed) }
    }
}

impl<K: Key> Keyed for Adjusted<K> {
    type Key = K;

    fn key(&self) -> K {
        self.by_context
    }
}

/// Counts the n-grams of the highest order, each sentence after as many `<s>` as its first word needs.
pub(crate) fn count<K: Key>(
    words: Queue<u32>,
    layout: Layout,
    room: &Room,
) -> Result<Sorted<Counted<K>>, EstimateError> {
    let start = (1..layout.order).fold(K::default(), |ngram, _| layout.push(ngram, SENTENCE_START));
    let mut sorter = Sorter::new(room.share(1, 2));
    let mut words = words.into_records()?;
    let mut ngram = start;
    while let Some(word) = words.next()? {
        ngram = layout.push(ngram, word);
        sorter.push(Counted { ngram, count: 1 })?;
        if word == SENTENCE_END {
            ngram = start;
        }
    }
    Ok(sorter.into_sorted()?)
}

/// How many n-grams of an order there are, and how many of them have which adjusted count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) n_counted: u64,
    pub(crate) n_kept: u64,
    /// N-grams with an adjusted count of 0 to 4.
    by_count: [u64; 5],
}

impl Stats {
    fn add(&mut self, count: u64, is_dropped: bool) {
        self.n_counted += 1;
        self.n_kept += u64::from(!is_dropped);
        if let Some(n) = self.by_count.get_mut(count as usize) {
            *n += 1;
        }
    }

    /// The discounts of Chen and Goodman (1998), equation 26, in single precision as in KenLM.
    fn discounts(&self, order: usize) -> Result<[f32; 3], EstimateError> {
        let n = self.by_count;
        if let Some(count) = (1..4).find(|count| n[*count] == 0) {
            return Err(EstimateError::NoSuchCount { order, count });
        }
        let y = n[1] as f32 / (n[1] as f64 + 2.0 * n[2] as f64) as f32;
        let mut discounts = [0.0; 3];
        for count in 1..4 {
            let found = count as f32 - (count + 1) as f32 * y * n[count + 1] as f32 / n[count] as f32;
            if !(0.0..=count as f32).contains(&found) {
                return Err(EstimateError::DiscountRange { order, count, found });
            }
            discounts[count - 1] = found;
        }
        Ok(discounts)
    }
}

/// What is taken off the counts of an order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Discounts {
    pub(crate) amounts: [f32; 3],
    pub(crate) is_fallback: bool,
}

impl Discounts {
    pub(crate) fn apply(&self, count: u64) -> f32 {
        let amount = if count == 0 { 0.0 } else { self.amounts[count.min(3) as usize - 1] };
        count as f32 - amount
    }
}

/// The adjusted counts of all orders.
pub(crate) struct AdjustedCounts<K: Key> {
    /// For each word its adjusted count, and whether it is dropped.
    pub(crate) unigrams: Vec<(u64, bool)>,
    /// The longer n-grams from order 2 on.
    pub(crate) ngrams: Vec<Sorter<Adjusted<K>>>,
    pub(crate) stats: Vec<Stats>,
}

impl<K: Key> AdjustedCounts<K> {
    /// The discounts of every order.
    pub(crate) fn discounts(&self, fallback: Option<[f32; 3]>) -> Result<Vec<Discounts>, EstimateError> {
        let order = |(index, stats): (usize, &Stats)| match (stats.discounts(index + 1), fallback) {
            (Ok(amounts), _) => Ok(Discounts { amounts, is_fallback: false }),
            (Err(_), Some(amounts)) => Ok(Discounts { amounts, is_fallback: true }),
            (Err(error), None) => Err(error),
        };
        self.stats.iter().enumerate().map(order).collect()
    }
}

/// Turns the counts of the highest order into adjusted counts of all orders.
pub(crate) fn adjust<K: Key>(
    mut counted: Sorted<Counted<K>>,
    layout: Layout,
    n_words: usize,
    restriction: &Restriction,
    room: &Room,
) -> Result<AdjustedCounts<K>, EstimateError> {
    let mut adjuster = Adjuster::new(layout, n_words, restriction, room);
    while let Some(Counted { ngram, count }) = counted.next()? {
        adjuster.add(ngram, count)?;
    }
    adjuster.finish()
}

/// Suffixes of the last n-gram whose counts may still grow.
struct Adjuster<'a, K: Key> {
    layout: Layout,
    restriction: &'a Restriction,
    last: K,
    /// How many suffixes are open, shortest first.
    n_open: usize,
    /// Adjusted and plain counts of the open suffixes.
    adjusted: Vec<u64>,
    plain: Vec<u64>,
    counts: AdjustedCounts<K>,
}

impl<'a, K: Key> Adjuster<'a, K> {
    fn new(layout: Layout, n_words: usize, restriction: &'a Restriction, room: &Room) -> Self {
        let order = layout.order;
        let sorter_room = room.share(1, 2 * order.max(2));
        let mut stats = vec![Stats::default(); order];
        // `<unk>` and `<s>`: nothing comes before them.
        stats[0].add(0, false);
        stats[0].add(0, false);
        Self {
            layout,
            restriction,
            last: K::default(),
            n_open: 0,
            adjusted: vec![0; order],
            plain: vec![0; order],
            counts: AdjustedCounts {
                unigrams: vec![(0, false); n_words],
                ngrams: (1..order).map(|_| Sorter::new(sorter_room.clone())).collect(),
                stats,
            },
        }
    }

    fn add(&mut self, ngram: K, count: u64) -> Result<(), EstimateError> {
        let order = self.layout.order;
        let n_same = if self.n_open == 0 { 0 } else { self.layout.n_equal(ngram, self.last).min(self.n_open) };
        for k in (n_same + 1..=self.n_open).rev() {
            self.close(k, self.adjusted[k - 1])?;
        }
        self.plain[..n_same].iter_mut().for_each(|plain| *plain += count);
        if n_same > 0 {
            self.adjusted[n_same - 1] += 1;
        }
        (self.last, self.n_open) = (ngram, n_same);
        while self.n_open < order - 1 {
            let is_start = self.layout.word(ngram, order - 1 - self.n_open) == SENTENCE_START;
            self.adjusted[self.n_open] = if is_start { count } else { 1 };
            self.plain[self.n_open] = count;
            self.n_open += 1;
            if is_start {
                return Ok(());
            }
        }
        self.emit(ngram, order, count, count, count)
    }

    /// Emits the open suffix of `k` words, which enters the statistics with the count `for_stats`.
    fn close(&mut self, k: usize, for_stats: u64) -> Result<(), EstimateError> {
        let ngram = self.layout.suffix(self.last, k);
        self.emit(ngram, k, self.adjusted[k - 1], self.plain[k - 1], for_stats)
    }

    fn emit(&mut self, ngram: K, k: usize, adjusted: u64, plain: u64, for_stats: u64) -> Result<(), EstimateError> {
        let is_special = k == 1 && (ngram.low_word() as usize) < SPECIAL.len();
        let is_dropped = !is_special && self.restriction.drops(self.layout, ngram, k, plain);
        self.counts.stats[k - 1].add(for_stats, is_dropped);
        if k == 1 {
            self.counts.unigrams[ngram.low_word() as usize] = (adjusted, is_dropped);
        } else {
            let by_context = self.layout.by_context(ngram, k);
            self.counts.ngrams[k - 2].push(Adjusted::new(by_context, adjusted, is_dropped))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<AdjustedCounts<K>, EstimateError> {
        for k in 1..=self.n_open {
            // KenLM counts the last n-gram of each order by its plain count here. One n-gram makes no difference to the
            // estimate, but it changes the last digits of all discounts.
            self.close(k, self.plain[k - 1])?;
        }
        Ok(self.counts)
    }
}
