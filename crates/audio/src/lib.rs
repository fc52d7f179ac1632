//! Recordings in, feature frames out.
//!
//! [`Recording`] opens WAV, NIST SPHERE, FLAC, MP3, Ogg Vorbis and AIFF, deciding by content, and gives [`Samples`].
//! [`resample`] changes their rate.
//! [`features`] turns these into the frames a model reads.
//!
//! Everywhere in this crate a sample is an `f32` on the scale of 16-bit integers: full scale is 32768, not 1.
//! It is the scale on which the filterbank energies of the field are defined.

pub mod ark;
pub mod bulk;
mod companding;
mod compressed;
pub mod convert;
mod error;
pub mod features;
mod input;
mod pcm;
mod recording;
pub mod resample;
pub mod sphere;
pub mod wav;

pub use error::{HeaderProblem, ReadAudioError};
pub use recording::{Blocks, Channel, Container, Encoding, Info, Recording, Samples, Selection, probe};
