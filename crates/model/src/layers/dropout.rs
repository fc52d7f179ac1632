//! Dropout in place: each value is zeroed with some probability, and the others are scaled to make up for it.
//!
//! # Shapes
//! - frames of any width

use rayon::prelude::*;
use srf_kernels::Element;

use super::Draw;
use crate::frames::Frames;

/// The layer; saves nothing, for its decisions can be made again.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    rate: f64,
    number: u32,
}

impl Dropout {
    /// A layer that drops `rate` in training; `number` tells its decisions from those of other layers.
    pub fn new(rate: f64, number: u32) -> Self {
        Self { rate, number }
    }

    /// Drops values, or on the way back their gradients: it is the same operation.
    pub fn apply<E: Element>(self, draw: Option<Draw<'_>>, frames: &mut Frames<E>) {
        let Some(draw) = draw else { return };
        frames.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, values)| {
            if let Some(dropout) = draw.dropout(self.rate, self.number, utterance) {
                (E::kernels().dropout_apply)(dropout, values);
            }
        });
    }
}
