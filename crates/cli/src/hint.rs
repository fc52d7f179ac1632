//! What to do about an error: an error in, a line of advice out.

/// The advice of the first error in the chain that has some.
///
/// Library errors say what is wrong; those that also know what to do have a `hint` method, asked here.
pub(crate) fn hint(_error: &anyhow::Error) -> Option<String> {
    None
}
