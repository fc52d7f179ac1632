//! The power spectrum of windowed frames.
//!
//! A real sequence of N points is taken as a complex one of N/2 (even samples real, odd ones imaginary), transformed
//! in place by radix-4 steps (and one of radix 2 where N/2 is no power of 4), and taken apart again by symmetry.

use super::lanes::Lanes;

/// The transform for one size.
#[derive(Clone, Debug)]
pub(super) struct PowerSpectrum {
    /// Points of the complex transform, N/2.
    n_points: usize,
    /// For each radix-4 step, the factors w^j, w^2j and w^3j.
    steps: Vec<Vec<[Turn; 3]>>,
    has_radix_2: bool,
    /// Where the steps leave each frequency.
    places: Vec<usize>,
    /// e^(-2 pi i k / N) for k up to N/4.
    unpacking: Vec<Turn>,
}

/// A complex number of magnitude 1.
#[derive(Clone, Copy, Debug)]
struct Turn {
    re: f32,
    im: f32,
}

impl Turn {
    /// e^(-2 pi i numerator / denominator).
    fn new(numerator: usize, denominator: usize) -> Self {
        let angle = -2.0 * std::f64::consts::PI * numerator as f64 / denominator as f64;
        Self { re: angle.cos() as f32, im: angle.sin() as f32 }
    }
}

/// A complex number for each lane.
#[derive(Clone, Copy)]
struct Complex {
    re: Lanes,
    im: Lanes,
}

impl Complex {
    #[inline]
    fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    #[inline]
    fn minus(self, other: Self) -> Self {
        Self { re: self.re - other.re, im: self.im - other.im }
    }

    /// Times -i.
    #[inline]
    fn turned_back(self) -> Self {
        Self { re: self.im, im: Lanes::ZERO - self.re }
    }

    #[inline]
    fn times(self, turn: Turn) -> Self {
        Self { re: self.re * turn.re - self.im * turn.im, im: self.re * turn.im + self.im * turn.re }
    }

    #[inline]
    fn power(self) -> Lanes {
        self.re * self.re + self.im * self.im
    }
}

impl PowerSpectrum {
    /// For frames padded to `n_samples`, a power of two from 4 on.
    pub(super) fn new(n_samples: usize) -> Self {
        assert!(n_samples.is_power_of_two() && n_samples >= 4, "power spectrum of {n_samples} samples");
        let n_points = n_samples / 2;
        let mut steps = Vec::new();
        let mut size = n_points;
        while size >= 4 {
            steps.push((0..size / 4).map(|j| [1, 2, 3].map(|q| Turn::new(q * j, size))).collect());
            size /= 4;
        }
        Self {
            n_points,
            steps,
            has_radix_2: size == 2,
            places: (0..n_points).map(|k| place(k, n_points)).collect(),
            unpacking: (0..=n_points / 2).map(|k| Turn::new(k, n_samples)).collect(),
        }
    }

    /// How many points it gives: frequencies from 0 up to but without half the sample rate.
    pub(super) fn n_points(&self) -> usize {
        self.n_points
    }

    /// The squared magnitudes of the transform of samples `re[0], im[0], re[1], im[1], ...`, which are overwritten.
    pub(super) fn apply(&self, re: &mut [Lanes], im: &mut [Lanes], power: &mut [Lanes]) {
        let mut size = self.n_points;
        for turns in &self.steps {
            for (re, im) in re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size)) {
                if size == 4 { radix_4::<false>(re, im, turns) } else { radix_4::<true>(re, im, turns) }
            }
            size /= 4;
        }
        if self.has_radix_2 {
            for (re, im) in re.chunks_exact_mut(2).zip(im.chunks_exact_mut(2)) {
                (re[0], re[1]) = (re[0] + re[1], re[0] - re[1]);
                (im[0], im[1]) = (im[0] + im[1], im[0] - im[1]);
            }
        }
        self.unpack(re, im, power);
    }

    /// With Z the complex transform, E = Z_k + conj Z_(M-k) and O = Z_k - conj Z_(M-k), the real sequence has
    /// 2 X_k = E - i w^k O and 2 conj X_(M-k) = E + i w^k O.
    fn unpack(&self, re: &[Lanes], im: &[Lanes], power: &mut [Lanes]) {
        let at = |k: usize| Complex { re: re[self.places[k]], im: im[self.places[k]] };
        let first = at(0);
        power[0] = (first.re + first.im) * (first.re + first.im);
        for (k, turn) in self.unpacking.iter().enumerate().skip(1) {
            let z = at(k);
            let mirrored = at(self.n_points - k);
            let mirrored = Complex { re: mirrored.re, im: Lanes::ZERO - mirrored.im };
            let even = z.plus(mirrored);
            let odd = z.minus(mirrored).times(*turn).turned_back();
            power[k] = even.plus(odd).power() * 0.25;
            power[self.n_points - k] = even.minus(odd).power() * 0.25;
        }
    }
}

