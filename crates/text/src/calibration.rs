//! Calibration of confidences: how well they match the share of right words, and a correction.
//!
//! NCE is NIST's normalised cross entropy: how much the confidences tell beyond the share of right words alone
//! (1 everything, 0 nothing, below 0 less than nothing). ECE is the expected calibration error: how far the mean
//! confidence is from the share of right ones, over ten bins of equal width.
//!
//! ```
//! use srf_text::calibration::{
//!     Bin, Calibration, Judged, bins, expected_calibration_error, normalised_cross_entropy,
//! };
//!
//! // A recogniser that is too sure: half of what it gives 0.95 is right, and a third of what it gives 0.7.
//! let judge = |n: usize| if n % 10 < 6 { (0.95, n % 2 == 0) } else { (0.7, n % 3 == 0) };
//! let judged: Vec<Judged> = (0..120).map(judge).collect();
//! assert!(expected_calibration_error(&judged).is_some_and(|error| error > 0.3));
//! assert!(normalised_cross_entropy(&judged).is_some_and(|nce| nce < 0.0));
//! let Bin { n, accuracy, .. } = bins(&judged)[9];
//! println!("{n} confidences from 0.9 on, of which {accuracy:.2} are right");
//!
//! let calibration = Calibration::fit(&judged);
//! let corrected: Vec<Judged> = judged.iter().map(|(c, is_right)| (calibration.apply(*c), *is_right)).collect();
//! assert!(expected_calibration_error(&corrected) < expected_calibration_error(&judged));
//! ```

/// One confidence and whether it was right.
pub type Judged = (f32, bool);

const N_BINS: usize = 10;
/// Confidences of exactly 0 and 1 would cost without limit.
const EDGE: f64 = 1e-7;

/// Normalised cross entropy; `None` if all are right or all are wrong.
pub fn normalised_cross_entropy(judged: &[Judged]) -> Option<f64> {
    let n = judged.len() as f64;
    let n_right = judged.iter().filter(|(_, is_right)| *is_right).count() as f64;
    let share = n_right / n;
    if judged.is_empty() || n_right == 0.0 || n_right == n {
        return None;
    }
    let base = -(n_right * share.log2() + (n - n_right) * (1.0 - share).log2());
    let told: f64 = judged.iter().map(|(confidence, is_right)| -probability(*confidence, *is_right).log2()).sum();
    Some((base - told) / base)
}

fn probability(confidence: f32, is_right: bool) -> f64 {
    let confidence = inside(confidence);
    if is_right { confidence } else { 1.0 - confidence }
}

fn inside(confidence: f32) -> f64 {
    if confidence.is_nan() { 0.5 } else { f64::from(confidence).clamp(EDGE, 1.0 - EDGE) }
}

/// A range of confidences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// How many lie in it.
    pub n: usize,
    /// Their mean.
    pub mean_confidence: f64,
    /// The share that was right.
    pub accuracy: f64,
}

/// Ten bins of equal width from 0 to 1, for a reliability diagram.
pub fn bins(judged: &[Judged]) -> [Bin; N_BINS] {
    let mut bins = [Bin::default(); N_BINS];
    for (confidence, is_right) in judged {
        let confidence = inside(*confidence);
        let bin = &mut bins[((confidence * N_BINS as f64) as usize).min(N_BINS - 1)];
        bin.n += 1;
        bin.mean_confidence += confidence;
        bin.accuracy += f64::from(u8::from(*is_right));
    }
    for bin in bins.iter_mut().filter(|bin| 0 < bin.n) {
        bin.mean_confidence /= bin.n as f64;
        bin.accuracy /= bin.n as f64;
    }
    bins
}

/// Expected calibration error, 0 to 1; `None` without confidences.
pub fn expected_calibration_error(judged: &[Judged]) -> Option<f64> {
    let error = |bin: &Bin| bin.n as f64 * (bin.mean_confidence - bin.accuracy).abs();
    let sum: f64 = bins(judged).iter().map(error).sum();
    (!judged.is_empty()).then(|| sum / judged.len() as f64)
}

/// Area under the ROC curve: how often a right one has the higher score than a wrong one (ties count half).
///
/// 1 if scores separate right from wrong, 0.5 if they say nothing; `None` if all are right or all are wrong.
///
/// ```
/// use srf_text::calibration::area_under_roc;
///
/// let judged = [(0.9, true), (0.4, true), (0.4, false), (0.1, false)];
/// assert_eq!(area_under_roc(&judged), Some(0.875));
/// ```
pub fn area_under_roc(judged: &[Judged]) -> Option<f64> {
    let mut sorted = judged.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut n_wrong, mut n_right, mut n_ordered) = (0.0, 0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.0 == b.0) {
        let right = tied.iter().filter(|(_, is_right)| *is_right).count() as f64;
        let wrong = tied.len() as f64 - right;
        n_ordered += right * (n_wrong + wrong / 2.0);
        n_right += right;
        n_wrong += wrong;
    }
    (0.0 < n_right && 0.0 < n_wrong).then(|| n_ordered / (n_right * n_wrong))
}

/// Makes confidences mean what they say: `sigmoid(scale * logit(confidence) + shift)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// One over the temperature; below 1 for a recogniser that is too sure.
    pub scale: f64,
    /// Added to the logit.
    pub shift: f64,
}

impl Default for Calibration {
    /// Changes nothing.
    fn default() -> Self {
        Self { scale: 1.0, shift: 0.0 }
    }
}

