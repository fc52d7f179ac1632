//! The shortcut around a layer: y = x + f(x), where f(x) is already in y.
//!
//! # Shapes
//! - frames of any width without margin

use rayon::prelude::*;
use srf_kernels::Element;

use crate::frames::Frames;

/// Adds `x` to `y`; on the way back the gradient of the shortcut to that of the layer's input.
#[track_caller]
pub fn add<E: Element>(x: &Frames<E>, y: &mut Frames<E>) {
    assert_eq!((x.width(), x.lengths()), (y.width(), y.lengths()), "residual: shapes of both");
    y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
        (E::kernels().accumulate)(x.real(utterance), y);
    });
}

/// Copies `x` to `y`.
#[track_caller]
pub fn copy<E: Element>(x: &Frames<E>, y: &mut Frames<E>) {
    assert_eq!(x.width(), y.width(), "copy: widths of both");
    y.resize_for(x.lengths().iter().copied());
    y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| y.copy_from_slice(x.real(utterance)));
}
