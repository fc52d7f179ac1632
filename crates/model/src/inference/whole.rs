//! Recognition of whole utterances, for networks that cannot begin before the end: frames are gathered, then run.

use std::sync::{Arc, Mutex, PoisonError};

use srf_kernels::{Element, log_softmax};

use crate::config::ModelConfig;
use crate::frames::Frames;
use crate::network::{Mode, Network};

/// The weights, and networks to run them in: as many as ever ran at once.
pub(super) struct Whole<E> {
    config: ModelConfig,
    values: Vec<E>,
    idle: Mutex<Vec<Worker<E>>>,
}

/// A network with its memory; a forward pass may write to the weights, though it does not in inference, so each has
/// its own.
struct Worker<E> {
    net: Network<E>,
    values: Vec<E>,
    frames: Frames<E>,
}

impl<E: Element> Whole<E> {
    pub(super) fn new(config: &ModelConfig, values: &[E]) -> Self {
        let whole = Self { config: config.clone(), values: values.to_vec(), idle: Mutex::default() };
        let worker = whole.worker();
        whole.put_back(worker);
        whole
    }

    pub(super) fn stream(self: &Arc<Self>) -> WholeStream<E> {
        WholeStream { net: Arc::clone(self), frames: Vec::new() }
    }

    /// A network that nobody uses, or a new one.
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
pub(super) struct WholeStream<E> {
    net: Arc<Whole<E>>,
    frames: Vec<E>,
}

impl<E: Element> WholeStream<E> {
    #[track_caller]
    pub(super) fn accept(&mut self, frames: &[E]) {
        let width = self.net.config.n_features();
        assert!(frames.len().is_multiple_of(width), "whole frames of {width} values, found {} values", frames.len());
        self.frames.extend_from_slice(frames);
    }

    pub(super) fn finish(&mut self, log_probs: &mut Vec<E>) {
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

    pub(super) fn reset(&mut self) {
        self.frames.clear();
    }
}
