//! The CTC loss of a batch: logits and labels in, losses and the gradient of their mean out.

use rayon::prelude::*;
use srf_kernels::{CtcLoss, CtcScratch, Element, ctc};

use crate::frames::Frames;

/// The classes of an utterance's labels.
pub type Labels<'a> = &'a [u32];

/// The losses of the last batch and their gradient.
pub struct BatchLoss<E> {
    /// Of each utterance; those without a value take no part in the mean and have no gradient.
    pub losses: Vec<CtcLoss>,
    gradient: Frames<E>,
    scratch: Vec<CtcScratch>,
}

impl<E: Element> BatchLoss<E> {
    pub(crate) fn new(n_classes: usize) -> Self {
        Self { losses: Vec::new(), gradient: Frames::new(n_classes, [0, 0]), scratch: Vec::new() }
    }

    /// The mean over the utterances that have a loss; none if there is none.
    pub fn mean(&self) -> Option<f64> {
        let values = self.losses.iter().filter_map(|loss| match loss {
            CtcLoss::Value(value) => Some(*value),
            _ => None,
        });
        let (sum, n) = values.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
        (n > 0).then(|| sum / f64::from(n))
    }

    /// The gradient of the mean with respect to the logits.
    pub fn gradient(&self) -> &Frames<E> {
        &self.gradient
    }

    pub(crate) fn gradient_mut(&mut self) -> &mut Frames<E> {
        &mut self.gradient
    }

    /// Measures `logits`, whose last class is the blank, against the labels.
    pub(crate) fn measure(&mut self, logits: &Frames<E>, labels: &[Labels<'_>]) {
        assert_eq!(labels.len(), logits.n_utterances(), "labels of every utterance");
        self.gradient.resize_for(logits.lengths().iter().copied());
        self.losses.resize(labels.len(), CtcLoss::Value(0.0));
        self.scratch.resize_with(labels.len(), CtcScratch::default);
        let n_classes = logits.width();
        let outputs = self.gradient.each_real_mut().into_par_iter().zip(&mut self.losses).zip(&mut self.scratch);
        outputs.enumerate().for_each(|(n, ((gradient, loss), scratch))| {
            *loss = ctc(logits.real(n), n_classes, n_classes - 1, labels[n], scratch, gradient);
        });
        let n_values = self.losses.iter().filter(|loss| matches!(loss, CtcLoss::Value(_))).count();
        let scale = E::from_f64(1.0 / n_values.max(1) as f64);
        self.gradient.each_real_mut().into_par_iter().for_each(|gradient| {
            for g in gradient {
                *g *= scale;
            }
        });
    }
}
