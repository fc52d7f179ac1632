//! `srf verify-stream`: checks that every chunking of a recording gives the same bits.

use std::path::PathBuf;

use srf::verify::{Chunking, Difference, chunkings, compare};
use srf::{Recognizer, StreamOptions};
use srf_audio::{Recording, Selection};

use super::recognition::{DecodingArgs, EndpointArgs, ModelArgs, VadArgs};
use crate::Exit;
use crate::printer::Printer;

/// Check on your own recordings that streaming gives the same bits as the whole file
///
/// Every recording is recognised at once and then in pieces: sample by sample, in equal pieces and in pieces of random
/// sizes, some of them empty. Log-probabilities are compared bit for bit, and the text with its times and confidences.
/// Exit code 1 if anything differs.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  srf verify-stream --model my-model talk.flac --random 20 --seed 7")]
pub(crate) struct Args {
    /// Recordings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    model: ModelArgs,

    /// How many random ways to cut, besides the even ones
    #[arg(long, value_name = "N", default_value_t = 8)]
    random: usize,

    /// Seed of the random sizes
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    decoding: DecodingArgs,

    #[command(flatten)]
    endpoint: EndpointArgs,

    #[command(flatten)]
    vad: VadArgs,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { files, model, random, seed, decoding, endpoint, vad } = args;
    let recognizer = model.open()?;
    let decoding = decoding.resolve(&recognizer)?;
    let options = StreamOptions { has_evidence: true, endpoint: endpoint.resolve()?, vad: vad.resolve(), ..decoding };
    if !recognizer.can_stream() {
        out.note("this model needs the whole utterance: every cut gives its results at the end");
    }
    let chunkings = chunkings(random.min(10_000), seed);
    let mut exit = Exit::Done;
    for file in &files {
        match verify(&recognizer, file, &chunkings, &options, out) {
            Ok(0) => {}
            Ok(_) => exit = Exit::Problems,
            Err(error) => {
                out.problem(format!("{error:#}"));
                exit = Exit::Problems;
            }
        }
    }
    Ok(exit)
}

/// Tries all ways to cut one recording and prints a line for each; how many differ.
fn verify(
    recognizer: &Recognizer,
    file: &PathBuf,
    chunkings: &[Chunking],
    options: &StreamOptions,
    out: &Printer,
) -> anyhow::Result<usize> {
    let samples = Recording::open(file)?.read(Selection::default())?;
    let rate_hz = samples.rate_hz;
    let statistics =
        recognizer.is_by_speaker().then(|| recognizer.statistics_of(&samples.values, rate_hz)).transpose()?;
    let options = StreamOptions { statistics, ..options.clone() };
    let n_classes = recognizer.labels().n_classes();
    let whole = recognizer.trace(&samples.values, rate_hz, None, &options)?;
    let n_tokens: usize = whole.segments.iter().map(|segment| segment.tokens.len()).sum();
    out.line(format_args!(
        "{}: {} samples at {rate_hz} Hz, {} log-probabilities of {n_classes} classes, {n_tokens} labels in {} utterances",
        file.display(),
        samples.values.len(),
        whole.log_probs.len(),
        whole.segments.len(),
    ))?;
    let progress = out.progress("verify", chunkings.len() as u64);
    let mut n_different = 0;
    for chunking in chunkings {
        let cut = recognizer.trace(&samples.values, rate_hz, Some(chunking), &options)?;
        progress.inc(1);
        let difference = compare(&cut, &whole, n_classes);
        n_different += usize::from(difference.is_some());
        progress.suspend(|| out.line(row(chunking, cut.n_chunks, difference.as_ref())))?;
    }
    progress.finish_and_clear();
    Ok(n_different)
}

fn row(chunking: &Chunking, n_chunks: usize, difference: Option<&Difference>) -> String {
    let sizes = match chunking {
        Chunking::Equal(1) => "1 sample".to_owned(),
        Chunking::Equal(size) => format!("{size} samples"),
        Chunking::Random { most, seed } => format!("0 to {most} samples, seed {seed}"),
    };
    let verdict = difference.map_or_else(|| "identical".to_owned(), |difference| format!("DIFFERENT: {difference}"));
    format!("  {n_chunks:>9} pieces of {sizes:<28} {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_where_it_is() {
        let difference = Difference::LogProb { slice: 3, class: 5, found: -1.5, expected: -1.25 };
        let row = row(&Chunking::Equal(160), 12, Some(&difference));
        assert!(row.ends_with("DIFFERENT: slice 3, class 5: log-probability -1.5, expected -1.25"), "{row}");
    }
}
