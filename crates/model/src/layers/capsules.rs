//! Capsule layers: routing between windows of slices, primary capsules, and the lengths of capsules.

use srf_kernels::routing::variants::{Dynamic, Normalizer, RoutingVariant};
use srf_kernels::routing::{GradientPaths, Router, RouterGradient, Routing, Tap, Utterance, UtteranceBack};
use srf_kernels::{Buffer, Conv, ConvWeights, Element};

use super::{Backward, ConvMaxout, Forward};
use crate::config::{self, CapsuleShape, Couplings, Initializer, SrfConfig, Start};
use crate::frames::{Frames, split};
use crate::params::{Init, Scope, Slot};

/// The normal initializer of capsule layers.
const NORMAL: Init = Init::Normal { deviation: 0.1 };

/// Couplings and agreements of an utterance, `[slice][input capsule][output capsule]` each, in the last iteration.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)] // the type says what they are
pub struct Decisions<E> {
    pub couplings: Vec<E>,
    pub agreements: Vec<E>,
}

/// A capsule layer: every input capsule of a window votes for every output capsule, u = W x + b, and
/// [`srf_kernels::routing`] decides how much each vote counts.
///
/// # Shapes
/// - in: slices of `[height][depth]` with the window's left and right part as margin
/// - out: slices of `[n_out][depth_out]`, as many as came in
/// - W `[window * height][n_out][depth_out][depth]`, b `[window * height][n_out][depth_out]`; an input i is capsule h of
///   slice k of the window, i = k height + h, the oldest first; extra parameters of the routing, rows of `[n_out]`
///
/// Saves what its router wants in the backward pass.
pub struct Capsules<E> {
    routing: Routing,
    variant: Option<RoutingVariant>,
    paths: GradientPaths,
    weight: Slot,
    bias: Slot,
    /// What the routing variant learns besides: one or several tensors, or nothing.
    extra: Slot,
    router: Option<Router<E>>,
    gradient: Option<RouterGradient<E>>,
    saved: Buffer<E>,
    decisions: Vec<Decisions<E>>,
}

impl<E: Element> Capsules<E> {
    /// A layer of this shape, with the routing of `config`.
    pub fn new(mut scope: Scope<'_>, config: &SrfConfig, shape: CapsuleShape) -> Self {
        let weight_shape = [shape.n_inputs(), shape.out_height, shape.out_depth, shape.in_depth];
        let (weight_init, bias_init) = match config.initializer {
            Initializer::FanAvg => (pair_init(shape), Init::Zeros),
            Initializer::Normal => (NORMAL, NORMAL),
        };
        let weight = scope.trainable("W", &weight_shape, weight_init);
        let bias = scope.trainable("b", &weight_shape[..3], bias_init);
        let extra = extra_params(&mut scope, shape, config);
        scope.reads([Some(shape.window_left), Some(shape.window_right)]);
        // Self-routing multiplies each input capsule by one more column for each output.
        let n_more = usize::from(config.routing == config::Routing::SelfRouting);
        scope.add_products(shape.n_inputs() * shape.in_depth * shape.out_height * (shape.out_depth + n_more));
        Self {
            routing: routing(config, shape),
            variant: variant(config, shape),
            paths: GradientPaths {
                through_iterations: config.gradient.through_iterations,
                through_time: config.gradient.through_time,
            },
            weight,
            bias,
            extra,
            router: None,
            gradient: None,
            saved: Buffer::new(),
            decisions: Vec::new(),
        }
    }

    /// The router with its weights packed for inference.
    pub fn packed(&self, params: &[E]) -> Router<E> {
        let mut router = Router::new(self.routing, self.variant);
        router.pack(self.weight.of(params), self.bias.of(params), self.extra.of(params));
        router
    }

    /// The decisions of the routing for each utterance of the last forward pass, if its mode kept them.
    pub fn decisions(&self) -> &[Decisions<E>] {
        &self.decisions
    }

    /// Computes `y` from `x`.
    pub fn forward(&mut self, pass: &mut Forward<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        let routing = self.routing;
        let router = self.router.get_or_insert_with(|| Router::new(routing, self.variant));
        router.pack(self.weight.of(pass.params), self.bias.of(pass.params), self.extra.of(pass.params));
        y.resize_like(x);
        self.saved.resize(router.saved_len(x.n_frames(), true));
        let saved = split(&mut self.saved, x.lengths().iter().map(|&n| router.saved_len(n, true)));
        let n_kept = if pass.mode.keeps_decisions { x.n_utterances() } else { 0 };
        self.decisions.resize_with(n_kept, Decisions::default);
        let decisions = self.decisions.iter_mut().zip(x.lengths());
        let mut taps = decisions.map(|(d, &n)| d.tap(n * routing.n_in * routing.n_out));
        let mut utterances: Vec<_> = y
            .each_real_mut()
            .into_iter()
            .zip(saved)
            .enumerate()
            .map(|(n, (outputs, saved))| {
                let inputs = &x.padded(n)[..routing.inputs_len(x.lengths()[n])];
                Utterance { n_slices: x.lengths()[n], inputs, state: &[], outputs, saved, tap: taps.next() }
            })
            .collect();
        router.forward(&mut utterances, &mut pass.workspace.routing);
    }

