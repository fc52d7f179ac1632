//! Dropout that is computed from the position of an element instead of being stored.
//!
//! The decision for element `i` is a hash of `i` and of a key made of the seed, the layer and the utterance, so it
//! depends neither on threads nor on the batch and need not be stored.
//! One hash of 32 bits makes two decisions of 16 bits each; the rate is therefore a multiple of 2^-16, and kept values
//! are scaled by 1 / (1 - rate) of that rounded rate, which leaves the expectation as it was.

use srf_base::random::scramble;

use crate::Element;

/// The dropout of one layer for one utterance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropout {
    key: [u32; 2],
    /// A decision below this one drops; at most 65,535.
    threshold: u32,
    /// Index of the first element of the slices it is applied to.
    first: u32,
}

impl Dropout {
    /// Drops `rate` of the elements, or nothing (`None`) at rate 0, where dropout costs nothing.
    ///
    /// `seed` is that of the step, `layer` and `utterance` are numbers that are the same in every batch.
    #[track_caller]
    pub fn new(rate: f64, seed: u64, layer: u32, utterance: u64) -> Option<Self> {
        assert!((0.0..1.0).contains(&rate), "dropout rate {rate}, expected at least 0 and less than 1");
        let threshold = ((rate * 65536.0).round() as u32).min(65535);
        let key = scramble(scramble(scramble(seed) ^ u64::from(layer)) ^ utterance);
        (threshold > 0).then_some(Self { key: [key as u32, (key >> 32) as u32], threshold, first: 0 })
    }

    /// The same decisions for slices whose first element is element `first` of the utterance.
    #[must_use]
    pub fn starting_at(self, first: usize) -> Self {
        Self { first: first as u32, ..self }
    }

    /// What kept values are multiplied by.
    #[inline(always)]
    pub fn scale<E: Element>(self) -> E {
        E::from_f64(65536.0 / f64::from(65536 - self.threshold))
    }

    /// Whether the two values at `index` (of the branches a and b of a maxout) are kept.
    #[inline(always)]
    pub fn keeps_pair(self, index: usize) -> [bool; 2] {
        let hash = mix32(self.first.wrapping_add(index as u32), self.key);
        [hash & 0xffff >= self.threshold, hash >> 16 >= self.threshold]
    }

    /// The decisions of [`keeps_pair`](Self::keeps_pair) for `L` values from `first` on: all ones where kept, else 0.
    #[inline(always)]
    pub(crate) fn keep_masks<const L: usize>(self, first: usize) -> [[u32; L]; 2] {
        let first = self.first.wrapping_add(first as u32);
        let mut masks = [[0; L]; 2];
        for i in 0..L {
            let hash = mix32(first.wrapping_add(i as u32), self.key);
            masks[0][i] = if hash & 0xffff >= self.threshold { u32::MAX } else { 0 };
            masks[1][i] = if hash >> 16 >= self.threshold { u32::MAX } else { 0 };
        }
        masks
    }

    /// Whether the value at `index` is kept.
    #[inline(always)]
    pub fn keeps(self, index: usize) -> bool {
        mix32(self.first.wrapping_add(index as u32), self.key) & 0xffff >= self.threshold
    }
}

/// Drops elements of `x`; applied to a gradient it is its own backward pass.
#[inline(always)]
pub(crate) fn apply<E: Element>(dropout: Dropout, x: &mut [E]) {
    let scale = dropout.scale::<E>();
    for (index, value) in x.iter_mut().enumerate() {
        *value = if dropout.keeps(index) { *value * scale } else { E::ZERO };
    }
}

/// Two rounds of xor-shift and multiply, a word of the key before each.
#[inline(always)]
fn mix32(index: u32, key: [u32; 2]) -> u32 {
    let mut x = index ^ key[0];
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= (x >> 15) ^ key[1];
    x = x.wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 1 << 20;

    #[test]
    fn the_rate_is_kept_in_both_halves_and_they_agree_by_chance() {
        let dropout = Dropout::new(0.2, 1, 2, 3).unwrap();
        let mut counts = [0.0; 4];
        for index in 0..N {
            let [a, b] = dropout.keeps_pair(index);
            counts[usize::from(a) * 2 + usize::from(b)] += 1.0;
        }
        // Five standard deviations of a count of N trials.
        for (count, share) in counts.into_iter().zip([0.04, 0.16, 0.16, 0.64]) {
            let deviation = (N as f64 * share * (1.0 - share)).sqrt();
            assert!((count - N as f64 * share).abs() < 5.0 * deviation, "{count} {share}");
        }
    }

    #[test]
    fn seeds_layers_and_utterances_and_neighbours_decide_independently() {
        let base = Dropout::new(0.5, 1, 2, 3).unwrap();
        let agree =
            |other: Dropout, shift: usize| (0..N).filter(|&i| base.keeps(i) == other.keeps(i + shift)).count() as f64;
        let others = [(2, 2, 3), (1, 3, 3), (1, 2, 4)].map(|(s, l, u)| Dropout::new(0.5, s, l, u).unwrap());
        let deviation = (N as f64).sqrt() / 2.0;
        for agreement in others.map(|other| agree(other, 0)).into_iter().chain([1, 2, 64, 4096].map(|n| agree(base, n)))
        {
            assert!((agreement - N as f64 / 2.0).abs() < 5.0 * deviation, "{agreement}");
        }
    }

    #[test]
    fn the_expectation_stays_and_rate_zero_is_nothing() {
        assert_eq!(Dropout::new(0.0, 1, 2, 3), None);
        let dropout = Dropout::new(0.2, 1, 2, 3).unwrap();
        let mut x = vec![1.0f64; N];
        (f64::kernels().dropout_apply)(dropout, &mut x);
        let mean = x.iter().sum::<f64>() / N as f64;
        // Five standard deviations of the mean: a kept value is 1.25.
        assert!((mean - 1.0).abs() < 5.0 * 0.5 / (N as f64).sqrt(), "{mean}");
    }

    #[test]
    fn every_row_gives_the_bits_of_the_definition_for_any_split() {
        let dropout = Dropout::new(0.3, 4, 5, 6).unwrap();
        let mut expected: Vec<f32> = (0..1001).map(|i| i as f32).collect();
        let start = expected.clone();
        (f32::rows()[0].dropout_apply)(dropout, &mut expected);
        for row in f32::rows() {
            for cut in [0, 1, 500, 1001] {
                let mut x = start.clone();
                let (first, rest) = x.split_at_mut(cut);
                (row.dropout_apply)(dropout, first);
                (row.dropout_apply)(dropout.starting_at(cut), rest);
                assert_eq!(x, expected, "{} cut at {cut}", row.name);
            }
        }
    }
}
