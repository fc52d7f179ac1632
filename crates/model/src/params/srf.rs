//! The tensors of an SRF network: its configuration in, a slot for each tensor and the layout that holds them out.

use super::slots::{DenseSlots, MaxoutSlots, NormSlots, SlicerSlots, dense, maxout, norm};
use super::{Init, Layout, Slot};
use crate::config::{CapsuleShape, Initialiser, Routing, SrfConfig, Start};

/// Deviation of the normal initialiser.
const NORMAL: Init = Init::Normal { deviation: 0.1 };

/// Where the tensors of an SRF network live.
#[derive(Clone, Debug, PartialEq)]
pub struct SrfParams {
    /// The two strided convolutions with their batch norms.
    pub slicer: SlicerSlots,
    /// Projection of a slice to a number for each primary capsule; kernel `[flat width, height]`.
    pub proj: DenseSlots,
    /// Convolution that gives the primary capsules their depth.
    pub encaps: MaxoutSlots,
    /// Layer norm of the primary capsules.
    pub ln_in: NormSlots,
    /// Capsule layers, the lowest first.
    pub caps: Vec<CapsuleSlots>,
    /// The layer norm behind each capsule layer.
    pub ln_caps: Vec<NormSlots>,
    /// Layer norm of the lengths of the class capsules.
    pub ln_out: NormSlots,
}

/// The pairs of a capsule layer; an input i is capsule h of slice k of the window, i = k I_H + h, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapsuleSlots {
    /// `W`, `[inputs, outputs, output depth, input depth]`.
    pub weight: Slot,
    /// `b`, `[inputs, outputs, output depth]`.
    pub bias: Slot,
    /// What the routing has of its own, in rows of a number for each output: one or several tensors, or nothing.
    pub own: Slot,
}

impl SrfParams {
    /// Lays out the network that `config`, which has been checked, describes.
    pub fn new(config: &SrfConfig) -> (Self, Layout) {
        let layout = &mut Layout::default();
        let (height, depth) = (config.primary_height, config.primary_depth);
        let mut slicer = SlicerSlots::new(layout, config.filters);
        let proj = dense(layout, "proj", &[config.flat_width(), height]);
        let encaps = maxout(layout, "encaps", 1, depth);
        let ln_in = norm(layout, "ln_in", height * depth);
        let shapes = config.capsule_shapes().enumerate();
        let (caps, ln_caps) = shapes.map(|(i, shape)| capsules(layout, i + 1, shape, config)).unzip();
        let ln_out = norm(layout, "ln_out", config.classes);
        slicer.add_statistics(layout);
        let slots = Self { slicer, proj, encaps, ln_in, caps, ln_caps, ln_out };
        (slots, std::mem::take(layout))
    }
}

fn capsules(layout: &mut Layout, number: usize, shape: CapsuleShape, config: &SrfConfig) -> (CapsuleSlots, NormSlots) {
    let (n_inputs, n_outputs) = (shape.n_inputs(), shape.out_height);
    let (weight_init, bias_init) = match config.initialiser {
        Initialiser::FanAvg => (pair_init(shape), Init::Zeros),
        Initialiser::Normal => (NORMAL, NORMAL),
    };
    let weight_shape = [n_inputs, n_outputs, shape.out_depth, shape.in_depth];
    let weight = layout.trainable(format!("caps{number}.W"), &weight_shape, weight_init);
    let bias = layout.trainable(format!("caps{number}.b"), &weight_shape[..3], bias_init);
    let own = own(layout, number, shape, config);
    let norm = norm(layout, &format!("ln_caps{number}"), n_outputs * shape.out_depth);
    (CapsuleSlots { weight, bias, own }, norm)
}

/// The tensors that the routing has of its own, in the order that its kernel wants.
///
/// Each starts where the routing is closest to a plain one: costs and starts at 0, gates at 1.
fn own(layout: &mut Layout, number: usize, shape: CapsuleShape, config: &SrfConfig) -> Slot {
    let (n_inputs, n_outputs) = (shape.n_inputs(), shape.out_height);
    let offset = layout.n_values();
    let mut add = |name: &str, shape: &[usize], init| layout.trainable(format!("caps{number}.{name}"), shape, init);
    match (config.routing, config.start) {
        (Routing::Em, _) => {
            add("beta_a", &[n_outputs], Init::Zeros);
            add("beta_u", &[n_outputs], Init::Zeros);
        }
        (Routing::SelfRouting, _) => {
            let init = Init::FanAvg { fan_in: shape.in_depth, fan_out: n_outputs };
            add("route.W", &[n_inputs, shape.in_depth, n_outputs], init);
            add("route.b", &[n_inputs, n_outputs], Init::Zeros);
            add("gate", &[n_outputs], Init::Ones);
        }
        (_, Start::Learned) => {
            add("start", &[n_inputs, n_outputs], Init::Zeros);
        }
        (_, Start::Zero) => {}
    }
    Slot { offset, len: layout.n_values() - offset }
}

/// The fans of one pair's matrix: its own depths.
///
/// The paper draws "all variables" by the average of their input and output units, and does not say what the units of
/// `W` are. Three readings are possible, and they differ by orders of magnitude. With layer-normed inputs (variance 1)
/// and equal couplings 1 / J, a value of s = Σ_i c û has variance I D σ² / J². In a middle layer of SRF-7L (I = 90,
/// J = 30, depths D = O = 8):
/// - the matrix of a pair, σ² = 2 / (D + O): variance 0.1, |s|² about 0.8, which squash maps to a length of 0.44;
/// - the whole layer as one dense map, σ² = 2 / (I D + J O): |s|² about 0.013, of which squash leaves a length
///   of 0.013; the variance behind it, 2e-5, is far below the 1e-3 that the layer norm adds, so that the norm cannot restore
///   the signal and it dies out over seven layers;
/// - the four axes as those of a convolution, I J counted as taps: smaller still by a factor of 45.
///
/// Only the first keeps a deep network alive, and it is the plainest: W_ij is a linear map from one capsule to another.
fn pair_init(shape: CapsuleShape) -> Init {
    Init::FanAvg { fan_in: shape.in_depth, fan_out: shape.out_depth }
}
