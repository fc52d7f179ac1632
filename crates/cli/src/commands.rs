//! One file a command: its arguments as typed, and `run`, which turns them into library calls.

pub(crate) mod convert;
pub(crate) mod features;
pub(crate) mod info;
pub(crate) mod prepare;
pub(crate) mod validate;

mod recordings;
