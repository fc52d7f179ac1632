//! N-grams packed into integers, so that sorting compares numbers instead of lists of words.
//!
//! With `bits` bits for a word, the k-gram `w1 .. wk` is the number whose highest digit is `wk` and whose lowest is `w1`.
//! Numbers in ascending order are then n-grams in suffix order (last word first), the last j words of a k-gram are its
//! high digits, and its context `w1 .. w(k-1)` is its low digits.

use std::cmp::Ordering;
use std::fmt::Debug;

use crate::sort::Record;

/// An unsigned integer that holds an n-gram.
pub(crate) trait Key: Copy + Debug + Default + Ord + Send + Sync + Record + 'static {
    /// How many bits an n-gram may take.
    const BITS: u32;

    fn from_word(word: u32) -> Self;
    fn shift_left(self, n_bits: u32) -> Self;
    fn shift_right(self, n_bits: u32) -> Self;
    fn or(self, other: Self) -> Self;
    fn low_bits(self, n_bits: u32) -> Self;
    /// The lowest 32 bits.
    fn low_word(self) -> u32;
    /// Bits that are equal from bit `n_bits - 1` downwards.
    fn n_equal_bits(self, other: Self, n_bits: u32) -> u32;
}

impl Key for u64 {
    const BITS: u32 = 64;

    fn from_word(word: u32) -> Self {
        word.into()
    }

    fn shift_left(self, n_bits: u32) -> Self {
        self << n_bits
    }

    fn shift_right(self, n_bits: u32) -> Self {
        self >> n_bits
    }

    fn or(self, other: Self) -> Self {
        self | other
    }

    fn low_bits(self, n_bits: u32) -> Self {
        self & ((1 << n_bits) - 1)
    }

    fn low_word(self) -> u32 {
        self as u32
    }

    fn n_equal_bits(self, other: Self, n_bits: u32) -> u32 {
        (self ^ other).leading_zeros() - (64 - n_bits)
    }
}

/// 128 bits that are aligned like 64, so that a record with a payload has no padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wide {
    high: u64,
    low: u64,
}

impl Wide {
    fn get(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }

    fn new(value: u128) -> Self {
        Self { high: (value >> 64) as u64, low: value as u64 }
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Self) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Key for Wide {
    const BITS: u32 = 128;

    fn from_word(word: u32) -> Self {
        Self { high: 0, low: word.into() }
    }

    fn shift_left(self, n_bits: u32) -> Self {
        Self::new(self.get() << n_bits)
    }

    fn shift_right(self, n_bits: u32) -> Self {
        Self::new(self.get() >> n_bits)
    }

    fn or(self, other: Self) -> Self {
        Self { high: self.high | other.high, low: self.low | other.low }
    }

    fn low_bits(self, n_bits: u32) -> Self {
        Self::new(self.get() & ((1 << n_bits) - 1))
    }

    fn low_word(self) -> u32 {
        self.low as u32
    }

    fn n_equal_bits(self, other: Self, n_bits: u32) -> u32 {
        (self.get() ^ other.get()).leading_zeros() - (128 - n_bits)
    }
}

impl Record for u64 {
    const BYTES: usize = 8;

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("a record has its length"))
    }
}

impl Record for Wide {
    const BYTES: usize = 16;

    fn put(&self, bytes: &mut Vec<u8>) {
        self.high.put(bytes);
        self.low.put(bytes);
    }

    fn get(bytes: &[u8]) -> Self {
        Self { high: u64::get(&bytes[..8]), low: u64::get(&bytes[8..]) }
    }
}

/// How n-grams are packed: bits of a word, and words of the longest n-grams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) bits: u32,
    pub(crate) order: usize,
}

impl Layout {
    /// The layout for words below `n_words`.
    pub(crate) fn new(n_words: usize, order: usize) -> Self {
        Self { bits: usize::BITS - n_words.saturating_sub(1).max(1).leading_zeros(), order }
    }

    pub(crate) fn total_bits(self) -> u32 {
        self.width(self.order)
    }

    fn width(self, n_words: usize) -> u32 {
        self.bits * n_words as u32
    }

    /// The longest n-gram after one more word: the first word leaves.
    pub(crate) fn push<K: Key>(self, ngram: K, word: u32) -> K {
        ngram.shift_right(self.bits).or(K::from_word(word).shift_left(self.width(self.order - 1)))
    }

    /// The last `k` words of one of the longest n-grams.
    pub(crate) fn suffix<K: Key>(self, ngram: K, k: usize) -> K {
        ngram.shift_right(self.width(self.order - k))
    }

    /// A k-gram without its first word.
    pub(crate) fn shorter<K: Key>(self, ngram: K) -> K {
        ngram.shift_right(self.bits)
    }

    /// How many words at the end of two of the longest n-grams are equal.
    pub(crate) fn n_equal<K: Key>(self, a: K, b: K) -> usize {
        (a.n_equal_bits(b, self.total_bits()) / self.bits) as usize
    }

    /// Word `index` of a k-gram, counted from its first one.
    pub(crate) fn word<K: Key>(self, ngram: K, index: usize) -> u32 {
        ngram.shift_right(self.width(index)).low_bits(self.bits).low_word()
    }

    /// A k-gram without its last word.
    pub(crate) fn context<K: Key>(self, ngram: K, k: usize) -> K {
        ngram.low_bits(self.width(k - 1))
    }

    /// The number by which k-grams are sorted by their contexts first.
    pub(crate) fn by_context<K: Key>(self, ngram: K, k: usize) -> K {
        self.context(ngram, k).shift_left(self.bits).or(ngram.shift_right(self.width(k - 1)))
    }

    /// The context in a number from [`Layout::by_context`].
    pub(crate) fn context_of<K: Key>(self, by_context: K) -> K {
        by_context.shift_right(self.bits)
    }

    /// The k-gram of a number from [`Layout::by_context`].
    pub(crate) fn ngram_of<K: Key>(self, by_context: K, k: usize) -> K {
        let word = by_context.low_bits(self.bits).shift_left(self.width(k - 1));
        self.context_of(by_context).or(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packs<K: Key>(n_words: usize, order: usize) {
        let layout = Layout::new(n_words, order);
        assert!(layout.total_bits() <= K::BITS, "{layout:?}");
        let top = n_words as u32 - 1;
        let words: Vec<u32> = (0..order as u32).map(|i| top - i % n_words as u32).collect();
        let ngram = words.iter().fold(K::default(), |ngram, word| layout.push(ngram, *word));
        for (index, word) in words.iter().enumerate() {
            assert_eq!(layout.word(ngram, index), *word);
        }
        for k in 1..=order {
            let suffix = layout.suffix(ngram, k);
            assert_eq!(layout.word(suffix, 0), words[order - k]);
            assert_eq!(layout.ngram_of(layout.by_context(suffix, k), k), suffix);
        }
        let other = layout.push(layout.shorter(layout.suffix(ngram, order)), 0);
        assert_eq!(layout.n_equal(ngram, ngram), order);
        assert_eq!(layout.n_equal(ngram, other), usize::from(top == 0) * order);
    }

    #[test]
    fn words_come_back_for_every_width() {
        packs::<u64>(3, 5);
        packs::<u64>(1 << 21, 3);
        packs::<u64>(u32::MAX as usize, 2);
        packs::<u64>(1 << 16, 4);
        packs::<Wide>(1 << 25, 5);
        packs::<Wide>(u32::MAX as usize, 4);
        packs::<Wide>(17, 1);
    }
}
