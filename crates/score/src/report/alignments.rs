//! Utterances word under word: `.pra`, and `.prf` with all that is known of the words.

use std::io::{self, Write};

use crate::align::{Pair, Verdict};
use crate::encoding::Encoding;
use crate::system::{System, Traits, Utterance};

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

/// Writes the short form, speaker by speaker.
pub fn write_short(out: &mut dyn Write, system: &System, layout: Layout) -> io::Result<()> {
    write_head(out, system, false)?;
    for (index, speaker) in system.speakers.iter().enumerate() {
        write!(out, "Speaker sentences{index:4}:  ")?;
        out.write_all(&speaker.name)?;
        writeln!(out, "   #utts: {}", speaker.utterances.len())?;
        for utterance in &speaker.utterances {
            let traits = Traits { case_sensitive: utterance.traits.case_sensitive, ..Traits::default() };
            write_utterance(out, utterance, traits, false, layout)?;
            writeln!(out)?;
        }
    }
    writeln!(out)
}

/// Writes the full form, in the order of the alignment.
pub fn write_full(out: &mut dyn Write, system: &System, layout: Layout) -> io::Result<()> {
    out.write_all(b"NIST_TEXT_ALIGNMENT\nVERSION 0.1\n")?;
    write_head(out, system, true)?;
    let mut all: Vec<_> = system
        .speakers
        .iter()
        .enumerate()
        .flat_map(|(index, s)| s.utterances.iter().enumerate().map(move |(number, u)| (index, s, number, u)))
        .collect();
    if all.is_empty() {
        return out.write_all(b"No utterances found\n");
    }
    all.sort_by_key(|(.., utterance)| utterance.sequence);
    for (index, speaker, number, utterance) in all {
        if utterance.sequence >= MAX_SEQUENCE {
            break;
        }
        write!(out, "Speaker sentences{index:4}:  ")?;
        out.write_all(&speaker.name)?;
        writeln!(out, "   utt# {number} of {}", speaker.utterances.len())?;
        write_utterance(out, utterance, utterance.traits, true, layout)?;
        writeln!(out)?;
    }
    writeln!(out)
}

fn write_head(out: &mut dyn Write, system: &System, is_full: bool) -> io::Result<()> {
    let heading = &system.heading;
    write!(out, "\n\n\t\tDUMP OF SYSTEM ALIGNMENT STRUCTURE\n\nSystem name:   {}\n", heading.title)?;
    if is_full {
        write!(out, "Ref file:      {}\nHyp file:      {}\n", heading.reference, heading.hypothesis)?;
        writeln!(out, "Creation date: \"{}\"", heading.created)?;
        if heading.fragments {
            writeln!(out, "Fragment Correct Flag Set")?;
        }
        if heading.optional_words {
            writeln!(out, "Optionally Deletable Flag Set")?;
        }
    }
    writeln!(out)?;
    if is_full {
        writeln!(out, "Speaker Count: {}", system.speakers.len())?;
    }
    writeln!(out, "Speakers: ")?;
    for (index, speaker) in system.speakers.iter().enumerate() {
        write!(out, "   {index:2}:  ")?;
        out.write_all(&speaker.name)?;
        writeln!(out)?;
    }
    writeln!(out)?;
    if is_full { write_labels(out, system) } else { Ok(()) }
}

fn write_labels(out: &mut dyn Write, system: &System) -> io::Result<()> {
    let labels = &system.labels;
    if !labels.labels.is_empty() || !labels.categories.is_empty() {
        writeln!(out, "Utterance Label definitions:")?;
    }
    let kinds = [("Category", &labels.categories), ("Label", &labels.labels)];
    for (kind, labels) in kinds {
        for label in labels {
            write!(out, "    {kind}: id: \"")?;
            out.write_all(&label.id)?;
            write!(out, "\" title: \"")?;
            out.write_all(&label.title)?;
            write!(out, "\" description: \"")?;
            out.write_all(&label.description)?;
            writeln!(out, "\"")?;
        }
    }
    writeln!(out)
}

/// What a line below another shows of each pair.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Reference,
    ReferenceStart,
    ReferenceEnd,
    ReferenceConfidence,
    Hypothesis,
    HypothesisStart,
    HypothesisEnd,
    HypothesisConfidence,
    Verdict,
}

