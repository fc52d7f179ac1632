//! One page for a browser that needs no network: sums, speakers, confusions as a picture, and every utterance.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::align::{Alignment, Pair, Verdict};
use crate::formats::id_name;
use crate::system::{Counts, ScoredUtterance, System};
use crate::word::Word;

/// The style of all pages of the project.
pub const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/sort.js");
/// Words in the picture of confusions; more do not fit on a screen.
const MAX_WORDS: usize = 40;
const CELL: usize = 18;
const NOTHING: &str = "\u{2205}";

/// Writes the page; `rate` names the measure, such as `WER`.
pub fn write(out: &mut dyn Write, system: &System, rate: &str) -> io::Result<()> {
    let heading = &system.heading;
    let [title, reference, hypothesis] = [&heading.title, &heading.reference, &heading.hypothesis].map(|t| escape(t));
    let title = if title.is_empty() { rate.to_owned() } else { format!("{rate} of {title}") };
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<header><h1>{title}</h1></header>\n"
    )?;
    if !hypothesis.is_empty() {
        writeln!(out, "<p class=\"line\">{hypothesis} against {reference}</p>")?;
    }
    write!(out, "{CONTENTS}{}", sums(system, rate))?;
    write!(out, "<h2 id=\"speakers\">Speakers</h2>\n{}", speakers(system))?;
    write!(out, "<h2 id=\"confusions\">Confusions</h2>\n{}", confusions(system))?;
    write!(
        out,
        "<h2 id=\"utterances\">Utterances</h2>\n<p class=\"note\">Click a heading to sort.</p>\n{UTTERANCES_HEAD}"
    )?;
    for speaker in &system.speakers {
        let name = escape(&String::from_utf8_lossy(&speaker.name));
        for utterance in &speaker.utterances {
            writeln!(out, "{}", utterance_row(&name, utterance))?;
        }
    }
    write!(out, "</tbody></table></div>\n<script>{SCRIPT}</script>\n</body></html>\n")
}

const CONTENTS: &str = "<nav><a href=\"#speakers\">Speakers</a> <a href=\"#confusions\">Confusions</a> \
    <a href=\"#utterances\">Utterances</a></nav>\n";

const UTTERANCES_HEAD: &str = "<div class=\"wide\"><table class=\"sortable\"><thead><tr><th>utterance</th>\
    <th>speaker</th><th class=\"number\">words</th><th class=\"number\">errors</th><th class=\"number\">%</th>\
    <th>reference over what was recognised</th></tr></thead><tbody>\n";

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
    let mut table = "<div class=\"wide\"><table class=\"sortable\"><thead><tr><th>speaker</th>".to_owned();
    for name in ["utterances", "words", "sub", "del", "ins", "%"] {
        let _ = write!(table, "<th class=\"number\">{name}</th>");
    }
    table.push_str("</tr></thead><tbody>\n");
    for speaker in &system.speakers {
        let Counts { substitutions, deletions, insertions, .. } = speaker.counts;
        let _ = write!(table, "<tr><td>{}</td>", escape(&String::from_utf8_lossy(&speaker.name)));
        for n in [speaker.utterances.len(), speaker.counts.n_reference(), substitutions, deletions, insertions] {
            let _ = write!(table, "<td class=\"number\">{n}</td>");
        }
        let _ = writeln!(table, "<td class=\"number\">{}</td></tr>", percent(&speaker.counts));
    }
    table + "</tbody></table></div>\n"
}

fn spelling(word: Option<&Word>) -> String {
    word.map_or_else(|| NOTHING.to_owned(), |word| String::from_utf8_lossy(&word.text).into_owned())
}

/// The words most often wrong, and what was recognised instead, as a picture.
pub fn confusions(system: &System) -> String {
    let mut cells: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut totals: BTreeMap<String, usize> = BTreeMap::new();
    for pair in system.utterances().flat_map(|utterance| &utterance.alignment.pairs) {
        if pair.verdict != Verdict::Correct {
            let (reference, result) = (spelling(pair.reference.as_ref()), spelling(pair.hypothesis.as_ref()));
            *totals.entry(reference.clone()).or_default() += 1;
            *totals.entry(result.clone()).or_default() += 1;
            *cells.entry((reference, result)).or_default() += 1;
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
    for ((reference, result), n) in cells {
        let (Some(row), Some(column)) = (place(reference), place(result)) else { continue };
        let shade = 0.15 + 0.85 * (*n as f64 / most).sqrt();
        let (x, y, side) = (margin + CELL * column, margin + CELL * row, CELL - 1);
        let (reference, result) = (escape(reference), escape(result));
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" fill-opacity=\"{shade:.2}\">\
             <title>{reference} \u{2192} {result}: {n}</title></rect>"
        );
    }
    svg + "</svg></div>\n<p class=\"note\">Rows are the reference, columns what was recognised, \u{2205} is nothing; the stronger the colour, the more often.</p>\n"
}

fn utterance_row(speaker: &str, utterance: &ScoredUtterance) -> String {
    let counts = utterance.counts();
    let mut row = format!(
        "<tr><td>{}</td><td>{speaker}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
         <td class=\"number\">{}</td><td class=\"words\">",
        escape(&id_name(&utterance.id)),
        counts.n_reference(),
        counts.n_errors(),
        percent(&counts)
    );
    row.push_str(&alignment(&utterance.alignment));
    row + "</td></tr>"
}

/// The words of an alignment as spans: wrong ones of class `s` over what was recognised, missing ones of class `d`,
/// extra ones of class `n`.
pub fn alignment(alignment: &Alignment) -> String {
    let mut spans = String::new();
    alignment.pairs.iter().for_each(|pair| push_pair(&mut spans, pair));
    spans
}

fn push_pair(row: &mut String, pair: &Pair) {
    let (reference, result) = (escape(&spelling(pair.reference.as_ref())), escape(&spelling(pair.hypothesis.as_ref())));
    let _ = match pair.verdict {
        Verdict::Correct => write!(row, "<span>{reference}</span> "),
        Verdict::Substitution => write!(row, "<span class=\"s\">{reference}<i>{result}</i></span> "),
        Verdict::Deletion => write!(row, "<span class=\"d\">{reference}</span> "),
        Verdict::Insertion => write!(row, "<span class=\"n\"><i>{result}</i></span> "),
    };
}

/// Text as HTML, also inside of quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
