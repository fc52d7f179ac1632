//! The network of any architecture: feature frames in, logits out; gradients back.
//!
//! # Shapes
//! - in: frames of `[features]` with [`Network::margin`], out: ceil(n / [`Network::frames_per_slice`]) slices of
//!   `[classes]` for n frames

use srf_kernels::Element;

use crate::cnn::CnnNet;
use crate::config::ModelConfig;
use crate::frames::Frames;
use crate::layers::Draw;
use crate::loss::{BatchLoss, Labels};
use crate::lstm::LstmNet;
use crate::params::Layout;
use crate::srf::Srf;
use crate::summary::FRAMES_PER_SLICE;
use crate::transformer::TransformerNet;

/// How a pass is run; the default is inference.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mode<'a> {
    /// Whether batch norms use the statistics of the batch (and update the moving ones) or the moving ones.
    pub uses_batch_statistics: bool,
    /// Where dropout's decisions come from; none drops nothing.
    pub draw: Option<Draw<'a>>,
    /// Whether to keep what the routing decided, see [`Srf::decisions`](crate::srf::Srf::decisions); networks without routing have nothing to keep.
    pub keeps_decisions: bool,
}

/// The layers, their activations and their gradients, in memory that is sized by the largest batch and reused.
#[non_exhaustive]
pub enum Network<E> {
    /// Capsules with routing.
    Srf(Box<Srf<E>>),
    /// Recurrent layers.
    Lstm(Box<LstmNet<E>>),
    /// Convolutions.
    Cnn(Box<CnnNet<E>>),
    /// Self-attention.
    Transformer(Box<TransformerNet<E>>),
}

impl<E: Element> Network<E> {
    /// The network that `config`, which has been checked, describes, and where its parameters live.
    pub fn new(config: &ModelConfig) -> (Self, Layout) {
        match config {
            ModelConfig::Srf(config) => {
                let (net, layout) = Srf::new(config);
                (Self::Srf(Box::new(net)), layout)
            }
            ModelConfig::Lstm(config) => {
                let (net, layout) = LstmNet::new(config);
                (Self::Lstm(Box::new(net)), layout)
            }
            ModelConfig::Cnn(config) => {
                let (net, layout) = CnnNet::new(config);
                (Self::Cnn(Box::new(net)), layout)
            }
            ModelConfig::Transformer(config) => {
                let (net, layout) = TransformerNet::new(config);
                (Self::Transformer(Box::new(net)), layout)
            }
        }
    }

    /// Zero frames that the input needs before and after each utterance.
    pub fn margin(&self) -> [usize; 2] {
        match self {
            Self::Srf(_) => Srf::<E>::MARGIN,
            Self::Lstm(net) => net.margin(),
            Self::Cnn(net) => net.margin(),
            Self::Transformer(_) => TransformerNet::<E>::MARGIN,
        }
    }

    /// Feature frames that become one slice of logits.
    pub fn frames_per_slice(&self) -> usize {
        match self {
            Self::Srf(_) | Self::Transformer(_) => FRAMES_PER_SLICE,
            Self::Lstm(net) => net.frames_per_slice(),
            Self::Cnn(net) => net.frames_per_slice(),
        }
    }

    /// Computes the logits of `x`; only batch norms write to `values`, their moving statistics.
    pub fn forward(&mut self, values: &mut [E], mode: Mode<'_>, x: &Frames<E>) -> &Frames<E> {
        match self {
            Self::Srf(net) => net.forward(values, mode, x),
            Self::Lstm(net) => net.forward(values, mode, x),
            Self::Cnn(net) => net.forward(values, mode, x),
            Self::Transformer(net) => net.forward(values, mode, x),
        }
    }

    /// The loss of the last forward pass, and its gradient for [`Network::backward`].
    pub fn loss(&mut self, labels: &[Labels<'_>]) -> &BatchLoss<E> {
        match self {
            Self::Srf(net) => net.loss(labels),
            Self::Lstm(net) => net.loss(labels),
            Self::Cnn(net) => net.loss(labels),
            Self::Transformer(net) => net.loss(labels),
        }
    }

    /// Adds the gradient of the last loss to `gradient`; `values`, `mode` and `x` are those of the forward pass.
    pub fn backward(&mut self, values: &[E], mode: Mode<'_>, x: &Frames<E>, gradient: &mut [E]) {
        match self {
            Self::Srf(net) => net.backward(values, mode, x, gradient),
            Self::Lstm(net) => net.backward(values, mode, x, gradient),
            Self::Cnn(net) => net.backward(values, mode, x, gradient),
            Self::Transformer(net) => net.backward(values, mode, x, gradient),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod tests;
