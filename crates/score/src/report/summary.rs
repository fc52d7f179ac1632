//! The table of speakers: percentages (`.sys`) or counts (`.raw`) of each, of all, and their spread.

use std::io::{self, Write};

use super::number::{Spread, percent, round};
use super::table::Sheet;
use crate::align::Verdict;
use crate::counts::Counts;
use crate::system::{Speaker, System};

/// Which numbers the table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Percentages of the words of the reference.
    Percentages,
    /// Counts.
    Counts,
}

const TITLE: &str = "SYSTEM SUMMARY PERCENTAGES by SPEAKER";
const FOOTNOTES: &str = "
* No Reference words for this/these speaker(s).  Word counts supplied
  rather than percents.
# No Reference words for this/these speaker(s).  NCE not computable.
+ Speaker(s) with no reference data is ignored
";

/// The numbers of one speaker.
struct Figures {
    n_utterances: usize,
    n_words: usize,
    /// Correct, substituted, deleted, inserted, all errors.
    words: [f64; 5],
    wrong_utterances: f64,
    entropy: f64,
}

/// Writes the table.
pub fn write(out: &mut dyn Write, system: &System, numbers: Numbers, sheet: &mut Sheet) -> io::Result<()> {
    write!(out, "\n\n\n{TITLE:^80}\n\n")?;
    let table = Summary::new(system, numbers);
    table.fill(sheet);
    out.write_all(sheet.render(0).as_bytes())?;
    if table.has_empty_speakers() && numbers == Numbers::Percentages {
        out.write_all(FOOTNOTES.as_bytes())?;
    }
    Ok(())
}

/// Whose words have confidences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidences {
    /// Those of no utterance.
    None,
    /// Those of some; they are not used then.
    Some,
    /// Those of all.
    All,
}

impl Confidences {
    /// Whose words have confidences in `system`.
    pub fn of(system: &System) -> Self {
        match system.utterances().filter(|u| u.traits.hypothesis_confidences).count() {
            0 => Self::None,
            n if n == system.n_utterances() => Self::All,
            _ => Self::Some,
        }
    }
}

struct Summary<'a> {
    system: &'a System,
    numbers: Numbers,
    has_confidences: bool,
    figures: Vec<Figures>,
}

impl<'a> Summary<'a> {
    fn new(system: &'a System, numbers: Numbers) -> Self {
        let has_confidences = Confidences::of(system) == Confidences::All;
        let figures = system.speakers.iter().map(|s| figures(s, numbers, has_confidences)).collect();
        Self { system, numbers, has_confidences, figures }
    }

    fn has_empty_speakers(&self) -> bool {
        self.numbers == Numbers::Percentages && self.figures.iter().any(|f| f.n_words == 0)
    }

    fn format(&self, first: char) -> String {
        format!("{first}|cc|cccccc{}", if self.has_confidences { "|c" } else { "" })
    }

    fn fill(&self, sheet: &mut Sheet) {
        sheet.erase();
        sheet.centre();
        sheet.row("c", &[&self.system.heading.title]);
        sheet.line_before('-');
        let is_characters = self.system.utterances().any(|utterance| utterance.traits.characters);
        let unit = if is_characters { "# Chr" } else { "# Wrd" };
        let mut heads = vec![" SPKR", " # Snt", unit, "Corr", " Sub", " Del", " Ins", " Err", "S.Err"];
        heads.extend(self.has_confidences.then_some("NCE"));
        sheet.row(&self.format('l'), &heads);
        for (speaker, figures) in self.system.speakers.iter().zip(&self.figures) {
            sheet.line_before('-');
            let name = String::from_utf8_lossy(&speaker.name);
            sheet.row(&self.format('l'), &self.speaker_row(&name, figures));
        }
        sheet.line_before('=');
        sheet.row(&self.format('l'), &self.sum_row());
        sheet.line_before('=');
        for (name, pick) in SPREADS {
            sheet.row(&self.format('c'), &self.spread_row(name, pick));
        }
    }

    /// A number as the column of its kind shows it.
    fn number(&self, value: f64) -> String {
        match self.numbers {
            Numbers::Percentages => format!("{:5.1} ", round(value, 1)),
            Numbers::Counts => format!("{:5.0} ", round(value, 0)),
        }
    }

    fn speaker_row(&self, name: &str, figures: &Figures) -> Vec<String> {
        let is_defined = figures.n_words > 0 || self.numbers == Numbers::Counts;
        let mut row =
            vec![format!(" {name} "), format!("{:5}", figures.n_utterances), format!("{:5}", figures.n_words)];
        row.extend(
            figures
                .words
                .iter()
                .map(|value| if is_defined { self.number(*value) } else { format!("{:5.0}*", round(*value, 0)) }),
        );
        row.push(self.number(figures.wrong_utterances));
        if self.has_confidences {
            let is_defined = figures.n_words > 0;
            row.push(if is_defined { format!("{:7.3} ", round(figures.entropy, 3)) } else { "# ".to_owned() });
        }
        row
    }

