//! The dense layer on every frame: y = x W + b.
//!
//! # Shapes
//! - in: frames of `n_in` without margin, out: frames of `n_out`, W `[n_in][n_out]`, b `[n_out]`

use rayon::prelude::*;
use srf_kernels::{Buffer, DenseWeights, Element, dense_bias_gradient, dense_input_gradient, dense_kernel_gradient};

use super::{Backward, Forward};
use crate::frames::Frames;
use crate::params::{Init, Scope, Slot};

/// Rows of a kernel's gradient that one task computes: fixed, so that threads do not matter.
pub(super) const ROWS: usize = 256;
/// Frames that one task computes.
pub(super) const FRAMES: usize = 192;

/// The layer; saves nothing but the packed weights.
pub struct Dense<E> {
    n_in: usize,
    n_out: usize,
    /// One kernel, or several whose outputs are concatenated.
    kernels: Vec<Slot>,
    bias: Option<Slot>,
    weights: Option<DenseWeights<E>>,
    /// Where there are several: all of them as one, and its gradient.
    joined: Buffer<E>,
    d_joined: Buffer<E>,
    /// The gradients of all utterances in one piece, where a margin keeps them apart.
    d_y: Buffer<E>,
}

impl<E: Element> Dense<E> {
    /// A layer from `n_in` to `n_out` values with a bias: tensors `kernel` and `bias`.
    pub fn new(mut scope: Scope<'_>, n_in: usize, n_out: usize) -> Self {
        let kernel = scope.kernel("kernel", &[n_in, n_out]);
        let bias = scope.trainable("bias", &[n_out], Init::Zeros);
        Self { bias: Some(bias), ..Self::from_kernels(&mut scope, n_in, n_out, vec![kernel]) }
    }

    /// A layer from `n_in` to `n_out` values without bias.
    pub fn without_bias(mut scope: Scope<'_>, n_in: usize, n_out: usize) -> Self {
        let kernel = scope.kernel("kernel", &[n_in, n_out]);
        Self::from_kernels(&mut scope, n_in, n_out, vec![kernel])
    }

    /// Layers from `n_in` to `n_out` values without bias that read the same input, computed as one.
    pub fn side_by_side(scope: &mut Scope<'_>, parts: &[&str], n_in: usize, n_out: usize) -> Self {
        let kernels = parts.iter().map(|part| scope.part(part).kernel("kernel", &[n_in, n_out])).collect();
        Self::from_kernels(scope, n_in, parts.len() * n_out, kernels)
    }

    fn from_kernels(scope: &mut Scope<'_>, n_in: usize, n_out: usize, kernels: Vec<Slot>) -> Self {
        scope.add_products(n_in * n_out);
        let [joined, d_joined, d_y] = [const { Buffer::new() }; 3];
        Self { n_in, n_out, kernels, bias: None, weights: None, joined, d_joined, d_y }
    }

    /// The weights, packed for inference.
    pub fn packed(&self, params: &[E]) -> DenseWeights<E> {
        let mut weights = DenseWeights::new(self.n_in, self.n_out);
        weights.pack(self.kernels[0].of(params), self.bias.map(|bias| bias.of(params)));
        weights
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, pass: &Forward<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        assert_eq!((x.width(), y.width()), (self.n_in, self.n_out), "dense: widths of input and output");
        self.join(pass.params);
        let weights = self.weights.get_or_insert_with(|| DenseWeights::new(self.n_in, self.n_out));
        let kernel = if self.kernels.len() > 1 { &self.joined } else { self.kernels[0].of(pass.params) };
        weights.pack(kernel, self.bias.map(|bias| bias.of(pass.params)));
        y.resize_like(x);
        if let Some(y) = y.all_mut() {
            let blocks = y.par_chunks_mut(FRAMES * self.n_out).zip(x.all().par_chunks(FRAMES * self.n_in));
            blocks.for_each(|(y, x)| (E::kernels().dense_forward)(weights, x, y));
        } else {
            let blocks = y.blocks_mut(FRAMES).into_par_iter();
            blocks.for_each(|(span, y)| (E::kernels().dense_forward)(weights, x.part(span), y));
        }
    }

    /// Puts the rows of several kernels side by side.
    fn join(&mut self, params: &[E]) {
        let width = self.n_out / self.kernels.len();
        if self.kernels.len() == 1 {
            return;
        }
        self.joined.resize(self.n_in * self.n_out);
        for (part, slot) in self.kernels.iter().enumerate() {
            let rows = self.joined.chunks_exact_mut(self.n_out).zip(slot.of(params).chunks_exact(width));
            rows.for_each(|(joined, row)| joined[part * width..][..width].copy_from_slice(row));
        }
    }

    /// Adds to the gradients of kernels and bias and writes that of the input, which has no margin.
    #[track_caller]
    pub fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &Frames<E>, d_x: &mut Frames<E>) {
        let (n_in, n_out) = (self.n_in, self.n_out);
        let d_y = if d_y.margin() == [0, 0] { d_y.all() } else { gather(d_y, &mut self.d_y) };
        d_x.resize_like(x);
        let d_x = d_x.all_mut().expect("the gradient of the input has no margin");
        let is_single = self.kernels.len() == 1;
        let kernel = if is_single { self.kernels[0].of(pass.params) } else { &self.joined };
        let d_kernel = if is_single {
            self.kernels[0].of_mut(pass.gradient)
        } else {
            self.d_joined.resize(n_in * n_out);
            self.d_joined.fill(E::ZERO);
            &mut *self.d_joined
        };
        let of_input = || {
            let parts = d_x.par_chunks_mut(FRAMES * n_in).zip(d_y.par_chunks(FRAMES * n_out));
            parts.for_each(|(d_x, d_y)| dense_input_gradient(kernel, n_out, d_y, d_x));
        };
        let x = x.all();
        let of_kernel = || {
            d_kernel.par_chunks_mut(ROWS * n_out).enumerate().for_each(|(index, d_rows)| {
                dense_kernel_gradient(x, n_in, index * ROWS, d_y, n_out, d_rows);
            });
        };
        rayon::join(of_kernel, of_input);
        if let Some(bias) = self.bias {
            dense_bias_gradient(d_y, bias.of_mut(pass.gradient));
        }
        if !is_single {
            self.part_gradients(pass.gradient);
        }
    }

    /// Adds the gradient of the joined kernel to those of its parts.
    fn part_gradients(&self, gradient: &mut [E]) {
        let width = self.n_out / self.kernels.len();
        for (part, slot) in self.kernels.iter().enumerate() {
            let rows = slot.of_mut(gradient).chunks_exact_mut(width).zip(self.d_joined.chunks_exact(self.n_out));
            rows.for_each(|(row, joined)| (E::kernels().accumulate)(&joined[part * width..][..width], row));
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
