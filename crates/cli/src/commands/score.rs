//! `srf score`: error rates of a hypothesis, with confusions and alignments.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use serde_json::json;
use srf_score::files::{self, FileOptions, KnownTest, Missing, ScoredFiles, Unit};
use srf_score::formats::{Source, id_name};
use srf_score::report::{alignments, html};
use srf_score::{Counts, Pair, ScoredUtterance, Speaker, System, Verdict};
use srf_text::labels::fold::Folding;
use srf_text::labels::timit::PhoneSet;

use crate::Exit;
use crate::printer::Printer;

/// Measure the word, character or phone error rate of recognised text
#[derive(clap::Args)]
#[command(after_help = "\
Formats are detected: trn `words (id)`, Kaldi's text `id words`, stm and ctm.
Words are aligned at the costs of NIST's sclite, so the counts are those it reports.

Examples:
  srf score ref.trn hyp.trn
  srf score --unit char ref.txt hyp.txt --confusions 20
  srf score --fold 39 timit.ref timit.hyp --speakers
  srf score ref.stm hyp.ctm --html report.html")]
#[allow(clippy::struct_excessive_bools, reason = "switches are independent of each other")]
pub(crate) struct Args {
    /// The reference transcript
    reference: PathBuf,

    /// The recognised text
    hypothesis: PathBuf,

    /// The unit that is counted
    #[arg(long, short, value_enum, default_value_t)]
    unit: UnitArg,

    /// Fold TIMIT phones to 48 or 39 classes first (implies --unit phone)
    #[arg(long, value_parser = ["48", "39"], value_name = "CLASSES")]
    fold: Option<String>,

    /// Merge adjacent silences; the result is then not comparable with most published ones
    #[arg(long, requires = "fold")]
    merge_silences: bool,

    /// What to do about utterances that the hypothesis lacks
    #[arg(long, value_enum, default_value_t)]
    mode: ModeArg,

    /// Distinguish upper and lower case
    #[arg(long)]
    case_sensitive: bool,

    /// Words in brackets, such as `(uh)`, may be left out
    #[arg(long)]
    optional_words: bool,

    /// Fragments, such as `th-`, match the words they begin or end
    #[arg(long)]
    fragments: bool,

    /// Show a table of speakers
    #[arg(long, short)]
    speakers: bool,

    /// Show the N most frequent errors
    #[arg(long, short, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    confusions: Option<usize>,

    /// Show every utterance with errors, reference above hypothesis
    #[arg(long, short)]
    alignments: bool,

    /// Write an HTML page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum UnitArg {
    /// Word error rate
    #[default]
    Word,
    /// Character error rate, without blanks
    Char,
    /// Phone error rate
    Phone,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum ModeArg {
    /// Refuse to score
    #[default]
    Strict,
    /// Count their words as deleted
    All,
    /// Leave them out
    Present,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args {
        reference,
        hypothesis,
        unit,
        fold,
        merge_silences,
        mode,
        case_sensitive,
        optional_words,
        fragments,
        speakers,
        confusions,
        alignments,
        html,
        json,
    } = args;
    let set = fold.map(|fold| if fold == "48" { PhoneSet::Train48 } else { PhoneSet::Score39 });
    let folding = set.map(|set| Folding { set, merges_silences: merge_silences });
    let fold = |line: &str| folding.map_or_else(|| line.to_owned(), |folding| folding.apply(line));
    let options = FileOptions {
        unit: if set.is_some() { Unit::Phone } else { unit.into() },
        rewrite: folding.is_some().then_some(&fold),
        missing: mode.into(),
        is_case_sensitive: case_sensitive,
        optional_words,
        fragments,
    };
    let title = hypothesis.display().to_string();
    let scored = files::score(&Source::load(&reference)?, &Source::load(&hypothesis)?, &title, options)?;
    let is_usual = folding.is_none_or(|f| f.set == PhoneSet::Score39 && !f.merges_silences);
    let known = KnownTest::find(&scored.system, options.unit).filter(|_| is_usual);
    let exit = print_problems(&scored, options.missing, out);
    if let Some(test) = known {
        note_other_size(&scored.system, test, out);
    }
    let system = &scored.system;
    if let Some(path) = &html {
        write_html(path, system, rate_name(options.unit))?;
        out.note(format_args!("wrote `{}`", path.display()));
    }
    if json {
        out.line(serde_json::to_string_pretty(&as_json(system, options.unit))?)?;
        return Ok(exit);
    }
    if alignments {
        show_alignments(system, out)?;
    }
    if speakers {
        show_speakers(system, out)?;
    }
    if let Some(n) = confusions {
        show_confusions(system, n, out)?;
    }
    out.line(rate_line(rate_name(options.unit), &system.counts()))?;
    out.line(sentence_line(system))?;
    Ok(exit)
}

impl From<UnitArg> for Unit {
    fn from(unit: UnitArg) -> Self {
        match unit {
            UnitArg::Word => Self::Word,
            UnitArg::Char => Self::Character,
            UnitArg::Phone => Self::Phone,
        }
    }
}

impl From<ModeArg> for Missing {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Strict => Self::Refuse,
            ModeArg::All => Self::Count,
            ModeArg::Present => Self::Skip,
        }
    }
}

