//! The page of a run: its events in, `RUN/report.html` out.
//!
//! Made anew after each epoch of nothing but the log, so it can also be made later, or of a run on another machine.
//! [`chart`] and [`mod@page`] know nothing of training and serve other pages as well.

pub mod chart;
pub mod page;
mod sections;
mod ticks;
pub mod whole;

use std::io;
use std::path::{Path, PathBuf};

use crate::events::log::{self, History, LogError};
use page::Page;

pub use sections::duration;
pub(crate) use sections::{best_epoch, epoch_s};
pub use ticks::{grouped, number};

/// Name of the page in a run directory.
pub const FILE_NAME: &str = "report.html";

/// Why the page could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// Its events could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The system would not let us write it.
    #[error("could not write `{path}`: {source}")]
    Write {
        /// The page.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Makes the page of the run in `run_dir` from its log.
pub fn write(run_dir: &Path) -> Result<(), ReportError> {
    let history = History::load(&run_dir.join(log::FILE_NAME))?;
    let path = run_dir.join(FILE_NAME);
    page(&history).save(&path).map_err(|source| ReportError::Write { path, source })
}

/// The page of what happened so far.
pub fn page(history: &History) -> Page {
    let mut page = Page::new(&sections::title(history), &sections::line(history));
    page.section("So far", &sections::summary(history));
    page.section("Loss and errors", &sections::progress(history));
    page.section("Capsules", &sections::health(history));
    page.section("Examples", &sections::examples(history));
    page.section("Speed", &sections::speed(history));
    page.section("Left out", &sections::skipped(history));
    page.section("Run", &sections::facts(history));
    page
}

#[cfg(test)]
mod tests;