    /// Adds to the gradients of the parameters and writes that of `x`, margin included, from that of `y`.
    ///
    /// `x` and `y` are those of the forward pass.
    pub fn backward(
        &mut self,
        pass: &mut Backward<'_, E>,
        x: &Frames<E>,
        y: &Frames<E>,
        d_y: &Frames<E>,
        d_x: &mut Frames<E>,
    ) {
        let (router, routing) = (self.router.as_ref().expect("made by the forward pass"), self.routing);
        d_x.resize_like(x);
        let saved = split(&mut self.saved, x.lengths().iter().map(|&n| router.saved_len(n, true)));
        let mut utterances: Vec<_> = d_x
            .each_padded_mut()
            .into_iter()
            .zip(saved)
            .enumerate()
            .map(|(n, (d_inputs, saved))| {
                let n_slices = x.lengths()[n];
                let len = routing.inputs_len(n_slices);
                UtteranceBack {
                    n_slices,
                    inputs: &x.padded(n)[..len],
                    state: &[],
                    outputs: y.real(n),
                    saved,
                    d_outputs: d_y.real(n),
                    d_inputs: &mut d_inputs[..len],
                }
            })
            .collect();
        let gradient = self.gradient.get_or_insert_with(|| router.new_gradient());
        router.backward(self.paths, &mut utterances, gradient, &mut pass.workspace.routing);
        let [d_weight, d_bias, d_extra] = pass.gradients([self.weight, self.bias, self.extra]);
        gradient.add_to(&routing, d_weight, d_bias, d_extra);
    }
}

impl<E: Element> Decisions<E> {
    /// Room for `n` of each.
    fn tap(&mut self, n: usize) -> Tap<'_, E> {
        self.couplings.resize(n, E::ZERO);
        self.agreements.resize(n, E::ZERO);
        Tap { couplings: &mut self.couplings, agreements: &mut self.agreements }
    }
}

/// The router of the capsule layer of this shape, without weights yet.
pub fn router<E: Element>(config: &SrfConfig, shape: CapsuleShape) -> Router<E> {
    Router::new(routing(config, shape), variant(config, shape))
}

fn routing(config: &SrfConfig, shape: CapsuleShape) -> Routing {
    Routing {
        n_in: shape.n_inputs(),
        n_out: shape.out_height,
        depth_in: shape.in_depth,
        depth_out: shape.out_depth,
        stride: shape.in_height * shape.in_depth,
        n_iterations: config.iterations,
        is_sequential: config.routing != config::Routing::Dr,
        has_padding_class: shape.is_last,
    }
}

/// `None` for DR and SDR without further choices, which have kernels of their own.
fn variant(config: &SrfConfig, shape: CapsuleShape) -> Option<RoutingVariant> {
    let normalizer = match config.couplings {
        Couplings::Softmax => Normalizer::Softmax,
        Couplings::MinMax => Normalizer::MinMax,
    };
    let options = Dynamic { normalizer, entropy: config.entropy, learns_start: config.start == Start::Learned };
    match config.routing {
        config::Routing::Sdr | config::Routing::Dr => {
            (options != Dynamic::PLAIN).then_some(RoutingVariant::Dynamic(options))
        }
        config::Routing::Em => Some(RoutingVariant::Em),
        config::Routing::SelfRouting => Some(RoutingVariant::SelfRouting),
        config::Routing::Inverted => Some(RoutingVariant::Inverted { keeps_lengths: shape.is_last }),
    }
}

/// The tensors that a routing variant has besides W and b, in the order that its kernel wants.
///
/// Each starts where the routing is closest to a plain one: costs and starts at 0, gates at 1.
fn extra_params(scope: &mut Scope<'_>, shape: CapsuleShape, config: &SrfConfig) -> Slot {
    let (n_inputs, n_outputs, offset) = (shape.n_inputs(), shape.out_height, scope.offset());
    match (config.routing, config.start) {
        (config::Routing::Em, _) => {
            scope.trainable("beta_a", &[n_outputs], Init::Zeros);
            scope.trainable("beta_u", &[n_outputs], Init::Zeros);
        }
        (config::Routing::SelfRouting, _) => {
            let init = Init::FanAvg { fan_in: shape.in_depth, fan_out: n_outputs };
            scope.trainable("route.W", &[n_inputs, shape.in_depth, n_outputs], init);
            scope.trainable("route.b", &[n_inputs, n_outputs], Init::Zeros);
            scope.trainable("gate", &[n_outputs], Init::Ones);
        }
        (_, Start::Learned) => {
            scope.trainable("start", &[n_inputs, n_outputs], Init::Zeros);
        }
        (_, Start::Zero) => {}
    }
    Slot { offset, len: scope.offset() - offset }
}

