//! Mechanics that several crates need, each in one place.
//!
//! Nothing here knows about speech except [`silence`], the names that label sets use for it.

pub mod files;
pub mod ids;
pub mod names;
pub mod random;
pub mod shell;
pub mod silence;
