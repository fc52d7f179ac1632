//! The tensors of an SRF network: its configuration in, a slot for each tensor and the layout that holds them out.

use super::{Init, Layout, Slot};
use crate::config::{CapsuleShape, Initialiser, SrfConfig};
use crate::layers::{NormGradient, NormParams};

/// Deviation of the normal initialiser.
const NORMAL: Init = Init::Normal { deviation: 0.1 };

/// Where the tensors of an SRF network live.
#[derive(Clone, Debug, PartialEq)]
pub struct SrfParams {
    /// First strided convolution.
    pub conv1: MaxoutSlots,
    /// Its batch norm.
    pub bn1: BatchNormSlots,
    /// Second strided convolution.
    pub conv2: MaxoutSlots,
    /// Its batch norm.
    pub bn2: BatchNormSlots,
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

/// Weights and biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseSlots {
    /// The weights; of a convolution `[time, frequency, in, out]`.
    pub kernel: Slot,
    /// One for each output.
    pub bias: Slot,
}

/// The two branches of a maxout convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxoutSlots {
    /// First branch.
    pub a: DenseSlots,
    /// Second branch.
    pub b: DenseSlots,
}

/// Scale and shift of a layer norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NormSlots {
    /// Scale.
    pub gamma: Slot,
    /// Shift.
    pub beta: Slot,
}

impl NormSlots {
    /// This part of a model's values.
    pub fn params<E>(self, values: &[E]) -> NormParams<'_, E> {
        NormParams { gamma: self.gamma.of(values), beta: self.beta.of(values) }
    }

    /// This part of a gradient, to be written.
    pub fn gradient<E>(self, gradient: &mut [E]) -> NormGradient<'_, E> {
        let [gamma, beta] = Slot::disjoint_mut([self.gamma, self.beta], gradient);
        NormGradient { gamma, beta }
    }
}

/// A batch norm; the two statistics lie beyond the trainable part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchNormSlots {
    /// Scale.
    pub gamma: Slot,
    /// Shift.
    pub beta: Slot,
    /// Mean over training.
    pub moving_mean: Slot,
    /// Variance over training.
    pub moving_var: Slot,
}

/// The pairs of a capsule layer; an input i is capsule h of slice k of the window, i = k I_H + h, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapsuleSlots {
    /// `W`, `[inputs, outputs, output depth, input depth]`.
    pub weight: Slot,
    /// `b`, `[inputs, outputs, output depth]`.
    pub bias: Slot,
}

impl SrfParams {
    /// Lays out the network that `config`, which has been checked, describes.
    pub fn new(config: &SrfConfig) -> (Self, Layout) {
        let layout = &mut Layout::default();
        let (filters, height, depth) = (config.filters, config.primary_height, config.primary_depth);
        let conv1 = maxout(layout, "conv1", 1, filters);
        let norm1 = norm(layout, "bn1", filters);
        let conv2 = maxout(layout, "conv2", filters, filters);
        let norm2 = norm(layout, "bn2", filters);
        let proj = dense(layout, "proj", &[config.flat_width(), height]);
        let encaps = maxout(layout, "encaps", 1, depth);
        let ln_in = norm(layout, "ln_in", height * depth);
        let shapes = config.capsule_shapes().enumerate();
        let (caps, ln_caps) = shapes.map(|(i, shape)| capsules(layout, i + 1, shape, config.initialiser)).unzip();
        let ln_out = norm(layout, "ln_out", config.classes);
        let bn1 = batch_norm(layout, "bn1", norm1);
        let bn2 = batch_norm(layout, "bn2", norm2);
        let slots = Self { conv1, bn1, conv2, bn2, proj, encaps, ln_in, caps, ln_caps, ln_out };
        (slots, std::mem::take(layout))
    }
}

/// Each branch is a layer of its own: a fan-out counts the filters of one branch.
fn maxout(layout: &mut Layout, name: &str, n_in: usize, n_out: usize) -> MaxoutSlots {
    let mut branch = |branch| dense(layout, &format!("{name}.{branch}"), &[3, 3, n_in, n_out]);
    MaxoutSlots { a: branch("a"), b: branch("b") }
}

/// The last two axes are inputs and outputs, those before them the taps of a convolution.
fn dense(layout: &mut Layout, name: &str, shape: &[usize]) -> DenseSlots {
    let (&[.., n_in, n_out], n_taps) = (shape, shape[..shape.len() - 2].iter().product::<usize>()) else {
        unreachable!("a kernel has inputs and outputs");
    };
    let init = Init::FanAvg { fan_in: n_taps * n_in, fan_out: n_taps * n_out };
    let kernel = layout.trainable(format!("{name}.kernel"), shape, init);
    DenseSlots { kernel, bias: layout.trainable(format!("{name}.bias"), &[n_out], Init::Zeros) }
}

fn norm(layout: &mut Layout, name: &str, width: usize) -> NormSlots {
    let gamma = layout.trainable(format!("{name}.gamma"), &[width], Init::Ones);
    NormSlots { gamma, beta: layout.trainable(format!("{name}.beta"), &[width], Init::Zeros) }
}

fn batch_norm(layout: &mut Layout, name: &str, NormSlots { gamma, beta }: NormSlots) -> BatchNormSlots {
    let moving_mean = layout.statistic(format!("{name}.moving_mean"), &[gamma.len], Init::Zeros);
    let moving_var = layout.statistic(format!("{name}.moving_var"), &[gamma.len], Init::Ones);
    BatchNormSlots { gamma, beta, moving_mean, moving_var }
}

fn capsules(
    layout: &mut Layout,
    number: usize,
    shape: CapsuleShape,
    initialiser: Initialiser,
) -> (CapsuleSlots, NormSlots) {
    let (n_inputs, n_outputs) = (shape.n_inputs(), shape.out_height);
    let (weight_init, bias_init) = match initialiser {
        Initialiser::FanAvg => (pair_init(shape), Init::Zeros),
        Initialiser::Normal => (NORMAL, NORMAL),
    };
    let weight_shape = [n_inputs, n_outputs, shape.out_depth, shape.in_depth];
    let weight = layout.trainable(format!("caps{number}.W"), &weight_shape, weight_init);
    let bias = layout.trainable(format!("caps{number}.b"), &weight_shape[..3], bias_init);
    let norm = norm(layout, &format!("ln_caps{number}"), n_outputs * shape.out_depth);
    (CapsuleSlots { weight, bias }, norm)
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
