//! The dense layer on every frame: y = x W + b.
//!
//! # Shapes
//! - in: frames of `n_in` without margin, out: frames of `n_out`, W `[n_in][n_out]`, b `[n_out]`

use kernels::{Buffer, DenseWeights, Element, View, dense_bias_gradient, dense_input_gradient, product};
use rayon::prelude::*;

use crate::frames::Frames;

/// Rows of the kernel's gradient that one task computes; fixed, so that threads do not matter.
const ROWS: usize = 128;

/// The layer; saves nothing but the packed weights.
pub struct Dense<E> {
    n_in: usize,
    n_out: usize,
    weights: DenseWeights<E>,
    /// The gradients of all utterances in one piece.
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
        y.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, y)| {
            (E::kernels().dense_forward)(weights, x.real(utterance), y);
        });
    }

    /// Adds to the gradients of kernel and bias and writes that of the input.
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
        self.grad_y.resize(grad_y.n_frames() * n_out);
        let mut filled = 0;
        for utterance in 0..grad_y.n_utterances() {
            let part = grad_y.real(utterance);
            self.grad_y[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        let (all_x, all_grad) = (x.all(), &*self.grad_y);
        grad_kernel.par_chunks_mut(ROWS * n_out).enumerate().for_each(|(index, grad)| {
            let rows = View { data: &all_x[(index * ROWS).min(all_x.len())..], row: 1, col: n_in };
            let shape = [grad.len() / n_out, n_out, x.n_frames()];
            product(shape, rows, View { data: all_grad, row: n_out, col: 1 }, true, grad);
        });
        if let Some(grad_bias) = grad_bias {
            dense_bias_gradient(all_grad, grad_bias);
        }
        grad_x.resize_for(x.lengths().iter().copied());
        grad_x.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, grad_x)| {
            dense_input_gradient(kernel, n_out, grad_y.real(utterance), grad_x);
        });
    }
}
