//! How good the network is on utterances it was not trained on: parameters in, loss, errors and health out.
//!
//! The loss is that of the network; errors are those of the recogniser that users have.

use srf::Recognizer;
use srf::directory::ModelParts;
use srf_model::frames::Frames;
use srf_model::srf::Mode;

use super::batches::Buckets;
use super::data::Dataset;
use super::learner::Learner;
use crate::corpus::{Utterance, Watcher};
use crate::evaluate::scoring::compared;
use crate::evaluate::{EvaluateOptions, evaluate};
use crate::events::{ErrorCounts, Example, LayerHealth};

/// What the recogniser makes of some utterances.
pub(super) struct Heard {
    pub(super) errors: ErrorCounts,
    pub(super) examples: Vec<Example>,
    /// Of each capsule layer.
    pub(super) health: Vec<LayerHealth>,
}

/// Utterances that are shown, and that the health of capsules is taken from.
const N_EXAMPLES: usize = 5;

/// The mean loss of an utterance of `dev`, and how many have one.
pub(super) fn loss(learner: &mut Learner, dev: &Dataset, buckets: &Buckets) -> (f64, usize) {
    let mut extractor = dev.front_end.extractor();
    let mut x = Frames::new(dev.front_end.n_dims(), learner.net.margin());
    let (mut sum, mut n) = (0.0, 0);
    for members in buckets.in_order(&dev.lengths()) {
        let batch = dev.batch(&members, None, &mut extractor, x);
        let (loss_sum, n_losses) = learner.measure(dev, &batch, Mode::default());
        sum += loss_sum;
        n += n_losses as usize;
        x = batch.x;
    }
    (sum / n.max(1) as f64, n)
}

/// Recognises `n` of the utterances, taken evenly from the list; none where the model cannot be used.
pub(super) fn hear(parts: ModelParts, utterances: &[Utterance], n: usize, watcher: &dyn Watcher) -> Option<Heard> {
    let chosen = evenly(utterances, n);
    if chosen.is_empty() {
        return None;
    }
    let recognizer = Recognizer::from_parts(parts).ok()?;
    let evaluation = evaluate(&recognizer, &chosen, &EvaluateOptions::default(), watcher);
    let rate = evaluation.rate();
    let example = |answer| {
        let [reference, hypothesis] = compared(answer, rate.measure, None);
        Example { id: answer.id.clone(), reference, hypothesis }
    };
    let examples = evaluation.answers.iter().take(N_EXAMPLES).map(example).collect();
    let few: Vec<_> = evenly(&chosen, N_EXAMPLES).iter().map(Utterance::to_be_heard).collect();
    let health = recognizer.health(&few).iter().map(LayerHealth::from).collect();
    Some(Heard { errors: rate.errors(), examples, health })
}

/// At most `n`, from the whole list: manifests are sorted by speaker.
fn evenly(utterances: &[Utterance], n: usize) -> Vec<Utterance> {
    let n = n.min(utterances.len());
    (0..n).map(|at| utterances[at * utterances.len() / n].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subset_spans_the_list_without_repeats() {
        let all: Vec<Utterance> = (0..10).map(|n| Utterance { id: n.to_string(), ..Utterance::default() }).collect();
        let ids = |n| evenly(&all, n).into_iter().map(|utterance| utterance.id).collect::<Vec<_>>().concat();
        assert_eq!([ids(0), ids(1), ids(4), ids(10), ids(99)], ["", "0", "0257", "0123456789", "0123456789"]);
    }
}
