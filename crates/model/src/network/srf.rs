//! The network of the paper: convolution stack, primary capsules, capsule layers, lengths of the class capsules.

use srf_kernels::Element;

use super::{Block, ConvStack};
use crate::config::{CapsuleShape, SrfConfig};
use crate::frames::Frames;
use crate::layers::{Backward, Capsules, Decisions, Dense, Dropout, Encapsulate, Forward, LayerNorm, Lengths, Wanted};
use crate::params::Plan;

/// Added to the variance in every layer norm of the network.
pub(crate) const EPSILON: f64 = 1e-3;
/// Numbers of the dropouts on primary capsules and after each capsule layer.
const ENCAPSULATE_DROPOUT: u32 = 2;
const INPUT_DROPOUT: u32 = 3;
const FIRST_DROPOUT: u32 = 16;

/// The blocks by their types, as streams want them.
pub(crate) struct SrfBlocks<E> {
    pub(crate) conv_stack: ConvStack<E>,
    pub(crate) primary: PrimaryCapsules<E>,
    pub(crate) capsules: Vec<CapsuleBlock<E>>,
    pub(crate) lengths: ClassLengths<E>,
}

impl<E: Element> SrfBlocks<E> {
    pub(crate) fn new(plan: &mut Plan, config: &SrfConfig) -> Self {
        let shapes: Vec<CapsuleShape> = config.capsule_shapes().collect();
        let margin_after = |index: usize| shapes.get(index).map_or([0, 0], CapsuleShape::margin);
        Self {
            conv_stack: ConvStack::new(plan, config.features, config.filters, config.dropout.conv, [0, 0]),
            primary: PrimaryCapsules::new(plan, config, margin_after(0)),
            capsules: (0..shapes.len())
                .map(|index| CapsuleBlock::new(plan, config, index, margin_after(index + 1)))
                .collect(),
            lengths: ClassLengths::new(plan, config),
        }
    }
}

/// The chain, and the zero frames that it needs around its input.
pub(super) fn blocks<E: Element>(plan: &mut Plan, config: &SrfConfig) -> ([usize; 2], Vec<Box<dyn Block<E>>>) {
    let SrfBlocks { conv_stack, primary, capsules, lengths } = SrfBlocks::new(plan, config);
    let mut blocks: Vec<Box<dyn Block<E>>> = vec![Box::new(conv_stack), Box::new(primary)];
    blocks.extend(capsules.into_iter().map(|block| Box::new(block) as Box<dyn Block<E>>));
    blocks.push(Box::new(lengths));
    (ConvStack::<E>::MARGIN, blocks)
}

/// A dense layer makes a number for each capsule of a slice, [`Encapsulate`] the capsules; a layer norm ends it.
///
/// # Shapes
/// - in: slices of `[flat width]`, out: slices of `[height][depth]`
pub(crate) struct PrimaryCapsules<E> {
    pub(crate) proj: Dense<E>,
    pub(crate) encapsulate: Encapsulate<E>,
    pub(crate) norm: LayerNorm<E>,
    dropout: Dropout,
    projected: Frames<E>,
    capsules: Frames<E>,
    normed: Frames<E>,
    d_projected: Frames<E>,
}

impl<E: Element> PrimaryCapsules<E> {
    pub(super) fn new(plan: &mut Plan, config: &SrfConfig, margin: [usize; 2]) -> Self {
        let shape = [config.primary_height, config.primary_depth];
        let (height, width) = (shape[0], shape[0] * shape[1]);
        let dropout = (config.dropout.conv, ENCAPSULATE_DROPOUT);
        Self {
            proj: Dense::new(plan.layer("proj", &[height]), config.flat_width(), height),
            encapsulate: Encapsulate::new(plan.layer("encaps", &shape), shape, dropout),
            norm: LayerNorm::new(plan.layer("ln_in", &shape), width, EPSILON),
            dropout: Dropout::new(config.dropout.input, INPUT_DROPOUT),
            projected: Frames::new(height, Encapsulate::<E>::MARGIN),
            capsules: Frames::new(width, [0, 0]),
            normed: Frames::new(width, margin),
            d_projected: Frames::new(height, [0, 0]),
        }
    }
}

