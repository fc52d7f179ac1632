//! What to do about an error: an error in, a line of advice out.

use std::error::Error;

use asr::align::AlignError;
use asr::directory::{InvalidParts, ReadModelError};
use asr::{AcceptError, NoModelError, StartStreamError};
use audio::convert::ConvertError;
use model::weights::LoadWeightsError;
use text::fusion::FusionError;
use text::lm::LoadArpaError;
use text::score::files::ScoreFilesError;
use text::score::pairing::PairError;
use text::score::read::ReadTranscriptError;
use train::builtin::layout::WriteCorpusError;
use train::corpus::prepare::PrepareError;

/// The advice of the first error in the chain that has some.
///
/// Library errors say what is wrong; those that also know what to do have a `hint` method, asked here.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(advice)
}

fn advice(cause: &(dyn Error + 'static)) -> Option<String> {
    /// The hint of `$cause` if it is one of these types.
    macro_rules! first_hint {
        ($($type:ty),+ $(,)?) => {
            None$(.or_else(|| cause.downcast_ref::<$type>().and_then(<$type>::hint)))+
        };
    }
    first_hint!(
        AcceptError,
        AlignError,
        ConvertError,
        FusionError,
        InvalidParts,
        LoadArpaError,
        LoadWeightsError,
        NoModelError,
        PairError,
        PrepareError,
        ReadModelError,
        ReadTranscriptError,
        ScoreFilesError,
        StartStreamError,
        WriteCorpusError,
    )
}
