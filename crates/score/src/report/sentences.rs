//! Every utterance of a speaker with its own numbers (`.snt`).

use std::io::{self, Write};

use super::alignments::{Layout, write_utterance};
use super::{percent, round};
use crate::counts::Counts;
use crate::encoding::Encoding;
use crate::system::{Speaker, System};

const RULE: &str = "===============================================================================";
const LINE_WIDTH: usize = 120;

/// Writes the report of one speaker.
pub fn write(out: &mut dyn Write, system: &System, speaker: &Speaker, encoding: Encoding) -> io::Result<()> {
    write!(out, "{RULE}\n\n                     SENTENCE LEVEL REPORT FOR THE SYSTEM:\n")?;
    write!(out, "    Name: {}\n\n{RULE}\n\n\nSPEAKER ", system.heading.title)?;
    out.write_all(&speaker.name)?;
    writeln!(out)?;
    let layout = Layout { line_width: LINE_WIDTH, encoding };
    let mut so_far = Counts::default();
    let mut n_pairs_so_far = 0;
    for utterance in &speaker.utterances {
        write_utterance(out, utterance, utterance.traits, true, layout)?;
        writeln!(out)?;
        let (counts, n_pairs) = (utterance.counts(), utterance.alignment.pairs.len());
        so_far += counts;
        n_pairs_so_far += n_pairs;
        write_numbers(out, &counts, &so_far)?;
        writeln!(out, "{:<22}=           {n_pairs:2}   ({n_pairs_so_far:3})", "Aligned words")?;
        write!(out, "\n{}\n\n", RULE.replace('=', "-"))?;
    }
    Ok(())
}

fn write_numbers(out: &mut dyn Write, counts: &Counts, so_far: &Counts) -> io::Result<()> {
    let n_reference = counts.n_reference();
    let rate = |n| match n_reference {
        0 => "UNDEF%".to_owned(),
        _ => format!("{:5.1}%", round(percent(n, n_reference), 1)),
    };
    let rows = [
        ("Correct", counts.correct, so_far.correct, ""),
        ("Substitutions", counts.substitutions, so_far.substitutions, ""),
        ("Deletions", counts.deletions, so_far.deletions, ""),
        ("Insertions", counts.insertions, so_far.insertions, "\n"),
        ("Errors", counts.n_errors(), so_far.n_errors(), "\n"),
    ];
    for (name, n, n_so_far, gap) in rows {
        writeln!(out, "{name:<22}=  {}   {n:2}   ({n_so_far:3}){gap}", rate(n))?;
    }
    let totals = [
        ("Ref. words", n_reference, so_far.n_reference()),
        ("Hyp. words", counts.n_hypothesis(), so_far.n_hypothesis()),
    ];
    for (name, n, n_so_far) in totals {
        writeln!(out, "{name:<22}=           {n:2}   ({n_so_far:3})")?;
    }
    Ok(())
}
