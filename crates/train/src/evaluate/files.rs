//! The files of an evaluation.
//!
//! | file | holds |
//! |---|---|
//! | `evaluation.json` | every figure |
//! | `ref.trn`, `hyp.trn` | the texts that were compared, after any mapping |
//! | `hyp.ctm` | what was recognized, with times and confidences |
//! | `hyp.jsonl` | the same by utterance, with NeMo's keys: the reference as `text`, the hypothesis as `pred_text` |
//! | `score.html` | errors by speaker, confusions and every alignment, for a browser |

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use srf_base::ids;
use srf_score::report::html;
use srf_text::labels::Units;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::output::{Format, Transcript};

use super::Evaluation;
use super::scoring::{Answer, Measure, compared};
use super::summary::{self, Summary};
use crate::corpus::Utterance;

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write `{path}`: {source}")]
#[allow(missing_docs, reason = "the message says what the fields are")]
pub struct WriteFilesError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// A line of `hyp.jsonl`.
#[derive(Serialize)]
struct HypothesisLine<'a> {
    id: &'a str,
    speaker: &'a str,
    audio_filepath: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<f64>,
    duration: f64,
    text: &'a str,
    pred_text: String,
}

/// Writes all files into `dir`, which is created if needed.
pub fn write(
    dir: &Path,
    evaluation: &Evaluation,
    summary: &Summary,
    utterances: &[Utterance],
    mapping: Option<PhoneMapping>,
) -> Result<(), WriteFilesError> {
    fs::create_dir_all(dir).map_err(|source| WriteFilesError { path: dir.to_owned(), source })?;
    let file = |name: &str, fill: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        let path = dir.join(name);
        let written = || -> io::Result<()> {
            let mut out = BufWriter::new(File::create(&path)?);
            fill(&mut out)?;
            out.flush()
        };
        written().map_err(|source| WriteFilesError { path, source })
    };
    let rate = evaluation.rate();
    file(summary::FILE_NAME, &|out| Ok(serde_json::to_writer_pretty(out, summary)?))?;
    file("ref.trn", &|out| write_trn(out, &evaluation.answers, evaluation.units, mapping, Side::Reference))?;
    file("hyp.trn", &|out| write_trn(out, &evaluation.answers, evaluation.units, mapping, Side::Hypothesis))?;
    file("hyp.ctm", &|out| evaluation.transcripts.iter().try_for_each(|t| write!(out, "{}", t.format(Format::Ctm))))?;
    file("hyp.jsonl", &|out| write_lines(out, evaluation, utterances))?;
    file("score.html", &|out| html::write(out, &rate.system, rate.measure.name()))
}

#[derive(Clone, Copy)]
enum Side {
    Reference,
    Hypothesis,
}

fn write_trn(
    out: &mut dyn Write,
    answers: &[Answer],
    units: Units,
    mapping: Option<PhoneMapping>,
    side: Side,
) -> io::Result<()> {
    let measure = if units == Units::Phones { Measure::Phones } else { Measure::Words };
    for answer in answers {
        let [reference, hypothesis] = compared(answer, measure, mapping);
        let text = match side {
            Side::Reference => reference,
            Side::Hypothesis => hypothesis,
        };
        writeln!(out, "{text} ({})", ids::encode(&answer.id))?;
    }
    Ok(())
}

fn write_lines(out: &mut dyn Write, evaluation: &Evaluation, utterances: &[Utterance]) -> io::Result<()> {
    let mut utterances = utterances.iter();
    for (answer, transcript) in evaluation.answers.iter().zip(&evaluation.transcripts) {
        // Answers are in the order of the list, some left out.
        let Some(utterance) = utterances.find(|utterance| utterance.id == answer.id) else { break };
        serde_json::to_writer(&mut *out, &line(answer, transcript, utterance))?;
        writeln!(out)?;
    }
    Ok(())
}

fn line<'a>(answer: &'a Answer, transcript: &Transcript, utterance: &Utterance) -> HypothesisLine<'a> {
    HypothesisLine {
        id: &answer.id,
        speaker: &answer.speaker,
        audio_filepath: utterance.audio.path.display().to_string(),
        offset: utterance.audio.offset_s,
        duration: transcript.duration_s,
        text: &answer.reference,
        pred_text: transcript.text(),
    }
}