impl Calibration {
    /// What makes the judged confidences most probable, by Newton's method; the default where there is nothing to learn
    /// from (all right, all wrong, or all the same).
    pub fn fit(judged: &[Judged]) -> Self {
        let n_right = judged.iter().filter(|(_, is_right)| *is_right).count();
        if n_right == 0 || n_right == judged.len() {
            return Self::default();
        }
        let mut fitted = Self::default();
        for _ in 0..50 {
            let Some((d_scale, d_shift)) = fitted.newton_step(judged) else { break };
            // Short steps, since far from the best fit the curve is not a parabola.
            fitted.scale = (fitted.scale + d_scale.clamp(-1.0, 1.0)).clamp(0.0, 20.0);
            fitted.shift = (fitted.shift + d_shift.clamp(-2.0, 2.0)).clamp(-20.0, 20.0);
            if d_scale.abs() + d_shift.abs() < 1e-9 {
                break;
            }
        }
        let is_better = Self::cost(&fitted, judged) <= Self::cost(&Self::default(), judged);
        if is_better { fitted } else { Self::default() }
    }

    /// A confidence that means what it says.
    pub fn apply(&self, confidence: f32) -> f32 {
        if *self == Self::default() {
            return confidence;
        }
        sigmoid(self.scale * logit(confidence) + self.shift) as f32
    }

    fn cost(&self, judged: &[Judged]) -> f64 {
        judged.iter().map(|(confidence, is_right)| -probability(self.apply(*confidence), *is_right).ln()).sum()
    }

    fn newton_step(&self, judged: &[Judged]) -> Option<(f64, f64)> {
        let (mut g, mut h) = ([0.0; 2], [0.0; 3]);
        for (confidence, is_right) in judged {
            let x = logit(*confidence);
            let p = sigmoid(self.scale * x + self.shift);
            let (error, weight) = (f64::from(u8::from(*is_right)) - p, p * (1.0 - p));
            g = [g[0] + error * x, g[1] + error];
            h = [h[0] + weight * x * x, h[1] + weight * x, h[2] + weight];
        }
        // A little weight on staying: confidences that are all the same do not determine the scale.
        let (a, b, c) = (h[0] + 1e-6, h[1], h[2] + 1e-6);
        let determinant = a * c - b * b;
        (1e-12 < determinant).then(|| ((c * g[0] - b * g[1]) / determinant, (a * g[1] - b * g[0]) / determinant))
    }
}

fn logit(confidence: f32) -> f64 {
    let p = inside(confidence);
    (p / (1.0 - p)).ln()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nce_is_the_hand_computed_one() {
        // Three right of four: base = -(3 log2 0.75 + log2 0.25) = 3.2451; told = -(3 log2 0.9 + log2 0.8) = 0.7779.
        let judged = [(0.9, true), (0.9, true), (0.9, true), (0.2, false)];
        assert!((normalised_cross_entropy(&judged).unwrap() - (1.0 - 0.777_937 / 3.245_112)).abs() < 1e-5);
        assert_eq!(normalised_cross_entropy(&[(0.9, true)]), None);
        let shares = [(0.75, true), (0.75, true), (0.75, true), (0.75, false)];
        assert!(normalised_cross_entropy(&shares).unwrap().abs() < 1e-9, "the share alone tells nothing");
    }

    #[test]
    fn ece_is_the_mean_distance_of_bins() {
        let judged = [(0.95, true), (0.95, false), (0.15, false), (0.15, false)];
        assert!((expected_calibration_error(&judged).unwrap() - (0.5 * 0.45 + 0.5 * 0.15)).abs() < 1e-6);
        assert_eq!(expected_calibration_error(&[]), None);
    }

    #[test]
    fn the_area_counts_pairs_in_the_right_order() {
        let judged = [(0.3, true), (0.8, false), (0.8, true), (0.1, false), (0.9, true), (0.3, false)];
        let mut n_ordered = 0.0;
        for (right, _) in judged.iter().filter(|(_, is_right)| *is_right) {
            for (wrong, _) in judged.iter().filter(|(_, is_right)| !is_right) {
                n_ordered += if wrong < right {
                    1.0
                } else if wrong == right {
                    0.5
                } else {
                    0.0
                };
            }
        }
        assert_eq!(area_under_roc(&judged), Some(n_ordered / 9.0));
        assert_eq!(area_under_roc(&judged[..1]), None);
    }

    #[test]
    fn a_recogniser_that_is_too_sure_is_repaired() {
        // What it calls 0.99 is right in 80 of 100, what it calls 0.6 in 55 of 100.
        let group = |confidence, n_right: usize| (0..100).map(move |i| (confidence, i < n_right));
        let judged: Vec<Judged> = group(0.99, 80).chain(group(0.6, 55)).collect();
        let fitted = Calibration::fit(&judged);
        assert!((fitted.apply(0.99) - 0.8).abs() < 1e-3 && (fitted.apply(0.6) - 0.55).abs() < 1e-3, "{fitted:?}");
        let repaired: Vec<Judged> = judged.iter().map(|(c, r)| (fitted.apply(*c), *r)).collect();
        assert!(expected_calibration_error(&repaired).unwrap() < 0.01);
        assert!(normalised_cross_entropy(&judged).unwrap() < normalised_cross_entropy(&repaired).unwrap());
    }

    proptest! {
        #[test]
        fn a_fit_never_makes_it_worse(judged in proptest::collection::vec((0.0f32..=1.0, any::<bool>()), 0..60)) {
            let fitted = Calibration::fit(&judged);
            prop_assert!(fitted.cost(&judged) <= Calibration::default().cost(&judged) + 1e-9);
            prop_assert!(judged.iter().all(|(c, _)| (0.0..=1.0).contains(&fitted.apply(*c))));
        }
    }
}
