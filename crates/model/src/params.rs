//! Where every number of a model lives: one flat buffer with named, shaped parts.
//!
//! A network is built layer by layer on a [`Plan`], which hands out the [`Slot`]s that the layers keep and counts
//! parameters, products and context on the way; the finished [`Layout`] is therefore also the summary of the network.
//! Trainable tensors come first, in the order of the network; the moving statistics of the batch norms come last, so
//! that a gradient or an optimizer's state is one buffer over the first [`Layout::n_trainable`] numbers.
//!
//! ```
//! use std::sync::Arc;
//! use srf_model::params::{Init, Params, Plan, Scope, Slot};
//!
//! // A layer of one's own registers its tensors and says what it costs and reads.
//! let mut plan = Plan::new(40);
//! let mut scope: Scope<'_> = plan.layer("mine", &[8]);
//! let kernel: Slot = scope.kernel("kernel", &[40, 8]);
//! let bias = scope.trainable("bias", &[8], Init::Zeros);
//! scope.statistic("mean", &[8], Init::Ones);
//! scope.add_products(40 * 8);
//! scope.add_products_per_pair(0);
//! scope.reads([Some(1), Some(2)]);
//! scope.strides(2);
//! let layout = plan.finish();
//! assert_eq!((layout.n_values(), layout.n_trainable(), layout.frames_per_slice()), (336, 328, 2));
//! assert_eq!(layout.context(), [Some(1), Some(2)]);
//!
//! let mut params = Params::<f32>::initialize(Arc::new(layout), 1);
//! params.tensor_mut("mine.bias").expect("it was registered").fill(0.5);
//! assert_eq!(bias.of(&params.values), [0.5; 8]);
//! let [weights, biases] = Slot::disjoint_mut([kernel, bias], &mut params.values);
//! assert_eq!((weights.len(), biases.len()), (320, 8));
//! ```

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use srf_kernels::Element;

use crate::config::ModelConfig;
use crate::network::Network;
use crate::random::Random;

/// A part of a flat buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Where it starts.
    pub offset: usize,
    /// How long it is.
    pub len: usize,
}

impl Slot {
    /// The indices it covers.
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.len
    }

    /// This part of `buffer`.
    #[track_caller]
    pub fn of<E>(self, buffer: &[E]) -> &[E] {
        &buffer[self.range()]
    }

    /// This part of `buffer`, mutable.
    #[track_caller]
    pub fn of_mut<E>(self, buffer: &mut [E]) -> &mut [E] {
        &mut buffer[self.range()]
    }

    /// Several parts of `buffer` that do not overlap, all mutable.
    #[track_caller]
    pub fn disjoint_mut<E, const N: usize>(slots: [Self; N], buffer: &mut [E]) -> [&mut [E]; N] {
        buffer.get_disjoint_mut(slots.map(Self::range)).expect("slots of one layout never overlap")
    }
}

/// How a tensor is drawn before training.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // the variants say what the fields are
pub enum Init {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// Uniform with variance 2 / (`fan_in` + `fan_out`).
    FanAvg { fan_in: usize, fan_out: usize },
    /// Normal with mean 0 and this standard deviation.
    Normal { deviation: f64 },
    /// This many rows of length 1 at right angles to each other; at most as many as they have values.
    Orthogonal { rows: usize },
    /// The bias of an LSTM cell: 1 in the second quarter, that of the forget gate, else 0.
    ForgetOne,
}

/// A named tensor of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Such as `conv1.a.kernel`.
    pub name: String,
    /// Its axes, the last one fastest.
    pub shape: Vec<usize>,
    /// Where it lives.
    pub slot: Slot,
    /// How it is drawn.
    pub init: Init,
}

/// One layer: its output and its size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerSummary {
    /// Its name, with which the names of its tensors begin.
    pub name: String,
    /// Input frames per slice of its output: T frames become ceil(T / this) slices.
    pub time_divisor: usize,
    /// The other axes of its output.
    pub shape: Vec<usize>,
    /// Numbers in the layer.
    pub parameters: u64,
    /// Multiplications for a slice of its output.
    #[serde(skip)]
    products: u64,
    /// Further multiplications for a slice of its output and each slice of the utterance.
    #[serde(skip)]
    products_per_pair: u64,
}

/// Every tensor of a model, in the order of the flat buffer, and every layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    tensors: Vec<Tensor>,
    layers: Vec<LayerSummary>,
    n_values: usize,
    n_trainable: usize,
    frames_per_slice: usize,
    context: [Option<usize>; 2],
}

impl Layout {
    /// The layout of a model. Costs little even for sizes beyond all bounds: nothing of a tensor's size is allocated.
    pub fn new(config: &ModelConfig) -> Self {
        Network::<f32>::new(config).1
    }

    /// The tensors in the order of the buffer.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The layers in order, the input first.
    pub fn layers(&self) -> &[LayerSummary] {
        &self.layers
    }

