//! The names that label sets and alignments use for silence.

/// Labels that stand for silence in the corpora of the field: Kaldi, HTK, TIMIT and the usual aligners.
pub const LABELS: &[&str] = &["sil", "SIL", "<sil>", "sp", "spn", "h#", "pau", "epi"];

/// Whether a label stands for silence.
///
/// ```
/// use srf_base::silence::{LABELS, is_silence};
///
/// assert!(is_silence("sil") && !is_silence("s"));
/// assert!(LABELS.contains(&"h#"));
/// ```
pub fn is_silence(label: &str) -> bool {
    LABELS.contains(&label)
}
