//! Alignments for other programs (`.sgml`): what NIST's `sc_stats` reads.

use std::io::{self, Write};

use crate::align::{Pair, Verdict};
use crate::labels::Label;
use crate::system::{System, Traits, Utterance};
use crate::word::{Tags, Word};

/// What stands between pairs, and between the parts of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Separators {
    /// Between pairs.
    pub pairs: u8,
    /// Between the parts of a pair.
    pub parts: u8,
}

impl Separators {
    /// An utterance to a line (`.sgml`).
    pub const LINES: Self = Self { pairs: b':', parts: b',' };
    /// A part to a line (`.nl.sgml`).
    pub const PARTS: Self = Self { pairs: b'\n', parts: b'\n' };
}

/// Writes all alignments.
pub fn write(out: &mut dyn Write, system: &System, separators: Separators) -> io::Result<()> {
    let heading = &system.heading;
    let flag = |is_set| if is_set { "TRUE" } else { "FALSE" };
    write!(out, "<SYSTEM title=\"{}\" ref_fname=\"{}\"", heading.title, heading.reference)?;
    write!(out, " hyp_fname=\"{}\" creation_date=\"{}\"", heading.hypothesis, heading.created)?;
    write!(out, " format=\"2.4\" frag_corr=\"{}\"", flag(heading.fragments))?;
    writeln!(out, " opt_del=\"{}\" weight_ali=\"FALSE\" weight_filename=\"\">", flag(heading.optional_words))?;
    write_labels(out, "LABEL", &system.labels.labels)?;
    write_labels(out, "CATEGORY", &system.labels.categories)?;
    for speaker in &system.speakers {
        out.write_all(&[b"<SPEAKER id=\"", &*speaker.name, b"\">\n"].concat())?;
        for utterance in &speaker.utterances {
            write_utterance(out, utterance, separators)?;
        }
        writeln!(out, "</SPEAKER>")?;
    }
    writeln!(out, "</SYSTEM>")
}

fn write_labels(out: &mut dyn Write, tag: &str, labels: &[Label]) -> io::Result<()> {
    for label in labels {
        write!(out, "<{tag} id=\"")?;
        out.write_all(&label.id)?;
        write!(out, "\" title=\"")?;
        out.write_all(&label.title)?;
        write!(out, "\" desc=\"")?;
        out.write_all(&label.description)?;
        writeln!(out, "\">\n</{tag}>")?;
    }
    Ok(())
}

fn write_utterance(out: &mut dyn Write, utterance: &Utterance, separators: Separators) -> io::Result<()> {
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
    writeln!(out, ">")?;
    for (at, pair) in pairs.iter().enumerate() {
        if at > 0 {
            out.write_all(&[separators.pairs])?;
        }
        write_pair(out, pair, utterance.traits, separators.parts)?;
    }
    write!(out, "\n</PATH>\n")
}

fn write_traits(out: &mut dyn Write, traits: Traits) -> io::Result<()> {
    if traits.characters {
        write!(out, " char_align=\"1\"")?;
    }
    if traits.case_sensitive {
        write!(out, " case_sense=\"1\"")?;
    }
    let known = [
        ("r_t1+t2", traits.reference_times),
        ("h_t1+t2", traits.hypothesis_times),
        ("r_conf", traits.reference_confidences),
        ("h_conf", traits.hypothesis_confidences),
    ];
    let known: Vec<&str> = known.iter().filter(|(_, is_known)| *is_known).map(|(name, _)| *name).collect();
    if known.is_empty() { Ok(()) } else { write!(out, " word_aux=\"{}\"", known.join(",")) }
}

fn write_pair(out: &mut dyn Write, pair: &Pair, traits: Traits, separator: u8) -> io::Result<()> {
    let kind = match pair.verdict {
        Verdict::Correct => b'C',
        Verdict::Substitution => b'S',
        Verdict::Deletion => b'D',
        Verdict::Insertion => b'I',
    };
    let mut parts = vec![vec![kind], quoted(pair.reference.as_ref()), quoted(pair.hypothesis.as_ref())];
    let sides = [
        (&pair.reference, traits.reference_times, traits.reference_confidences),
        (&pair.hypothesis, traits.hypothesis_times, traits.hypothesis_confidences),
    ];
    for (word, has_times, _) in &sides {
        if *has_times {
            parts.push(number(word.as_ref(), |word| format!("{:.3}+{:.3}", word.start_s, word.end_s)));
        }
    }
    for (word, _, has_confidences) in &sides {
        if *has_confidences {
            parts.push(number(word.as_ref(), |word| format!("{:.6}", word.confidence)));
        }
    }
    out.write_all(&parts.join(&separator))
}

fn number(word: Option<&Word>, format: impl Fn(&Word) -> String) -> Vec<u8> {
    word.map_or_else(Vec::new, |word| format(word).into_bytes())
}

fn quoted(word: Option<&Word>) -> Vec<u8> {
    let Some(word) = word else { return Vec::new() };
    let mut text = vec![b'"'];
    escape(&mut text, &word.text);
    if let Some(tags) = &word.tags {
        let Tags { first, second } = &**tags;
        text.push(b';');
        escape(&mut text, first);
        text.push(b';');
        escape(&mut text, second);
    }
    text.push(b'"');
    text
}

fn escape(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        if *byte == b';' {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}
