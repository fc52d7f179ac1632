//! How good a recogniser is: two transcripts in, alignments, sums and reports out.
//!
//! Three pure steps: [`align`] pairs the words of two utterances, [`Counts`] adds them up, and the
//! reports of [`report`] write them. The alignment and the reports are those of NIST's `sclite`, byte
//! for byte; [`compare`] holds the tests of significance of its `sc_stats`.

mod encoding;
mod word;

mod network;

mod align;
mod counts;
mod labels;
mod system;

pub mod ctm;
pub mod read;
pub mod stm;
pub mod trn;

pub mod files;
pub mod pairing;

pub mod compare;
pub mod report;

pub use align::{Alignment, Cost, Pair, TooLongError, Verdict, align};
pub use counts::Counts;
pub use encoding::{Encoding, Language};
pub use labels::{Label, Labels};
pub use network::{Characters, Network, ReadAlternativesError, Reading};
pub use system::{Heading, Speaker, System, Traits, Utterance};
pub use word::{Tags, Text, Word};
