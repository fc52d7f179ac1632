//! Reports on a [`System`](crate::System): those of NIST's scorer, byte for byte, and a page for browsers.
//!
//! Transcripts need not be UTF-8, so reports write bytes instead of being `Display`.
//!
//! ```
//! use srf_score::files::{FileOptions, score};
//! use srf_score::formats::Source;
//! use srf_score::report::alignments::{
//!     Layout, Separators, count_words, write_details, write_full, write_sentences, write_sgml, write_short,
//!     write_speaker_details,
//! };
//! use srf_score::report::summaries::{Confidences, GroupError, Numbers, write_groups, write_summary};
//! use srf_score::report::{Sheet, html};
//! use srf_score::{Encoding, Verdict};
//!
//! let source = |text: &str| Source { path: "file.trn".into(), bytes: text.into() };
//! let (reference, hypothesis) = (source("the cat (ann-1)\n"), source("the hat (ann-1)\n"));
//! let system = score(&reference, &hypothesis, "mine", FileOptions::default())?.system;
//!
//! let mut out = Vec::new();
//! let mut sheet = Sheet::default();
//! write_summary(&mut out, &system, Numbers::Percentages, &mut sheet)?;
//! write_summary(&mut out, &system, Numbers::Counts, &mut sheet)?;
//! assert_eq!(Confidences::of(&system), Confidences::OfNone);
//! let grouped: Result<(), GroupError> = write_groups(&mut out, &system, &mut sheet);
//! grouped?;
//!
//! let layout = Layout { line_width: 100, encoding: Encoding::Ascii };
//! write_short(&mut out, &system, layout)?;
//! write_full(&mut out, &system, layout)?;
//! write_details(&mut out, &system)?;
//! write_sgml(&mut out, &system, Separators::LINES)?;
//! write_sgml(&mut out, &system, Separators::PARTS)?;
//! for speaker in &system.speakers {
//!     write_sentences(&mut out, &system, speaker, Encoding::Ascii)?;
//!     write_speaker_details(&mut out, &system, speaker)?;
//! }
//! let speakers: Vec<_> = system.speakers.iter().collect();
//! let wrong = count_words(&speakers, |pair| {
//!     (pair.verdict == Verdict::Substitution).then(|| pair.hypothesis.as_ref().map(|word| word.text.to_vec()))?
//! });
//! assert_eq!(wrong, [(b"hat".to_vec(), 1)]);
//!
//! // A page, or parts of one.
//! html::write(&mut out, &system, "WER")?;
//! let page = format!("<style>{}</style>{}", html::STYLE, html::confusions(&system));
//! assert!(page.contains("hat") && html::escape("<b>") == "&lt;b&gt;");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod alignments;
pub mod html;
pub mod summaries;
mod table;

pub use table::Sheet;

/// `part` of `whole` in percent; 0 if `whole` is 0.
pub(crate) fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// `value` rounded half away from zero to `n_digits`.
///
/// Uses a 32-bit integer like NIST's scorer: what does not fit, NaN included, becomes the smallest one, and a reader
/// of its reports knows `-2147483.648` as "undefined".
fn round(value: f64, n_digits: i32) -> f64 {
    let scale = 10_f64.powi(n_digits);
    let shifted = value * scale + if value > 0.0 { 0.5 } else { -0.5 };
    let fits = shifted > f64::from(i32::MIN) - 1.0 && shifted < f64::from(i32::MAX) + 1.0;
    let whole = if fits { shifted as i32 } else { i32::MIN };
    f64::from(whole as f32) / scale
}

/// Mean, standard deviation and median.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    median: f64,
}

impl Spread {
    /// Of `values`; all 0 if there are none.
    pub(crate) fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = if squares == 0.0 { 0.0 } else { (squares / (n - 1.0)).sqrt() };
        let sorted = merge_sort(values);
        let middle = sorted.len() / 2;
        let is_even = sorted.len().is_multiple_of(2);
        let median = if is_even { f64::midpoint(sorted[middle], sorted[middle - 1]) } else { sorted[middle] };
        Self { mean, deviation, median }
    }
}

/// A merge sort in which NaN is equal to everything.
///
/// That is no order, so the result depends on the steps; they are those of the C library under NIST's scorer.
fn merge_sort(values: &[f64]) -> Vec<f64> {
    if values.len() < 2 {
        return values.to_vec();
    }
    let (left, right) = values.split_at(values.len() / 2);
    let (left, right) = (merge_sort(left), merge_sort(right));
    let (mut left, mut right) = (&left[..], &right[..]);
    let mut merged = Vec::with_capacity(values.len());
    while let ([l, lefts @ ..], [r, rights @ ..]) = (left, right) {
        if l - r > 0.0 {
            merged.push(*r);
            right = rights;
        } else {
            merged.push(*l);
            left = lefts;
        }
    }
    [&merged, left, right].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_away_from_zero() {
        assert_eq!(round(2.25, 1), 2.3);
        assert_eq!(format!("{:.1}", round(40.05, 1)), "40.1");
        assert_eq!(format!("{:.1}", round(-0.05, 1)), "-0.1");
        assert_eq!(format!("{:.3}", round(f64::NAN, 3)), "-2147483.648");
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!((spread.mean, spread.median), (2.5, 2.5));
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
