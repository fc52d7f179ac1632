//! What to do about an error: an error in, a line of advice out.

use std::error::Error;

use audio::convert::ConvertError;
use model::weights::LoadWeightsError;
use train::builtin::layout::WriteCorpusError;
use train::corpus::prepare::PrepareError;

/// The advice of the first error in the chain that has some.
///
/// Library errors say what is wrong; those that also know what to do have a `hint` method, asked here.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(advice)
}

fn advice(cause: &(dyn Error + 'static)) -> Option<String> {
    let of_weights = cause.downcast_ref::<LoadWeightsError>().and_then(LoadWeightsError::hint);
    let of_convert = || cause.downcast_ref::<ConvertError>().and_then(ConvertError::hint);
    let of_prepare = || cause.downcast_ref::<PrepareError>().and_then(PrepareError::hint);
    let of_builtin = || cause.downcast_ref::<WriteCorpusError>().and_then(WriteCorpusError::hint);
    of_weights.or_else(of_convert).or_else(of_prepare).or_else(of_builtin)
}