/// Writes one utterance with its head.
pub(crate) fn write_utterance(
    out: &mut dyn Write,
    utterance: &Utterance,
    traits: Traits,
    with_times: bool,
    layout: Layout,
) -> io::Result<()> {
    write_utterance_head(out, utterance, traits, with_times)?;
    let pairs = &utterance.alignment.pairs;
    let min_width = if has_numbers(traits) { 7 } else { 0 };
    let widths: Vec<usize> = pairs.iter().map(|pair| pair_width(pair).max(min_width)).collect();
    let mut start = 0;
    while start < pairs.len() {
        let end = end_of_lines(&widths, start, layout.line_width);
        if start > 0 {
            writeln!(out)?;
        }
        for (name, shown) in lines(traits) {
            let mut line = Vec::new();
            if start > 0 {
                line.extend_from_slice(b">> ");
            }
            line.extend_from_slice(name.as_bytes());
            for (pair, width) in pairs[start..end].iter().zip(&widths[start..end]) {
                push_cell(&mut line, &cell(pair, shown, traits, layout.encoding), *width);
            }
            line.push(b'\n');
            out.write_all(&line)?;
        }
        start = end;
    }
    Ok(())
}

fn write_utterance_head(
    out: &mut dyn Write,
    utterance: &Utterance,
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
            out.write_all(name.as_bytes())?;
            out.write_all(text)?;
            writeln!(out)?;
        }
    }
    let counts = utterance.counts();
    let (c, s, d, i) = (counts.correct, counts.substitutions, counts.deletions, counts.insertions);
    writeln!(out, "Scores: (#C #S #D #I) {c} {s} {d} {i}")?;
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

fn has_numbers(traits: Traits) -> bool {
    traits.reference_times || traits.hypothesis_times || traits.reference_confidences || traits.hypothesis_confidences
}

fn pair_width(pair: &Pair) -> usize {
    let width = |word: &Option<crate::word::Word>| word.as_ref().map_or(1, |word| word.text.len());
    width(&pair.reference).max(width(&pair.hypothesis))
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

fn lines(traits: Traits) -> impl Iterator<Item = (&'static str, Shown)> {
    let all = [
        ("REF:  ", Shown::Reference, true),
        ("R_T1: ", Shown::ReferenceStart, traits.reference_times),
        ("R_T2: ", Shown::ReferenceEnd, traits.reference_times),
        ("RCNF: ", Shown::ReferenceConfidence, traits.reference_confidences),
        ("HYP:  ", Shown::Hypothesis, true),
        ("H_T1: ", Shown::HypothesisStart, traits.hypothesis_times),
        ("H_T2: ", Shown::HypothesisEnd, traits.hypothesis_times),
        ("CONF: ", Shown::HypothesisConfidence, traits.hypothesis_confidences),
        ("Eval: ", Shown::Verdict, true),
    ];
    all.into_iter().filter(|(.., is_shown)| *is_shown).map(|(name, shown, _)| (name, shown))
}

fn cell(pair: &Pair, shown: Shown, traits: Traits, encoding: Encoding) -> Vec<u8> {
    let word = match shown {
        Shown::Reference | Shown::ReferenceStart | Shown::ReferenceEnd | Shown::ReferenceConfidence => &pair.reference,
        _ => &pair.hypothesis,
    };
    match (shown, word) {
        (Shown::Verdict, _) => match pair.verdict {
            Verdict::Correct => b"".to_vec(),
            Verdict::Substitution => b"S".to_vec(),
            Verdict::Deletion => b"D".to_vec(),
            Verdict::Insertion => b"I".to_vec(),
        },
        (Shown::Reference | Shown::Hypothesis, Some(word)) => {
            let is_plain = traits.case_sensitive || pair.verdict == Verdict::Correct;
            if is_plain { word.text.to_vec() } else { encoding.upper(&word.text) }
        }
        // A missing word is as many stars as its partner is long.
        (Shown::Reference | Shown::Hypothesis, None) => {
            let partner = pair.reference.as_ref().or(pair.hypothesis.as_ref());
            vec![b'*'; partner.map_or(1, |word| word.text.len())]
        }
        (_, None) => Vec::new(),
        (Shown::ReferenceStart | Shown::HypothesisStart, Some(word)) => format!("{:.2}", word.start_s).into_bytes(),
        (Shown::ReferenceEnd | Shown::HypothesisEnd, Some(word)) => format!("{:.2}", word.end_s).into_bytes(),
        (Shown::ReferenceConfidence | Shown::HypothesisConfidence, Some(word)) => {
            format!("{:.4}", word.confidence).into_bytes()
        }
    }
}

fn push_cell(line: &mut Vec<u8>, text: &[u8], width: usize) {
    line.extend_from_slice(text);
    line.resize(line.len() + width.saturating_sub(text.len()) + 1, b' ');
}
