//! How well pronunciation scores find wrong labels: some labels of right transcripts are replaced by others at random, and
//! the scores should tell them from the rest.

use srf::Recognizer;
use srf_base::random::{SplitMix64, hash_of};
use srf_text::align_ctc::AlignCtcError;
use srf_text::align_ctc::pronunciation::{log_ratio, score};
use srf_text::calibration::{Judged, area_under_roc};

/// Which labels are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// Every label is replaced with a probability of one in this many.
    pub one_in: u64,
    /// Seed of the choice.
    pub seed: u64,
}

impl Replacement {
    /// The labels of an utterance with some replaced by other labels, and whether each is still the right one.
    ///
    /// The choice depends on the seed and the id alone.
    pub fn apply(&self, id: &str, classes: &[usize], replaceable: &[usize]) -> Vec<(usize, bool)> {
        let mut random = SplitMix64::new(self.seed ^ hash_of(id));
        let replaced = classes.iter().map(|class| {
            let others: Vec<usize> = replaceable.iter().copied().filter(|other| other != class).collect();
            let is_replaced =
                random.below(self.one_in.max(1)) == 0 && replaceable.contains(class) && !others.is_empty();
            if is_replaced { (others[random.below(others.len() as u64) as usize], false) } else { (*class, true) }
        });
        replaced.collect()
    }
}

/// The scores of labels and whether they were right, over some utterances.
#[derive(Clone, Debug, Default)]
pub struct Detection {
    scores: Vec<Judged>,
    ratios: Vec<Judged>,
}

impl Detection {
    /// Scores the labels of an utterance, some of them replaced.
    pub fn of(recognizer: &Recognizer, log_probs: &[f32], labels: &[(usize, bool)]) -> Result<Self, AlignCtcError> {
        let classes: Vec<usize> = labels.iter().map(|(class, _)| *class).collect();
        let n_classes = recognizer.labels().n_classes();
        let mut detection = Self::default();
        for (scored, (_, is_right)) in score(log_probs, n_classes, &classes)?.iter().zip(labels) {
            detection.scores.push((scored.score, *is_right));
            detection.ratios.push((log_ratio(log_probs, n_classes, &scored.token), *is_right));
        }
        Ok(detection)
    }

    /// Adds the labels of other utterances.
    pub fn add(&mut self, other: Self) {
        self.scores.extend(other.scores);
        self.ratios.extend(other.ratios);
    }

    /// Labels in all, and how many of them were replaced.
    pub fn counts(&self) -> [usize; 2] {
        [self.scores.len(), self.scores.iter().filter(|(_, is_right)| !is_right).count()]
    }

    /// Area under the ROC curve of the scores of `srf gop`; `None` if nothing was replaced.
    pub fn area(&self) -> Option<f64> {
        area_under_roc(&self.scores)
    }

    /// The same of the usual log posterior ratio ([`log_ratio`]), from the same network.
    pub fn ratio_area(&self) -> Option<f64> {
        area_under_roc(&self.ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_label_in_n_becomes_another_one_whatever_else_is_evaluated() {
        let replacement = Replacement { one_in: 5, seed: 1 };
        let classes: Vec<usize> = (0..20_000).map(|n| 1 + n % 4).collect();
        let replaced = replacement.apply("a", &classes, &[1, 2, 3]);
        assert_eq!(replaced, replacement.apply("a", &classes, &[1, 2, 3]));
        assert_ne!(replaced, replacement.apply("b", &classes, &[1, 2, 3]));
        let n_wrong = replaced.iter().filter(|(_, is_right)| !is_right).count();
        assert!((2_800..3_200).contains(&n_wrong), "a fifth of three quarters of 20,000 is 3,000, not {n_wrong}");
        for ((class, is_right), original) in replaced.iter().zip(&classes) {
            assert_eq!(class == original, *is_right);
            assert!(*original != 4 || *is_right, "4 is not to be replaced");
        }
    }
}
