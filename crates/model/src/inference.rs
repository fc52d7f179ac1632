//! Recognition with any architecture: feature frames in, log-probabilities out.
//!
//! [`Inference`] holds the weights and is shared; [`InferenceStream`] holds the state of one speaker.
//! Some networks give log-probabilities while the speaker talks ([`Inference::look_ahead_frames`] says how far behind);
//! the others gather the frames and answer at the end.
//!
//! # Shapes
//! - in: frames of `[features]`, out: ceil(n / [`Inference::frames_per_slice`]) slices of `[classes]` for n frames

mod whole;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use srf_kernels::Element;

use self::whole::{Whole, WholeStream};
use crate::config::ModelConfig;
use crate::stream::{SrfStream, StreamingSrf};

/// The weights of a network, ready to recognise with.
pub struct Inference<E> {
    config: ModelConfig,
    weights: Weights<E>,
}

enum Weights<E> {
    Srf(Arc<StreamingSrf<E>>),
    Whole(Arc<Whole<E>>),
}

impl<E: Element> Inference<E> {
    /// Packs the parameters `values` of the network that `config`, which has been checked, describes.
    pub fn new(config: &ModelConfig, values: &[E]) -> Arc<Self> {
        let weights = match config {
            ModelConfig::Srf(srf) => Weights::Srf(Arc::new(StreamingSrf::new(srf, values))),
            other => Weights::Whole(Arc::new(Whole::new(other, values))),
        };
        Arc::new(Self { config: config.clone(), weights })
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Output classes, padding and blank included.
    pub fn classes(&self) -> usize {
        self.config.n_classes()
    }

    /// Feature frames that become one slice of log-probabilities.
    pub fn frames_per_slice(&self) -> usize {
        self.config.frames_per_slice()
    }

    /// Feature frames after the first one of its own that a slice waits for; none if it waits for the last.
    pub fn look_ahead_frames(&self) -> Option<usize> {
        match &self.weights {
            Weights::Srf(_) => self.config.reach()[1],
            Weights::Whole(_) => None,
        }
    }

    /// A stream at its start.
    pub fn stream(self: &Arc<Self>) -> InferenceStream<E> {
        let state = match &self.weights {
            Weights::Srf(net) => State::Srf(Box::new(net.stream())),
            Weights::Whole(net) => State::Whole(net.stream()),
        };
        InferenceStream { state }
    }
}

/// The state of one speaker.
pub struct InferenceStream<E> {
    state: State<E>,
}

enum State<E> {
    Srf(Box<SrfStream<E>>),
    Whole(WholeStream<E>),
}

impl<E: Element> InferenceStream<E> {
    /// Takes whole frames and appends the log-probabilities of the slices that they complete to `log_probs`.
    #[track_caller]
    pub fn accept(&mut self, frames: &[E], log_probs: &mut Vec<E>) {
        match &mut self.state {
            State::Srf(stream) => stream.accept(frames, log_probs),
            State::Whole(stream) => stream.accept(frames),
        }
    }

    /// Appends the log-probabilities of the slices that were waiting for what comes after; the stream is at its start
    /// again.
    pub fn finish(&mut self, log_probs: &mut Vec<E>) {
        match &mut self.state {
            State::Srf(stream) => stream.finish(log_probs),
            State::Whole(stream) => stream.finish(log_probs),
        }
    }

    /// Forgets everything heard.
    pub fn reset(&mut self) {
        match &mut self.state {
            State::Srf(stream) => stream.reset(),
            State::Whole(stream) => stream.reset(),
        }
    }

    /// The stream of capsules, if the network is one: it can be asked what the routing decided.
    pub fn srf(&mut self) -> Option<&mut SrfStream<E>> {
        match &mut self.state {
            State::Srf(stream) => Some(stream),
            State::Whole(_) => None,
        }
    }
}
