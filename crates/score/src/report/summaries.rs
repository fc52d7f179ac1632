//! Tables of speakers: percentages (`.sys`), counts (`.raw`), and error rates by group of utterances (`.lur`).

use std::borrow::Cow;
use std::f64::consts::LOG2_E;
use std::io::{self, Write};

use super::table::Sheet;
use super::{Spread, percent, round};
use crate::align::Verdict;
use crate::formats::{Label, Labels};
use crate::system::{Counts, ScoredUtterance, Speaker, System};

/// Which numbers the table of speakers shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Numbers {
    Percentages,
    Counts,
}

impl Numbers {
    fn of(self, part: usize, whole: usize) -> f64 {
        if self == Self::Percentages { percent(part, whole) } else { part as f64 }
    }

    fn of_words(self, counts: &Counts) -> [f64; 5] {
        let Counts { correct, substitutions, deletions, insertions } = *counts;
        let all = [correct, substitutions, deletions, insertions, counts.n_errors()];
        all.map(|n| self.of(n, counts.n_reference()))
    }

    /// A number as its column shows it.
    fn format(self, value: f64) -> String {
        match self {
            Self::Percentages => format!("{:5.1} ", round(value, 1)),
            Self::Counts => format!("{:5.0} ", round(value, 0)),
        }
    }
}

const TITLE: &str = "SYSTEM SUMMARY PERCENTAGES by SPEAKER";
const FOOTNOTES: &str = "
* No Reference words for this/these speaker(s).  Word counts supplied
  rather than percents.
# No Reference words for this/these speaker(s).  NCE not computable.
+ Speaker(s) with no reference data is ignored
";

/// Writes the table of speakers.
pub fn write_summary(out: &mut dyn Write, system: &System, numbers: Numbers, sheet: &mut Sheet) -> io::Result<()> {
    write!(out, "\n\n\n{TITLE:^80}\n\n")?;
    let table = Summary::new(system, numbers);
    table.fill(sheet);
    out.write_all(sheet.render(0).as_bytes())?;
    out.write_all(if table.has_empty_speakers() { FOOTNOTES.as_bytes() } else { b"" })
}

/// Whether utterances have confidences; those of some are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Confidences {
    OfNone,
    OfSome,
    OfAll,
}

impl Confidences {
    /// Whether the utterances of `system` have confidences.
    pub fn of(system: &System) -> Self {
        match system.utterances().filter(|u| u.traits.hypothesis_confidences).count() {
            0 => Self::OfNone,
            n if n == system.n_utterances() => Self::OfAll,
            _ => Self::OfSome,
        }
    }
}

/// The numbers of one speaker.
struct Figures {
    n_utterances: usize,
    n_words: usize,
    /// Correct, substituted, deleted, inserted, all errors.
    words: [f64; 5],
    wrong_utterances: f64,
    entropy: f64,
}

struct Summary<'a> {
    system: &'a System,
    numbers: Numbers,
    has_confidences: bool,
    figures: Vec<Figures>,
}