    /// The tensor of this name.
    pub fn find(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// Numbers in the model.
    pub fn n_values(&self) -> usize {
        self.n_values
    }

    /// Numbers that gradients change: the first so many of the buffer.
    pub fn n_trainable(&self) -> usize {
        self.n_trainable
    }

    /// Feature frames that become one slice of logits.
    pub fn frames_per_slice(&self) -> usize {
        self.frames_per_slice
    }

    /// Feature frames before and after its own first one that a slice depends on; `None` for all of them.
    pub fn context(&self) -> [Option<usize>; 2] {
        self.context
    }

    /// Floating-point operations of the products of a forward pass over `n_frames` frames.
    pub fn flops(&self, n_frames: usize) -> u64 {
        let n_slices = n_frames.div_ceil(self.frames_per_slice) as u64;
        let of_layer = |layer: &LayerSummary| {
            let n_rows = n_slices * (self.frames_per_slice / layer.time_divisor) as u64;
            2 * n_rows * (layer.products + layer.products_per_pair * n_slices)
        };
        self.layers.iter().map(of_layer).sum()
    }
}

/// A layout under construction.
///
/// Sizes saturate: a configuration beyond all bounds gets a huge count, which validation then refuses.
#[derive(Debug)]
pub struct Plan {
    layout: Layout,
    /// With offsets from the start of the statistics, which is known only at the end.
    statistics: Vec<Tensor>,
}

impl Plan {
    /// A network that reads frames of `features` values.
    pub fn new(features: usize) -> Self {
        let layout = Layout { frames_per_slice: 1, context: [Some(0); 2], ..Layout::default() };
        let mut plan = Self { layout, statistics: Vec::new() };
        plan.layer("input", &[features]);
        plan
    }

    /// Begins the next layer, whose slices have this shape.
    pub fn layer(&mut self, name: impl Into<String>, shape: &[usize]) -> Scope<'_> {
        let (name, time_divisor) = (name.into(), self.layout.frames_per_slice);
        self.layout.layers.push(LayerSummary {
            name: name.clone(),
            time_divisor,
            shape: shape.to_vec(),
            parameters: 0,
            products: 0,
            products_per_pair: 0,
        });
        Scope { plan: self, name }
    }

    /// Puts the statistics after the trainable tensors.
    pub fn finish(mut self) -> Layout {
        let n_trainable = self.layout.n_values;
        for mut tensor in self.statistics {
            tensor.slot.offset = tensor.slot.offset.saturating_add(n_trainable);
            self.layout.n_values = self.layout.n_values.saturating_add(tensor.slot.len);
            self.layout.tensors.push(tensor);
        }
        Layout { n_trainable, ..self.layout }
    }
}

/// A layer, or a part of it, that registers its tensors under its name.
pub struct Scope<'a> {
    plan: &'a mut Plan,
    name: String,
}

impl Scope<'_> {
    /// A part of the layer, whose tensors have its name too.
    pub fn part(&mut self, name: &str) -> Scope<'_> {
        Scope { name: format!("{}.{name}", self.name), plan: self.plan }
    }

    /// Adds a trainable tensor.
    pub fn trainable(&mut self, name: &str, shape: &[usize], init: Init) -> Slot {
        let tensor = self.tensor(name, shape, self.plan.layout.n_values, init);
        let slot = tensor.slot;
        self.plan.layout.n_values = self.plan.layout.n_values.saturating_add(slot.len);
        self.plan.layout.tensors.push(tensor);
        slot
    }

    /// Adds weights whose last two axes are inputs and outputs, and those before them the taps of a convolution.
    pub fn kernel(&mut self, name: &str, shape: &[usize]) -> Slot {
        let &[ref taps @ .., n_in, n_out] = shape else {
            unreachable!("a kernel has inputs and outputs");
        };
        let n_taps: usize = taps.iter().product();
        self.trainable(name, shape, Init::FanAvg { fan_in: n_taps * n_in, fan_out: n_taps * n_out })
    }

    /// Adds a moving statistic; its slot is relative to the start of the statistics.
    pub fn statistic(&mut self, name: &str, shape: &[usize], init: Init) -> Slot {
        let offset = self.plan.statistics.last().map_or(0, |last| last.slot.range().end);
        let tensor = self.tensor(name, shape, offset, init);
        let slot = tensor.slot;
        self.plan.statistics.push(tensor);
        slot
    }

    fn tensor(&mut self, name: &str, shape: &[usize], offset: usize, init: Init) -> Tensor {
        let len = shape.iter().fold(1, |n: usize, &size| n.saturating_mul(size));
        let layer = self.summary();
        layer.parameters = layer.parameters.saturating_add(len as u64);
        Tensor { name: format!("{}.{name}", self.name), shape: shape.to_vec(), slot: Slot { offset, len }, init }
    }

    fn summary(&mut self) -> &mut LayerSummary {
        self.plan.layout.layers.last_mut().expect("a scope belongs to a layer")
    }

    /// Numbers of the network so far: where the next trainable tensor starts.
    pub fn offset(&self) -> usize {
        self.plan.layout.n_values
    }

    /// Counts multiplications for a slice of the layer's output.
    pub fn add_products(&mut self, n: usize) {
        let layer = self.summary();
        layer.products = layer.products.saturating_add(n as u64);
    }

    /// Counts multiplications for a slice of the layer's output and each slice of the utterance.
    pub fn add_products_per_pair(&mut self, n: usize) {
        self.summary().products_per_pair += n as u64;
    }

    /// Says how many slices of its input before and after a slice the layer reads; `None` for all of them.
    pub fn reads(&mut self, slices: [Option<usize>; 2]) {
        let layout = &mut self.plan.layout;
        for (context, slices) in layout.context.iter_mut().zip(slices) {
            *context = context.zip(slices).map(|(frames, slices)| frames + slices * layout.frames_per_slice);
        }
    }

    /// Says that the layer keeps one slice of `n`.
    pub fn strides(&mut self, n: usize) {
        self.plan.layout.frames_per_slice *= n;
        self.summary().time_divisor *= n;
    }
}

