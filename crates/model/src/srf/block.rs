//! A capsule layer with its layer norm and dropout: capsules in, capsules out.

use kernels::Element;
use kernels::routing::{GradientPaths, Routing, Workspace};

use super::EPSILON;
use crate::config::{self, CapsuleShape, SrfConfig};
use crate::frames::Frames;
use crate::layers::{CapsuleGradient, CapsuleParams, Capsules, Decisions, Dropout, LayerNorm};
use crate::network::Mode;
use crate::params::{Slot, SrfParams};

/// Dropout numbers below this one belong to the front end.
const FIRST_DROPOUT: u32 = 16;

/// The layers and their activations.
pub(super) struct Block<E> {
    shape: CapsuleShape,
    capsules: Capsules<E>,
    norm: LayerNorm<E>,
    dropout: Dropout,
    routed: Frames<E>,
    normed: Frames<E>,
    decisions: Vec<Decisions<E>>,
}

impl<E: Element> Block<E> {
    /// The capsule layer `index` of `config`; `margin` is what the layer behind it needs around its input.
    pub(super) fn new(config: &SrfConfig, shape: CapsuleShape, index: usize, margin: [usize; 2]) -> Self {
        let paths = GradientPaths {
            through_iterations: config.gradient.through_iterations,
            through_time: config.gradient.through_time,
        };
        let width = shape.out_height * shape.out_depth;
        Self {
            shape,
            capsules: Capsules::new(routing(config, shape), paths),
            norm: LayerNorm::new(width, EPSILON),
            dropout: Dropout::new(config.dropout.between, FIRST_DROPOUT + index as u32),
            routed: Frames::new(width, [0, 0]),
            normed: Frames::new(width, margin),
            decisions: Vec::new(),
        }
    }

    /// Frames shaped as the input, for its gradient.
    pub(super) fn new_input(&self) -> Frames<E> {
        let CapsuleShape { in_height, in_depth, window_left, window_right, .. } = self.shape;
        Frames::new(in_height * in_depth, [window_left, window_right])
    }

    pub(super) fn routed(&self) -> &Frames<E> {
        &self.routed
    }

    pub(super) fn output(&self) -> &Frames<E> {
        &self.normed
    }

    pub(super) fn decisions(&self) -> &[Decisions<E>] {
        &self.decisions
    }

    pub(super) fn forward(
        &mut self,
        slots: &SrfParams,
        index: usize,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        workspace: &mut Workspace<E>,
    ) -> &Frames<E> {
        let params =
            CapsuleParams { weight: slots.caps[index].weight.of(values), bias: slots.caps[index].bias.of(values) };
        self.decisions.resize_with(if mode.keeps_decisions { x.n_utterances() } else { 0 }, Decisions::default);
        self.capsules.forward(params, x, &mut self.routed, workspace, &mut self.decisions);
        self.norm.forward(slots.ln_caps[index].params(values), &self.routed, &mut self.normed);
        self.dropout.apply(mode.draw, &mut self.normed);
        &self.normed
    }

    /// Uses up `grad_y`.
    pub(super) fn backward(
        &mut self,
        slots: &SrfParams,
        index: usize,
        values: &[E],
        mode: Mode<'_>,
        x: &Frames<E>,
        grad_y: &mut Frames<E>,
        grad_x: &mut Frames<E>,
        gradient: &mut [E],
        workspace: &mut Workspace<E>,
    ) {
        self.dropout.apply(mode.draw, grad_y);
        let norm = slots.ln_caps[index];
        self.norm.backward(norm.params(values), &self.routed, grad_y, norm.gradient(gradient));
        let [weight, bias] = Slot::disjoint_mut([slots.caps[index].weight, slots.caps[index].bias], gradient);
        let gradient = CapsuleGradient { weight, bias };
        self.capsules.backward(x, &self.routed, grad_y, gradient, grad_x, workspace);
    }
}

/// The routing of the capsule layer of this shape.
pub fn routing(config: &SrfConfig, shape: CapsuleShape) -> Routing {
    Routing {
        n_in: shape.n_inputs(),
        n_out: shape.out_height,
        depth_in: shape.in_depth,
        depth_out: shape.out_depth,
        stride: shape.in_height * shape.in_depth,
        n_iterations: config.iterations,
        is_sequential: config.routing == config::Routing::Sdr,
        has_padding_class: shape.is_last,
    }
}