    fn sum_row(&self) -> Vec<String> {
        let counts = self.system.counts();
        let (n_utterances, n_wrong) = (self.system.n_utterances(), self.system.n_wrong());
        let name = match self.numbers {
            Numbers::Percentages => " Sum/Avg",
            Numbers::Counts => " Sum",
        };
        let mut row = vec![name.to_owned(), format!("{n_utterances:5}"), format!("{:5}", counts.n_reference())];
        row.extend(word_numbers(&counts, self.numbers).iter().map(|value| self.number(*value)));
        row.push(self.number(match self.numbers {
            Numbers::Percentages => percent(n_wrong, n_utterances),
            Numbers::Counts => n_wrong as f64,
        }));
        if self.has_confidences {
            let entropy = entropy(&counts, confidences(self.system.speakers.iter()));
            row.push(format!("{:7.3} ", round(entropy, 3)));
        }
        row
    }

    fn spread_row(&self, name: &str, pick: fn(Spread) -> f64) -> Vec<String> {
        let of = |values: Vec<f64>| round(pick(Spread::of(&values)), 1);
        let has_empty = self.has_empty_speakers();
        let mark = if has_empty { '+' } else { ' ' };
        let mut row = vec![name.to_owned()];
        row.push(format!("{:5.1} ", of(self.figures.iter().map(|f| f.n_utterances as f64).collect())));
        row.push(format!("{:5.1} ", of(self.figures.iter().map(|f| f.n_words as f64).collect())));
        row.extend((0..5).map(|column| format!("{:5.1}{mark}", of(self.defined(column)))));
        row.push(format!("{:5.1} ", of(self.figures.iter().map(|f| f.wrong_utterances).collect())));
        if self.has_confidences {
            let entropies: Vec<f64> = self.figures.iter().map(|f| f.entropy).collect();
            let mark = if has_empty { '#' } else { ' ' };
            row.push(format!("{:7.3}{mark}", round(pick(Spread::of(&entropies)), 3)));
        }
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

/// A row below the speakers, and what it shows of a column.
type SpreadRow = (&'static str, fn(Spread) -> f64);

const SPREADS: [SpreadRow; 3] = [(" Mean ", |s| s.mean), (" S.D. ", |s| s.deviation), ("Median", |s| s.median)];

fn figures(speaker: &Speaker, numbers: Numbers, has_confidences: bool) -> Figures {
    let n_utterances = speaker.utterances.len();
    let counts = &speaker.counts;
    let shown = if counts.n_reference() == 0 { Numbers::Counts } else { numbers };
    Figures {
        n_utterances,
        n_words: counts.n_reference(),
        words: word_numbers(counts, shown),
        wrong_utterances: match numbers {
            Numbers::Percentages => percent(speaker.n_wrong, n_utterances),
            Numbers::Counts => speaker.n_wrong as f64,
        },
        entropy: if has_confidences { speaker_entropy(speaker) } else { 0.0 },
    }
}

fn word_numbers(counts: &Counts, numbers: Numbers) -> [f64; 5] {
    let Counts { correct, substitutions, deletions, insertions } = *counts;
    [correct, substitutions, deletions, insertions, counts.n_errors()].map(|n| match numbers {
        Numbers::Percentages => percent(n, counts.n_reference()),
        Numbers::Counts => n as f64,
    })
}

fn speaker_entropy(speaker: &Speaker) -> f64 {
    let (n_words, information) = confidences(std::iter::once(speaker));
    if n_words == 0 { 0.0 } else { entropy(&speaker.counts, (n_words, information)) }
}

/// How many words have a confidence, and the information in them, in bits: log2 of what was given to the truth.
fn confidences<'a>(speakers: impl Iterator<Item = &'a Speaker>) -> (usize, f64) {
    let (mut n_words, mut right, mut wrong) = (0, 0.0, 0.0);
    for speaker in speakers {
        let (mut speaker_right, mut speaker_wrong) = (0.0, 0.0);
        for pair in speaker.utterances.iter().flat_map(|utterance| &utterance.alignment.pairs) {
            let Some(word) = pair.hypothesis.as_ref().filter(|word| !word.text.is_empty()) else { continue };
            let confidence = word.confidence.clamp(0.000_000_1, 0.999_999_9);
            n_words += 1;
            if pair.verdict == Verdict::Correct {
                speaker_right += confidence.ln() * std::f64::consts::LOG2_E;
            } else {
                speaker_wrong += (1.0 - confidence).ln() * std::f64::consts::LOG2_E;
            }
        }
        right += speaker_right;
        wrong += speaker_wrong;
    }
    (n_words, right + wrong)
}

/// Normalised cross entropy: what the confidences tell beyond the mere share of right words.
fn entropy(counts: &Counts, (_, information): (usize, f64)) -> f64 {
    let (n_right, n_wrong) = (counts.correct as f64, (counts.substitutions + counts.insertions) as f64);
    let share = n_right / (n_right + n_wrong);
    let log2 = std::f64::consts::LOG2_E;
    let prior = -(n_right * share.ln() * log2 + n_wrong * (1.0 - share).ln() * log2);
    (prior + information) / prior
}
