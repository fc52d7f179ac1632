//! Samples in, text out.
//!
//! A [`Recognizer`] is a model read from its [`directory`], shared by everybody; a [`Stream`] is one speaker's state.
//! There is one engine: a file is a stream fed quickly, so that files, live streams and evaluation give the same bits.
//!
//! ```no_run
//! use srf::{Recognizer, StreamOptions};
//!
//! let recognizer = Recognizer::open("my-model")?;
//! let mut stream = recognizer.stream(&StreamOptions::default())?;
//! # let microphone: Vec<Vec<f32>> = Vec::new();
//! for samples in microphone {
//!     // On the scale of 16-bit integers: full scale is 32768.
//!     stream.accept(&samples, 48_000)?;
//!     for ended in stream.take_ended() {
//!         println!("{}", ended.segment.text);
//!     }
//!     if let Some(so_far) = stream.partial() {
//!         println!("... {}", so_far.segment.text);
//!     }
//! }
//! for ended in stream.finish() {
//!     println!("{}", ended.segment.text);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The way of a sample: `front` (resampling and features), [`Listener`] (normalisation and network), [`Stream`]
//! (decoder, [`endpoint`] rules and what `record` notes for delays and evidence), [`Heard`].
//! [`bulk`] recognises lists on all cores, [`mod@align`] times a transcript that is known, [`health`] tells how layers
//! route, [`verify`] tries the promise that a stream equals its file.

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

/// The tutorial's program is built by the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/TUTORIAL.md")]
struct Tutorial;