fn rate_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Word => "WER",
        Unit::Character => "CER",
        Unit::Phone => "PER",
    }
}

/// The error rate in the form of Kaldi's `compute-wer`.
pub(crate) fn rate_line(name: &str, counts: &Counts) -> String {
    let rate = counts.error_rate().map_or_else(|| "undefined".to_owned(), |rate| format!("{:.2}", 100.0 * rate));
    let Counts { substitutions, deletions, insertions, .. } = *counts;
    let (n_errors, n_reference) = (counts.n_errors(), counts.n_reference());
    format!("%{name} {rate} [ {n_errors} / {n_reference}, {insertions} ins, {deletions} del, {substitutions} sub ]")
}

/// Utterances with an error, in the same form.
pub(crate) fn sentence_line(system: &System) -> String {
    let (n_wrong, n) = (system.n_wrong(), system.n_utterances());
    format!("%SER {:.2} [ {n_wrong} / {n} ]", 100.0 * n_wrong as f64 / n.max(1) as f64)
}

/// Reports what does not match; [`Exit::Problems`] if anything does not.
fn print_problems(scored: &ScoredFiles, mode: Missing, out: &Printer) -> Exit {
    let ScoredFiles { missing, extra, notes, .. } = scored;
    if let Some(first) = missing.first() {
        let done = if mode == Missing::Count { "counted as deleted" } else { "left out" };
        out.problem(format_args!("{} utterances are missing and {done}, the first is `{first}`", missing.len()));
    }
    if let Some(first) = extra.first() {
        let n = extra.len();
        out.problem(format_args!("{n} utterances are not in the reference and not scored, the first is `{first}`"));
    }
    for note in notes {
        out.problem(note);
    }
    if missing.is_empty() && extra.is_empty() && notes.is_empty() { Exit::Done } else { Exit::Problems }
}

/// A reference with as many utterances as a known test but another number of words is worth a note.
fn note_other_size(system: &System, test: KnownTest, out: &Printer) {
    let n_reference = system.counts().n_reference();
    if n_reference != test.n_reference {
        let KnownTest { name, n_utterances, n_reference: expected, .. } = test;
        out.note(format_args!(
            "note: {n_utterances} utterances as {name}, but the reference has {n_reference} tokens instead of {expected}"
        ));
    }
}

fn write_html(path: &Path, system: &System, rate: &str) -> anyhow::Result<()> {
    let written = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        html::write(&mut file, system, rate)?;
        file.flush()
    };
    written().with_context(|| format!("could not write `{}`", path.display()))
}

pub(crate) fn show_speakers(system: &System, out: &Printer) -> std::io::Result<()> {
    let width = system.speakers.iter().map(|s| lossy(&s.name).chars().count()).max().unwrap_or(0).max(7);
    out.line(format_args!(
        "{:<width$} {:>6} {:>7} {:>6} {:>6} {:>6} {:>7}",
        "speaker", "utts", "words", "sub", "del", "ins", "%"
    ))?;
    for Speaker { name, utterances, counts, .. } in &system.speakers {
        let rate = counts.error_rate().map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", 100.0 * rate));
        let Counts { substitutions, deletions, insertions, .. } = counts;
        let (name, n, words) = (lossy(name), utterances.len(), counts.n_reference());
        out.line(format_args!(
            "{name:<width$} {n:>6} {words:>7} {substitutions:>6} {deletions:>6} {insertions:>6} {rate:>7}"
        ))?;
    }
    out.line("")
}

