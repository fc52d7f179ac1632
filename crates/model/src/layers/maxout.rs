//! Maxout of the two halves of every frame: y[k] = max(x[k], x[n + k]).
//!
//! # Shapes
//! - in: frames of 2 n, out: frames of n

use rayon::prelude::*;
use srf_kernels::Element;

use crate::frames::Frames;

/// The larger of both halves; the first wins ties.
#[track_caller]
pub fn maxout_forward<E: Element>(x: &Frames<E>, y: &mut Frames<E>) {
    let width = y.width();
    assert_eq!(x.width(), 2 * width, "maxout: width of the input");
    y.resize_for(x.lengths().iter().copied());
    y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
        for (x, y) in x.real(utterance).chunks_exact(2 * width).zip(y.chunks_exact_mut(width)) {
            let (a, b) = x.split_at(width);
            y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = if a >= b { a } else { b });
        }
    });
}

/// Writes the gradient of the input `x` from that of the output: the half that won gets it.
pub fn maxout_backward<E: Element>(x: &Frames<E>, grad_y: &Frames<E>, grad_x: &mut Frames<E>) {
    let width = grad_y.width();
    grad_x.resize_for(x.lengths().iter().copied());
    grad_x.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, grad_x)| {
        let frames = x.real(utterance).chunks_exact(2 * width).zip(grad_y.real(utterance).chunks_exact(width));
        for (grad_x, (x, grad_y)) in grad_x.chunks_exact_mut(2 * width).zip(frames) {
            let ((a, b), (grad_a, grad_b)) = (x.split_at(width), grad_x.split_at_mut(width));
            for k in 0..width {
                let is_first = a[k] >= b[k];
                grad_a[k] = if is_first { grad_y[k] } else { E::ZERO };
                grad_b[k] = if is_first { E::ZERO } else { grad_y[k] };
            }
        }
    });
}
