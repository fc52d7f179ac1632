//! Reads recordings and computes features.
//!
//! [`Recording`] opens WAV, NIST SPHERE, FLAC, MP3, Ogg Vorbis, AIFF, MP4 and Matroska (AAC, ALAC), deciding by content,
//! and gives [`Samples`].
//! [`resample`] changes their rate, [`convert`] writes them as WAV, [`features`] turns them into the frames a model
//! reads, and [`bulk`] does so for whole corpora, into [`ark`] or safetensors files.
//!
//! ```no_run
//! use srf_audio::features::{FeaturesConfig, extract};
//! use srf_audio::{Recording, Selection, resample};
//!
//! let config = FeaturesConfig::default();
//! let samples = Recording::open("talk.mp3")?.read(Selection { end_s: Some(10.0), ..Selection::default() })?;
//! let samples = resample::resample(samples, config.sample_rate_hz)?;
//! let frames = extract(&config, &samples.values)?;
//! assert_eq!(frames.n_dims, 123);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everywhere in this crate a sample is an `f32` from -1 to 1.
//! Kaldi's filterbank energies are defined on the scale of 16-bit integers; [`features`] multiply by 32768 themselves,
//! which changes no bit of the result because it is a power of two.

mod error;
mod ffmpeg;
mod input;
mod pipe;
mod recording;

pub mod companding;
mod compressed;
mod pcm;
pub mod sphere;
pub mod wav;

pub mod convert;
pub mod features;
pub mod resample;

pub mod ark;
pub mod bulk;

/// Full scale of 16-bit samples: an `i16` divided by this is a sample from -1 to 1.
pub const I16_SCALE: f32 = 32_768.0;

pub use error::{HeaderProblem, ReadAudioError};
pub use pipe::{Pipe, RawFormat};
pub use recording::{Blocks, Channel, Container, Encoding, Info, Recording, Samples, Selection, probe};
