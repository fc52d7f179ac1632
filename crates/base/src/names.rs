//! Suggestions for misspelt names.

/// Names less similar than this (Jaro-Winkler) are not suggested.
const MIN_SIMILARITY: f64 = 0.8;

/// The candidate most similar to `typed`; `None` if none is similar enough to be a misspelling.
///
/// ```
/// use srf_base::names::nearest;
///
/// assert_eq!(nearest("modle", ["model", "labels"]), Some("model"));
/// assert_eq!(nearest("xyz", ["model", "labels"]), None);
/// ```
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(typed, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}
