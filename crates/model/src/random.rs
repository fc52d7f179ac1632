//! Random numbers for a seed and a name, the same on every machine and in every version.
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011):
//! a function from a counter of 128 bits and a key of 64 bits to 128 random bits, without state, so that number n of a
//! stream is found without the n - 1 before it.
//! The key is the seed; the upper half of the counter is the stream, the lower half counts its blocks.
//! Uniform and normal numbers are made by additions, multiplications, divisions and square roots alone, whose bits
//! IEEE 754 fixes; the logarithm of the normal numbers is ours for that reason.
//!
//! ```
//! use srf_model::random::{Random, philox};
//!
//! let mut random = Random::new(1, "caps1/kernel");
//! let (uniform, normal) = (random.uniform(), random.normal());
//! println!("64 bits: {:x}", random.bits());
//! assert!((0.0..1.0).contains(&uniform) && normal.is_finite());
//! assert_eq!(Random::new(1, "caps1/kernel").uniform(), uniform, "the same for the same seed and name");
//! assert_ne!(philox([0; 4], [1, 0]), philox([1, 0, 0, 0], [1, 0]));
//! ```

use srf_base::random::hash_of;

/// Bits of a double's significand.
const MANTISSA_BITS: u32 = 53;

/// Random bits for a counter and a key: Philox4x32 with 10 rounds.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let ([mut a, mut b, mut c, mut d], [mut key0, mut key1]) = (counter, key);
    for _ in 0..10 {
        let first = u64::from(a) * 0xD251_1F53;
        let second = u64::from(c) * 0xCD9E_8D57;
        a = (second >> 32) as u32 ^ b ^ key0;
        c = (first >> 32) as u32 ^ d ^ key1;
        b = second as u32;
        d = first as u32;
        key0 = key0.wrapping_add(0x9E37_79B9);
        key1 = key1.wrapping_add(0xBB67_AE85);
    }
    [a, b, c, d]
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    stream: u64,
    block: u64,
    spare: Option<u64>,
}

impl Random {
    /// The stream called `name` of a seed; streams of different names are independent.
    pub fn new(seed: u64, name: &str) -> Self {
        Self { seed, stream: hash_of(name), block: 0, spare: None }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let [block, stream, seed] = [self.block, self.stream, self.seed].map(halves);
        let [a, b, c, d] = philox([block[0], block[1], stream[0], stream[1]], seed);
        self.block += 1;
        self.spare = Some(u64::from(d) << 32 | u64::from(c));
        u64::from(b) << 32 | u64::from(a)
    }

    /// At least 0 and less than 1, all multiples of 2^-53 equally probable.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> (64 - MANTISSA_BITS)) as f64 / (1_u64 << MANTISSA_BITS) as f64
    }

    /// Mean 0 and variance 1, by Marsaglia's polar method: a point in the unit disc, one of its coordinates stretched.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if 0.0 < square && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// Natural logarithm of a positive normal number, from ln(m 2^e) = e ln 2 + 2 artanh((m - 1) / (m + 1)).
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    // A mantissa around 1 keeps the series short: at most 0.172 to the power of 21.
    let is_large = mantissa > std::f64::consts::SQRT_2;
    let (m, e) = if is_large { (mantissa / 2.0, exponent + 1) } else { (mantissa, exponent) };
    let z = (m - 1.0) / (m + 1.0);
    let series = (0..=10).rev().fold(0.0, |sum, k| sum * (z * z) + 1.0 / f64::from(2 * k + 1));
    e as f64 * std::f64::consts::LN_2 + 2.0 * z * series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the authors' own list of known answers (Random123, `kat_vectors`).
    #[test]
    fn the_generator_gives_the_published_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let counter = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        let answer = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        assert_eq!(philox(counter, [0xa409_3822, 0x299f_31d0]), answer);
    }

    #[test]
    fn the_bits_of_a_stream_never_change() {
        let mut random = Random::new(1, "caps1.W");
        let bits = [random.bits(), random.bits(), random.bits()];
        assert_eq!(bits, [0xb9d5_a15c_21b1_72b3, 0xf22e_1df1_d0ce_1a5e, 0x1fd8_c078_41e3_45ad]);
        assert_eq!(random.normal().to_bits(), 0x3fe0_863b_6c6b_a746);
    }

    #[test]
    fn our_logarithm_agrees_with_the_systems() {
        let mut random = Random::new(3, "logarithm");
        for _ in 0..10_000 {
            let x = random.uniform().max(f64::MIN_POSITIVE);
            // Two roundings of a sum whose larger part is the result.
            assert!((ln(x) - x.ln()).abs() <= 4.0 * f64::EPSILON * x.ln().abs().max(1.0), "ln({x})");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn uniform_and_normal_numbers_have_their_moments() {
        let mut random = Random::new(7, "moments");
        let n = 200_000;
        let moments = |draw: &mut dyn FnMut() -> f64| {
            let values: Vec<f64> = (0..n).map(|_| draw()).collect();
            let mean = values.iter().sum::<f64>() / f64::from(n);
            let central = |p: i32| values.iter().map(|v| (v - mean).powi(p)).sum::<f64>() / f64::from(n);
            (mean, central(2), central(4))
        };
        // Five standard errors: of a mean sqrt(var / n), of a variance sqrt((m4 - var^2) / n).
        let five = 5.0 / f64::from(n).sqrt();
        let (mean, variance, _) = moments(&mut || random.uniform());
        assert!((mean - 0.5).abs() < five * (1.0_f64 / 12.0).sqrt(), "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < five * (1.0_f64 / 80.0 - 1.0 / 144.0).sqrt(), "{variance}");
        let (mean, variance, fourth) = moments(&mut || random.normal());
        assert!(mean.abs() < five, "{mean}");
        assert!((variance - 1.0).abs() < five * 2.0_f64.sqrt(), "{variance}");
        assert!((fourth - 3.0).abs() < five * 96.0_f64.sqrt(), "{fourth}");
    }

    #[test]
    fn streams_of_one_seed_and_seeds_of_one_stream_differ() {
        let first = |seed, name| Random::new(seed, name).bits();
        assert_ne!(first(1, "a"), first(1, "b"));
        assert_ne!(first(1, "a"), first(2, "a"));
        assert_ne!(first(1, "a"), first(1 + (1 << 32), "a"));
    }
}