type Statistic = (&'static str, fn(Spread) -> f64);

impl<'a> Summary<'a> {
    fn new(system: &'a System, numbers: Numbers) -> Self {
        let has_confidences = Confidences::of(system) == Confidences::OfAll;
        let figures = |speaker: &Speaker| {
            let (n_utterances, counts) = (speaker.utterances.len(), &speaker.counts);
            let shown = if counts.n_reference() == 0 { Numbers::Counts } else { numbers };
            let (n_words, information) = confidences(std::slice::from_ref(speaker));
            Figures {
                n_utterances,
                n_words: counts.n_reference(),
                words: shown.of_words(counts),
                wrong_utterances: numbers.of(speaker.n_wrong, n_utterances),
                entropy: if has_confidences && n_words > 0 { entropy(counts, information) } else { 0.0 },
            }
        };
        Self { system, numbers, has_confidences, figures: system.speakers.iter().map(figures).collect() }
    }

    fn has_empty_speakers(&self) -> bool {
        self.numbers == Numbers::Percentages && self.figures.iter().any(|f| f.n_words == 0)
    }

    fn fill(&self, sheet: &mut Sheet) {
        let format = |first: char| format!("{first}|cc|cccccc{}", if self.has_confidences { "|c" } else { "" });
        sheet.erase();
        sheet.centre();
        sheet.row("c", &[&self.system.heading.title]);
        sheet.line_before('-');
        let is_characters = self.system.utterances().any(|utterance| utterance.traits.characters);
        let unit = if is_characters { "# Chr" } else { "# Wrd" };
        let mut heads = vec![" SPKR", " # Snt", unit, "Corr", " Sub", " Del", " Ins", " Err", "S.Err"];
        heads.extend(self.has_confidences.then_some("NCE"));
        sheet.row(&format('l'), &heads);
        for (speaker, figures) in self.system.speakers.iter().zip(&self.figures) {
            sheet.line_before('-');
            sheet.row(&format('l'), &self.speaker_row(&lossy(&speaker.name), figures));
        }
        sheet.line_before('=');
        sheet.row(&format('l'), &self.sum_row());
        sheet.line_before('=');
        let spreads: [Statistic; 3] = [(" Mean ", |s| s.mean), (" S.D. ", |s| s.deviation), ("Median", |s| s.median)];
        for (name, pick) in spreads {
            sheet.row(&format('c'), &self.spread_row(name, pick));
        }
    }

    fn speaker_row(&self, name: &str, figures: &Figures) -> Vec<String> {
        let has_words = figures.n_words > 0;
        let is_defined = has_words || self.numbers == Numbers::Counts;
        let mut row =
            vec![format!(" {name} "), format!("{:5}", figures.n_utterances), format!("{:5}", figures.n_words)];
        row.extend(
            figures
                .words
                .map(|value| if is_defined { self.numbers.format(value) } else { format!("{:5.0}*", round(value, 0)) }),
        );
        row.push(self.numbers.format(figures.wrong_utterances));
        let entropy = || if has_words { format!("{:7.3} ", round(figures.entropy, 3)) } else { "# ".to_owned() };
        row.extend(self.has_confidences.then(entropy));
        row
    }

    fn sum_row(&self) -> Vec<String> {
        let counts = self.system.counts();
        let (n_utterances, n_wrong) = (self.system.n_utterances(), self.system.n_wrong());
        let name = if self.numbers == Numbers::Percentages { " Sum/Avg" } else { " Sum" };
        let mut row = vec![name.to_owned(), format!("{n_utterances:5}"), format!("{:5}", counts.n_reference())];
        row.extend(self.numbers.of_words(&counts).map(|value| self.numbers.format(value)));
        row.push(self.numbers.format(self.numbers.of(n_wrong, n_utterances)));
        let entropy = || round(entropy(&counts, confidences(&self.system.speakers).1), 3);
        row.extend(self.has_confidences.then(|| format!("{:7.3} ", entropy())));
        row
    }

    fn spread_row(&self, name: &str, pick: fn(Spread) -> f64) -> Vec<String> {
        let spread = |values: &[f64]| pick(Spread::of(values));
        let of = |value: fn(&Figures) -> f64| spread(&self.figures.iter().map(value).collect::<Vec<_>>());
        let has_empty = self.has_empty_speakers();
        let mark = if has_empty { '+' } else { ' ' };
        let mut row = vec![name.to_owned()];
        row.push(format!("{:5.1} ", round(of(|f| f.n_utterances as f64), 1)));
        row.push(format!("{:5.1} ", round(of(|f| f.n_words as f64), 1)));
        row.extend((0..5).map(|column| format!("{:5.1}{mark}", round(spread(&self.defined(column)), 1))));
        row.push(format!("{:5.1} ", round(of(|f| f.wrong_utterances), 1)));
        let mark = if has_empty { '#' } else { ' ' };
        row.extend(self.has_confidences.then(|| format!("{:7.3}{mark}", round(of(|f| f.entropy), 3))));
        row
    }

    /// The numbers of a column without the speakers that have no reference.
    ///
    /// After the first such speaker NIST's scorer is one off and drops its neighbours; so do we.
    fn defined(&self, column: usize) -> Vec<f64> {
        let mut values: Vec<f64> = self.figures.iter().map(|figures| figures.words[column]).collect();
        if !self.has_empty_speakers() {
            return values;
        }
        let n = values.len();
        let mut n_empty = 0;
        for at in (0..n).filter(|at| self.figures[*at].n_words == 0) {
            values[at..].rotate_left(1);
            values[n - 1] = -1000.0;
            n_empty += 1;
        }
        values.truncate(n - n_empty);
        values
    }
}

/// How many words have a confidence, and the information in them, in bits: log2 of what was given to the truth.
fn confidences(speakers: &[Speaker]) -> (usize, f64) {
    let (mut n_words, mut right, mut wrong) = (0, 0.0, 0.0);
    for speaker in speakers {
        let (mut speaker_right, mut speaker_wrong) = (0.0, 0.0);
        for pair in speaker.utterances.iter().flat_map(|utterance| &utterance.alignment.pairs) {
            let Some(word) = pair.hypothesis.as_ref().filter(|word| !word.text.is_empty()) else { continue };
            let confidence = word.confidence.clamp(0.000_000_1, 0.999_999_9);
            n_words += 1;
            if pair.verdict == Verdict::Correct {
                speaker_right += confidence.ln() * LOG2_E;
            } else {
                speaker_wrong += (1.0 - confidence).ln() * LOG2_E;
            }
        }
        right += speaker_right;
        wrong += speaker_wrong;
    }
    (n_words, right + wrong)
}

/// Normalised cross entropy: what confidences say beyond the share of right words.
fn entropy(counts: &Counts, information: f64) -> f64 {
    let (n_right, n_wrong) = (counts.correct as f64, (counts.substitutions + counts.insertions) as f64);
    let share = n_right / (n_right + n_wrong);
    let prior = -(n_right * share.ln() * LOG2_E + n_wrong * (1.0 - share).ln() * LOG2_E);
    (prior + information) / prior
}

/// Why utterances could not be put into their groups.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum GroupError {
    #[error("utterance `{id}`: labels are `{found}`, expected `<ONE,OTHER>`")]
    BadLabels { id: String, found: String },
    #[error("utterance `{id}`: label `{label}` is not defined by a `;; LABEL` comment")]
    Unknown { id: String, label: String },
    #[error("utterance `{id}`: label `{label}` is at another place in `{found}` than before")]
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

/// For each label its place in `<first,second>`, and its numbers by speaker.
struct Groups {
    places: Vec<Option<usize>>,
    by_label: Vec<Vec<Group>>,
}

/// Writes the table of groups.
pub fn write_groups(out: &mut dyn Write, system: &System, sheet: &mut Sheet) -> Result<(), GroupError> {
    let has_empty = fill_groups(sheet, system, &Groups::new(system)?);
    if has_empty {
        sheet.line_before('-');
        sheet.row("l", &["Note:  * Speaker Has no reference word tokens.  Number of incorrect words presented"]);
        sheet.row("l", &["       + Speakers with no reference words ignored"]);
    }
    Ok(out.write_all(sheet.render(1).as_bytes())?)
}

impl Groups {
    fn new(system: &System) -> Result<Self, GroupError> {
        let n_labels = system.labels.labels.len();
        let by_label = vec![vec![Group::default(); system.speakers.len()]; n_labels];
        let mut groups = Self { places: vec![None; n_labels], by_label };
        for (at, speaker) in system.speakers.iter().enumerate() {
            for utterance in &speaker.utterances {
                groups.add(utterance, at, &system.labels)?;
            }
        }
        Ok(groups)
    }

    fn add(&mut self, utterance: &ScoredUtterance, speaker: usize, labels: &Labels) -> Result<(), GroupError> {
        let Some(found) = &utterance.labels else { return Ok(()) };
        let (id, shown) = (|| lossy(&utterance.id).into_owned(), || lossy(found).into_owned());
        let Some(inside) = found.strip_prefix(b"<") else {
            return Err(GroupError::BadLabels { id: id(), found: shown() });
        };
        let inside = inside.split(|b| *b == b'>').next().unwrap_or_default();
        let counts = utterance.counts();
        for (place, name) in inside.split(|b| *b == b',').enumerate().filter(|(_, name)| !name.is_empty()) {
            let label = || lossy(name).into_owned();
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

fn lossy(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// Lays the table out, and returns whether a speaker had errors but no reference.
fn fill_groups(sheet: &mut Sheet, system: &System, groups: &Groups) -> bool {
    let Labels { labels, categories } = &system.labels;
    let [title_format, category_format, number_format] = groups.formats();
    sheet.erase();
    sheet.row("c", &[format!("System: {}", system.heading.title)]);
    sheet.line_before(' ');
    for Label { title, description, .. } in labels {
        sheet.row("ccc", &[lossy(title).replace("//", " "), "->".to_owned(), lossy(description).into_owned()]);
    }
    sheet.line_after(' ');
    sheet.row("ccc", &["", "", ""]);
    sheet.line_before('-');
    let titles = |first, labels: &'_ [Label]| -> Vec<String> {
        std::iter::once(first).chain(labels.iter().map(|label| lossy(&label.title))).map(Cow::into_owned).collect()
    };
    if !categories.is_empty() {
        sheet.row(&category_format, &titles("".into(), categories));
        sheet.line_before('-');
    }
    sheet.row(&title_format, &titles("SPKR".into(), labels));
    sheet.row(&title_format, &[vec![""], vec![" #Wrd %WE"; labels.len()]].concat());
    let mut has_empty = false;
    for (at, speaker) in system.speakers.iter().enumerate() {
        sheet.line_before('-');
        let groups: Vec<Group> = groups.by_label.iter().map(|speakers| speakers[at]).collect();
        has_empty |= groups.iter().any(|group| group.n_reference == 0 && group.n_errors > 0);
        let cells = groups.iter().flat_map(|group| group_cells(*group));
        sheet.row(&number_format, &std::iter::once(lossy(&speaker.name).into_owned()).chain(cells).collect::<Vec<_>>());
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
    let present = || speakers.iter().filter(|group| group.n_reference > 0);
    let words = Spread::of(&present().map(|group| group.n_reference as f64).collect::<Vec<_>>());
    let rates = Spread::of(&present().map(|group| percent(group.n_errors, group.n_reference)).collect::<Vec<_>>());
    let n_reference: usize = speakers.iter().map(|group| group.n_reference).sum();
    let n_errors: usize = speakers.iter().map(|group| group.n_errors).sum();
    [
        (n_reference as f64, round(percent(n_errors, n_reference), 1)),
        (words.mean, rates.mean),
        (words.deviation, rates.deviation),
        (words.median, rates.median),
    ]
}
