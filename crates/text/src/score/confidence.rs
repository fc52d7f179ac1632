//! Whether confidences mean what they say: scored utterances with confidences in, measures of calibration out.

use super::align::Verdict;
use super::report::summary;
use super::system::System;

/// Equal parts of 0 to 1 that words are sorted into by their confidence.
pub const N_BINS: usize = 10;

/// How confidences and truth fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Normalised cross entropy, as NIST defines it: 1 where confidences tell all, 0 where they tell no more than the
    /// share of right words does, below where they mislead. Absent where all words are right, or all wrong.
    pub nce: Option<f64>,
    /// Expected calibration error: the mean distance, over words, of the confidence of a bin and its share of right
    /// words.
    pub ece: f64,
    /// Words by confidence.
    pub bins: [Bin; N_BINS],
}

/// The words whose confidence lies in one part of 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// How many.
    pub n_words: usize,
    /// Those that are right.
    pub n_right: usize,
    /// Their mean confidence.
    pub mean_confidence: f64,
}

impl Calibration {
    /// Of all recognised words; nothing where some have no confidence, or there are none.
    pub fn of(system: &System) -> Option<Self> {
        if summary::Confidences::of(system) != summary::Confidences::All {
            return None;
        }
        let mut bins = [Bin::default(); N_BINS];
        for pair in system.utterances().flat_map(|utterance| &utterance.alignment.pairs) {
            let Some(word) = pair.hypothesis.as_ref().filter(|word| !word.text.is_empty()) else { continue };
            let confidence = word.confidence.clamp(0.0, 1.0);
            let bin = &mut bins[((confidence * N_BINS as f64) as usize).min(N_BINS - 1)];
            bin.n_words += 1;
            bin.n_right += usize::from(pair.verdict == Verdict::Correct);
            bin.mean_confidence += (confidence - bin.mean_confidence) / bin.n_words as f64;
        }
        let n_words: usize = bins.iter().map(|bin| bin.n_words).sum();
        let nce = Some(summary::normalised_cross_entropy(system)).filter(|nce| nce.is_finite());
        let distance = |bin: &Bin| (bin.n_words as f64 * bin.mean_confidence - bin.n_right as f64).abs();
        let ece = bins.iter().map(distance).sum::<f64>() / n_words.max(1) as f64;
        (n_words > 0).then_some(Self { nce, ece, bins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::{Cost, Heading, Network, Traits, Utterance, Word, align};

    /// One utterance of words with confidences; `x` is always wrong.
    fn system(words: &[(&str, f64)]) -> System {
        let reference = words.iter().map(|(word, _)| Word::new(if *word == "x" { "y" } else { *word }.as_bytes()));
        let hypothesis = words.iter().map(|(word, c)| Word::new(word.as_bytes()).with_confidence(*c));
        let networks = (Network::linear(reference.collect()), Network::linear(hypothesis.collect()));
        let alignment = align(&networks.0, &networks.1, Cost::Spelling).unwrap();
        let traits = Traits { hypothesis_confidences: true, ..Traits::default() };
        let mut system = System::new(Heading::default());
        let speaker: &[u8] = b"s";
        system.add(&speaker.into(), Utterance { traits, alignment, ..Utterance::default() });
        system
    }

    #[test]
    fn confidences_that_tell_all_have_no_error() {
        let calibration = Calibration::of(&system(&[("a", 1.0), ("x", 0.0), ("b", 1.0)])).unwrap();
        assert!(calibration.nce.unwrap() > 0.999_99);
        assert_eq!(calibration.ece, 0.0);
    }

    #[test]
    fn the_share_of_right_words_as_every_confidence_tells_nothing_and_is_calibrated() {
        let calibration = Calibration::of(&system(&[("a", 0.75), ("x", 0.75), ("b", 0.75), ("c", 0.75)])).unwrap();
        assert!(calibration.nce.unwrap().abs() < 1e-12);
        assert!(calibration.ece.abs() < 1e-12);
    }

    #[test]
    fn the_error_is_the_mean_distance_by_hand() {
        // Bin 9: two words of 0.9 and 1.0, both right: |0.95 - 1| * 2. Bin 5: one of 0.5, wrong: 0.5. Over 3 words.
        let calibration = Calibration::of(&system(&[("a", 0.9), ("b", 1.0), ("x", 0.5)])).unwrap();
        assert!((calibration.ece - (0.1 + 0.5) / 3.0).abs() < 1e-12);
        assert_eq!(calibration.bins[9], Bin { n_words: 2, n_right: 2, mean_confidence: 0.95 });
        // Prior: 2 of 3 right. Information: log2(0.9) + log2(1) + log2(0.5).
        let prior = -(2.0 * (2.0_f64 / 3.0).log2() + (1.0_f64 / 3.0).log2());
        let nce = (prior + 0.9_f64.log2() + 0.999_999_9_f64.log2() + 0.5_f64.log2()) / prior;
        assert!((calibration.nce.unwrap() - nce).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_said_of_words_that_are_all_right_or_have_no_confidence() {
        assert_eq!(Calibration::of(&system(&[("a", 0.9)])).unwrap().nce, None);
        assert_eq!(Calibration::of(&System::new(Heading::default())), None);
        assert_eq!(Calibration::of(&system(&[])), None);
    }
}
