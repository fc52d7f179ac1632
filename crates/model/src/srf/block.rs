//! A capsule layer with its layer norm and dropout: capsules in, capsules out.

use srf_kernels::Element;
use srf_kernels::routing::family::{Dynamic, Member, Normaliser};
use srf_kernels::routing::{GradientPaths, Router, Routing, Workspace};

use super::EPSILON;
use crate::config::{self, CapsuleShape, Couplings, SrfConfig, Start};
use crate::frames::Frames;
use crate::layers::{CapsuleGradient, CapsuleParams, Capsules, Decisions, Dropout, LayerNorm};
use crate::network::Mode;
use crate::params::{CapsuleSlots, Slot, SrfParams};

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
            capsules: Capsules::new(router(config, shape), paths),
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
        let CapsuleSlots { weight, bias, own } = slots.caps[index];
        let params = CapsuleParams { weight: weight.of(values), bias: bias.of(values), own: own.of(values) };
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
        let CapsuleSlots { weight, bias, own } = slots.caps[index];
        let [weight, bias, own] = Slot::disjoint_mut([weight, bias, own], gradient);
        let gradient = CapsuleGradient { weight, bias, own };
        self.capsules.backward(x, &self.routed, grad_y, gradient, grad_x, workspace);
    }
}

/// The router of the capsule layer of this shape, without weights yet.
pub fn router<E: Element>(config: &SrfConfig, shape: CapsuleShape) -> Router<E> {
    let routing = Routing {
        n_in: shape.n_inputs(),
        n_out: shape.out_height,
        depth_in: shape.in_depth,
        depth_out: shape.out_depth,
        stride: shape.in_height * shape.in_depth,
        n_iterations: config.iterations,
        is_sequential: config.routing != config::Routing::Dr,
        has_padding_class: shape.is_last,
    };
    Router::new(routing, member(config, shape))
}

/// None for DR and SDR without further choices, which have kernels of their own.
fn member(config: &SrfConfig, shape: CapsuleShape) -> Option<Member> {
    let normaliser = match config.couplings {
        Couplings::Softmax => Normaliser::Softmax,
        Couplings::MinMax => Normaliser::MinMax,
    };
    let options = Dynamic { normaliser, entropy: config.entropy, learns_start: config.start == Start::Learned };
    match config.routing {
        config::Routing::Sdr | config::Routing::Dr => (options != Dynamic::PLAIN).then_some(Member::Dynamic(options)),
        config::Routing::Em => Some(Member::Em),
        config::Routing::SelfRouting => Some(Member::SelfRouting),
        config::Routing::Inverted => Some(Member::Inverted { keeps_lengths: shape.is_last }),
    }
}
