//! Error rates by speaker and by group of utterances (`.lur`).

use std::io::{self, Write};

use super::number::Spread;
use super::table::Sheet;
use super::{percent, round};
use crate::labels::{Label, Labels};
use crate::system::{System, Utterance};

/// Why utterances could not be put into their groups.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum GroupError {
    #[error("utterance `{id}`: labels are `{found}`, expected `<ONE,OTHER>`")]
    BadLabels { id: String, found: String },
    #[error("utterance `{id}`: label `{label}` is not defined by a `;; LABEL` comment")]
    Unknown { id: String, label: String },
    #[error("utterance `{id}`: label `{label}` stands in another place than before in `{found}`")]
    OtherPlace { id: String, label: String, found: String },
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Words and errors of one speaker in one group.
#[derive(Clone, Copy, Default)]
struct Group {
    n_reference: usize,
    n_errors: usize,
}

/// For each label the place it has in `<first,second>`, and its numbers by speaker.
struct Groups {
    places: Vec<Option<usize>>,
    by_label: Vec<Vec<Group>>,
}

/// Writes the table.
pub fn write(out: &mut dyn Write, system: &System, sheet: &mut Sheet) -> Result<(), GroupError> {
    let groups = group(system)?;
    let has_empty = fill(sheet, system, &groups);
    if has_empty {
        sheet.line_before('-');
        sheet.row("l", &["Note:  * Speaker Has no reference word tokens.  Number of incorrect words presented"]);
        sheet.row("l", &["       + Speakers with no reference words ignored"]);
    }
    Ok(out.write_all(sheet.render(1).as_bytes())?)
}

fn group(system: &System) -> Result<Groups, GroupError> {
    let n_labels = system.labels.labels.len();
    let by_label = vec![vec![Group::default(); system.speakers.len()]; n_labels];
    let mut groups = Groups { places: vec![None; n_labels], by_label };
    for (at, speaker) in system.speakers.iter().enumerate() {
        for utterance in &speaker.utterances {
            groups.add(utterance, at, &system.labels)?;
        }
    }
    Ok(groups)
}

impl Groups {
    fn add(&mut self, utterance: &Utterance, speaker: usize, labels: &Labels) -> Result<(), GroupError> {
        let Some(found) = &utterance.labels else { return Ok(()) };
        let id = || String::from_utf8_lossy(&utterance.id).into_owned();
        let shown = || String::from_utf8_lossy(found).into_owned();
        let Some(inside) = found.strip_prefix(b"<") else {
            return Err(GroupError::BadLabels { id: id(), found: shown() });
        };
        let inside = inside.split(|b| *b == b'>').next().unwrap_or_default();
        let counts = utterance.counts();
        for (place, name) in inside.split(|b| *b == b',').enumerate().filter(|(_, name)| !name.is_empty()) {
            let label = || String::from_utf8_lossy(name).into_owned();
            let at = labels.labels.iter().position(|l| l.id.eq_ignore_ascii_case(name));
            let at = at.ok_or_else(|| GroupError::Unknown { id: id(), label: label() })?;
            if *self.places[at].get_or_insert(place) != place {
                return Err(GroupError::OtherPlace { id: id(), label: label(), found: shown() });
            }
            let group = &mut self.by_label[at][speaker];
            group.n_reference += counts.n_reference();
            group.n_errors += counts.n_errors();
        }
        Ok(())
    }

