//! Windowing, and the log energy of each frame.

use super::config::{FeaturesConfig, WindowShape};
use super::lanes::Lanes;

/// Mean removal, energy, pre-emphasis and window, in Kaldi's order.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// For each sample, its factor.
    factors: Vec<f32>,
    remove_dc: bool,
    preemphasis: f32,
    log_energy_floor: f32,
}

impl Window {
    pub(super) fn new(config: &FeaturesConfig) -> Self {
        let n_samples = config.frame_samples();
        let step = 2.0 * std::f64::consts::PI / (n_samples - 1) as f64;
        let factor = |index: usize| {
            let cos = (step * index as f64).cos();
            match config.window {
                WindowShape::Povey => (0.5 - 0.5 * cos).powf(0.85),
                WindowShape::Hanning => 0.5 - 0.5 * cos,
                WindowShape::Hamming => 0.54 - 0.46 * cos,
                WindowShape::Rectangular => 1.0,
            }
        };
        Self {
            factors: (0..n_samples).map(|index| factor(index) as f32).collect(),
            remove_dc: config.remove_dc,
            preemphasis: config.preemphasis,
            log_energy_floor: config.energy_floor.ln(),
        }
    }

    /// Writes even samples to `re` and odd ones to `im`, zeros after them; gives each frame's log energy.
    ///
    /// The energy is that of the frame without its mean, before anything else happens to it.
    pub(super) fn apply(&self, rows: &[Lanes], re: &mut [Lanes], im: &mut [Lanes]) -> Lanes {
        let rows = &rows[..self.factors.len()];
        let mean = if self.remove_dc { sum(rows, |row| row) * (1.0 / rows.len() as f32) } else { Lanes::ZERO };
        // The first sample has none before it and stands in for it.
        let mut before = rows[0] - mean;
        let mut step = |row: &Lanes, factor: &f32| {
            let centred = *row - mean;
            let emphasised = centred - before * self.preemphasis;
            before = centred;
            emphasised * *factor
        };
        let (row_pairs, last_row) = rows.as_chunks::<2>();
        let (factor_pairs, last_factor) = self.factors.as_chunks::<2>();
        let pairs = row_pairs.iter().zip(factor_pairs);
        for ((rows, factors), (re, im)) in pairs.zip(re.iter_mut().zip(im.iter_mut())) {
            *re = step(&rows[0], &factors[0]);
            *im = step(&rows[1], &factors[1]);
        }
        re[row_pairs.len()..].fill(Lanes::ZERO);
        im[row_pairs.len()..].fill(Lanes::ZERO);
        if let ([row], [factor]) = (last_row, last_factor) {
            re[row_pairs.len()] = step(row, factor);
        }
        let energy = sum(rows, |row| (row - mean) * (row - mean));
        energy.max(f32::EPSILON).ln().max(self.log_energy_floor)
    }
}

/// The sum of `f` over all rows, in four interleaved parts: shorter chains of additions, and smaller rounding errors.
#[inline]
fn sum(rows: &[Lanes], f: impl Fn(Lanes) -> Lanes) -> Lanes {
    let mut parts = [Lanes::ZERO; 4];
    let (quads, rest) = rows.as_chunks::<4>();
    for quad in quads {
        for (part, row) in parts.iter_mut().zip(quad) {
            *part += f(*row);
        }
    }
    for (part, row) in parts.iter_mut().zip(rest) {
        *part += f(*row);
    }
    (parts[0] + parts[1]) + (parts[2] + parts[3])
}
