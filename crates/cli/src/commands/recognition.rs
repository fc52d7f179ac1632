//! What commands that recognise have in common: a model, how to decode and when utterances end, as typed; a recogniser
//! and the options of its streams out.

mod endpoint;

use std::path::PathBuf;

use anyhow::ensure;
use asr::{Recognizer, StreamOptions, default_model};
use text::decode::{DEFAULT_BEAM, DecoderConfig, Search};

pub(crate) use self::endpoint::EndpointArgs;

/// A wider beam finds nothing more.
const MAX_BEAM: usize = 10_000;

/// Which model.
#[derive(clap::Args)]
pub(crate) struct ModelArgs {
    /// The model directory [default: $SRF_MODEL, ./model, or the one beside the program]
    #[arg(long, short, value_name = "DIR")]
    model: Option<PathBuf>,
}

impl ModelArgs {
    pub(crate) fn open(self) -> anyhow::Result<Recognizer> {
        let dir = match self.model {
            Some(dir) => dir,
            None => default_model()?,
        };
        Ok(Recognizer::open(dir)?)
    }
}

/// How to decode.
#[derive(clap::Args)]
#[command(next_help_heading = "Decoding")]
pub(crate) struct DecodingArgs {
    /// Hypotheses kept by the prefix beam search
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BEAM)]
    beam: usize,

    /// No beam: the likeliest label of every slice
    #[arg(long, conflicts_with = "beam")]
    greedy: bool,

    /// Hypotheses told for each utterance, in JSON
    #[arg(long, value_name = "N", default_value_t = 1)]
    nbest: usize,
}

impl DecodingArgs {
    /// The options of streams, with these settings and everything else as usual.
    pub(crate) fn resolve(self) -> anyhow::Result<StreamOptions> {
        let Self { beam, greedy, nbest } = self;
        ensure!((1..=MAX_BEAM).contains(&beam), "--beam is {beam}, expected 1 to {MAX_BEAM}");
        let search = if greedy { Search::Greedy } else { Search::Beam { width: beam } };
        let decoder = DecoderConfig { search, ..DecoderConfig::default() };
        Ok(StreamOptions { decoder, n_best: nbest, ..StreamOptions::default() })
    }
}
