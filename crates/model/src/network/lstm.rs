//! Recurrent networks: a convolution stack if wanted, recurrent layers, a dense layer to the classes.

use srf_kernels::Element;

use super::{Block, ConvStack};
use crate::config::{Directions, LstmConfig};
use crate::frames::Frames;
use crate::layers::{Backward, Dense, Dropout, Forward, LayerNorm, Lstm, Wanted, copy};
use crate::params::Plan;

/// Added to the variance in every layer norm of the network.
const EPSILON: f64 = 1e-6;
/// Numbers of the dropouts on the input and after each recurrent layer.
const INPUT_DROPOUT: u32 = 3;
const FIRST_DROPOUT: u32 = 16;

/// The chain, and the zero frames that it needs around its input.
pub(super) fn blocks<E: Element>(plan: &mut Plan, config: &LstmConfig) -> ([usize; 2], Vec<Box<dyn Block<E>>>) {
    let dropout = Dropout::new(config.dropout.input, INPUT_DROPOUT);
    let (margin, first): (_, Box<dyn Block<E>>) = if config.conv_stack {
        let stack = ConvStack::new(plan, config.features, config.filters, config.dropout.conv, [0, 0]);
        (ConvStack::<E>::MARGIN, Box::new(stack.with_dropout(dropout)))
    } else {
        ([0, 0], Box::new(InputDropout { dropout, dropped: Frames::new(config.features, [0, 0]) }))
    };
    let mut blocks = vec![first];
    for index in 0..config.layers {
        blocks.push(Box::new(Recurrent::new(plan, config, index)));
    }
    blocks.push(Box::new(Classes::new(plan, config)));
    (margin, blocks)
}

/// Dropout on the frames, on a copy of them.
struct InputDropout<E> {
    dropout: Dropout,
    dropped: Frames<E>,
}

impl<E: Element> Block<E> for InputDropout<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        copy(x, &mut self.dropped);
        self.dropout.apply(pass.mode, &mut self.dropped);
    }

    fn output(&self) -> &Frames<E> {
        &self.dropped
    }

    fn backward(&mut self, _: &mut Backward<'_, E>, _: &Frames<E>, _: &mut Frames<E>, _: Wanted<'_, E>) {}

    fn has_parameters(&self) -> bool {
        false
    }
}

/// A recurrent layer with its layer norm and dropout.
struct Recurrent<E> {
    lstm: Lstm<E>,
    norm: LayerNorm<E>,
    dropout: Dropout,
    outputs: Frames<E>,
    normed: Frames<E>,
}

impl<E: Element> Recurrent<E> {
    fn new(plan: &mut Plan, config: &LstmConfig, index: usize) -> Self {
        let (width, number) = (config.hidden_width(), index + 1);
        let n_directions = if config.directions == Directions::Both { 2 } else { 1 };
        let shape = [config.layer_width(index), config.cells];
        Self {
            lstm: Lstm::new(plan.layer(format!("lstm{number}"), &[width]), shape, n_directions, config.merge),
            norm: LayerNorm::new(plan.layer(format!("ln{number}"), &[width]), width, EPSILON),
            dropout: Dropout::new(config.dropout.between, FIRST_DROPOUT + index as u32),
            outputs: Frames::new(width, [0, 0]),
            normed: Frames::new(width, [0, 0]),
        }
    }
}

impl<E: Element> Block<E> for Recurrent<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.lstm.forward(pass, x, &mut self.outputs);
        self.norm.forward(pass, &self.outputs, &mut self.normed);
        self.dropout.apply(pass.mode, &mut self.normed);
    }

    fn output(&self) -> &Frames<E> {
        &self.normed
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, mut d_x: Wanted<'_, E>) {
        self.dropout.apply(pass.mode, d_y);
        self.norm.backward(pass, &self.outputs, d_y);
        d_x.iter_mut().for_each(|d_x| d_x.reshape(x.width(), [0, 0]));
        self.lstm.backward(pass, x, d_y, d_x);
    }
}

/// A dense layer to the classes, without bias, and a layer norm on them, which gives the logits.
struct Classes<E> {
    proj: Dense<E>,
    norm: LayerNorm<E>,
    projected: Frames<E>,
    logits: Frames<E>,
}

impl<E: Element> Classes<E> {
    fn new(plan: &mut Plan, config: &LstmConfig) -> Self {
        let classes = config.classes;
        Self {
            proj: Dense::without_bias(plan.layer("proj", &[classes]), config.hidden_width(), classes),
            norm: LayerNorm::new(plan.layer("ln_out", &[classes]), classes, EPSILON),
            projected: Frames::new(classes, [0, 0]),
            logits: Frames::new(classes, [0, 0]),
        }
    }
}

impl<E: Element> Block<E> for Classes<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.proj.forward(pass, x, &mut self.projected);
        self.norm.forward(pass, &self.projected, &mut self.logits);
    }

    fn output(&self) -> &Frames<E> {
        &self.logits
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.norm.backward(pass, &self.projected, d_y);
        let d_x = d_x.expect("recurrent layers are below");
        d_x.reshape(x.width(), [0, 0]);
        self.proj.backward(pass, x, d_y, d_x);
    }
}
