//! A maxout convolution whose two branches are the halves of one kernel, without bias.
//!
//! out = max(drop(x * k[.., ..n]), drop(x * k[.., n..])), see [`ConvMaxout`].
//!
//! # Shapes
//! - in: frames of `[n_freq][n_channels]` with the padding in time as margin, out: frames of `[n_freq][n]`
//! - kernel `[time][freq][n_channels][2 n]`

use srf_kernels::{Branch, Buffer, Conv, Element};

use super::Draw;
use super::conv_maxout::{BranchGradient, ConvMaxout, ConvScratch};
use crate::frames::Frames;

/// The layer; keeps the halves of its kernel apart.
pub struct ConvHalves<E> {
    inner: ConvMaxout<E>,
    halves: [Buffer<E>; 2],
    gradients: [Buffer<E>; 2],
}

impl<E: Element> ConvHalves<E> {
    /// A layer that drops `rate` of each branch in training; `number` tells its dropout from that of other layers.
    pub fn new(conv: Conv, pad_time: [usize; 2], rate: f64, number: u32) -> Self {
        let inner = ConvMaxout::new(conv, pad_time, rate, number);
        Self { inner, halves: [Buffer::new(), Buffer::new()], gradients: [Buffer::new(), Buffer::new()] }
    }

    /// Exchanges the memory that only a backward pass needs, so that layers can share it.
    pub fn swap_scratch(&mut self, scratch: &mut ConvScratch<E>) {
        self.inner.swap_scratch(scratch);
    }

    /// Computes `y` from `x`; `draw` is none in inference.
    #[track_caller]
    pub fn forward(&mut self, kernel: &[E], draw: Option<Draw<'_>>, x: &Frames<E>, y: &mut Frames<E>) {
        let n = self.inner.conv().n_filters;
        for (index, half) in self.halves.iter_mut().enumerate() {
            half.resize(kernel.len() / 2);
            for (half, row) in half.chunks_exact_mut(n).zip(kernel.chunks_exact(2 * n)) {
                half.copy_from_slice(&row[index * n..][..n]);
            }
        }
        let branches = self.halves.each_ref().map(|half| Branch { kernel: half, bias: None });
        self.inner.forward(branches, draw, x, y);
    }

    /// Adds to the gradient of the kernel and writes that of the input, if wanted, from that of the output.
    ///
    /// `draw` and `x` are those of the forward pass.
    pub fn backward(
        &mut self,
        draw: Option<Draw<'_>>,
        x: &Frames<E>,
        grad_y: &Frames<E>,
        grad_kernel: &mut [E],
        grad_x: Option<&mut Frames<E>>,
    ) {
        let n = self.inner.conv().n_filters;
        for gradient in &mut self.gradients {
            gradient.resize(grad_kernel.len() / 2);
            gradient.fill(E::ZERO);
        }
        let branches = self.halves.each_ref().map(|half| Branch { kernel: half, bias: None });
        let gradients = self.gradients.each_mut().map(|kernel| BranchGradient { kernel, bias: None });
        self.inner.backward(branches, draw, x, grad_y, gradients, grad_x);
        for (index, gradient) in self.gradients.iter().enumerate() {
            for (row, gradient) in grad_kernel.chunks_exact_mut(2 * n).zip(gradient.chunks_exact(n)) {
                (E::kernels().accumulate)(gradient, &mut row[index * n..][..n]);
            }
        }
    }
}
