//! Which words were wrong, and how often: `.dtl` for all speakers, `.spk` for each.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{percent, round};
use crate::align::{Pair, Verdict};
use crate::counts::Counts;
use crate::system::{Speaker, System};
use crate::word::Word;

/// Writes the report over all speakers.
pub fn write_all(out: &mut dyn Write, system: &System) -> io::Result<()> {
    writeln!(out, "DETAILED OVERALL REPORT FOR THE SYSTEM: {}\n", system.heading.title)?;
    write_body(out, &system.speakers.iter().collect::<Vec<_>>())
}

/// Writes the report of one speaker.
pub fn write_speaker(out: &mut dyn Write, system: &System, speaker: &Speaker) -> io::Result<()> {
    out.write_all(b"SCORING FOR SPEAKER: ")?;
    out.write_all(&speaker.name)?;
    writeln!(out, "\n     of {}\n", system.heading.title)?;
    write_body(out, &[speaker])
}

fn write_body(out: &mut dyn Write, speakers: &[&Speaker]) -> io::Result<()> {
    write_sentences(out, speakers)?;
    let counts = speakers.iter().map(|speaker| speaker.counts).sum();
    write_words(out, &counts)?;
    for list in LISTS {
        let found = count_words(speakers, list.pick);
        write_list(out, list.title, &found)?;
        out.write_all(list.note.as_bytes())?;
    }
    Ok(())
}

fn write_sentences(out: &mut dyn Write, speakers: &[&Speaker]) -> io::Result<()> {
    let n_utterances = speakers.iter().map(|speaker| speaker.utterances.len()).sum();
    let n_wrong: usize = speakers.iter().map(|speaker| speaker.n_wrong).sum();
    let with = |is_there: fn(&Counts) -> bool| {
        let utterances = speakers.iter().flat_map(|speaker| &speaker.utterances);
        utterances.filter(|utterance| is_there(&utterance.counts())).count()
    };
    let rate = |n| round(percent(n, n_utterances), 1);
    write!(out, "SENTENCE RECOGNITION PERFORMANCE\n\n")?;
    writeln!(out, " sentences                                        {n_utterances:4}")?;
    write!(out, " with errors                            {:5.1}%   ({n_wrong:4})\n\n", rate(n_wrong))?;
    let kinds = [
        ("substitutions", with(|counts| counts.substitutions > 0)),
        ("deletions", with(|counts| counts.deletions > 0)),
        ("insertions", with(|counts| counts.insertions > 0)),
    ];
    for (kind, n) in kinds {
        writeln!(out, "   with {kind:<32}{:5.1}%   ({n:4})", rate(n))?;
    }
    write!(out, "\n\n")
}

fn write_words(out: &mut dyn Write, counts: &Counts) -> io::Result<()> {
    let n_reference = counts.n_reference();
    let rate = |value: f64| {
        if n_reference > 0 { format!("{:5.1}%", round(value, 1)) } else { "UNDEF%".to_owned() }
    };
    let share = |n| rate(percent(n, n_reference));
    let errors = percent(counts.n_errors(), n_reference);
    write!(out, "WORD RECOGNITION PERFORMANCE\n\n")?;
    let rows = [
        ("Percent Total Error", counts.n_errors(), "\n"),
        ("Percent Correct", counts.correct, "\n"),
        ("Percent Substitution", counts.substitutions, ""),
        ("Percent Deletions", counts.deletions, ""),
        ("Percent Insertions", counts.insertions, ""),
    ];
    for (name, n, gap) in rows {
        writeln!(out, "{name:<26}=  {}   ({n:4}){gap}", share(n))?;
    }
    write!(out, "{:<26}=  {}\n\n\n", "Percent Word Accuracy", rate(100.0 - errors))?;
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

/// A list of words and how often each was wrong in one way.
struct List {
    title: &'static str,
    pick: fn(&Pair) -> Option<Vec<u8>>,
    note: &'static str,
}

const LISTS: [List; 5] = [
    List { title: "CONFUSION PAIRS", pick: confusion, note: "\n" },
    List { title: "INSERTIONS", pick: insertion, note: "\n" },
    List { title: "DELETIONS", pick: deletion, note: "\n" },
    List {
        title: "SUBSTITUTIONS",
        pick: substituted,
        note: "\n* NOTE: The 'Substitution' words are those reference words\n        for which the recognizer supplied an incorrect word.\n\n",
    },
    List {
        title: "FALSELY RECOGNIZED",
        pick: substitute,
        note: "\n* NOTE: The 'Falsely Recognized' words are those hypothesis words\n        which the recognizer incorrectly substituted for a reference word.\n\n",
    },
];

fn text(word: Option<&Word>) -> Option<Vec<u8>> {
    word.map(|word| word.text.to_vec())
}

fn of(pair: &Pair, verdict: Verdict) -> Option<&Pair> {
    (pair.verdict == verdict).then_some(pair)
}

fn confusion(pair: &Pair) -> Option<Vec<u8>> {
    let pair = of(pair, Verdict::Substitution)?;
    Some([&*text(pair.reference.as_ref())?, b" ==> ", &*text(pair.hypothesis.as_ref())?].concat())
}

fn insertion(pair: &Pair) -> Option<Vec<u8>> {
    text(of(pair, Verdict::Insertion)?.hypothesis.as_ref())
}

fn deletion(pair: &Pair) -> Option<Vec<u8>> {
    text(of(pair, Verdict::Deletion)?.reference.as_ref())
}

fn substituted(pair: &Pair) -> Option<Vec<u8>> {
    text(of(pair, Verdict::Substitution)?.reference.as_ref())
}

fn substitute(pair: &Pair) -> Option<Vec<u8>> {
    text(of(pair, Verdict::Substitution)?.hypothesis.as_ref())
}

/// What `pick` finds in all pairs, the most frequent first, then by spelling.
pub fn count_words(speakers: &[&Speaker], pick: fn(&Pair) -> Option<Vec<u8>>) -> Vec<(Vec<u8>, usize)> {
    let mut found: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let utterances = speakers.iter().flat_map(|speaker| &speaker.utterances);
    for word in utterances.flat_map(|utterance| &utterance.alignment.pairs).filter_map(pick) {
        *found.entry(word).or_default() += 1;
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    found
}

fn write_list(out: &mut dyn Write, title: &str, found: &[(Vec<u8>, usize)]) -> io::Result<()> {
    writeln!(out, "\n{title:<30}   Total                 ({})", found.len())?;
    writeln!(out, "{:<30}   With >=  1 occurrences ({})\n", "", found.len())?;
    for (place, (word, n)) in found.iter().enumerate() {
        write!(out, "{:4}: {n:4}  ->  ", place + 1)?;
        out.write_all(word)?;
        writeln!(out)?;
    }
    let n_all: usize = found.iter().map(|(_, n)| n).sum();
    write!(out, "     -------\n     {n_all:5}\n\n")
}
