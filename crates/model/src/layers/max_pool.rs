//! The maximum over neighbouring frequencies: y[f][c] = max over i < size of x[size f + i][c].
//!
//! # Shapes
//! - in: frames of `[n_freq][n_channels]`, out: frames of `[n_freq / size][n_channels]`; frequencies that do not fill a
//!   group are left out

use rayon::prelude::*;
use srf_kernels::Element;

use crate::frames::{Frames, split};

/// The layer; saves which frequency of its group each output came from.
pub struct MaxPool {
    n_channels: usize,
    size: usize,
    choices: Vec<u8>,
}

impl MaxPool {
    /// Groups of `size` frequencies, at most 255.
    pub fn new(n_channels: usize, size: usize) -> Self {
        assert!((1..=255).contains(&size), "max pool: groups of {size}");
        Self { n_channels, size, choices: Vec::new() }
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward<E: Element>(&mut self, x: &Frames<E>, y: &mut Frames<E>) {
        let (n_channels, size) = (self.n_channels, self.size);
        let n_groups = x.width() / n_channels / size;
        assert_eq!(y.width(), n_groups * n_channels, "max pool: width of the output");
        y.resize_for(x.lengths().iter().copied());
        self.choices.resize(y.n_frames() * y.width(), 0);
        let sizes: Vec<usize> = y.lengths().iter().map(|n| n * y.width()).collect();
        let choices = split(&mut self.choices, sizes);
        y.each_real_mut().into_par_iter().zip(choices).enumerate().for_each(|(utterance, (y, choices))| {
            let frames = x.real(utterance).chunks_exact(x.width());
            let groups = frames.flat_map(|frame| frame.chunks_exact(size * n_channels).take(n_groups));
            let outputs = y.chunks_exact_mut(n_channels).zip(choices.chunks_exact_mut(n_channels));
            for (group, (y, choices)) in groups.zip(outputs) {
                y.copy_from_slice(&group[..n_channels]);
                choices.fill(0);
                for (i, x) in group.chunks_exact(n_channels).enumerate().skip(1) {
                    for c in 0..n_channels {
                        let is_larger = x[c] > y[c];
                        y[c] = if is_larger { x[c] } else { y[c] };
                        choices[c] = if is_larger { i as u8 } else { choices[c] };
                    }
                }
            }
        });
    }

    /// Writes the gradient of the input, whose shape `grad_x` has, from that of the output.
    pub fn backward<E: Element>(&mut self, grad_y: &Frames<E>, grad_x: &mut Frames<E>) {
        let (n_channels, size) = (self.n_channels, self.size);
        grad_x.resize_for(grad_y.lengths().iter().copied());
        let (width_x, width_y) = (grad_x.width(), grad_y.width());
        let choices = split(&mut self.choices, grad_y.lengths().iter().map(|n| n * width_y));
        grad_x.each_real_mut().into_par_iter().zip(choices).enumerate().for_each(|(utterance, (grad_x, choices))| {
            grad_x.fill(E::ZERO);
            let frames = grad_x.chunks_exact_mut(width_x);
            let groups = frames.flat_map(|frame| frame.chunks_exact_mut(size * n_channels).take(width_y / n_channels));
            let outputs = grad_y.real(utterance).chunks_exact(n_channels).zip(choices.chunks_exact(n_channels));
            for (group, (grad_y, choices)) in groups.zip(outputs) {
                for (c, (&grad_y, &choice)) in grad_y.iter().zip(choices).enumerate() {
                    group[usize::from(choice) * n_channels + c] = grad_y;
                }
            }
        });
    }
}
