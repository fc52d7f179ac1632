//! Several frames side by side: each operation on one value of every frame at once.
//!
//! Frames are analysed eight at a time, one to a lane, so that the whole analysis is made of operations on eight
//! numbers, which the compiler turns into vector instructions. What is in one lane never touches another: a frame
//! gives the same bits in whichever lane, and with whatever neighbours, it is computed.

use std::ops::{Add, AddAssign, Mul, Sub};

/// Frames analysed at once.
pub(super) const N_LANES: usize = 8;

/// One number of each of [`N_LANES`] frames.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(32))]
pub(super) struct Lanes(pub(super) [f32; N_LANES]);

impl Lanes {
    pub(super) const ZERO: Self = Self([0.0; N_LANES]);

    #[inline]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self(self.0.map(f))
    }

    #[inline]
    pub(super) fn max(self, floor: f32) -> Self {
        self.map(|value| if value > floor { value } else { floor })
    }

    /// Natural logarithms of positive, normal numbers.
    ///
    /// With x = 2^e m and m between sqrt(1/2) and sqrt(2), ln x = e ln 2 + ln m, and with s = (m - 1) / (m + 1),
    /// ln m = 2 (s + s^3/3 + s^5/5 + ...). As |s| < 0.172 the first term left out is below 1e-9.
    #[inline]
    pub(super) fn ln(self) -> Self {
        self.map(|x| {
            // Subtracting the bits of sqrt(1/2) makes the exponent field count from there.
            let exponent = (x.to_bits() as i32).wrapping_sub(0x3f35_04f3) >> 23;
            let m = f32::from_bits((x.to_bits() as i32).wrapping_sub(exponent << 23) as u32);
            let s = (m - 1.0) / (m + 1.0);
            let z = s * s;
            let series = 2.0 + z * (2.0 / 3.0 + z * (2.0 / 5.0 + z * (2.0 / 7.0 + z * (2.0 / 9.0))));
            exponent as f32 * std::f32::consts::LN_2 + s * series
        })
    }
}

impl Add for Lanes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
    }
}

impl AddAssign for Lanes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Lanes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] - other.0[lane]))
    }
}

impl Mul for Lanes {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] * other.0[lane]))
    }
}

impl Mul<f32> for Lanes {
    type Output = Self;
    #[inline]
    fn mul(self, factor: f32) -> Self {
        self.map(|value| value * factor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn logarithms_are_within_two_steps_of_the_libm_ones(bits in 0x0080_0000u32..0x7f80_0000) {
            let x = f32::from_bits(bits);
            let exact = f64::from(x).ln();
            let found = f64::from(Lanes([x; N_LANES]).ln().0[3]);
            // Two roundings, each half a step of the result or of the largest term (1.0 near x = 1).
            prop_assert!((found - exact).abs() <= 2.0 * f64::from(f32::EPSILON) * exact.abs().max(0.5), "{x}: {found} {exact}");
        }
    }
}
