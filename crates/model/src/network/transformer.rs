//! Networks of self-attention: convolution stack, embedding with positions, blocks of self-attention, a dense layer to
//! the classes.

use srf_kernels::Element;

use super::{Block, ConvStack};
use crate::config::TransformerConfig;
use crate::frames::Frames;
use crate::layers::{
    Attention, Backward, Dense, Dropout, Forward, LayerNorm, Positions, Wanted, add, copy, relu_backward, relu_forward,
};
use crate::params::Plan;

/// Added to the variance in every layer norm of the network.
const EPSILON: f64 = 1e-6;
/// Numbers of the dropout on the input of the first block, and of the first of the blocks' dropouts.
const INPUT_DROPOUT: u32 = 3;
const FIRST_DROPOUT: u32 = 16;
const DROPOUTS_PER_BLOCK: u32 = 4;

/// The chain, and the zero frames that it needs around its input.
pub(super) fn blocks<E: Element>(plan: &mut Plan, config: &TransformerConfig) -> ([usize; 2], Vec<Box<dyn Block<E>>>) {
    let stack = ConvStack::new(plan, config.features, config.filters, config.dropout.conv, [0, 0]);
    let mut blocks: Vec<Box<dyn Block<E>>> =
        vec![Box::new(stack.with_statistics(config.conv_stack_statistics)), Box::new(Embedding::new(plan, config))];
    for index in 0..config.layers {
        blocks.push(Box::new(AttentionBlock::new(plan, config, index)));
    }
    blocks.push(Box::new(Classes::new(plan, config)));
    (ConvStack::<E>::MARGIN, blocks)
}

/// A dense layer to the width of the blocks, with positions added and dropout.
struct Embedding<E> {
    proj: Dense<E>,
    positions: Positions<E>,
    dropout: Dropout,
    projected: Frames<E>,
}

impl<E: Element> Embedding<E> {
    fn new(plan: &mut Plan, config: &TransformerConfig) -> Self {
        let width = config.width;
        Self {
            proj: Dense::new(plan.layer("proj", &[width]), config.flat_width(), width),
            positions: Positions::new(width),
            dropout: Dropout::new(config.dropout.input, INPUT_DROPOUT),
            projected: Frames::new(width, [0, 0]),
        }
    }
}

impl<E: Element> Block<E> for Embedding<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.proj.forward(pass, x, &mut self.projected);
        self.positions.forward(&mut self.projected);
        self.dropout.apply(pass.mode, &mut self.projected);
    }

    fn output(&self) -> &Frames<E> {
        &self.projected
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.dropout.apply(pass.mode, d_y);
        self.positions.backward(d_y);
        let d_x = d_x.expect("the convolution stack is below");
        d_x.reshape(x.width(), [0, 0]);
        self.proj.backward(pass, x, d_y, d_x);
    }
}

