//! The dense layer on every frame: y = x W + b.
//!
//! # Shapes
//! - in: frames of `n_in` without margin, out: frames of `n_out`, W `[n_in][n_out]`, b `[n_out]`

use rayon::prelude::*;
use srf_kernels::{Buffer, DenseWeights, Element, dense_bias_gradient, dense_input_gradient, dense_kernel_gradient};

use crate::frames::Frames;

/// Rows of a kernel's gradient that one task computes: fixed, so that threads do not matter.
pub(super) const ROWS: usize = 256;
/// Frames that one task computes where there is no margin between utterances.
pub(super) const FRAMES: usize = 192;

/// The layer; saves nothing but the packed weights.
pub struct Dense<E> {
    n_in: usize,
    n_out: usize,
    weights: DenseWeights<E>,
    /// The gradients of all utterances in one piece, where a margin keeps them apart.
    grad_y: Buffer<E>,
}

impl<E: Element> Dense<E> {
    /// A layer from `n_in` to `n_out` values.
    pub fn new(n_in: usize, n_out: usize) -> Self {
        Self { n_in, n_out, weights: DenseWeights::new(n_in, n_out), grad_y: Buffer::new() }
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, kernel: &[E], bias: Option<&[E]>, x: &Frames<E>, y: &mut Frames<E>) {
        assert_eq!((x.width(), y.width()), (self.n_in, self.n_out), "dense: widths of input and output");
        self.weights.pack(kernel, bias);
        y.resize_for(x.lengths().iter().copied());
        let weights = &self.weights;
        if let Some(y) = y.all_mut() {
            let parts = y.par_chunks_mut(FRAMES * self.n_out).zip(x.all().par_chunks(FRAMES * self.n_in));
            parts.for_each(|(y, x)| (E::kernels().dense_forward)(weights, x, y));
            return;
        }
        y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
            (E::kernels().dense_forward)(weights, x.real(utterance), y);
        });
    }

    /// Adds to the gradients of kernel and bias and writes that of the input, which has no margin.
    #[track_caller]
    pub fn backward(
        &mut self,
        kernel: &[E],
        x: &Frames<E>,
        grad_y: &Frames<E>,
        grad_kernel: &mut [E],
        grad_bias: Option<&mut [E]>,
        grad_x: &mut Frames<E>,
    ) {
        let (n_in, n_out) = (self.n_in, self.n_out);
        let all_grad = if grad_y.margin() == [0, 0] { grad_y.all() } else { gather(grad_y, &mut self.grad_y) };
        grad_x.resize_for(x.lengths().iter().copied());
        let grad_x = grad_x.all_mut().expect("the gradient of the input has no margin");
        let of_input = || {
            let parts = grad_x.par_chunks_mut(FRAMES * n_in).zip(all_grad.par_chunks(FRAMES * n_out));
            parts.for_each(|(grad_x, grad_y)| dense_input_gradient(kernel, n_out, grad_y, grad_x));
        };
        let all_x = x.all();
        let of_kernel = || {
            grad_kernel.par_chunks_mut(ROWS * n_out).enumerate().for_each(|(index, grad)| {
                dense_kernel_gradient(all_x, n_in, index * ROWS, all_grad, n_out, grad);
            });
        };
        rayon::join(of_kernel, of_input);
        if let Some(grad_bias) = grad_bias {
            dense_bias_gradient(all_grad, grad_bias);
        }
    }
}

/// Copies the real frames of all utterances into one piece.
fn gather<'a, E: Element>(frames: &Frames<E>, all: &'a mut Buffer<E>) -> &'a [E] {
    all.resize(frames.n_frames() * frames.width());
    let mut filled = 0;
    for utterance in 0..frames.n_utterances() {
        let part = frames.real(utterance);
        all[filled..filled + part.len()].copy_from_slice(part);
        filled += part.len();
    }
    all
}
