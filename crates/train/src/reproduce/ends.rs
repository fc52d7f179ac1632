//! Ends of sentences: what was said and heard in, for each utterance whether its end was found out.
//!
//! Where every reference ends with the same label, as TIMIT's do with `h#`, that label is the end of the sentence.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde::Deserialize;

/// A line of `hyp.jsonl`, before any mapping of phones.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    id: String,
    text: String,
    pred_text: String,
}

/// Whether the end was found, by utterance; none if references end differently, or there are none.
pub(super) fn found(lines: &[Line]) -> Option<Vec<(String, bool)>> {
    let label = end_label(lines.iter().map(|line| line.text.as_str()))?;
    let is_found = |line: &Line| line.pred_text.split_whitespace().next_back() == Some(label);
    Some(lines.iter().map(|line| (line.id.clone(), is_found(line))).collect())
}

/// The label that ends every one of `references`.
pub(super) fn end_label<'a>(mut references: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |reference: &'a str| reference.split_whitespace().next_back();
    let label = last(references.next()?)?;
    references.all(|reference| last(reference) == Some(label)).then_some(label)
}

/// The lines of an evaluation; none where it has no such file.
pub(super) fn load(evaluation: &Path) -> Option<Vec<Line>> {
    let file = BufReader::new(File::open(evaluation.join("hyp.jsonl")).ok()?);
    file.lines().map(|line| serde_json::from_str(&line.ok()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str, pred_text: &str) -> Line {
        Line { id: text.to_owned(), text: text.to_owned(), pred_text: pred_text.to_owned() }
    }

    fn are_found(lines: &[Line]) -> Option<Vec<bool>> {
        found(lines).map(|found| found.into_iter().map(|(_, is_found)| is_found).collect())
    }

    #[test]
    fn an_end_is_found_where_the_last_label_is_that_of_every_reference() {
        let lines = [line("h# a h#", "a b h#"), line("h# b h#", "h# b"), line("h#", "")];
        assert_eq!(are_found(&lines), Some(vec![true, false, false]));
    }

    #[test]
    fn references_that_end_differently_or_not_at_all_have_no_end_to_find() {
        assert_eq!(are_found(&[line("a h#", "h#"), line("a b", "h#")]), None);
        assert_eq!(are_found(&[line("a h#", "h#"), line("", "h#")]), None);
        assert_eq!(are_found(&[]), None);
    }
}