impl<E: Element> Block<E> for PrimaryCapsules<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.proj.forward(pass, x, &mut self.projected);
        self.encapsulate.forward(pass, &self.projected, &mut self.capsules);
        self.norm.forward(pass, &self.capsules, &mut self.normed);
        self.dropout.apply(pass.mode, &mut self.normed);
    }

    fn output(&self) -> &Frames<E> {
        &self.normed
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.dropout.apply(pass.mode, d_y);
        self.norm.backward(pass, &self.capsules, d_y);
        self.encapsulate.backward(pass, &self.projected, d_y, &mut self.d_projected);
        let d_x = d_x.expect("the convolution stack is below");
        d_x.reshape(x.width(), [0, 0]);
        self.proj.backward(pass, x, &self.d_projected, d_x);
    }

    fn activation(&self, layer: &str) -> Option<&Frames<E>> {
        match layer {
            "proj" => Some(&self.projected),
            "encaps.unsquashed" => Some(self.encapsulate.unsquashed()),
            "encaps" => Some(&self.capsules),
            "ln_in" => Some(&self.normed),
            _ => None,
        }
    }
}

/// A capsule layer with its layer norm and dropout.
pub(crate) struct CapsuleBlock<E> {
    name: String,
    pub(crate) capsules: Capsules<E>,
    pub(crate) norm: LayerNorm<E>,
    dropout: Dropout,
    routed: Frames<E>,
    normed: Frames<E>,
}

impl<E: Element> CapsuleBlock<E> {
    /// The capsule layer `index` of `config`; `margin` is what the next layer needs around its input.
    fn new(plan: &mut Plan, config: &SrfConfig, index: usize, margin: [usize; 2]) -> Self {
        let shape = config.capsule_shape(index);
        let output = [shape.out_height, shape.out_depth];
        let width = output[0] * output[1];
        let name = format!("caps{}", index + 1);
        Self {
            capsules: Capsules::new(plan.layer(&name, &output), config, shape),
            norm: LayerNorm::new(plan.layer(format!("ln_{name}"), &output), width, EPSILON),
            dropout: Dropout::new(config.dropout.between, FIRST_DROPOUT + index as u32),
            routed: Frames::new(width, [0, 0]),
            normed: Frames::new(width, margin),
            name,
        }
    }
}

impl<E: Element> Block<E> for CapsuleBlock<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.capsules.forward(pass, x, &mut self.routed);
        self.norm.forward(pass, &self.routed, &mut self.normed);
        self.dropout.apply(pass.mode, &mut self.normed);
    }

    fn output(&self) -> &Frames<E> {
        &self.normed
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.dropout.apply(pass.mode, d_y);
        self.norm.backward(pass, &self.routed, d_y);
        let d_x = d_x.expect("the primary capsules are below");
        d_x.reshape(x.width(), x.margin());
        self.capsules.backward(pass, x, &self.routed, d_y, d_x);
    }

    fn activation(&self, layer: &str) -> Option<&Frames<E>> {
        if layer == self.name {
            return Some(&self.routed);
        }
        (layer.strip_prefix("ln_") == Some(&self.name)).then_some(&self.normed)
    }

    fn decisions(&self) -> Option<&[Decisions<E>]> {
        Some(self.capsules.decisions())
    }
}

/// The lengths of the class capsules and a layer norm on them, which gives the logits.
pub(crate) struct ClassLengths<E> {
    lengths: Lengths,
    pub(crate) norm: LayerNorm<E>,
    length: Frames<E>,
    logits: Frames<E>,
}

impl<E: Element> ClassLengths<E> {
    fn new(plan: &mut Plan, config: &SrfConfig) -> Self {
        let classes = config.classes;
        plan.layer("length", &[classes]);
        Self {
            lengths: Lengths::new(config.class_depth),
            norm: LayerNorm::new(plan.layer("ln_out", &[classes]), classes, EPSILON),
            length: Frames::new(classes, [0, 0]),
            logits: Frames::new(classes, [0, 0]),
        }
    }
}

impl<E: Element> Block<E> for ClassLengths<E> {
    fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>) {
        self.lengths.forward(x, &mut self.length);
        self.norm.forward(pass, &self.length, &mut self.logits);
    }

    fn output(&self) -> &Frames<E> {
        &self.logits
    }

    fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d_y: &mut Frames<E>, d_x: Wanted<'_, E>) {
        self.norm.backward(pass, &self.length, d_y);
        let d_x = d_x.expect("capsule layers are below");
        d_x.reshape(x.width(), [0, 0]);
        self.lengths.backward(x, &self.length, d_y, d_x);
    }

    fn activation(&self, layer: &str) -> Option<&Frames<E>> {
        (layer == "length").then_some(&self.length)
    }
}

#[cfg(test)]
mod tests;
