//! What to do about an error: an error in, a line of advice out.

use std::error::Error;

use audio::convert::ConvertError;
use model::weights::LoadWeightsError;
use train::builtin::espeak::EspeakError;
use train::corpus::prepare::PrepareError;
use text::score::files::ScoreFilesError;
use text::score::pairing::PairError;
use text::score::read::ReadTranscriptError;

/// The advice of the first error in the chain that has some.
///
/// Library errors say what is wrong; those that also know what to do have a `hint` method, asked here.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(advice)
}

fn advice(cause: &(dyn Error + 'static)) -> Option<String> {
    let convert = cause.downcast_ref::<ConvertError>().and_then(ConvertError::hint);
    let weights = || cause.downcast_ref::<LoadWeightsError>().and_then(LoadWeightsError::hint);
    let prepare = || cause.downcast_ref::<PrepareError>().and_then(PrepareError::hint);
    let espeak = || cause.downcast_ref::<EspeakError>().and_then(EspeakError::hint);
    convert.or_else(weights).or_else(prepare).or_else(espeak)
    let weights = || cause.downcast_ref::<LoadWeightsError>().and_then(LoadWeightsError::hint);
    let files = || cause.downcast_ref::<ScoreFilesError>().and_then(ScoreFilesError::hint);
    let pair = || cause.downcast_ref::<PairError>().and_then(PairError::hint);
    let read = || cause.downcast_ref::<ReadTranscriptError>().and_then(ReadTranscriptError::hint);
    weights().or_else(files).or_else(pair).or_else(read)
    let of_weights = cause.downcast_ref::<LoadWeightsError>().and_then(LoadWeightsError::hint);
    let of_convert = || cause.downcast_ref::<ConvertError>().and_then(ConvertError::hint);
    let of_prepare = || cause.downcast_ref::<PrepareError>().and_then(PrepareError::hint);
    let of_espeak = || cause.downcast_ref::<EspeakError>().and_then(EspeakError::hint);
    of_weights.or_else(of_convert).or_else(of_prepare).or_else(of_espeak)
}
