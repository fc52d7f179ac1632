//! Where every number of a model lives: a configuration in, one flat buffer with named, shaped parts out.
//!
//! Trainable tensors come first, in the order of the network; the moving statistics of the batch norms come last, so
//! that a gradient or an optimiser's state is one buffer over the first [`Layout::n_trainable`] numbers.
//! Layers do not look tensors up by name: they hold [`Slot`]s, found once ([`SrfParams`] and the like).

mod cnn;
mod lstm;
mod slots;
mod srf;
mod transformer;

#[cfg(test)]
mod tests;

pub use cnn::{CnnParams, MaxoutNormSlots};
pub use lstm::{CellSlots, LstmParams};
pub use slots::{BatchNormSlots, DenseSlots, MaxoutSlots, NormSlots, SlicerSlots};
pub use srf::{CapsuleSlots, SrfParams};
pub use transformer::{AttentionSlots, BlockSlots, TransformerParams};

use std::ops::Range;
use std::sync::Arc;

use srf_kernels::Element;

use crate::config::ModelConfig;

/// A part of a flat buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// This part of `buffer`, to be written.
    #[track_caller]
    pub fn of_mut<E>(self, buffer: &mut [E]) -> &mut [E] {
        &mut buffer[self.range()]
    }

    /// Several parts of `buffer` that do not overlap, to be written together.
    #[track_caller]
    pub fn disjoint_mut<E, const N: usize>(slots: [Self; N], buffer: &mut [E]) -> [&mut [E]; N] {
        buffer.get_disjoint_mut(slots.map(Self::range)).expect("slots of one layout never overlap")
    }
}

/// How a tensor is drawn before training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All 0.
    Zeros,
    /// All 1.
    Ones,
    /// Uniform with variance 2 / (`fan_in` + `fan_out`).
    FanAvg {
        /// Inputs that reach one output.
        fan_in: usize,
        /// Outputs that one input reaches.
        fan_out: usize,
    },
    /// Normal around 0.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
    /// Rows of length 1 at right angles to each other.
    Orthogonal {
        /// How many; at most as many as they have values.
        rows: usize,
    },
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

/// Every tensor of a model, in the order of the flat buffer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    tensors: Vec<Tensor>,
    n_values: usize,
    n_trainable: usize,
}

impl Layout {
    /// The layout of a model; the configuration has been checked.
    pub fn new(config: &ModelConfig) -> Self {
        match config {
            ModelConfig::Srf(srf) => SrfParams::new(srf).1,
            ModelConfig::Lstm(lstm) => LstmParams::new(lstm).1,
            ModelConfig::Cnn(cnn) => CnnParams::new(cnn).1,
            ModelConfig::Transformer(transformer) => TransformerParams::new(transformer).1,
        }
    }

    /// The tensors in the order of the buffer.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
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

    /// Appends a trainable tensor.
    fn trainable(&mut self, name: impl Into<String>, shape: &[usize], init: Init) -> Slot {
        assert_eq!(self.n_trainable, self.n_values, "trainable tensors come before statistics");
        let slot = self.statistic(name, shape, init);
        self.n_trainable = self.n_values;
        slot
    }

    /// Appends a moving statistic.
    fn statistic(&mut self, name: impl Into<String>, shape: &[usize], init: Init) -> Slot {
        let slot = Slot { offset: self.n_values, len: shape.iter().product() };
        self.n_values += slot.len;
        self.tensors.push(Tensor { name: name.into(), shape: shape.to_vec(), slot, init });
        slot
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

    /// The part that gradients change.
    pub fn trainable(&self) -> &[E] {
        &self.values[..self.layout.n_trainable()]
    }

    /// The part that gradients change, to be written.
    pub fn trainable_mut(&mut self) -> &mut [E] {
        &mut self.values[..self.layout.n_trainable()]
    }

    /// A tensor by its name; not for hot paths, which hold [`Slot`]s.
    pub fn tensor(&self, name: &str) -> Option<&[E]> {
        Some(self.layout.find(name)?.slot.of(&self.values))
    }

    /// A tensor by its name, to be written.
    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut [E]> {
        Some(self.layout.find(name)?.slot.of_mut(&mut self.values))
    }
}
