//! Reports on words: alignments (`.pra`, `.prf`, `.sgml`), sentences (`.snt`), and which words were wrong (`.dtl`,
//! `.spk`).

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{percent, round};
use crate::align::{Pair, Verdict};
use crate::encoding::Encoding;
use crate::formats::Label;
use crate::system::{Counts, ScoredUtterance, Speaker, System, Traits};
use crate::word::{Tags, Word, escape_semicolons};

/// How alignments are laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Where lines are broken, in bytes.
    pub line_width: usize,
    /// What the bytes mean, for capitals.
    pub encoding: Encoding,
}

/// NIST's scorer prints no utterance beyond this number.
const MAX_SEQUENCE: usize = 999_999;

/// Writes `.pra`: the words, speaker by speaker.
pub fn write_short(out: &mut dyn Write, system: &System, layout: Layout) -> io::Result<()> {
    write_head(out, system, false)?;
    for (index, speaker) in system.speakers.iter().enumerate() {
        write!(out, "Speaker sentences{index:4}:  ")?;
        out.write_all(&speaker.name)?;
        writeln!(out, "   #utts: {}", speaker.utterances.len())?;
        for utterance in &speaker.utterances {
            let traits = Traits { case_sensitive: utterance.traits.case_sensitive, ..Traits::default() };
            write_utterance(out, utterance, traits, false, layout)?;
        }
    }
    writeln!(out)
}

/// Writes `.prf`: the words with times and confidences, in the order of the alignment.
pub fn write_full(out: &mut dyn Write, system: &System, layout: Layout) -> io::Result<()> {
    out.write_all(b"NIST_TEXT_ALIGNMENT\nVERSION 0.1\n")?;
    write_head(out, system, true)?;
    if system.n_utterances() == 0 {
        return out.write_all(b"No utterances found\n");
    }
    let all = system.in_sequence();
    for (index, number, utterance) in all.into_iter().take_while(|(.., u)| u.sequence < MAX_SEQUENCE) {
        let speaker = &system.speakers[index];
        write!(out, "Speaker sentences{index:4}:  ")?;
        out.write_all(&speaker.name)?;
        writeln!(out, "   utt# {number} of {}", speaker.utterances.len())?;
        write_utterance(out, utterance, utterance.traits, true, layout)?;
    }
    writeln!(out)
}

fn write_head(out: &mut dyn Write, system: &System, is_full: bool) -> io::Result<()> {
    let heading = &system.heading;
    write!(out, "\n\n\t\tDUMP OF SYSTEM ALIGNMENT STRUCTURE\n\nSystem name:   {}\n", heading.title)?;
    if is_full {
        write!(out, "Ref file:      {}\nHyp file:      {}\n", heading.reference, heading.hypothesis)?;
        writeln!(out, "Creation date: \"{}\"", heading.created)?;
        out.write_all(if heading.fragments { b"Fragment Correct Flag Set\n" } else { b"" })?;
        out.write_all(if heading.optional_words { b"Optionally Deletable Flag Set\n" } else { b"" })?;
    }
    writeln!(out)?;
    if is_full {
        writeln!(out, "Speaker Count: {}", system.speakers.len())?;
    }
    writeln!(out, "Speakers: ")?;
    for (index, speaker) in system.speakers.iter().enumerate() {
        write!(out, "   {index:2}:  ")?;
        out.write_all(&[&*speaker.name, b"\n"].concat())?;
    }
    writeln!(out)?;
    if is_full { write_labels(out, system) } else { Ok(()) }
}

fn write_labels(out: &mut dyn Write, system: &System) -> io::Result<()> {
    let labels = &system.labels;
    if !labels.labels.is_empty() || !labels.categories.is_empty() {
        writeln!(out, "Utterance Label definitions:")?;
    }
    for (kind, labels) in [(&b"Category"[..], &labels.categories), (b"Label", &labels.labels)] {
        for Label { id, title, description } in labels {
            let line: [&[u8]; 9] =
                [b"    ", kind, b": id: \"", id, b"\" title: \"", title, b"\" description: \"", description, b"\"\n"];
            out.write_all(&line.concat())?;
        }
    }
    writeln!(out)
}

