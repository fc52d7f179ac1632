//! `srf` recognises speech with networks made of capsules.
//!
//! ```no_run
//! let recognizer = srf::Recognizer::open("models/en")?;
//! println!("{}", recognizer.transcribe("talk.flac")?.text());
//!
//! let mut stream = recognizer.stream(&Default::default())?;
//! # let microphone: Vec<Vec<f32>> = Vec::new();
//! for samples in microphone {
//!     stream.accept(&samples, 48_000)?; // from -1 to 1; 16-bit samples: `accept_i16`
//!     for segment in stream.take_ended() {
//!         println!("{}", segment.text);
//!     }
//!     if let Some(so_far) = stream.partial() {
//!         println!("... {}", so_far.text);
//!     }
//! }
//! for segment in stream.finish() {
//!     println!("{}", segment.text);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Recognizer`] is a model read from its [`directory`]; all threads share it. A [`Stream`] is the state of one
//! speaker. Results are [`Segment`]s, each between two endpoints, and [`Transcript`]s of whole recordings, which can be
//! written in every [`Format`]. Files are streams fed quickly, so that files, live streams and evaluation give the same
//! bits.
//!
//! A directory with [`words`] makes a recogniser of phones or characters write words of a lexicon.
//!
//! [`StreamOptions`] choose the search, the language model and other sources of knowledge ([`text::fusion`]), endpoint
//! rules, [voice activity detection](vad) and alternatives. [`mod@align`] finds the times of a known transcript,
//! [`verify`] checks that a stream equals its file. Everything else of [`audio`], [`mod@model`] and [`text`] is
//! re-exported.

pub mod align;
pub mod decoding;
pub mod directory;
pub mod endpoint;
pub mod options;
pub mod vad;
pub mod verify;
pub mod words;

mod clock;
mod default_model;
mod listener;
mod recognizer;
mod segment;
mod stream;
mod transcribe;

pub use srf_audio as audio;
pub use srf_model as model;
pub use srf_text as text;

pub use srf_audio::bulk::Utterance;
pub use srf_audio::features::{Cmvn, FeaturesConfig};
pub use srf_audio::{Channel, ReadAudioError, Selection};
pub use srf_text::decode::{DecoderConfig, Search};
pub use srf_text::labels::{LabelSet, Units};
pub use srf_text::output::{
    Alternative, Delay, EndReason, Evidence, Format, Segment, SubtitleOptions, SubtitleStream, TokenResult, Transcript,
    UnknownFormat, Word,
};

pub use default_model::{DEFAULT_MODEL, NoModelError, default_model, models_home};
pub use directory::{InvalidParts, ModelParts, ReadModelError};
pub use endpoint::{EndpointRules, Rule};
pub use listener::{AcceptError, Listener};
pub use recognizer::Recognizer;
pub use segment::Timing;
pub use stream::{Slices, StartStreamError, Stream, StreamOptions};
pub use transcribe::{TranscribeError, channel_name};
pub use vad::VadConfig;

/// The program in the README is compiled by the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A tiny model with random weights, for the examples in this documentation.
#[doc(hidden)]
pub mod doc {
    use srf_model::config::{Cmvn, FeaturesConfig, ModelConfig, PerLayer, SrfConfig};

    use crate::{LabelSet, ModelParts, Recognizer, Units};

    /// It knows three letters and the space.
    pub fn recognizer() -> Recognizer {
        let features = FeaturesConfig { mel_bins: 4, cmvn: Cmvn::Online, ..FeaturesConfig::default() };
        let labels = LabelSet::new(Units::Chars, [" ", "a", "b", "c"]).expect("four different letters");
        let model = ModelConfig::Srf(SrfConfig {
            features: features.n_features(),
            filters: 2,
            layers: 1,
            primary_height: 2,
            hidden_height: PerLayer::Same(2),
            ..SrfConfig::new(labels.n_classes())
        });
        Recognizer::from_parts(ModelParts::untrained(model, features, labels, 0)).expect("the parts fit")
    }
}
