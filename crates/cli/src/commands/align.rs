//! `srf align`: recordings and what is said in them in, when each label and word was said out.

use std::path::PathBuf;

use rayon::prelude::*;
use srf::Recognizer;
use srf_text::output::{Format, Segment, Transcript, Word};

use super::recognition::ModelArgs;
use super::spoken::{self, Spoken, SpokenArgs};
use super::transcribe::files::Sink;
use crate::Exit;
use crate::printer::Printer;

/// Find when each label of a transcript was said
///
/// The transcript is in the labels of the model (phones or characters), or in words with `--lexicon`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf align talk.wav --text 'sil hh ax l ow sil' > talk.TextGrid
  srf align talk.wav --transcript talk.txt --lexicon cmudict.txt --format ctm
  srf align data/timit/test.jsonl --format ctm > aligned.ctm
  srf align data/timit/test.jsonl --out grids/")]
pub(crate) struct Args {
    #[command(flatten)]
    spoken: SpokenArgs,

    #[command(flatten)]
    model: ModelArgs,

    /// What to write: textgrid, ctm, json, csv, srt or vtt
    #[arg(long, short, value_name = "FORMAT", default_value_t = Format::TextGrid)]
    format: Format,

    /// A file for each recording in this directory, instead of all on stdout
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { spoken, model, format, out: dir } = args;
    let recognizer = model.open()?;
    let (spoken, mut n_problems) = spoken.resolve(recognizer.labels(), out)?;
    let mut sink = Sink::new(format, dir, out)?;
    sink.expect(spoken.len())?;
    let statistics = spoken::statistics(&recognizer, &spoken);
    let progress = out.progress("align", spoken.len() as u64);
    let align = |spoken: &Spoken| {
        let result = transcript(&recognizer, spoken, statistics.get(&spoken.utterance.speaker).cloned());
        progress.inc(1);
        result
    };
    let aligned: Vec<anyhow::Result<Transcript>> = spoken.par_iter().map(align).collect();
    progress.finish_and_clear();
    for result in aligned {
        let written = result.and_then(|transcript| sink.write(&transcript));
        super::transcribe::files::keep_on(written, &mut n_problems, |problem| out.problem(problem))?;
    }
    Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
}

fn transcript(
    recognizer: &Recognizer,
    spoken: &Spoken,
    statistics: Option<srf_audio::features::cmvn::CmvnStats>,
) -> anyhow::Result<Transcript> {
    let mut segment = recognizer.align(&spoken.utterance, &spoken.classes, statistics)?;
    if !spoken.words.is_empty() {
        segment.words = words(&segment, &spoken.words);
        segment.text = segment.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    }
    let duration_s = srf_audio::Recording::open(&spoken.utterance.path)?.info().duration_s();
    Ok(Transcript {
        id: spoken.utterance.id.clone(),
        channel: "A".to_owned(),
        duration_s: duration_s.unwrap_or(segment.end_s),
        segments: vec![segment],
    })
}

/// Words of so many labels each, with the times of their labels.
fn words(segment: &Segment, spoken: &[(String, usize)]) -> Vec<Word> {
    let mut rest = segment.tokens.as_slice();
    let mut words = Vec::new();
    for (text, n_labels) in spoken {
        let (tokens, later) = rest.split_at((*n_labels).min(rest.len()));
        rest = later;
        if let (Some(first), Some(last)) = (tokens.first(), tokens.last()) {
            words.push(Word { text: text.clone(), start_s: first.start_s, end_s: last.end_s, confidence: None });
        }
    }
    words
}
