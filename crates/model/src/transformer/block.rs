//! A block of self-attention: slices in, slices out.
//!
//! m = x + drop(attention(norm(x))), y = m + drop(W_2 drop(max(W_1 norm(m) + b_1, 0)) + b_2).
//! The projections to queries, keys and values are one dense layer here, whose kernel is put together from three.

use srf_kernels::{Buffer, Element};

use super::EPSILON;
use crate::config::TransformerConfig;
use crate::frames::Frames;
use crate::layers::{Attention, Dense, Dropout, LayerNorm, add, copy, relu_backward, relu_forward};
use crate::network::Mode;
use crate::params::{BlockSlots, DenseSlots, Slot};

/// Numbers of a block's dropouts, and of the first one.
const N_DROPOUTS: u32 = 4;
const FIRST_DROPOUT: u32 = 16;

/// The layers and their activations.
pub(super) struct Block<E> {
    width: usize,
    ln_att: LayerNorm<E>,
    qkv: Dense<E>,
    /// `[width][q, k, v]`, and its gradient.
    qkv_kernel: Buffer<E>,
    qkv_gradient: Buffer<E>,
    attention: Attention<E>,
    o: Dense<E>,
    attention_dropout: Dropout,
    ln_ffn: LayerNorm<E>,
    ff1: Dense<E>,
    inner_dropout: Dropout,
    ff2: Dense<E>,
    dropout: Dropout,
    activations: Activations<E>,
    gradients: Gradients<E>,
}

struct Activations<E> {
    normed1: Frames<E>,
    projected: Frames<E>,
    attended: Frames<E>,
    /// m.
    middle: Frames<E>,
    normed2: Frames<E>,
    hidden: Frames<E>,
    output: Frames<E>,
}

struct Gradients<E> {
    /// Of what is added to the shortcut.
    branch: Frames<E>,
    normed: Frames<E>,
    hidden: Frames<E>,
    attended: Frames<E>,
    projected: Frames<E>,
}

impl<E: Element> Block<E> {
    pub(super) fn new(config: &TransformerConfig, index: usize) -> Self {
        let (width, inner, rates) = (config.width, config.inner, config.dropout);
        let number = |which: u32| FIRST_DROPOUT + N_DROPOUTS * index as u32 + which;
        let frames = |width| Frames::new(width, [0, 0]);
        Self {
            width,
            ln_att: LayerNorm::new(width, EPSILON),
            qkv: Dense::new(width, 3 * width),
            qkv_kernel: Buffer::new(),
            qkv_gradient: Buffer::new(),
            attention: Attention::new(width, config.heads, config.distance_penalty, rates.attention, number(0)),
            o: Dense::new(width, width),
            attention_dropout: Dropout::new(rates.residual, number(1)),
            ln_ffn: LayerNorm::new(width, EPSILON),
            ff1: Dense::new(width, inner),
            inner_dropout: Dropout::new(rates.inner, number(2)),
            ff2: Dense::new(inner, width),
            dropout: Dropout::new(rates.residual, number(3)),
            activations: Activations {
                normed1: frames(width),
                projected: frames(3 * width),
                attended: frames(width),
                middle: frames(width),
                normed2: frames(width),
                hidden: frames(inner),
                output: frames(width),
            },
            gradients: Gradients {
                branch: frames(width),
                normed: frames(width),
                hidden: frames(inner),
                attended: frames(width),
                projected: frames(3 * width),
            },
        }
    }

    pub(super) fn output(&self) -> &Frames<E> {
        &self.activations.output
    }

