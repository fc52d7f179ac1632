//! Positions written onto slices: y[t] = sqrt(d) x[t] + e[t], with e[t][k] = sin(t 10000^(-k / (d/2 - 1))) for the first
//! half of the channels and the cosine of the same for the second.
//!
//! # Shapes
//! - frames of `d`, in place

use rayon::prelude::*;
use srf_kernels::Element;

use crate::frames::Frames;

/// The layer; keeps the encoding of the positions met so far.
pub struct Positions<E> {
    width: usize,
    encoding: Vec<E>,
}

impl<E: Element> Positions<E> {
    /// A layer for frames of `width` values: an even number, at least 4.
    pub fn new(width: usize) -> Self {
        assert!(width >= 4 && width.is_multiple_of(2), "positions: frames of {width} values");
        Self { width, encoding: Vec::new() }
    }

    fn scale(&self) -> E {
        E::from_f64((self.width as f64).sqrt())
    }

    /// Replaces x by y.
    pub fn forward(&mut self, frames: &mut Frames<E>) {
        let longest = frames.lengths().iter().copied().max().unwrap_or(0);
        for position in self.encoding.len() / self.width..longest {
            self.encode(position);
        }
        let (scale, encoding) = (self.scale(), &self.encoding);
        frames.each_real_mut().into_par_iter().for_each(|values| {
            values.iter_mut().zip(encoding).for_each(|(value, &encoded)| *value = *value * scale + encoded);
        });
    }

    fn encode(&mut self, position: usize) {
        let half = self.width / 2;
        let angle = |k: usize| position as f64 * 10000f64.powf(-(k as f64) / (half - 1) as f64);
        self.encoding.extend((0..half).map(|k| E::from_f64(angle(k).sin())));
        self.encoding.extend((0..half).map(|k| E::from_f64(angle(k).cos())));
    }

    /// Replaces dy by dx.
    pub fn backward(&self, grad: &mut Frames<E>) {
        let scale = self.scale();
        grad.each_real_mut().into_par_iter().for_each(|grad| grad.iter_mut().for_each(|g| *g *= scale));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_told_apart_by_sines_and_cosines_from_fast_to_slow() {
        let mut layer = Positions::<f64>::new(6);
        let mut frames = Frames::new(6, [0, 0]);
        frames.resize_for([1, 3]);
        frames.each_real_mut().into_iter().for_each(|values| values.fill(2.0));
        layer.forward(&mut frames);
        let start = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0].map(|encoded: f64| 2.0 * 6f64.sqrt() + encoded);
        assert_eq!(frames.real(0), start);
        let angles = [2.0, 2.0 / 100.0, 2.0 / 10000.0];
        for (k, angle) in angles.into_iter().enumerate() {
            let [sine, cosine] = [k, 3 + k].map(|at| frames.real(1)[2 * 6 + at] - 2.0 * 6f64.sqrt());
            assert!((sine - f64::sin(angle)).abs() < 1e-14 && (cosine - f64::cos(angle)).abs() < 1e-14);
        }
        layer.backward(&mut frames);
        assert!((frames.real(0)[0] - 2.0 * 6.0).abs() < 1e-13, "the slope is the scale");
    }
}
