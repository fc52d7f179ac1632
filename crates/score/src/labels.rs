//! Names for groups of utterances: `;; LABEL` and `;; CATEGORY` comments in, their names out.

use super::read::Source;
use super::word::Text;

/// What `;; LABEL "id" "title" "description"` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The code utterances carry: `<O,F>`.
    pub id: Text,
    /// The head of its column; `//` breaks it.
    pub title: Text,
    /// What it means.
    pub description: Text,
}

/// All labels and categories of a test, in the order they were first seen.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// Groups of utterances.
    pub labels: Vec<Label>,
    /// Groups of labels.
    pub categories: Vec<Label>,
}

impl Labels {
    /// Takes over what the comments of `source` define.
    pub(crate) fn add(&mut self, source: &Source) {
        for line in source.all_lines() {
            let (found, rest) = if let Some(rest) = line.text.strip_prefix(b";; LABEL ") {
                (&mut self.labels, rest)
            } else if let Some(rest) = line.text.strip_prefix(b";; CATEGORY ") {
                (&mut self.categories, rest)
            } else {
                continue;
            };
            if let Some(label) = parse_label(rest)
                && !found.contains(&label)
            {
                found.push(label);
            }
        }
    }
}

fn parse_label(text: &[u8]) -> Option<Label> {
    let parts: Vec<&[u8]> = text.split(|b| *b == b'"').collect();
    let [_, id, _, title, _, description, _, ..] = &parts[..] else { return None };
    Some(Label { id: (*id).into(), title: (*title).into(), description: (*description).into() })
}
