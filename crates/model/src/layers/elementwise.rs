//! Layers without parameters that treat every frame by itself: dropout, rectifier, maxout of halves, residual sums.

use srf_kernels::Element;

use super::Mode;
use crate::frames::Frames;

/// Dropout in place: each value is zeroed with some probability, and the others are scaled to make up for it.
///
/// Saves nothing, because its decisions are a function of their place and can be made again.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    rate: f64,
    number: u32,
}

impl Dropout {
    /// A layer that drops `rate` in training; `number` distinguishes its decisions from those of other layers.
    pub fn new(rate: f64, number: u32) -> Self {
        Self { rate, number }
    }

    /// Drops values, or in the backward pass their gradients: it is the same operation.
    pub fn apply<E: Element>(self, mode: Mode<'_>, frames: &mut Frames<E>) {
        let Some(seed) = mode.dropout else { return };
        let width = frames.width();
        frames.each_block(|span, values| {
            if let Some(dropout) = seed.dropout(self.rate, self.number, span.utterance) {
                (E::kernels().dropout_apply)(dropout.starting_at(span.first * width), values);
            }
        });
    }
}

/// The rectifier in place: replaces x by y = max(x, 0).
pub fn relu_forward<E: Element>(frames: &mut Frames<E>) {
    frames.each_block(|_, values| {
        // A NaN is not less than zero and stays.
        values.iter_mut().for_each(|value| *value = if *value < E::ZERO { E::ZERO } else { *value });
    });
}

/// Replaces dy by dx, for the outputs `y` of the rectifier, from which dropout may have taken values since.
pub fn relu_backward<E: Element>(y: &Frames<E>, d: &mut Frames<E>) {
    d.each_block(|span, d| {
        d.iter_mut().zip(y.part(span)).for_each(|(d, &y)| *d = if y > E::ZERO { *d } else { E::ZERO });
    });
}

/// Maxout of the two halves of every frame: `y[k] = max(x[k], x[n + k])`; the first half wins ties.
#[track_caller]
pub fn maxout_forward<E: Element>(x: &Frames<E>, y: &mut Frames<E>) {
    let width = y.width();
    assert_eq!(x.width(), 2 * width, "maxout: width of the input");
    y.resize_like(x);
    y.each_block(|span, y| {
        for (x, y) in x.part(span).chunks_exact(2 * width).zip(y.chunks_exact_mut(width)) {
            let (a, b) = x.split_at(width);
            y.iter_mut().zip(a.iter().zip(b)).for_each(|(y, (&a, &b))| *y = if a >= b { a } else { b });
        }
    });
}

/// Writes the gradient of the input `x` from that of the output: the half that won gets it.
pub fn maxout_backward<E: Element>(x: &Frames<E>, d_y: &Frames<E>, d_x: &mut Frames<E>) {
    let width = d_y.width();
    d_x.resize_like(x);
    d_x.each_block(|span, d_x| {
        let frames = x.part(span).chunks_exact(2 * width).zip(d_y.part(span).chunks_exact(width));
        for (d_x, (x, d_y)) in d_x.chunks_exact_mut(2 * width).zip(frames) {
            let ((a, b), (d_a, d_b)) = (x.split_at(width), d_x.split_at_mut(width));
            for k in 0..width {
                let is_first = a[k] >= b[k];
                d_a[k] = if is_first { d_y[k] } else { E::ZERO };
                d_b[k] = if is_first { E::ZERO } else { d_y[k] };
            }
        }
    });
}

/// Adds `x` to `y`: the shortcut around a layer whose output is in `y`, and its gradient in the backward pass.
#[track_caller]
pub fn add<E: Element>(x: &Frames<E>, y: &mut Frames<E>) {
    assert_eq!((x.width(), x.lengths()), (y.width(), y.lengths()), "residual: shapes of both");
    y.each_block(|span, y| (E::kernels().accumulate)(x.part(span), y));
}

/// Copies `x` to `y`.
#[track_caller]
pub fn copy<E: Element>(x: &Frames<E>, y: &mut Frames<E>) {
    assert_eq!(x.width(), y.width(), "copy: widths of both");
    y.resize_like(x);
    y.each_block(|span, y| y.copy_from_slice(x.part(span)));
}