/// Frequency k of a transform of `size` points ends up among those congruent to it modulo the radix.
fn place(k: usize, size: usize) -> usize {
    match size {
        1 => 0,
        2 => k,
        _ => (k % 4) * (size / 4) + place(k / 4, size / 4),
    }
}

/// One decimation-in-frequency step over a block; without `TURNS` all factors are 1.
#[inline]
fn radix_4<const TURNS: bool>(re: &mut [Lanes], im: &mut [Lanes], turns: &[[Turn; 3]]) {
    let quarter = turns.len();
    let (re01, re23) = re.split_at_mut(2 * quarter);
    let (im01, im23) = im.split_at_mut(2 * quarter);
    let ((re0, re1), (re2, re3)) = (re01.split_at_mut(quarter), re23.split_at_mut(quarter));
    let ((im0, im1), (im2, im3)) = (im01.split_at_mut(quarter), im23.split_at_mut(quarter));
    let (re2, re3) = (&mut re2[..quarter], &mut re3[..quarter]);
    let (im2, im3) = (&mut im2[..quarter], &mut im3[..quarter]);
    for j in 0..quarter {
        let a = Complex { re: re0[j], im: im0[j] };
        let b = Complex { re: re1[j], im: im1[j] };
        let c = Complex { re: re2[j], im: im2[j] };
        let d = Complex { re: re3[j], im: im3[j] };
        let (ac_sum, ac_difference) = (a.plus(c), a.minus(c));
        let (bd_sum, bd_difference) = (b.plus(d), b.minus(d).turned_back());
        let turned = |value: Complex, q: usize| if TURNS { value.times(turns[j][q]) } else { value };
        let y0 = ac_sum.plus(bd_sum);
        let y1 = turned(ac_difference.plus(bd_difference), 0);
        let y2 = turned(ac_sum.minus(bd_sum), 1);
        let y3 = turned(ac_difference.minus(bd_difference), 2);
        (re0[j], im0[j]) = (y0.re, y0.im);
        (re1[j], im1[j]) = (y1.re, y1.im);
        (re2[j], im2[j]) = (y2.re, y2.im);
        (re3[j], im3[j]) = (y3.re, y3.im);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::N_LANES;
    use super::*;

    /// By definition, in f64.
    fn naive(samples: &[f64], k: usize) -> f64 {
        let angle = |n: usize| -2.0 * std::f64::consts::PI * (n * k % samples.len()) as f64 / samples.len() as f64;
        let re: f64 = samples.iter().enumerate().map(|(n, x)| x * angle(n).cos()).sum();
        let im: f64 = samples.iter().enumerate().map(|(n, x)| x * angle(n).sin()).sum();
        re * re + im * im
    }

    #[test]
    fn the_power_spectrum_is_that_of_the_definition_at_every_size() {
        for n_samples in [4, 8, 16, 32, 64, 128, 256, 512, 1024] {
            let spectrum = PowerSpectrum::new(n_samples);
            let sample = |n: usize, lane: usize| ((n * 37 + lane * 101 + n * n * (lane + 3)) % 211) as f32 - 105.0;
            let row = |n: usize| Lanes(std::array::from_fn(|lane| sample(n, lane)));
            let mut re: Vec<Lanes> = (0..n_samples / 2).map(|n| row(2 * n)).collect();
            let mut im: Vec<Lanes> = (0..n_samples / 2).map(|n| row(2 * n + 1)).collect();
            let mut power = vec![Lanes::ZERO; n_samples / 2];
            spectrum.apply(&mut re, &mut im, &mut power);
            for lane in 0..N_LANES {
                let samples: Vec<f64> = (0..n_samples).map(|n| f64::from(sample(n, lane))).collect();
                // Rounding errors are relative to the whole energy: a few steps for each of log2 N stages.
                let energy: f64 = samples.iter().map(|x| x * x).sum::<f64>() * n_samples as f64;
                for (k, found) in power.iter().enumerate() {
                    let exact = naive(&samples, k);
                    let bound = 16.0 * f64::from(f32::EPSILON) * (energy * exact.max(1.0)).sqrt();
                    let error = (f64::from(found.0[lane]) - exact).abs();
                    assert!(error <= bound, "{n_samples} points, lane {lane}, frequency {k}: {error} > {bound}");
                }
            }
        }
    }
}
