//! What to do about an error: an error in, a line of advice out.

use audio::convert::ConvertError;

/// The advice of the first error in the chain that has some.
///
/// Library errors say what is wrong; those that also know what to do have a `hint` method, asked here.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| cause.downcast_ref::<ConvertError>().and_then(ConvertError::hint))
}