    pub(super) fn forward(&mut self, slots: &BlockSlots, values: &[E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        self.join_kernels(slots, values);
        let a = &mut self.activations;
        self.ln_att.forward(slots.ln_att.params(values), x, &mut a.normed1);
        self.qkv.forward(&self.qkv_kernel, None, &a.normed1, &mut a.projected);
        self.attention.forward(mode.draw, &a.projected, &mut a.attended);
        dense_forward(&mut self.o, slots.attention.o, values, &a.attended, &mut a.middle);
        self.attention_dropout.apply(mode.draw, &mut a.middle);
        add(x, &mut a.middle);
        self.ln_ffn.forward(slots.ln_ffn.params(values), &a.middle, &mut a.normed2);
        dense_forward(&mut self.ff1, slots.ff1, values, &a.normed2, &mut a.hidden);
        relu_forward(&mut a.hidden);
        self.inner_dropout.apply(mode.draw, &mut a.hidden);
        dense_forward(&mut self.ff2, slots.ff2, values, &a.hidden, &mut a.output);
        self.dropout.apply(mode.draw, &mut a.output);
        add(&a.middle, &mut a.output);
        &a.output
    }

    /// Puts the rows of the three kernels side by side.
    fn join_kernels(&mut self, slots: &BlockSlots, values: &[E]) {
        let width = self.width;
        self.qkv_kernel.resize(3 * width * width);
        for (part, slot) in slots.attention.qkv.iter().enumerate() {
            let rows = self.qkv_kernel.chunks_exact_mut(3 * width).zip(slot.of(values).chunks_exact(width));
            rows.for_each(|(joined, row)| joined[part * width..][..width].copy_from_slice(row));
        }
    }

    /// Replaces `grad`, that of the output, by that of the input.
    pub(super) fn backward(
        &mut self,
        slots: &BlockSlots,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        grad: &mut Frames<E>,
        gradient: &mut [E],
    ) {
        let (a, g) = (&self.activations, &mut self.gradients);
        copy(grad, &mut g.branch);
        self.dropout.apply(mode.draw, &mut g.branch);
        dense_backward(&mut self.ff2, slots.ff2, values, &a.hidden, &g.branch, gradient, &mut g.hidden);
        self.inner_dropout.apply(mode.draw, &mut g.hidden);
        relu_backward(&a.hidden, &mut g.hidden);
        dense_backward(&mut self.ff1, slots.ff1, values, &a.normed2, &g.hidden, gradient, &mut g.normed);
        self.ln_ffn.backward(slots.ln_ffn.params(values), &a.middle, &mut g.normed, slots.ln_ffn.gradient(gradient));
        add(&g.normed, grad);
        copy(grad, &mut g.branch);
        self.attention_dropout.apply(mode.draw, &mut g.branch);
        dense_backward(&mut self.o, slots.attention.o, values, &a.attended, &g.branch, gradient, &mut g.attended);
        self.attention.backward(mode.draw, &a.projected, &g.attended, &mut g.projected);
        self.qkv_gradient.resize(self.qkv_kernel.len());
        self.qkv_gradient.fill(E::ZERO);
        let of_kernel = &mut self.qkv_gradient;
        self.qkv.backward(&self.qkv_kernel, &a.normed1, &g.projected, of_kernel, None, &mut g.normed);
        self.ln_att.backward(slots.ln_att.params(values), x, &mut g.normed, slots.ln_att.gradient(gradient));
        add(&g.normed, grad);
        self.part_gradients(slots, gradient);
    }

    /// Adds the gradient of the joined kernel to those of the three.
    fn part_gradients(&self, slots: &BlockSlots, gradient: &mut [E]) {
        let width = self.width;
        for (part, slot) in slots.attention.qkv.iter().enumerate() {
            let rows = slot.of_mut(gradient).chunks_exact_mut(width).zip(self.qkv_gradient.chunks_exact(3 * width));
            rows.for_each(|(row, joined)| (E::kernels().accumulate)(&joined[part * width..][..width], row));
        }
    }
}

fn dense_forward<E: Element>(layer: &mut Dense<E>, slots: DenseSlots, values: &[E], x: &Frames<E>, y: &mut Frames<E>) {
    layer.forward(slots.kernel.of(values), Some(slots.bias.of(values)), x, y);
}

fn dense_backward<E: Element>(
    layer: &mut Dense<E>,
    slots: DenseSlots,
    values: &[E],
    x: &Frames<E>,
    grad_y: &Frames<E>,
    gradient: &mut [E],
    grad_x: &mut Frames<E>,
) {
    let [kernel, bias] = Slot::disjoint_mut([slots.kernel, slots.bias], gradient);
    layer.backward(slots.kernel.of(values), x, grad_y, kernel, Some(bias), grad_x);
}
