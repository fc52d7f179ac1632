//! `srf gop`: recordings and what should be said in them in, how well each label was said out.

use rayon::prelude::*;
use serde::Serialize;
use srf::align::{AlignError, Said};

use super::recognition::ModelArgs;
use super::spoken::{self, Spoken, SpokenArgs};
use crate::Exit;
use crate::printer::Printer;

/// Score how well each label of a transcript was said (goodness of pronunciation)
///
/// The score is 0 to 100: the probability, in per cent, that it was this label between its neighbours, and not another
/// one or none, summed over all alignments. 100: nothing else is plausible; 50: something else is as likely; near 0: it
/// was left out or replaced. What was heard instead, and its share, stand behind it (`-` for nothing).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf gop talk.wav --text 'sil hh ax l ow sil'
  srf gop talk.wav --transcript talk.txt --lexicon cmudict.txt
  srf gop data/learners.jsonl --json > scores.jsonl")]
pub(crate) struct Args {
    #[command(flatten)]
    spoken: SpokenArgs,

    #[command(flatten)]
    model: ModelArgs,

    /// Print JSON instead of text, one object a recording
    #[arg(long)]
    json: bool,
}

/// A recording in JSON.
#[derive(Serialize)]
struct Scored<'a> {
    id: &'a str,
    /// The mean over its labels.
    score: f32,
    labels: Vec<Label<'a>>,
}

#[derive(Serialize)]
struct Label<'a> {
    #[serde(rename = "label")]
    name: &'a str,
    start_s: f64,
    end_s: f64,
    score: f32,
    heard: Option<&'a str>,
    heard_score: f32,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { spoken, model, json } = args;
    let recognizer = model.open()?;
    let (spoken, mut n_problems) = spoken.resolve(recognizer.labels(), out)?;
    let statistics = spoken::statistics(&recognizer, &spoken);
    let progress = out.progress("gop", spoken.len() as u64);
    let score = |spoken: &Spoken| {
        let statistics = statistics.get(&spoken.utterance.speaker).cloned();
        let said = recognizer.pronunciation(&spoken.utterance, &spoken.classes, statistics);
        progress.inc(1);
        said
    };
    let scored: Vec<Result<Vec<Said>, AlignError>> = spoken.par_iter().map(score).collect();
    progress.finish_and_clear();
    for (spoken, result) in spoken.iter().zip(scored) {
        match result {
            Ok(said) if json => out.line(serde_json::to_string(&object(&spoken.utterance.id, &said))?)?,
            Ok(said) => lines(&spoken.utterance.id, &said).iter().try_for_each(|line| out.line(line))?,
            Err(error) => {
                n_problems += 1;
                out.problem(error);
            }
        }
    }
    Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
}

fn mean(said: &[Said]) -> f32 {
    said.iter().map(|said| said.score).sum::<f32>() / said.len().max(1) as f32
}

fn object<'a>(id: &'a str, said: &'a [Said]) -> Scored<'a> {
    let label = |said: &'a Said| Label {
        name: &said.token.text,
        start_s: said.token.start_s,
        end_s: said.token.end_s,
        score: said.score,
        heard: said.heard.as_deref(),
        heard_score: said.heard_score,
    };
    Scored { id, score: mean(said), labels: said.iter().map(label).collect() }
}

/// A heading with the mean, then a row for each label.
fn lines(id: &str, said: &[Said]) -> Vec<String> {
    let row = |said: &Said| {
        let Said { token, score, heard, heard_score } = said;
        let heard = heard.as_deref().unwrap_or("-");
        format!(
            "{:>8.2} {:>8.2}  {:<6} {score:>5.1}  {heard:<6} {heard_score:>5.1}",
            token.start_s, token.end_s, token.text
        )
    };
    let heading = [format!("{id}: {:.1}", mean(said)), "   start      end  label  score  heard  share".to_owned()];
    heading.into_iter().chain(said.iter().map(row)).collect()
}
