//! The paper's tables, made anew: a table and a prepared corpus in; runs, evaluations and the table with the paper's
//! figures beside ours out.
//!
//! [`paper`] holds the tables as data, [`settings`] makes the recipe of a run, [`Job::go`] trains and measures what is
//! missing, and [`result`] is computed from the files alone, as [`claims`] are judged from them.

pub mod claims;
pub mod decoding;
pub mod markdown;
pub mod paper;
pub mod place;
pub mod result;
pub mod settings;
pub mod shelf;
pub mod smoke;
pub mod statistics;
pub mod table;

mod cells;
mod ends;
mod error;
mod html;

mod measure;
mod pace;
mod picture;
mod runner;

pub use self::error::ReproduceError;
pub use self::result::Report;
pub use self::runner::{Job, Outcome, Part, load_parts};
pub use self::table::{Row, Table};
