//! The two number types: `f32`, which the networks run in, and `f64`, in which gradients are checked; sums of them.

use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::dense::{self, View};
use crate::table::{self, Kernels};
use crate::{BLOCK, simd};

/// A floating-point number that every operation of this crate is defined for.
pub trait Element:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + Sum
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Minus infinity: the logarithm of an impossible event.
    const NEG_INFINITY: Self;

    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;
    /// The same number in double precision.
    fn to_f64(self) -> f64;
    /// e to the power of `self`.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The larger of the two.
    fn max(self, other: Self) -> Self;
    /// `self * a + b`, rounded once; fast only where the processor has an instruction for it.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// e to the power of each lane, in a loop that fills vectors.
    fn exp_lanes(lanes: &mut [Self; BLOCK]);
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// Writes (or adds) a product whose sizes were checked; see [`product_into`](crate::dense::product_into).
    #[doc(hidden)]
    fn multiply(shape: [usize; 3], a: View<'_, Self>, b: View<'_, Self>, adds: bool, out: &mut [Self], row: usize);

    /// Every implementation that this machine can run, the definition (`scalar`) first and the fastest last.
    fn rows() -> &'static [Kernels<Self>];

    /// The implementation in use: the fastest, unless `SRF_ISA` names another one.
    ///
    /// # Panics
    /// If it names none that this machine can run, see [`isa`](crate::isa).
    fn kernels() -> &'static Kernels<Self>;
}

macro_rules! element {
    ($float:ty) => {
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
        const NEG_INFINITY: Self = <$float>::NEG_INFINITY;

        #[inline]
        fn from_f64(value: f64) -> Self {
            value as $float
        }
        #[inline]
        fn to_f64(self) -> f64 {
            self as f64
        }
        #[inline]
        fn max(self, other: Self) -> Self {
            <$float>::max(self, other)
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            <$float>::mul_add(self, a, b)
        }
        #[inline]
        fn is_finite(self) -> bool {
            <$float>::is_finite(self)
        }
        element!($float: exp ln sqrt);
    };
    ($float:ty: $($function:ident)*) => {
        $(#[inline]
        fn $function(self) -> Self {
            <$float>::$function(self)
        })*
    };
}

impl Element for f32 {
    element!(f32);

    #[inline(always)]
    fn exp_lanes(lanes: &mut [Self; BLOCK]) {
        lanes.iter_mut().for_each(|x| *x = simd::exp(*x));
    }

    fn multiply(shape: [usize; 3], a: View<'_, Self>, b: View<'_, Self>, adds: bool, out: &mut [Self], row: usize) {
        #[cfg(not(target_arch = "wasm32"))]
        dense::multiply_fast(shape, a, b, adds, out, row);
        #[cfg(target_arch = "wasm32")]
        dense::multiply_plain(shape, a, b, adds, out, row);
    }

    fn rows() -> &'static [Kernels<Self>] {
        table::rows_f32()
    }

    fn kernels() -> &'static Kernels<Self> {
        table::chosen_f32()
    }
}

impl Element for f64 {
    element!(f64);

    #[inline(always)]
    fn exp_lanes(lanes: &mut [Self; BLOCK]) {
        lanes.iter_mut().for_each(|x| *x = x.exp());
    }

    fn multiply(shape: [usize; 3], a: View<'_, Self>, b: View<'_, Self>, adds: bool, out: &mut [Self], row: usize) {
        dense::multiply_plain(shape, a, b, adds, out, row);
    }

    fn rows() -> &'static [Kernels<Self>] {
        table::rows_f64()
    }

    fn kernels() -> &'static Kernels<Self> {
        &table::rows_f64()[0]
    }
}

/// The sum of `term(x[i], y[i])` in a fixed order that fills vectors: sixteen running sums, then halves upon halves.
#[inline(always)]
pub(crate) fn sum<E: Element>(x: &[E], y: &[E], term: impl Fn(E, E) -> E) -> E {
    let mut sums = [E::ZERO; BLOCK];
    let (x_blocks, x_rest) = x.as_chunks::<BLOCK>();
    let (y_blocks, y_rest) = y.as_chunks::<BLOCK>();
    for (x, y) in x_blocks.iter().zip(y_blocks) {
        for i in 0..BLOCK {
            sums[i] += term(x[i], y[i]);
        }
    }
    for (sum, (&x, &y)) in sums.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *sum += term(x, y);
    }
    let mut n = BLOCK;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            let upper = sums[i + n];
            sums[i] += upper;
        }
    }
    sums[0]
}

/// Adds `from` to `to`, element by element.
#[inline(always)]
pub(crate) fn accumulate<E: Element>(from: &[E], to: &mut [E]) {
    assert_eq!(from.len(), to.len(), "accumulate: lengths");
    for (to, &from) in to.iter_mut().zip(from) {
        *to += from;
    }
}
