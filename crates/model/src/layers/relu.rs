//! The rectifier in place: y = max(x, 0).
//!
//! # Shapes
//! - frames of any width

use rayon::prelude::*;
use srf_kernels::Element;

use crate::frames::Frames;

/// Replaces x by y.
pub fn relu_forward<E: Element>(frames: &mut Frames<E>) {
    frames.each_real_mut().into_par_iter().for_each(|values| {
        // A NaN is not less than zero and stays.
        values.iter_mut().for_each(|value| *value = if *value < E::ZERO { E::ZERO } else { *value });
    });
}

/// Replaces dy by dx, for the outputs `y`, which may have been dropped from since: what is zero lets nothing through.
pub fn relu_backward<E: Element>(y: &Frames<E>, grad: &mut Frames<E>) {
    grad.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, grad)| {
        let pairs = grad.iter_mut().zip(y.real(utterance));
        pairs.for_each(|(grad, &y)| *grad = if y > E::ZERO { *grad } else { E::ZERO });
    });
}