    /// The formats of rows of names, of categories and of numbers.
    fn formats(&self) -> [String; 3] {
        let mut formats = ["c".to_owned(), "c".to_owned(), "c".to_owned()];
        for (at, place) in self.places.iter().enumerate() {
            let is_new = at > 0 && *place != self.places[at - 1];
            let category = if at == 0 || is_new { "ca" } else { "aa" };
            for (format, columns) in formats.iter_mut().zip(["ca", category, "rr"]) {
                format.push(if is_new { '=' } else { '|' });
                format.push_str(columns);
            }
        }
        formats
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Lays the table out, and says whether a speaker had errors but no reference.
fn fill(sheet: &mut Sheet, system: &System, groups: &Groups) -> bool {
    let labels = &system.labels.labels;
    let [title_format, category_format, number_format] = groups.formats();
    sheet.erase();
    sheet.row("c", &[format!("System: {}", system.heading.title)]);
    sheet.line_before(' ');
    for Label { title, description, .. } in labels {
        sheet.row("ccc", &[lossy(title).replace("//", " "), "->".to_owned(), lossy(description)]);
    }
    sheet.line_after(' ');
    sheet.row("ccc", &["", "", ""]);
    sheet.line_before('-');
    let first =
        |name: &str, rest: Vec<String>| -> Vec<String> { std::iter::once(name.to_owned()).chain(rest).collect() };
    if !system.labels.categories.is_empty() {
        let titles = system.labels.categories.iter().map(|category| lossy(&category.title)).collect();
        sheet.row(&category_format, &first("", titles));
        sheet.line_before('-');
    }
    sheet.row(&title_format, &first("SPKR", labels.iter().map(|label| lossy(&label.title)).collect()));
    sheet.row(&title_format, &first("", vec![" #Wrd %WE".to_owned(); labels.len()]));
    let mut has_empty = false;
    for (at, speaker) in system.speakers.iter().enumerate() {
        sheet.line_before('-');
        let groups: Vec<Group> = groups.by_label.iter().map(|speakers| speakers[at]).collect();
        has_empty |= groups.iter().any(|group| group.n_reference == 0 && group.n_errors > 0);
        let cells = groups.iter().flat_map(|group| group_cells(*group)).collect();
        sheet.row(&number_format, &first(&lossy(&speaker.name), cells));
    }
    fill_totals(sheet, groups, &number_format, has_empty);
    has_empty
}

fn group_cells(group: Group) -> [String; 2] {
    match (group.n_reference, group.n_errors) {
        (0, 0) => [String::new(), String::new()],
        (0, n) => ["0".to_owned(), format!("* {n} *")],
        (n, errors) => [format!("[{n}]"), format!("{:.1}", round(percent(errors, n), 1))],
    }
}

fn fill_totals(sheet: &mut Sheet, groups: &Groups, format: &str, has_empty: bool) {
    let plus = if has_empty { " +" } else { "" };
    let totals: Vec<[(f64, f64); 4]> = groups.by_label.iter().map(|speakers| totals(speakers)).collect();
    let rows = [
        ("Set Sum/Avg".to_owned(), "="),
        (format!("Mean{plus}"), "-"),
        (format!("StdDev{plus}"), ""),
        ("Median".to_owned(), " "),
    ];
    for (at, (name, rules)) in rows.into_iter().enumerate() {
        rules.chars().for_each(|rule| sheet.line_before(rule));
        let cells = totals.iter().flat_map(|total| {
            let (words, errors) = total[at];
            [format!("[{}]", words as i32), format!("{:.1}", round(errors, 1))]
        });
        sheet.row(format, &std::iter::once(name).chain(cells).collect::<Vec<_>>());
    }
}

/// Sum, mean, deviation and median of the words and of the error rates of the speakers of a group.
fn totals(speakers: &[Group]) -> [(f64, f64); 4] {
    let present: Vec<&Group> = speakers.iter().filter(|group| group.n_reference > 0).collect();
    let words = Spread::of(&present.iter().map(|group| group.n_reference as f64).collect::<Vec<_>>());
    let rates: Vec<f64> = present.iter().map(|group| percent(group.n_errors, group.n_reference)).collect();
    let rates = Spread::of(&rates);
    let n_reference: usize = speakers.iter().map(|group| group.n_reference).sum();
    let n_errors: usize = speakers.iter().map(|group| group.n_errors).sum();
    [
        (n_reference as f64, round(percent(n_errors, n_reference), 1)),
        (words.mean, rates.mean),
        (words.deviation, rates.deviation),
        (words.median, rates.median),
    ]
}
