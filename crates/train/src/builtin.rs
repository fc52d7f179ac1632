//! The built-in spoken corpus: a seed in, any number of hours of speech with exact labels out.

pub mod grammar;
mod phones;
pub mod voice;
