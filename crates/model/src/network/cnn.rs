//! Convolutional networks: a convolution stack if wanted, convolutions that keep every slice, dense layers; all with
//! maxout, a layer norm and dropout. The layer norm of the last dense layer gives the logits.

use srf_kernels::{Conv, Element};

use super::{Block, ConvStack};
use crate::config::CnnConfig;
use crate::frames::Frames;
use crate::layers::{
    Backward, ConvMaxout, Dense, Dropout, Forward, LayerNorm, MaxPool, Wanted, maxout_backward, maxout_forward,
};
use crate::params::Plan;

/// Added to the variance in every layer norm of the network.
const EPSILON: f64 = 1e-6;
/// Zero slices that a convolution needs before and after each utterance.
const MARGIN: [usize; 2] = [2, 2];
/// Numbers of the dropout on the slices, and of the first of the blocks' dropouts, two for each.
const INPUT_DROPOUT: u32 = 3;
const FIRST_DROPOUT: u32 = 16;

/// The chain, and the zero frames that it needs around its input.
pub(super) fn blocks<E: Element>(plan: &mut Plan, config: &CnnConfig) -> ([usize; 2], Vec<Box<dyn Block<E>>>) {
    let (mut margin, mut blocks): (_, Vec<Box<dyn Block<E>>>) = (MARGIN, Vec::new());
    if config.conv_stack {
        let stack = ConvStack::new(plan, config.features, config.filters, config.dropout.conv, MARGIN);
        blocks.push(Box::new(stack.with_dropout(Dropout::new(config.dropout.input, INPUT_DROPOUT))));
        margin = ConvStack::<E>::MARGIN;
    }
    for index in 0..config.layers {
        blocks.push(Box::new(ConvBlock::new(plan, config, index)));
    }
    for (index, shape) in config.dense_shapes().enumerate() {
        blocks.push(Box::new(DenseBlock::new(plan, config, index, shape)));
    }
    (margin, blocks)
}

/// A convolution with maxout, its pooling, layer norm and dropout.
struct ConvBlock<E> {
    conv: ConvMaxout<E>,
    pool: Option<Pool<E>>,
    norm: LayerNorm<E>,
    dropout: Dropout,
    convolved: Frames<E>,
    normed: Frames<E>,
}

struct Pool<E> {
    layer: MaxPool,
    pooled: Frames<E>,
    d_convolved: Frames<E>,
}

impl<E: Element> ConvBlock<E> {
    fn new(plan: &mut Plan, config: &CnnConfig, index: usize) -> Self {
        let shape = config.conv_shape(index);
        let conv = Conv {
            kernel: [5, 3],
            stride: [1, 1],
            n_freq: shape.n_freq,
            pad_freq: [1, 1],
            n_channels: shape.n_in,
            n_filters: shape.n_out,
        };
        let (number, layer) = (FIRST_DROPOUT + 2 * index as u32, index + 1);
        let output = [shape.n_freq_out(), shape.n_out];
        let [width, width_unpooled] = [output[0], shape.n_freq].map(|n_freq| n_freq * shape.n_out);
        let pool = || Pool {
            layer: MaxPool::new(shape.n_out, shape.pool),
            pooled: Frames::new(width, [0, 0]),
            d_convolved: Frames::new(width_unpooled, [0, 0]),
        };
        let scope = plan.layer(format!("conv_block{layer}"), &output);
        Self {
            conv: ConvMaxout::halves(scope, conv, MARGIN, (config.dropout.conv, number)),
            pool: (shape.pool > 1).then(pool),
            // One norm for all frequencies.
            norm: LayerNorm::new(plan.layer(format!("ln_conv{layer}"), &output), shape.n_out, EPSILON),
            dropout: Dropout::new(config.dropout.between, number + 1),
            convolved: Frames::new(width_unpooled, [0, 0]),
            normed: Frames::new(width, if layer == config.layers { [0, 0] } else { MARGIN }),
        }
    }
}

impl<E: Element> Block<E> for ConvBlock<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.conv.forward(pass, x, &mut self.convolved);
        let mut input = &self.convolved;
        if let Some(Pool { layer, pooled, .. }) = &mut self.pool {
            layer.forward(input, pooled);
            input = pooled;
        }
        self.norm.forward(pass, input, &mut self.normed);
        self.dropout.apply(pass.mode, &mut self.normed);
    }

    fn output(&self) -> &Frames<E> {
        &self.normed
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, mut d_x: Wanted<'_, E>) {
        self.dropout.apply(pass.mode, d_y);
        d_x.iter_mut().for_each(|d_x| d_x.reshape(x.width(), [0, 0]));
        let input = self.pool.as_ref().map_or(&self.convolved, |pool| &pool.pooled);
        self.norm.backward(pass, input, d_y);
        match &mut self.pool {
            Some(Pool { layer, d_convolved, .. }) => {
                layer.backward(d_y, d_convolved);
                self.conv.backward(pass, x, d_convolved, d_x);
            }
            None => self.conv.backward(pass, x, d_y, d_x),
        }
    }
}

/// A dense layer with maxout, its layer norm and dropout.
struct DenseBlock<E> {
    dense: Dense<E>,
    /// On both branches of the maxout.
    branch_dropout: Dropout,
    norm: LayerNorm<E>,
    /// On the output; `None` on the logits.
    dropout: Option<Dropout>,
    branches: Frames<E>,
    largest: Frames<E>,
    normed: Frames<E>,
    d_branches: Frames<E>,
}

impl<E: Element> DenseBlock<E> {
    fn new(plan: &mut Plan, config: &CnnConfig, index: usize, [n_in, n_out]: [usize; 2]) -> Self {
        let is_last = index == config.dense_layers;
        let number = FIRST_DROPOUT + 2 * (config.layers + index) as u32;
        let rate = if is_last { config.dropout.between } else { config.dropout.conv };
        let (name, norm) = if is_last {
            ("fc_out".to_owned(), "ln_out".to_owned())
        } else {
            (format!("fc{}", index + 1), format!("ln_fc{}", index + 1))
        };
        Self {
            dense: Dense::without_bias(plan.layer(name, &[n_out]), n_in, 2 * n_out),
            branch_dropout: Dropout::new(rate, number),
            norm: LayerNorm::new(plan.layer(norm, &[n_out]), n_out, EPSILON),
            dropout: (!is_last).then(|| Dropout::new(config.dropout.between, number + 1)),
            branches: Frames::new(2 * n_out, [0, 0]),
            largest: Frames::new(n_out, [0, 0]),
            normed: Frames::new(n_out, [0, 0]),
            d_branches: Frames::new(2 * n_out, [0, 0]),
        }
    }
}

impl<E: Element> Block<E> for DenseBlock<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.dense.forward(pass, x, &mut self.branches);
        self.branch_dropout.apply(pass.mode, &mut self.branches);
        maxout_forward(&self.branches, &mut self.largest);
        self.norm.forward(pass, &self.largest, &mut self.normed);
        self.dropout.iter().for_each(|dropout| dropout.apply(pass.mode, &mut self.normed));
    }

    fn output(&self) -> &Frames<E> {
        &self.normed
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.dropout.iter().for_each(|dropout| dropout.apply(pass.mode, d_y));
        self.norm.backward(pass, &self.largest, d_y);
        maxout_backward(&self.branches, d_y, &mut self.d_branches);
        self.branch_dropout.apply(pass.mode, &mut self.d_branches);
        let d_x = d_x.expect("convolutions are below");
        d_x.reshape(x.width(), [0, 0]);
        self.dense.backward(pass, x, &self.d_branches, d_x);
    }
}
