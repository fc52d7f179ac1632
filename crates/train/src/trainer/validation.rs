//! How good the network is on utterances it was not trained on: parameters in, loss and errors out.

use model::frames::Frames;
use model::srf::Mode;
use text::labels::{LabelSet, Units};

use super::batches::Buckets;
use super::data::Dataset;
use super::learner::Learner;
use crate::events::{ErrorCounts, Example, Measured};

/// What validation found.
pub(crate) struct Validation {
    pub(crate) measured: Measured,
    pub(crate) examples: Vec<Example>,
}

/// Utterances that are shown.
const N_EXAMPLES: usize = 5;

/// Measures the network on `dev`; errors on the first `n_recognised` utterances.
pub(crate) fn validate(
    learner: &mut Learner,
    dev: &Dataset,
    labels: &LabelSet,
    buckets: &Buckets,
    n_recognised: usize,
) -> Validation {
    let mut extractor = dev.front_end.extractor();
    let mut x = Frames::new(dev.front_end.n_dims(), learner.net.margin());
    let (mut sum, mut n) = (0.0, 0);
    let mut hypotheses = vec![None; dev.examples.len()];
    for members in buckets.in_order(&dev.lengths()) {
        let batch = dev.batch(&members, None, &mut extractor, x);
        let logits = learner.net.forward(&mut learner.params.values, Mode::default(), &batch.x);
        for (at, &member) in members.iter().enumerate() {
            hypotheses[member] = Some(greedy(logits.real(at), logits.width()));
        }
        let (loss_sum, n_losses) = learner.measure(dev, &batch, Mode::default());
        sum += loss_sum;
        n += n_losses;
        x = batch.x;
    }
    let mut errors = ErrorCounts { measure: measure_of(labels).to_owned(), ..ErrorCounts::default() };
    let mut examples = Vec::new();
    for (example, hypothesis) in dev.examples.iter().zip(hypotheses).take(n_recognised) {
        let hypothesis = hypothesis.unwrap_or_default();
        count(&example.labels, &hypothesis, &mut errors);
        if examples.len() < N_EXAMPLES {
            let classes: Vec<usize> = hypothesis.iter().map(|&class| class as usize).collect();
            let (id, reference) = (example.id.clone(), example.text.clone());
            examples.push(Example { id, reference, hypothesis: labels.decode(&classes) });
        }
    }
    let errors = (n_recognised > 0).then_some(errors);
    Validation { measured: Measured { n_utterances: n as usize, loss: sum / n.max(1) as f64, errors }, examples }
}

fn measure_of(labels: &LabelSet) -> &'static str {
    match labels.units() {
        Units::Phones => "PER",
        Units::Chars => "CER",
        Units::Words => "WER",
    }
}

fn greedy(logits: &[f32], n_classes: usize) -> Vec<u32> {
    let mut classes = Vec::new();
    let mut last = 0;
    for slice in logits.chunks_exact(n_classes) {
        let best = (1..n_classes).max_by(|&a, &b| slice[a].total_cmp(&slice[b])).unwrap_or(0);
        if best != last && best != n_classes - 1 {
            classes.push(best as u32);
        }
        last = best;
    }
    classes
}

/// Adds the fewest errors from one to the other.
fn count(reference: &[u32], hypothesis: &[u32], errors: &mut ErrorCounts) {
    let mut row: Vec<[usize; 4]> = (0..=hypothesis.len()).map(|n| [n, 0, 0, n]).collect();
    for r in reference {
        let mut diagonal = row[0];
        row[0][0] += 1;
        row[0][2] += 1;
        for (j, h) in hypothesis.iter().enumerate() {
            let add = |[total, s, d, i]: [usize; 4], kind: [usize; 3]| {
                [total + kind.iter().sum::<usize>(), s + kind[0], d + kind[1], i + kind[2]]
            };
            let options =
                [add(diagonal, [usize::from(r != h), 0, 0]), add(row[j + 1], [0, 1, 0]), add(row[j], [0, 0, 1])];
            diagonal = row[j + 1];
            row[j + 1] = options.into_iter().min_by_key(|option| option[0]).expect("three options");
        }
    }
    let [_, substitutions, deletions, insertions] = row[hypothesis.len()];
    errors.n_reference += reference.len();
    errors.substitutions += substitutions;
    errors.deletions += deletions;
    errors.insertions += insertions;
}
