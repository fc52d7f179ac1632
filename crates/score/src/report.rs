//! Scored systems as files: a [`System`](super::System) in, the bytes of a report out.
//!
//! One file each for the reports of NIST's scorer; transcripts need not be UTF-8, so a report writes
//! bytes instead of being `Display`.

pub mod alignments;
pub mod details;
pub mod html;
pub mod labelled;
mod number;
pub mod sentences;
pub mod sgml;
pub mod summary;
pub mod table;

pub(crate) use number::{percent, round};
