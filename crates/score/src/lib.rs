//! Scores transcripts as NIST's `sclite` does: alignment, counts, reports and significance tests.
//!
//! [`align`] pairs the words of two utterances, [`Counts`] adds the pairs up, and [`report`] writes them; the alignment
//! and the reports are those of `sclite`, byte for byte. [`files`] scores two files of any known format at once, and
//! [`compare`] holds the significance tests of NIST's `sc_stats`.
//!
//! ```
//! use srf_score::{Cost, Counts, Network, Reading, align};
//!
//! let words = |text: &str| Network::parse(text.as_bytes(), Reading::default());
//! let alignment = align(&words("the cat { sat / sits } down")?, &words("a cat sits")?, Cost::Spelling)?;
//! let counts = Counts::from(&alignment);
//! assert_eq!((counts.correct, counts.substitutions, counts.deletions), (2, 1, 1));
//! assert_eq!(counts.error_rate(), Some(0.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encoding;
mod word;

mod network;

mod align;
mod system;

pub mod formats;

pub mod files;
pub mod pairing;

pub mod compare;
pub mod report;

pub use align::{Alignment, Cost, Pair, TooLongError, Verdict, align};
pub use encoding::{Encoding, Language};
pub use network::{Characters, Network, ReadAlternativesError, Reading};
pub use system::{Counts, Heading, ScoredUtterance, Speaker, System, Traits};
pub use word::{Tags, Text, Word};