/// The numbers of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Params<E> {
    /// All of them, as the layout orders them.
    pub values: Vec<E>,
    /// What is where.
    pub layout: Arc<Layout>,
}

impl<E: Element> Params<E> {
    /// A model of zeros.
    pub fn zeros(layout: Arc<Layout>) -> Self {
        Self { values: vec![E::ZERO; layout.n_values()], layout }
    }

    /// A model before training.
    ///
    /// Every tensor is drawn from its own stream ([`Random`]), named after the tensor: its numbers depend on the seed,
    /// on its name and on its initializer, not on what else the model holds.
    pub fn initialize(layout: Arc<Layout>, seed: u64) -> Self {
        let mut params = Self::zeros(layout);
        for tensor in params.layout.tensors() {
            let values = tensor.slot.of_mut(&mut params.values);
            fill(values, tensor.init, Random::new(seed, &tensor.name));
        }
        params
    }

    /// The part that gradients change.
    pub fn trainable(&self) -> &[E] {
        &self.values[..self.layout.n_trainable()]
    }

    /// The part that gradients change, mutable.
    pub fn trainable_mut(&mut self) -> &mut [E] {
        &mut self.values[..self.layout.n_trainable()]
    }

    /// A tensor by its name; not for hot paths, which hold [`Slot`]s.
    pub fn tensor(&self, name: &str) -> Option<&[E]> {
        Some(self.layout.find(name)?.slot.of(&self.values))
    }

    /// A tensor by its name, mutable.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut [E]> {
        Some(self.layout.find(name)?.slot.of_mut(&mut self.values))
    }
}

fn fill<E: Element>(values: &mut [E], init: Init, mut random: Random) {
    match init {
        Init::Zeros => values.fill(E::ZERO),
        Init::Ones => values.fill(E::ONE),
        Init::FanAvg { fan_in, fan_out } => {
            // sqrt(3 / n) for n the mean of both fans (Glorot and Bengio, 2010).
            let limit = (6.0 / (fan_in + fan_out) as f64).sqrt();
            values.fill_with(|| E::from_f64(limit * (2.0 * random.uniform() - 1.0)));
        }
        Init::Normal { deviation } => values.fill_with(|| E::from_f64(deviation * random.normal())),
        Init::Orthogonal { rows } => {
            let drawn = orthogonal(rows, values.len() / rows.max(1), random);
            values.iter_mut().zip(drawn).for_each(|(value, drawn)| *value = E::from_f64(drawn));
        }
        Init::ForgetOne => {
            values.fill(E::ZERO);
            let quarter = values.len() / 4;
            values[quarter..2 * quarter].fill(E::ONE);
        }
    }
}

/// `rows` random directions at right angles, uniform over all such sets (Saxe, McClelland and Ganguli, 2014).
///
/// Gram-Schmidt on normal rows. Rows four times as long as they are many are far from parallel, so one pass is good to
/// the last digits.
fn orthogonal(rows: usize, width: usize, mut random: Random) -> Vec<f64> {
    let mut matrix: Vec<f64> = (0..rows * width).map(|_| random.normal()).collect();
    for index in 0..rows {
        let (done, rest) = matrix.split_at_mut(index * width);
        let row = &mut rest[..width];
        for other in done.chunks_exact(width) {
            let common = dot(other, row);
            row.iter_mut().zip(other).for_each(|(x, &other)| *x -= common * other);
        }
        let length = dot(row, row).sqrt();
        row.iter_mut().for_each(|x| *x /= length);
    }
    matrix
}

/// In sixteen running sums, so that it is fast and has the same bits everywhere.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 16];
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum()
}
