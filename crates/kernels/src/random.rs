//! Reproducible random numbers for the tests of this crate.

use crate::Element;

/// A small generator (splitmix64): the same seed gives the same numbers everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A whole number in `low..=high`.
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    /// `n` numbers between -`scale` and `scale`.
    pub(crate) fn numbers<E: Element>(&mut self, n: usize, scale: f64) -> Vec<E> {
        let mut number = || (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        (0..n).map(|_| E::from_f64(number() * scale)).collect()
    }
}