/// The fans of one pair's matrix: its own depths.
///
/// The paper draws "all variables" by the average of their input and output units, and does not say what the units of
/// `W` are. Three readings are possible, and they differ by orders of magnitude. With layer-normed inputs (variance 1)
/// and equal couplings 1 / J, a value of s = Σ_i c û has variance I D σ² / J². In a middle layer of SRF-7L (I = 90,
/// J = 30, depths D = O = 8):
/// - the matrix of a pair, σ² = 2 / (D + O): variance 0.1, |s|² about 0.8, which squash maps to a length of 0.44;
/// - the whole layer as one dense map, σ² = 2 / (I D + J O): |s|² about 0.013, of which squash leaves a length
///   of 0.013; its variance, 2e-5, is far below the 1e-3 that the layer norm adds, so that the norm cannot restore the
///   signal and it dies out over seven layers;
/// - the four axes as those of a convolution, I J counted as taps: smaller still by a factor of 45.
///
/// Only the first keeps a deep network alive, and it is the plainest: W_ij is a linear map from one capsule to another.
fn pair_init(shape: CapsuleShape) -> Init {
    Init::FanAvg { fan_in: shape.in_depth, fan_out: shape.out_depth }
}

/// Primary capsules from a number for each: a 3x3 convolution over time and height with as many filters as a capsule is
/// deep, in two branches with dropout and maximum, then squash over the depth.
///
/// # Shapes
/// - in: frames of `[height]` with one zero frame before and after, out: frames of `[height][depth]`
///
/// Saves the capsules before the squash.
pub struct Encapsulate<E> {
    depth: usize,
    conv: ConvMaxout<E>,
    unsquashed: Frames<E>,
}

impl<E: Element> Encapsulate<E> {
    /// Zero frames that the input needs before and after each utterance.
    pub const MARGIN: [usize; 2] = [1, 1];

    /// A layer for `height` capsules of `depth`; dropout as in [`ConvMaxout::new`].
    pub fn new(scope: Scope<'_>, [height, depth]: [usize; 2], dropout: (f64, u32)) -> Self {
        let conv =
            Conv { kernel: [3, 3], stride: [1, 1], n_freq: height, pad_freq: [1, 1], n_channels: 1, n_filters: depth };
        Self {
            depth,
            conv: ConvMaxout::new(scope, conv, Self::MARGIN, dropout),
            unsquashed: Frames::new(height * depth, [0, 0]),
        }
    }

    /// The weights of the convolution, packed for inference.
    pub fn packed(&mut self, params: &[E]) -> ConvWeights<E> {
        self.conv.packed(params)
    }

    /// The capsules before the squash, of the last forward pass.
    pub fn unsquashed(&self) -> &Frames<E> {
        &self.unsquashed
    }

    /// Computes the capsules `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, pass: &Forward<'_, E>, x: &Frames<E>, y: &mut Frames<E>) {
        self.conv.forward(pass, x, &mut self.unsquashed);
        y.resize_like(x);
        y.each_block(|span, y| (E::kernels().squash_forward)(self.unsquashed.part(span), self.depth, y));
    }

    /// Adds to the gradients of the parameters and writes that of the input; uses up `d`, that of the capsules.
    ///
    /// `x` is that of the forward pass.
    #[track_caller]
    pub fn backward(&mut self, pass: &mut Backward<'_, E>, x: &Frames<E>, d: &mut Frames<E>, d_x: &mut Frames<E>) {
        d.each_block(|span, d| (E::kernels().squash_backward)(self.unsquashed.part(span), self.depth, d));
        self.conv.backward(pass, x, d, Some(d_x));
    }
}

/// Lengths of capsules: sqrt(sum of squares + epsilon) over the depth.
///
/// # Shapes
/// - in: slices of `[height][depth]`, out: slices of `[height]`
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    depth: usize,
}

impl Lengths {
    /// A layer for capsules of `depth` values.
    pub fn new(depth: usize) -> Self {
        Self { depth }
    }

    /// Computes the lengths `y` of the capsules `x`.
    pub fn forward<E: Element>(self, x: &Frames<E>, y: &mut Frames<E>) {
        y.resize_like(x);
        y.each_block(|span, y| (E::kernels().length_forward)(x.part(span), self.depth, y));
    }

    /// Writes the gradient of the capsules `x` from that of their lengths `y`.
    pub fn backward<E: Element>(self, x: &Frames<E>, y: &Frames<E>, d_y: &Frames<E>, d_x: &mut Frames<E>) {
        d_x.resize_like(x);
        d_x.each_block(|span, d_x| {
            (E::kernels().length_backward)(x.part(span), self.depth, y.part(span), d_y.part(span), d_x);
        });
    }
}
