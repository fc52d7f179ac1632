//! Vectors of `f32`: one trait, and one implementation for each instruction set.
//!
//! Vector kernels are written once over [`Vector`] and instantiated inside a function that enables the instruction set
//! (`#[target_feature]`), into which everything here is inlined; see ISA in the crate's notes on safety.

use crate::BLOCK;

/// Floats that the processor handles in one instruction; operations work lane by lane.
pub(crate) trait Vector: Copy {
    /// Floats in a vector; divides [`BLOCK`].
    const LANES: usize;

    fn splat(value: f32) -> Self;
    /// # Safety
    /// `from` points to `LANES` readable floats.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// `to` points to `LANES` writable floats.
    unsafe fn store(self, to: *mut f32);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * factor + addend`, rounded once where the instruction set has such an operation (all but WebAssembly's).
    fn mul_add(self, factor: Self, addend: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    /// The nearest whole number.
    fn round(self) -> Self;
    /// `self * 2^exponent`, for whole `exponent` in -126..=127.
    fn scale(self, exponent: Self) -> Self;
    /// Whether any lane of `self` is larger than that of `other`.
    fn any_gt(self, other: Self) -> bool;
    /// The sum of the lanes.
    fn sum(self) -> f32;
    /// The sums of the lanes of four vectors; not in the order of [`Vector::sum`].
    fn sum4(vectors: [Self; 4]) -> [f32; 4];
    /// The largest lane.
    fn largest(self) -> f32;
    /// Asks for the cache line at `at`, which may lie anywhere.
    fn prefetch(at: *const f32);

    /// All lanes zero.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }

    /// Lane by lane e^self, within 2 units in the last place; arguments beyond -87 and 88 count as -87 and 88.
    #[inline(always)]
    fn exp(self) -> Self {
        let x = self.max(Self::splat(-87.0));
        let x = Self::zero().sub(Self::zero().sub(x).max(Self::splat(-88.0)));
        let n = x.mul(Self::splat(std::f32::consts::LOG2_E)).round();
        let r = n.mul_add(Self::splat(-LN_2[0]), x);
        let r = n.mul_add(Self::splat(-LN_2[1]), r);
        let p = Self::splat(EXP[0]);
        let p = p.mul_add(r, Self::splat(EXP[1]));
        let p = p.mul_add(r, Self::splat(EXP[2]));
        let p = p.mul_add(r, Self::splat(EXP[3]));
        let p = p.mul_add(r, Self::splat(EXP[4]));
        let p = p.mul_add(r, Self::splat(EXP[5]));
        let p = p.mul_add(r.mul(r), r.add(Self::splat(1.0)));
        p.scale(n)
    }
}

/// ln 2 in two parts, the first exact in few bits, so that the remainder of a division by it keeps its precision.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// e^r is about 1 + r + r² times the polynomial with these coefficients, the highest first, for |r| up to ln 2 / 2.
const EXP: [f32; 6] = [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// Numbers this large have no fraction: added, it rounds to a whole number, which then stands in the lowest bits.
const WHOLE: f32 = 12_582_912.0;

/// e^x by the steps of [`Vector::exp`], for loops that the compiler turns into vectors.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + WHOLE;
    let n = shifted - WHOLE;
    let r = x - n * LN_2[0] - n * LN_2[1];
    let p = EXP[1..].iter().fold(EXP[0], |p, term| p * r + term);
    let power = shifted.to_bits().wrapping_sub(WHOLE.to_bits()).wrapping_add(127) << 23;
    (p * (r * r) + (r + 1.0)) * f32::from_bits(power)
}

/// A vector of `from[at..]`, `beyond` in the lanes past its end.
#[inline(always)]
pub(crate) fn load_or<V: Vector>(from: &[f32], at: usize, beyond: f32) -> V {
    if let Some(whole) = from.get(at..at + V::LANES) {
        // SAFETY: BOUNDS.
        return unsafe { V::load(whole.as_ptr()) };
    }
    let mut lanes = [beyond; BLOCK];
    lanes[..from.len() - at].copy_from_slice(&from[at..]);
    // SAFETY: BOUNDS, a block holds a vector.
    unsafe { V::load(lanes.as_ptr()) }
}

/// Writes as much of `vector` to `to[at..]` as fits.
#[inline(always)]
pub(crate) fn store<V: Vector>(vector: V, to: &mut [f32], at: usize) {
    if let Some(whole) = to.get_mut(at..at + V::LANES) {
        // SAFETY: BOUNDS.
        return unsafe { vector.store(whole.as_mut_ptr()) };
    }
    let mut lanes = [0.0; BLOCK];
    // SAFETY: BOUNDS, a block holds a vector.
    unsafe { vector.store(lanes.as_mut_ptr()) };
    let rest = &mut to[at..];
    rest.copy_from_slice(&lanes[..rest.len()]);
}

/// Writes `impl Vector` from one expression for each operation.
macro_rules! vector {
    ($name:ident, $inner:ty, $lanes:literal, splat: $splat:expr, load: $load:expr, store: $store:expr,
     of one: { $($one:ident: $f1:expr),* }, of two: { $($two:ident: $f2:expr),* }, mul_add: $fma:expr,
     any_gt: $any_gt:expr, to one float: { $($float:ident: $ff:expr),* }, sum4: $sum4:expr, prefetch: $prefetch:expr) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name($inner);

        // SAFETY (every block below): ISA; `load` and `store` pass on their callers' promise.
        // Not every set needs `unsafe` for every operation.
        #[allow(clippy::undocumented_unsafe_blocks, clippy::redundant_closure_call, unused_unsafe)]
        impl Vector for $name {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn splat(value: f32) -> Self {
                Self(unsafe { $splat(value) })
            }
            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                unsafe { $store(to, self.0) }
            }
            $(#[inline(always)]
            fn $one(self) -> Self {
                Self(unsafe { $f1(self.0) })
            })*
            $(#[inline(always)]
            fn $two(self, other: Self) -> Self {
                Self(unsafe { $f2(self.0, other.0) })
            })*
            #[inline(always)]
            fn mul_add(self, factor: Self, addend: Self) -> Self {
                Self(unsafe { $fma(self.0, factor.0, addend.0) })
            }
            #[inline(always)]
            fn any_gt(self, other: Self) -> bool {
                unsafe { $any_gt(self.0, other.0) }
            }
            $(#[inline(always)]
            fn $float(self) -> f32 {
                unsafe { $ff(self.0) }
            })*
            #[inline(always)]
            fn sum4([a, b, c, d]: [Self; 4]) -> [f32; 4] {
                unsafe { $sum4([a.0, b.0, c.0, d.0]) }
            }
            #[inline(always)]
            fn prefetch(at: *const f32) {
                unsafe { $prefetch(at) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    //! AVX2 with FMA (8 lanes) and AVX-512 (16 lanes).
    #![allow(clippy::wildcard_imports)] // intrinsics, a line of them for each operation

    use std::arch::x86_64::*;

    use super::Vector;

    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

    vector!(F32x8, __m256, 8, splat: _mm256_set1_ps, load: _mm256_loadu_ps, store: _mm256_storeu_ps,
        of one: { sqrt: _mm256_sqrt_ps, round: |x| _mm256_round_ps::<NEAREST>(x) },
        of two: { add: _mm256_add_ps, sub: _mm256_sub_ps, mul: _mm256_mul_ps, div: _mm256_div_ps,
            max: _mm256_max_ps, scale: scale_256 },
        mul_add: _mm256_fmadd_ps, any_gt: |a, b| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a, b)) != 0,
        to one float: { sum: sum_256, largest: max_256 }, sum4: sum4_256,
        prefetch: |at: *const f32| _mm_prefetch::<_MM_HINT_T0>(at.cast()));

    vector!(F32x16, __m512, 16, splat: _mm512_set1_ps, load: _mm512_loadu_ps, store: _mm512_storeu_ps,
        of one: { sqrt: _mm512_sqrt_ps, round: |x| _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT }>(x) },
        of two: { add: _mm512_add_ps, sub: _mm512_sub_ps, mul: _mm512_mul_ps, div: _mm512_div_ps,
            max: _mm512_max_ps, scale: _mm512_scalef_ps },
        mul_add: _mm512_fmadd_ps, any_gt: |a, b| _mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b) != 0,
        to one float: { sum: _mm512_reduce_add_ps, largest: _mm512_reduce_max_ps }, sum4: sum4_512,
        prefetch: |at: *const f32| _mm_prefetch::<_MM_HINT_T0>(at.cast()));

    /// Adds `n` to the exponent bits of `x`.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn scale_256(x: __m256, n: __m256) -> __m256 {
        let shifted = _mm256_slli_epi32::<23>(_mm256_cvtps_epi32(n));
        _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), shifted))
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn sum_256(x: __m256) -> f32 {
        let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }

    /// Pairs of vectors are added in interleaved order, so that four sums need little more than one.
    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn sum4_256([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        let ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
        let abcd =
            _mm256_add_ps(_mm256_shuffle_ps::<0b01_00_01_00>(ab, cd), _mm256_shuffle_ps::<0b11_10_11_10>(ab, cd));
        let four = _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps::<1>(abcd));
        let mut sums = [0.0; 4];
        // SAFETY: BOUNDS, the array has room for the four lanes.
        unsafe { _mm_storeu_ps(sums.as_mut_ptr(), four) };
        sums
    }

    /// As [`sum4_256`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sum4_512([a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let abcd =
            _mm512_add_ps(_mm512_shuffle_ps::<0b01_00_01_00>(ab, cd), _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd));
        let upper = _mm512_shuffle_f32x4::<0b11_10_11_10>(abcd, abcd);
        let eight = _mm512_castps512_ps256(_mm512_add_ps(abcd, upper));
        let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
        let mut sums = [0.0; 4];
        // SAFETY: BOUNDS, the array has room for the four lanes.
        unsafe { _mm_storeu_ps(sums.as_mut_ptr(), four) };
        sums
    }

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn max_256(x: __m256) -> f32 {
        let four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod arm {
    //! NEON (4 lanes).

    #![allow(clippy::wildcard_imports)] // as above

    use std::arch::aarch64::*;

    use super::Vector;

    vector!(F32x4, float32x4_t, 4, splat: vdupq_n_f32, load: vld1q_f32, store: vst1q_f32,
        of one: { sqrt: vsqrtq_f32, round: vrndnq_f32 },
        of two: { add: vaddq_f32, sub: vsubq_f32, mul: vmulq_f32, div: vdivq_f32, max: vmaxq_f32, scale: scale_128 },
        mul_add: |a, b, c| vfmaq_f32(c, a, b), any_gt: |a, b| vmaxvq_u32(vcgtq_f32(a, b)) != 0,
        to one float: { sum: vaddvq_f32, largest: vmaxvq_f32 }, sum4: sum4_128, prefetch: |_| ());

    #[inline]
    #[target_feature(enable = "neon")]
    fn sum4_128([a, b, c, d]: [float32x4_t; 4]) -> [f32; 4] {
        [vaddvq_f32(a), vaddvq_f32(b), vaddvq_f32(c), vaddvq_f32(d)]
    }

    /// Adds `n` to the exponent bits of `x`.
    #[inline]
    #[target_feature(enable = "neon")]
    fn scale_128(x: float32x4_t, n: float32x4_t) -> float32x4_t {
        let shifted = vshlq_n_s32::<23>(vcvtnq_s32_f32(n));
        vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(x), shifted))
    }
}

#[cfg(target_arch = "wasm32")]
pub(crate) mod wasm {
    //! WebAssembly's SIMD (4 lanes); it has no fused product, so that [`Vector::mul_add`] rounds twice.

    #![allow(clippy::wildcard_imports)] // as above

    use std::arch::wasm32::*;

    use super::Vector;

    vector!(F32x4, v128, 4, splat: f32x4_splat, load: |from: *const f32| v128_load(from.cast()),
        store: |to: *mut f32, x| v128_store(to.cast(), x),
        of one: { sqrt: f32x4_sqrt, round: f32x4_nearest },
        // `f32x4_max` would treat NaN and signed zeros as IEEE 754 does, in several instructions.
        of two: { add: f32x4_add, sub: f32x4_sub, mul: f32x4_mul, div: f32x4_div, max: f32x4_pmax, scale: scale_128 },
        mul_add: |a, b, c| f32x4_add(f32x4_mul(a, b), c), any_gt: |a, b| v128_any_true(f32x4_gt(a, b)),
        to one float: { sum: sum_128, largest: max_128 }, sum4: sum4_128, prefetch: |_| ());

    /// Adds `n` to the exponent bits of `x`.
    #[inline]
    #[target_feature(enable = "simd128")]
    fn scale_128(x: v128, n: v128) -> v128 {
        // As in `exp`: added to a number without a fraction, `n` stands in its lowest bits. A conversion to integers
        // would take several instructions, because it must saturate.
        let shifted = i32x4_shl(f32x4_add(n, f32x4_splat(super::WHOLE)), 23);
        i32x4_add(x, shifted)
    }

    #[inline]
    #[target_feature(enable = "simd128")]
    fn sum_128(x: v128) -> f32 {
        let two = f32x4_add(x, i32x4_shuffle::<2, 3, 0, 1>(x, x));
        f32x4_extract_lane::<0>(f32x4_add(two, i32x4_shuffle::<1, 0, 3, 2>(two, two)))
    }

    /// Pairs of vectors are added in interleaved order, so that four sums need little more than one.
    #[inline]
    #[target_feature(enable = "simd128")]
    fn sum4_128([a, b, c, d]: [v128; 4]) -> [f32; 4] {
        let ab = f32x4_add(i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
        let cd = f32x4_add(i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
        let four = f32x4_add(i32x4_shuffle::<0, 1, 4, 5>(ab, cd), i32x4_shuffle::<2, 3, 6, 7>(ab, cd));
        let mut sums = [0.0; 4];
        // SAFETY: BOUNDS, the array has room for the four lanes.
        unsafe { v128_store(sums.as_mut_ptr().cast(), four) };
        sums
    }

    #[inline]
    #[target_feature(enable = "simd128")]
    fn max_128(x: v128) -> f32 {
        let two = f32x4_pmax(x, i32x4_shuffle::<2, 3, 0, 1>(x, x));
        f32x4_extract_lane::<0>(f32x4_pmax(two, i32x4_shuffle::<1, 0, 3, 2>(two, two)))
    }
}
