//! Samples in, text out.
//!
//! A [`Recognizer`] is a model read from its [`directory`], shared by everybody; a [`Stream`] is one speaker's state.
//! There is one engine: a file is a stream fed quickly, so that files, live streams and evaluation give the same bits.

pub mod directory;
pub mod features;