/// m = x + drop(attention(norm(x))), y = m + drop(W_2 drop(max(W_1 norm(m) + b_1, 0)) + b_2).
struct AttentionBlock<E> {
    norm1: LayerNorm<E>,
    /// To queries, keys and values.
    qkv: Dense<E>,
    attention: Attention<E>,
    o: Dense<E>,
    attention_dropout: Dropout,
    norm2: LayerNorm<E>,
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

impl<E: Element> AttentionBlock<E> {
    fn new(plan: &mut Plan, config: &TransformerConfig, index: usize) -> Self {
        let (width, inner, rates) = (config.width, config.inner, config.dropout);
        let number = |which: u32| FIRST_DROPOUT + DROPOUTS_PER_BLOCK * index as u32 + which;
        let frames = |width| Frames::new(width, [0, 0]);
        let mut scope = plan.layer(format!("block{}", index + 1), &[width]);
        let norm1 = LayerNorm::new(scope.part("ln_att"), width, EPSILON);
        let qkv = Dense::side_by_side(&mut scope, &["q", "k", "v"], width, width);
        let (shape, dropout) = ([width, config.heads], (rates.attention, number(0)));
        Self {
            norm1,
            qkv,
            attention: Attention::new(&mut scope, shape, config.distance_penalty, dropout),
            o: Dense::new(scope.part("o"), width, width),
            attention_dropout: Dropout::new(rates.residual, number(1)),
            norm2: LayerNorm::new(scope.part("ln_ffn"), width, EPSILON),
            ff1: Dense::new(scope.part("ff1"), width, inner),
            inner_dropout: Dropout::new(rates.inner, number(2)),
            ff2: Dense::new(scope.part("ff2"), inner, width),
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
}

impl<E: Element> Block<E> for AttentionBlock<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        let a = &mut self.activations;
        self.norm1.forward(pass, x, &mut a.normed1);
        self.qkv.forward(pass, &a.normed1, &mut a.projected);
        self.attention.forward(pass.mode, &a.projected, &mut a.attended);
        self.o.forward(pass, &a.attended, &mut a.middle);
        self.attention_dropout.apply(pass.mode, &mut a.middle);
        add(x, &mut a.middle);
        self.norm2.forward(pass, &a.middle, &mut a.normed2);
        self.ff1.forward(pass, &a.normed2, &mut a.hidden);
        relu_forward(&mut a.hidden);
        self.inner_dropout.apply(pass.mode, &mut a.hidden);
        self.ff2.forward(pass, &a.hidden, &mut a.output);
        self.dropout.apply(pass.mode, &mut a.output);
        add(&a.middle, &mut a.output);
    }

    fn output(&self) -> &Frames<E> {
        &self.activations.output
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        let (a, g) = (&self.activations, &mut self.gradients);
        copy(d_y, &mut g.branch);
        self.dropout.apply(pass.mode, &mut g.branch);
        self.ff2.backward(pass, &a.hidden, &g.branch, &mut g.hidden);
        self.inner_dropout.apply(pass.mode, &mut g.hidden);
        relu_backward(&a.hidden, &mut g.hidden);
        self.ff1.backward(pass, &a.normed2, &g.hidden, &mut g.normed);
        self.norm2.backward(pass, &a.middle, &mut g.normed);
        add(&g.normed, d_y);
        copy(d_y, &mut g.branch);
        self.attention_dropout.apply(pass.mode, &mut g.branch);
        self.o.backward(pass, &a.attended, &g.branch, &mut g.attended);
        self.attention.backward(pass.mode, &a.projected, &g.attended, &mut g.projected);
        self.qkv.backward(pass, &a.normed1, &g.projected, &mut g.normed);
        self.norm1.backward(pass, x, &mut g.normed);
        add(&g.normed, d_y);
        // The shortcut's gradient has become that of the input.
        std::mem::swap(d_y, d_x.expect("the embedding is below"));
    }
}

/// A layer norm and a dense layer, which gives the logits.
struct Classes<E> {
    norm: LayerNorm<E>,
    out: Dense<E>,
    normed: Frames<E>,
    logits: Frames<E>,
}

impl<E: Element> Classes<E> {
    fn new(plan: &mut Plan, config: &TransformerConfig) -> Self {
        let (width, classes) = (config.width, config.classes);
        Self {
            norm: LayerNorm::new(plan.layer("ln_out", &[width]), width, EPSILON),
            out: Dense::new(plan.layer("out", &[classes]), width, classes),
            normed: Frames::new(width, [0, 0]),
            logits: Frames::new(classes, [0, 0]),
        }
    }
}

impl<E: Element> Block<E> for Classes<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.norm.forward(pass, x, &mut self.normed);
        self.out.forward(pass, &self.normed, &mut self.logits);
    }

    fn output(&self) -> &Frames<E> {
        &self.logits
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        let d_x = d_x.expect("blocks of self-attention are below");
        d_x.reshape(x.width(), [0, 0]);
        self.out.backward(pass, &self.normed, d_y, d_x);
        self.norm.backward(pass, x, d_x);
    }
}
