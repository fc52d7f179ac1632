//! What commands that recognise have in common: a model, how to decode and when utterances end, as typed; a recogniser
//! and the options of its streams out.

mod endpoint;
mod sources;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use srf::{Recognizer, StreamOptions, default_model};
use srf_text::decode::{DEFAULT_BEAM, DecoderConfig, Search};
use srf_text::fusion::Fusion;
use srf_text::labels::LabelSet;

pub(crate) use self::endpoint::EndpointArgs;
pub(crate) use self::sources::SourceArgs;

/// A wider beam finds nothing more.
const MAX_BEAM: usize = 10_000;

/// Which model.
#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// The model directory, or the run it is in [default: $SRF_MODEL, ./model, ./models/en-phones, or the one beside the program]
    #[arg(long, short, value_name = "DIR")]
    model: Option<PathBuf>,
}

impl ModelArgs {
    pub(crate) fn open(self) -> anyhow::Result<Recognizer> {
        Ok(self.open_named()?.1)
    }

    /// The model, and the directory it was found in.
    pub(crate) fn open_named(self) -> anyhow::Result<(PathBuf, Recognizer)> {
        let dir = match self.model {
            Some(dir) => model_of_run(dir),
            None => default_model()?,
        };
        let recognizer = Recognizer::open(&dir)?;
        Ok((dir, recognizer))
    }
}

/// The directory itself, or the model in it where it is a run.
fn model_of_run(dir: PathBuf) -> PathBuf {
    let inside = dir.join("model");
    let is_run = !dir.join("config.toml").exists() && inside.join("config.toml").exists();
    if is_run { inside } else { dir }
}

/// How to decode.
#[derive(clap::Args)]
#[command(next_help_heading = "Decoding")]
pub(crate) struct DecodingArgs {
    /// Hypotheses kept by the prefix beam search
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BEAM)]
    beam: usize,

    /// No beam: the likeliest label of every slice
    #[arg(long, conflicts_with_all = ["beam", "lm", "lexicon", "hotwords", "phrases"])]
    greedy: bool,

    /// Hypotheses told for each utterance, in JSON
    #[arg(long, value_name = "N", default_value_t = 1)]
    nbest: usize,

    #[command(flatten)]
    sources: SourceArgs,
}

impl DecodingArgs {
    /// The options of streams for a model with these labels, everything else as usual.
    pub(crate) fn resolve(self, labels: &LabelSet) -> anyhow::Result<StreamOptions> {
        let Self { beam, greedy, nbest, sources } = self;
        ensure!((1..=MAX_BEAM).contains(&beam), "--beam is {beam}, expected 1 to {MAX_BEAM}");
        let search = if greedy { Search::Greedy } else { Search::Beam { width: beam } };
        let fusion = match sources.resolve(labels)? {
            Some(sources) => Some(Arc::new(Fusion::new(labels, sources)?)),
            None => None,
        };
        let decoder = DecoderConfig { search, fusion };
        Ok(StreamOptions { decoder, n_best: nbest, ..StreamOptions::default() })
    }
}
