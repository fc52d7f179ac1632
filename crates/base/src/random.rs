//! Hashes and random numbers that are the same on every machine.

/// FNV-1a, 64 bits: a hash of a name, stable across versions and machines unlike the standard library's.
///
/// ```
/// use srf_base::random::{hash_of, scramble};
///
/// // The same on every system and in every version: it may be written to files.
/// assert_eq!(hash_of("caps1"), hash_of("caps1"));
/// assert_ne!(scramble(1), scramble(2));
/// ```
pub fn hash_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The output function of SplitMix64 one step after `value`: neighbouring values give unrelated results.
#[inline]
pub const fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(SplitMix64::STEP);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The SplitMix64 generator: tiny, fast, and good enough to draw samples and test inputs.
///
/// ```
/// use srf_base::random::SplitMix64;
///
/// let mut random = SplitMix64::new(7);
/// let first = random.next_u64();
/// assert_eq!(SplitMix64::new(7).next_u64(), first);
/// assert!((0.0..1.0).contains(&random.uniform()));
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// A generator that starts from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let value = scramble(self.state);
        self.state = self.state.wrapping_add(Self::STEP);
        value
    }

    /// A number in `0..bound`, without bias worth speaking of: the high half of a 128-bit product.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below 0");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0` with 53 random bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        // The first outputs for seed 1234567 in Vigna's reference implementation.
        let mut random = SplitMix64::new(1_234_567);
        let numbers = [random.next_u64(), random.next_u64(), random.next_u64()];
        assert_eq!(numbers, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn hashes_are_those_of_fnv_1a() {
        assert_eq!(hash_of(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash_of("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
