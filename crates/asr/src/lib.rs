//! Samples in, text out.
//!
//! A [`Recognizer`] is a model read from its [`directory`], shared by everybody; a [`Stream`] is one speaker's state.
//! There is one engine: a file is a stream fed quickly, so that files, live streams and evaluation give the same bits.

pub mod align;
pub mod bulk;
pub mod delay;
pub mod directory;
pub mod endpoint;
pub mod features;
pub mod health;
pub mod verify;

mod default_model;
mod front;
mod heard;
mod listener;
mod options;
mod recognizer;
mod record;
mod stream;

pub use default_model::{NoModelError, default_model};
pub use front::AcceptError;
pub use heard::Heard;
pub use listener::Listener;
pub use options::{StartStreamError, StreamOptions};
pub use recognizer::Recognizer;
pub use stream::Stream;
