//! Recognition with any architecture.
//!
//! [`Inference`] holds the weights and is shared; [`InferenceStream`] holds the state of one speaker.
//! Networks of capsules give log-probabilities while the speaker talks, after [`Inference::look_ahead_frames`]; the
//! others collect the frames and run offline when the utterance is finished.
//!
//! # Shapes
//! - in: frames of `[features]`, out: ceil(n / [`Inference::frames_per_slice`]) slices of `[classes]` for n frames

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use srf_kernels::{Element, log_softmax};

use crate::config::ModelConfig;
use crate::frames::Frames;
use crate::network::{Mode, Network};
use crate::params::Layout;
use crate::stream::{SrfStream, StreamingSrf};

/// The weights of a network, ready for recognition.
pub struct Inference<E> {
    config: ModelConfig,
    layout: Layout,
    weights: Weights<E>,
}

enum Weights<E> {
    Srf(Arc<StreamingSrf<E>>),
    Offline(Arc<Offline<E>>),
}

impl<E: Element> Inference<E> {
    /// Packs the parameters `values` of the network that `config`, which has been checked, describes.
    pub fn new(config: &ModelConfig, values: &[E]) -> Arc<Self> {
        let weights = match config {
            ModelConfig::Srf(srf) => Weights::Srf(Arc::new(StreamingSrf::new(srf, values))),
            other => Weights::Offline(Arc::new(Offline::new(other, values))),
        };
        Arc::new(Self { config: config.clone(), layout: Layout::new(config), weights })
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
        self.layout.frames_per_slice()
    }

    /// Look-ahead in frames; `None` if the network needs the whole utterance.
    pub fn look_ahead_frames(&self) -> Option<usize> {
        match &self.weights {
            Weights::Srf(_) => self.layout.context()[1],
            Weights::Offline(_) => None,
        }
    }

    /// A stream at its start.
    pub fn stream(self: &Arc<Self>) -> InferenceStream<E> {
        let state = match &self.weights {
            Weights::Srf(net) => State::Srf(Box::new(net.stream())),
            Weights::Offline(net) => State::Offline(net.stream()),
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
    Offline(OfflineStream<E>),
}

impl<E: Element> InferenceStream<E> {
    /// Takes whole frames and appends the log-probabilities of the slices that they complete to `log_probs`.
    #[track_caller]
    pub fn accept(&mut self, frames: &[E], log_probs: &mut Vec<E>) {
        match &mut self.state {
            State::Srf(stream) => stream.accept(frames, log_probs),
            State::Offline(stream) => stream.accept(frames),
        }
    }

    /// Appends the log-probabilities of the slices that were waiting for look-ahead, and goes back to the start.
    pub fn finish(&mut self, log_probs: &mut Vec<E>) {
        match &mut self.state {
            State::Srf(stream) => stream.finish(log_probs),
            State::Offline(stream) => stream.finish(log_probs),
        }
    }

    /// Back to the start.
    pub fn reset(&mut self) {
        match &mut self.state {
            State::Srf(stream) => stream.reset(),
            State::Offline(stream) => stream.reset(),
        }
    }

    /// The stream of capsules, if the network is one: it has taps on the routing.
    pub fn srf(&mut self) -> Option<&mut SrfStream<E>> {
        match &mut self.state {
            State::Srf(stream) => Some(stream),
            State::Offline(_) => None,
        }
    }
}

/// A network that needs the whole utterance: its weights, and as many networks to run them in as ever ran at once.
struct Offline<E> {
    config: ModelConfig,
    values: Vec<E>,
    idle: Mutex<Vec<Worker<E>>>,
}

/// A network with its memory. A forward pass borrows all values mutably, because statistics are among them, so each
/// has its own copy.
struct Worker<E> {
    net: Network<E>,
    values: Vec<E>,
    frames: Frames<E>,
}

impl<E: Element> Offline<E> {
    fn new(config: &ModelConfig, values: &[E]) -> Self {
        let offline = Self { config: config.clone(), values: values.to_vec(), idle: Mutex::default() };
        let worker = offline.worker();
        offline.put_back(worker);
        offline
    }

    fn stream(self: &Arc<Self>) -> OfflineStream<E> {
        OfflineStream { net: Arc::clone(self), frames: Vec::new() }
    }

    /// An idle network, or a new one.
    fn worker(&self) -> Worker<E> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| {
            let (net, layout) = Network::new(&self.config);
            assert_eq!(self.values.len(), layout.n_values(), "parameters of the network");
            let frames = Frames::new(self.config.n_features(), net.margin());
            Worker { net, values: self.values.clone(), frames }
        })
    }

    fn put_back(&self, worker: Worker<E>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
    }
}

/// The frames of one speaker so far.
struct OfflineStream<E> {
    net: Arc<Offline<E>>,
    frames: Vec<E>,
}

impl<E: Element> OfflineStream<E> {
    #[track_caller]
    fn accept(&mut self, frames: &[E]) {
        let width = self.net.config.n_features();
        assert!(frames.len().is_multiple_of(width), "whole frames of {width} values, found {} values", frames.len());
        self.frames.extend_from_slice(frames);
    }

    fn finish(&mut self, log_probs: &mut Vec<E>) {
        let mut worker = self.net.worker();
        let Worker { net, values, frames } = &mut worker;
        frames.resize_for([self.frames.len() / frames.width()]);
        frames.real_mut(0).copy_from_slice(&self.frames);
        let logits = net.forward(values, Mode::default(), frames);
        let start = log_probs.len();
        log_probs.resize(start + logits.real(0).len(), E::ZERO);
        log_softmax(logits.real(0), logits.width(), &mut log_probs[start..]);
        self.net.put_back(worker);
        self.reset();
    }

    fn reset(&mut self) {
        self.frames.clear();
    }
}