/// Writes one utterance with its head, and an empty line.
fn write_utterance(
    out: &mut dyn Write,
    utterance: &ScoredUtterance,
    traits: Traits,
    with_times: bool,
    layout: Layout,
) -> io::Result<()> {
    write_utterance_head(out, utterance, traits, with_times)?;
    let pairs = &utterance.alignment.pairs;
    let lines = lines(traits);
    let min_width = if lines.len() > 3 { 7 } else { 0 };
    let width = |word: &Option<Word>| word.as_ref().map_or(1, |word| word.text.len());
    let widths: Vec<usize> =
        pairs.iter().map(|pair| width(&pair.reference).max(width(&pair.hypothesis)).max(min_width)).collect();
    let mut start = 0;
    while start < pairs.len() {
        let end = end_of_lines(&widths, start, layout.line_width);
        out.write_all(if start > 0 { b"\n" } else { b"" })?;
        for (name, is_reference, shown) in &lines {
            let mut line = if start > 0 { b">> ".to_vec() } else { Vec::new() };
            line.extend_from_slice(name.as_bytes());
            for (pair, width) in pairs[start..end].iter().zip(&widths[start..end]) {
                let text = cell(pair, *is_reference, *shown, traits, layout.encoding);
                line.extend_from_slice(&text);
                line.resize(line.len() + width.saturating_sub(text.len()) + 1, b' ');
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
        start = end;
    }
    writeln!(out)
}

fn write_utterance_head(
    out: &mut dyn Write,
    utterance: &ScoredUtterance,
    traits: Traits,
    with_times: bool,
) -> io::Result<()> {
    let named = [
        ("id: ", Some(&utterance.id)),
        ("Labels: ", utterance.labels.as_ref()),
        ("File: ", utterance.file.as_ref()),
        ("Channel: ", utterance.channel.as_ref()),
    ];
    for (name, text) in named {
        if let Some(text) = text {
            out.write_all(&[name.as_bytes(), text, b"\n"].concat())?;
        }
    }
    let Counts { correct, substitutions, deletions, insertions } = utterance.counts();
    writeln!(out, "Scores: (#C #S #D #I) {correct} {substitutions} {deletions} {insertions}")?;
    if traits.characters || traits.case_sensitive {
        let characters = if traits.characters { "Character_align " } else { "" };
        let case = if traits.case_sensitive { "Case_sensitve " } else { "" };
        writeln!(out, "Attributes: {characters}{case}")?;
    }
    match utterance.times_s.filter(|_| with_times) {
        Some((start_s, end_s)) => writeln!(out, "Ref times: t1= {start_s:.2} t2= {end_s:.2}"),
        None => Ok(()),
    }
}

/// How many pairs fit in lines of `line_width`, at least one.
fn end_of_lines(widths: &[usize], start: usize, line_width: usize) -> usize {
    let mut used = if start > 0 { 9 } else { 6 };
    let mut end = start;
    while used < line_width && end < widths.len() {
        used += 1 + widths[end];
        end += 1;
    }
    if end < widths.len() { (end - 1).max(start + 1) } else { end }
}

/// What a line shows of each pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Text,
    Start,
    End,
    Confidence,
    Verdict,
}

/// The lines of an utterance: name, whether they show the reference, and what of it.
fn lines(traits: Traits) -> Vec<(&'static str, bool, Shown)> {
    let all = [
        ("REF:  ", true, Shown::Text, true),
        ("R_T1: ", true, Shown::Start, traits.reference_times),
        ("R_T2: ", true, Shown::End, traits.reference_times),
        ("RCNF: ", true, Shown::Confidence, traits.reference_confidences),
        ("HYP:  ", false, Shown::Text, true),
        ("H_T1: ", false, Shown::Start, traits.hypothesis_times),
        ("H_T2: ", false, Shown::End, traits.hypothesis_times),
        ("CONF: ", false, Shown::Confidence, traits.hypothesis_confidences),
        ("Eval: ", false, Shown::Verdict, true),
    ];
    all.into_iter().filter(|line| line.3).map(|(name, is_reference, shown, _)| (name, is_reference, shown)).collect()
}

fn cell(pair: &Pair, is_reference: bool, shown: Shown, traits: Traits, encoding: Encoding) -> Vec<u8> {
    match (shown, if is_reference { &pair.reference } else { &pair.hypothesis }) {
        (Shown::Verdict, _) if pair.verdict == Verdict::Correct => Vec::new(),
        (Shown::Verdict, _) => vec![pair.verdict.letter()],
        (Shown::Text, Some(word)) if traits.case_sensitive || pair.verdict == Verdict::Correct => word.text.to_vec(),
        (Shown::Text, Some(word)) => encoding.upper(&word.text),
        // A missing word is as many stars as its partner is long.
        (Shown::Text, None) => {
            let partner = pair.reference.as_ref().or(pair.hypothesis.as_ref());
            vec![b'*'; partner.map_or(1, |word| word.text.len())]
        }
        (_, None) => Vec::new(),
        (Shown::Start, Some(word)) => format!("{:.2}", word.start_s).into_bytes(),
        (Shown::End, Some(word)) => format!("{:.2}", word.end_s).into_bytes(),
        (Shown::Confidence, Some(word)) => format!("{:.4}", word.confidence).into_bytes(),
    }
}

const RULE: &str = "===============================================================================";
const SENTENCE_LINE_WIDTH: usize = 120;

/// Writes `.snt`: every utterance of a speaker with its counts.
pub fn write_sentences(out: &mut dyn Write, system: &System, speaker: &Speaker, encoding: Encoding) -> io::Result<()> {
    write!(out, "{RULE}\n\n                     SENTENCE LEVEL REPORT FOR THE SYSTEM:\n")?;
    write!(out, "    Name: {}\n\n{RULE}\n\n\nSPEAKER ", system.heading.title)?;
    out.write_all(&[&*speaker.name, b"\n"].concat())?;
    let layout = Layout { line_width: SENTENCE_LINE_WIDTH, encoding };
    let mut so_far = Counts::default();
    let mut n_pairs_so_far = 0;
    for utterance in &speaker.utterances {
        write_utterance(out, utterance, utterance.traits, true, layout)?;
        let (counts, n_pairs) = (utterance.counts(), utterance.alignment.pairs.len());
        so_far += counts;
        n_pairs_so_far += n_pairs;
        let n_reference = counts.n_reference();
        for ((name, n, gap), (_, n_so_far, _)) in verdict_rows(&counts).into_iter().zip(verdict_rows(&so_far)) {
            writeln!(out, "{name:<22}=  {}   {n:2}   ({n_so_far:3}){gap}", rate(percent(n, n_reference), n_reference))?;
        }
        let totals = [
            ("Ref. words", n_reference, so_far.n_reference()),
            ("Hyp. words", counts.n_hypothesis(), so_far.n_hypothesis()),
            ("Aligned words", n_pairs, n_pairs_so_far),
        ];
        for (name, n, n_so_far) in totals {
            writeln!(out, "{name:<22}=           {n:2}   ({n_so_far:3})")?;
        }
        write!(out, "\n{}\n\n", RULE.replace('=', "-"))?;
    }
    Ok(())
}

fn verdict_rows(counts: &Counts) -> [(&'static str, usize, &'static str); 5] {
    [
        ("Correct", counts.correct, ""),
        ("Substitutions", counts.substitutions, ""),
        ("Deletions", counts.deletions, ""),
        ("Insertions", counts.insertions, "\n"),
        ("Errors", counts.n_errors(), "\n"),
    ]
}

fn rate(percentage: f64, n_reference: usize) -> String {
    if n_reference > 0 { format!("{:5.1}%", round(percentage, 1)) } else { "UNDEF%".to_owned() }
}

/// Writes `.dtl`: which words of all speakers were wrong, and how often.
pub fn write_details(out: &mut dyn Write, system: &System) -> io::Result<()> {
    writeln!(out, "DETAILED OVERALL REPORT FOR THE SYSTEM: {}\n", system.heading.title)?;
    write_details_of(out, &system.speakers.iter().collect::<Vec<_>>())
}

/// Writes `.spk`: which words of one speaker were wrong, and how often.
pub fn write_speaker_details(out: &mut dyn Write, system: &System, speaker: &Speaker) -> io::Result<()> {
    out.write_all(&[b"SCORING FOR SPEAKER: ", &*speaker.name].concat())?;
    writeln!(out, "\n     of {}\n", system.heading.title)?;
    write_details_of(out, &[speaker])
}

fn write_details_of(out: &mut dyn Write, speakers: &[&Speaker]) -> io::Result<()> {
    write_sentence_rates(out, speakers)?;
    write_word_rates(out, &speakers.iter().map(|speaker| speaker.counts).sum())?;
    for (title, pick, note) in LISTS {
        let found = count_words(speakers, pick);
        writeln!(out, "\n{title:<30}   Total                 ({})", found.len())?;
        writeln!(out, "{:<30}   With >=  1 occurrences ({})\n", "", found.len())?;
        for (place, (word, n)) in found.iter().enumerate() {
            write!(out, "{:4}: {n:4}  ->  ", place + 1)?;
            out.write_all(&[word, &b"\n"[..]].concat())?;
        }
        let n_all: usize = found.iter().map(|(_, n)| n).sum();
        write!(out, "     -------\n     {n_all:5}\n\n{note}")?;
    }
    Ok(())
}

type Kind = (&'static str, fn(&Counts) -> usize);

fn write_sentence_rates(out: &mut dyn Write, speakers: &[&Speaker]) -> io::Result<()> {
    let n_utterances = speakers.iter().map(|speaker| speaker.utterances.len()).sum();
    let n_wrong: usize = speakers.iter().map(|speaker| speaker.n_wrong).sum();
    let rate = |n| round(percent(n, n_utterances), 1);
    write!(out, "SENTENCE RECOGNITION PERFORMANCE\n\n")?;
    writeln!(out, " sentences                                        {n_utterances:4}")?;
    write!(out, " with errors                            {:5.1}%   ({n_wrong:4})\n\n", rate(n_wrong))?;
    let kinds: [Kind; 3] = [
        ("substitutions", |counts| counts.substitutions),
        ("deletions", |counts| counts.deletions),
        ("insertions", |counts| counts.insertions),
    ];
    for (kind, count) in kinds {
        let utterances = speakers.iter().flat_map(|speaker| &speaker.utterances);
        let n = utterances.filter(|utterance| count(&utterance.counts()) > 0).count();
        writeln!(out, "   with {kind:<32}{:5.1}%   ({n:4})", rate(n))?;
    }
    write!(out, "\n\n")
}

fn write_word_rates(out: &mut dyn Write, counts: &Counts) -> io::Result<()> {
    let n_reference = counts.n_reference();
    write!(out, "WORD RECOGNITION PERFORMANCE\n\n")?;
    let rows = [
        ("Percent Total Error", counts.n_errors(), "\n"),
        ("Percent Correct", counts.correct, "\n"),
        ("Percent Substitution", counts.substitutions, ""),
        ("Percent Deletions", counts.deletions, ""),
        ("Percent Insertions", counts.insertions, ""),
    ];
    for (name, n, gap) in rows {
        writeln!(out, "{name:<26}=  {}   ({n:4}){gap}", rate(percent(n, n_reference), n_reference))?;
    }
    let accuracy = 100.0 - percent(counts.n_errors(), n_reference);
    write!(out, "{:<26}=  {}\n\n\n", "Percent Word Accuracy", rate(accuracy, n_reference))?;
    let totals = [
        ("Ref. words", n_reference),
        ("Hyp. words", counts.n_hypothesis()),
        ("Aligned words", n_reference + counts.insertions),
    ];
    for (name, n) in totals {
        writeln!(out, "{name:<26}=           ({n:4})")?;
    }
    Ok(())
}

/// What a list counts of a pair of words, if anything.
type Pick = fn(&Pair) -> Option<Vec<u8>>;

const LISTS: [(&str, Pick, &str); 5] = [
    (
        "CONFUSION PAIRS",
        |p| {
            Some([&*text(p, Verdict::Substitution, true)?, b" ==> ", &*text(p, Verdict::Substitution, false)?].concat())
        },
        "\n",
    ),
    ("INSERTIONS", |p| text(p, Verdict::Insertion, false), "\n"),
    ("DELETIONS", |p| text(p, Verdict::Deletion, true), "\n"),
    (
        "SUBSTITUTIONS",
        |p| text(p, Verdict::Substitution, true),
        "\n* NOTE: The 'Substitution' words are those reference words\n        for which the recognizer supplied an incorrect word.\n\n",
    ),
    (
        "FALSELY RECOGNIZED",
        |p| text(p, Verdict::Substitution, false),
        "\n* NOTE: The 'Falsely Recognized' words are those hypothesis words\n        which the recognizer incorrectly substituted for a reference word.\n\n",
    ),
];

/// One word of a pair with this verdict.
fn text(pair: &Pair, verdict: Verdict, is_reference: bool) -> Option<Vec<u8>> {
    let word = if is_reference { &pair.reference } else { &pair.hypothesis };
    word.as_ref().filter(|_| pair.verdict == verdict).map(|word| word.text.to_vec())
}

/// What `pick` finds in all pairs, the most frequent first, then by spelling.
pub fn count_words(speakers: &[&Speaker], pick: Pick) -> Vec<(Vec<u8>, usize)> {
    let mut found: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let utterances = speakers.iter().flat_map(|speaker| &speaker.utterances);
    for word in utterances.flat_map(|utterance| &utterance.alignment.pairs).filter_map(pick) {
        *found.entry(word).or_default() += 1;
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    found
}

/// What separates pairs, and the parts of a pair, in SGML.
#[derive(Clone, Copy, Debug)]
pub struct Separators {
    pairs: u8,
    parts: u8,
}

impl Separators {
    /// One utterance per line (`.sgml`).
    pub const LINES: Self = Self { pairs: b':', parts: b',' };
    /// One part per line (`.nl.sgml`).
    pub const PARTS: Self = Self { pairs: b'\n', parts: b'\n' };
}

/// Writes the alignments that NIST's `sc_stats` reads.
pub fn write_sgml(out: &mut dyn Write, system: &System, separators: Separators) -> io::Result<()> {
    let heading = &system.heading;
    let flag = |is_set| if is_set { "TRUE" } else { "FALSE" };
    write!(out, "<SYSTEM title=\"{}\" ref_fname=\"{}\"", heading.title, heading.reference)?;
    write!(out, " hyp_fname=\"{}\" creation_date=\"{}\"", heading.hypothesis, heading.created)?;
    write!(out, " format=\"2.4\" frag_corr=\"{}\"", flag(heading.fragments))?;
    writeln!(out, " opt_del=\"{}\" weight_ali=\"FALSE\" weight_filename=\"\">", flag(heading.optional_words))?;
    for (tag, labels) in [(&b"LABEL"[..], &system.labels.labels), (b"CATEGORY", &system.labels.categories)] {
        for Label { id, title, description } in labels {
            let parts: [&[u8]; 11] =
                [b"<", tag, b" id=\"", id, b"\" title=\"", title, b"\" desc=\"", description, b"\">\n</", tag, b">\n"];
            out.write_all(&parts.concat())?;
        }
    }
    for speaker in &system.speakers {
        out.write_all(&[b"<SPEAKER id=\"", &*speaker.name, b"\">\n"].concat())?;
        for utterance in &speaker.utterances {
            write_path(out, utterance, separators)?;
        }
        writeln!(out, "</SPEAKER>")?;
    }
    writeln!(out, "</SYSTEM>")
}

fn write_path(out: &mut dyn Write, utterance: &ScoredUtterance, separators: Separators) -> io::Result<()> {
    let pairs = &utterance.alignment.pairs;
    out.write_all(&[b"<PATH id=\"", &*utterance.id, b"\""].concat())?;
    write!(out, " word_cnt=\"{}\"", pairs.len())?;
    let named = [("labels", &utterance.labels), ("file", &utterance.file), ("channel", &utterance.channel)];
    for (name, text) in named {
        if let Some(text) = text {
            out.write_all(&[b" ", name.as_bytes(), b"=\"", text, b"\""].concat())?;
        }
    }
    write!(out, " sequence=\"{}\"", utterance.sequence)?;
    if let Some((start_s, end_s)) = utterance.times_s {
        write!(out, " R_T1=\"{start_s:.3}\" R_T2=\"{end_s:.3}\"")?;
    }
    write_traits(out, utterance.traits)?;
    let parts = pairs.iter().map(|pair| sgml_pair(pair, utterance.traits, separators.parts));
    out.write_all(&parts.collect::<Vec<_>>().join(&separators.pairs))?;
    write!(out, "\n</PATH>\n")
}

fn write_traits(out: &mut dyn Write, traits: Traits) -> io::Result<()> {
    out.write_all(if traits.characters { b" char_align=\"1\"" } else { b"" })?;
    out.write_all(if traits.case_sensitive { b" case_sense=\"1\"" } else { b"" })?;
    let known = [
        ("r_t1+t2", traits.reference_times),
        ("h_t1+t2", traits.hypothesis_times),
        ("r_conf", traits.reference_confidences),
        ("h_conf", traits.hypothesis_confidences),
    ];
    let known: Vec<&str> = known.iter().filter(|(_, is_known)| *is_known).map(|(name, _)| *name).collect();
    if known.is_empty() { writeln!(out, ">") } else { writeln!(out, " word_aux=\"{}\">", known.join(",")) }
}

fn sgml_pair(pair: &Pair, traits: Traits, separator: u8) -> Vec<u8> {
    let mut parts = vec![vec![pair.verdict.letter()]];
    let sides = [
        (&pair.reference, traits.reference_times, traits.reference_confidences),
        (&pair.hypothesis, traits.hypothesis_times, traits.hypothesis_confidences),
    ];
    let mut push = |word: &Option<Word>, format: fn(&Word) -> Vec<u8>| {
        parts.push(word.as_ref().map_or_else(Vec::new, format));
    };
    sides.iter().for_each(|(word, ..)| push(word, quoted));
    for (word, ..) in sides.iter().filter(|side| side.1) {
        push(word, |word| format!("{:.3}+{:.3}", word.start_s, word.end_s).into_bytes());
    }
    for (word, ..) in sides.iter().filter(|side| side.2) {
        push(word, |word| format!("{:.6}", word.confidence).into_bytes());
    }
    parts.join(&separator)
}

fn quoted(word: &Word) -> Vec<u8> {
    let mut text = [b"\"", &*escape_semicolons(&word.text)].concat();
    if let Some(tags) = &word.tags {
        let Tags { first, second } = &**tags;
        text.extend([b";", &*escape_semicolons(first), b";", &*escape_semicolons(second)].concat());
    }
    text.push(b'"');
    text
}