fn lossy(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// What a wrong pair of words is called in a list.
fn error_name(pair: &Pair) -> Option<Vec<u8>> {
    let text = |word: &Option<srf_score::Word>| word.as_ref().map_or_else(Vec::new, |word| word.text.to_vec());
    let (reference, hypothesis) = (text(&pair.reference), text(&pair.hypothesis));
    match pair.verdict {
        Verdict::Correct => None,
        Verdict::Substitution => Some([&*reference, b" -> ", &*hypothesis].concat()),
        Verdict::Deletion => Some([&*reference, b" -> (nothing)"].concat()),
        Verdict::Insertion => Some([b"(nothing) -> ", &*hypothesis].concat()),
    }
}

fn frequent_errors(system: &System) -> Vec<(Vec<u8>, usize)> {
    alignments::count_words(&system.speakers.iter().collect::<Vec<_>>(), error_name)
}

fn show_confusions(system: &System, n: usize, out: &Printer) -> std::io::Result<()> {
    for (error, n) in frequent_errors(system).iter().take(n) {
        out.line(format_args!("{n:>6}  {}", lossy(error)))?;
    }
    out.line("")
}

fn show_alignments(system: &System, out: &Printer) -> std::io::Result<()> {
    for utterance in system.utterances().filter(|utterance| utterance.has_errors()) {
        let counts = utterance.counts();
        let id = id_name(&utterance.id);
        out.line(format_args!("{id}  {} / {}", counts.n_errors(), counts.n_reference()))?;
        let [reference, hypothesis] = alignment_lines(utterance);
        out.line(format_args!("  ref  {}", reference.trim_end()))?;
        out.line(format_args!("  hyp  {}\n", hypothesis.trim_end()))?;
    }
    Ok(())
}

/// Both sides word under word, wrong words in capitals and missing ones as stars.
fn alignment_lines(utterance: &ScoredUtterance) -> [String; 2] {
    let mut lines = [String::new(), String::new()];
    for pair in &utterance.alignment.pairs {
        let words = [&pair.reference, &pair.hypothesis].map(|word| word.as_ref().map(|word| lossy(&word.text)));
        let width = |word: &Option<Cow<'_, str>>| word.as_ref().map_or(0, |word| word.chars().count());
        let columns = words.iter().map(width).max().unwrap_or(0);
        for (line, word) in lines.iter_mut().zip(words) {
            let word = word.unwrap_or_else(|| "*".repeat(columns).into());
            let word = if pair.verdict == Verdict::Correct { word } else { word.to_uppercase().into() };
            let _ = write!(line, "{word:<columns$} ");
        }
    }
    lines
}

fn as_json(system: &System, unit: Unit) -> serde_json::Value {
    let counts = |counts: &Counts| {
        json!({
            "reference": counts.n_reference(), "errors": counts.n_errors(), "correct": counts.correct,
            "substitutions": counts.substitutions, "deletions": counts.deletions,
            "insertions": counts.insertions, "rate": counts.error_rate(),
        })
    };
    let words = |utterance: &ScoredUtterance| -> Vec<serde_json::Value> {
        let text = |word: &Option<srf_score::Word>| word.as_ref().map(|word| lossy(&word.text).into_owned());
        utterance.alignment.pairs.iter().map(|pair| json!([text(&pair.reference), text(&pair.hypothesis)])).collect()
    };
    let utterances = system.speakers.iter().flat_map(|speaker| {
        speaker.utterances.iter().map(move |utterance| {
            json!({
                "id": id_name(&utterance.id), "speaker": lossy(&speaker.name),
                "counts": counts(&utterance.counts()), "words": words(utterance),
            })
        })
    });
    let speakers = system.speakers.iter().map(|s| json!({ "name": lossy(&s.name), "counts": counts(&s.counts) }));
    let errors = frequent_errors(system);
    let confusions = errors.iter().map(|(error, n)| json!({ "error": lossy(error), "count": n }));
    json!({
        "measure": rate_name(unit),
        "counts": counts(&system.counts()),
        "utterances_with_errors": system.n_wrong(),
        "speakers": speakers.collect::<Vec<_>>(),
        "confusions": confusions.collect::<Vec<_>>(),
        "utterances": utterances.collect::<Vec<_>>(),
    })
}
