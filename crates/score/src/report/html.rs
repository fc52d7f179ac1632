//! One page for a browser: sums, speakers, confusions as a picture, and every utterance; no network needed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::align::{Alignment, Pair, Verdict};
use crate::counts::Counts;
use crate::system::{System, Utterance};
use crate::trn;
use crate::word::Word;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/sort.js");
/// Words in the picture of confusions; more cannot be told apart on a screen.
const MAX_WORDS: usize = 40;
const CELL: usize = 18;
const NOTHING: &str = "\u{2205}";

/// Writes the page; `rate` names the measure, such as `WER`.
pub fn write(out: &mut dyn Write, system: &System, rate: &str) -> io::Result<()> {
    let title = escape(&system.heading.title);
    write!(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{rate} of {title}</title>")?;
    write!(out, "<style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n")?;
    let heading = &system.heading;
    let (reference, hypothesis) = (escape(&heading.reference), escape(&heading.hypothesis));
    write!(out, "<p class=\"files\">{hypothesis} against {reference}</p>\n{}", sums(system, rate))?;
    write!(out, "<h2>Speakers</h2>\n{}", speakers(system))?;
    write!(out, "<h2>Confusions</h2>\n{}", confusions(system))?;
    write!(out, "<h2>Utterances</h2>\n<p>Click a heading to sort.</p>\n{UTTERANCES_HEAD}")?;
    for speaker in &system.speakers {
        let name = escape(&String::from_utf8_lossy(&speaker.name));
        for utterance in &speaker.utterances {
            writeln!(out, "{}", utterance_row(&name, utterance))?;
        }
    }
    write!(out, "</tbody></table>\n<script>{SCRIPT}</script>\n</body></html>\n")
}

const UTTERANCES_HEAD: &str = "<table class=\"sortable\"><thead><tr><th>utterance</th><th>speaker</th><th>words</th>\
    <th>errors</th><th>%</th><th>words of the reference over those recognised</th></tr></thead><tbody>\n";

fn percent(counts: &Counts) -> String {
    counts.error_rate().map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", rate * 100.0))
}

fn sums(system: &System, rate: &str) -> String {
    let counts = system.counts();
    let Counts { substitutions, deletions, insertions, .. } = counts;
    format!(
        "<p class=\"sum\"><b>%{rate} {}</b> [ {} / {}, {insertions} ins, {deletions} del, {substitutions} sub ] \
         &nbsp; {} of {} utterances have an error</p>\n",
        percent(&counts),
        counts.n_errors(),
        counts.n_reference(),
        system.n_wrong(),
        system.n_utterances()
    )
}

fn speakers(system: &System) -> String {
    let mut table = "<table class=\"sortable\"><thead><tr><th>speaker</th><th>utterances</th><th>words</th>\
        <th>sub</th><th>del</th><th>ins</th><th>%</th></tr></thead><tbody>\n"
        .to_owned();
    for speaker in &system.speakers {
        let Counts { substitutions, deletions, insertions, .. } = speaker.counts;
        let _ = writeln!(
            table,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{substitutions}</td><td>{deletions}</td>\
             <td>{insertions}</td><td>{}</td></tr>",
            escape(&String::from_utf8_lossy(&speaker.name)),
            speaker.utterances.len(),
            speaker.counts.n_reference(),
            percent(&speaker.counts)
        );
    }
    table + "</tbody></table>\n"
}

fn spelling(word: Option<&Word>) -> String {
    word.map_or_else(|| NOTHING.to_owned(), |word| String::from_utf8_lossy(&word.text).into_owned())
}

/// The words most often wrong against what they were taken for, as a picture.
pub fn confusions(system: &System) -> String {
    let mut cells: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut totals: BTreeMap<String, usize> = BTreeMap::new();
    for pair in system.utterances().flat_map(|utterance| &utterance.alignment.pairs) {
        if pair.verdict != Verdict::Correct {
            let (said, heard) = (spelling(pair.reference.as_ref()), spelling(pair.hypothesis.as_ref()));
            *totals.entry(said.clone()).or_default() += 1;
            *totals.entry(heard.clone()).or_default() += 1;
            *cells.entry((said, heard)).or_default() += 1;
        }
    }
    totals.remove(NOTHING);
    let mut words: Vec<(String, usize)> = totals.into_iter().collect();
    words.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    words.truncate(MAX_WORDS);
    let mut words: Vec<String> = words.into_iter().map(|(word, _)| word).collect();
    words.sort();
    words.push(NOTHING.to_owned());
    if cells.is_empty() { "<p>None.</p>\n".to_owned() } else { matrix(&words, &cells) }
}

fn matrix(words: &[String], cells: &BTreeMap<(String, String), usize>) -> String {
    let margin = 9 * words.iter().map(|word| word.chars().count()).max().unwrap_or(1).min(20);
    let size = margin + CELL * words.len() + 4;
    let mut svg =
        format!("<div class=\"wide\"><svg class=\"confusions\" width=\"{size}\" height=\"{size}\" role=\"img\">\n");
    for (at, word) in words.iter().enumerate() {
        let (middle, word) = (margin + CELL * at + CELL - 5, escape(word));
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{word}</text>", margin - 4);
        let _ = writeln!(svg, "<text transform=\"translate({middle},{}) rotate(-90)\">{word}</text>", margin - 4);
    }
    let place = |word: &str| words.iter().position(|w| w == word);
    let most = cells.values().copied().max().unwrap_or(1) as f64;
    for ((said, heard), n) in cells {
        let (Some(row), Some(column)) = (place(said), place(heard)) else { continue };
        let shade = 0.15 + 0.85 * (*n as f64 / most).sqrt();
        let (x, y, side) = (margin + CELL * column, margin + CELL * row, CELL - 1);
        let (said, heard) = (escape(said), escape(heard));
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill-opacity=\"{shade:.2}\">\
             <title>{said} \u{2192} {heard}: {n}</title></rect>"
        );
    }
    svg + "</svg></div>\n<p class=\"note\">Rows were said, columns were heard, \u{2205} is nothing; darker is more often.</p>\n"
}

fn utterance_row(speaker: &str, utterance: &Utterance) -> String {
    let counts = utterance.counts();
    let mut row = format!(
        "<tr><td>{}</td><td>{speaker}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">",
        escape(&trn::name(&utterance.id)),
        counts.n_reference(),
        counts.n_errors(),
        percent(&counts)
    );
    row.push_str(&alignment(&utterance.alignment));
    row + "</td></tr>"
}

/// The words of an alignment as spans: wrong ones of class `s` over what was heard, missing ones of class `d`, extra
/// ones of class `n`.
pub fn alignment(alignment: &Alignment) -> String {
    let mut spans = String::new();
    alignment.pairs.iter().for_each(|pair| push_pair(&mut spans, pair));
    spans
}

fn push_pair(row: &mut String, pair: &Pair) {
    let (said, heard) = (escape(&spelling(pair.reference.as_ref())), escape(&spelling(pair.hypothesis.as_ref())));
    let _ = match pair.verdict {
        Verdict::Correct => write!(row, "<span>{said}</span> "),
        Verdict::Substitution => write!(row, "<span class=\"s\">{said}<i>{heard}</i></span> "),
        Verdict::Deletion => write!(row, "<span class=\"d\">{said}</span> "),
        Verdict::Insertion => write!(row, "<span class=\"n\"><i>{heard}</i></span> "),
    };
}

/// Text as HTML shows it, also inside of quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
