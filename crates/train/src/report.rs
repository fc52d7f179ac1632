//! The page of a run, `RUN/report.html`, made from its log.
//!
//! It is written after each epoch from nothing but the log, so it can also be made later, or of a run on another
//! machine. [`demo`] makes the page of `srf demo`.

pub mod demo;
mod sections;

use std::io;
use std::path::{Path, PathBuf};

use crate::events::log::{self, History, LogError};
use crate::page::Page;

pub use crate::draw::chart::{grouped, number};
pub use sections::duration;
pub(crate) use sections::{best_epoch, epoch_s};

/// Name of the page in a run directory.
pub const FILE_NAME: &str = "report.html";
/// How often the page of a run that is under way loads itself again.
const REFRESH_S: u32 = 30;

/// Why the page could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReportError {
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("could not write `{path}`: {source}")]
    Write { path: PathBuf, source: io::Error },
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
    if history.end().is_none() {
        page.refresh_every(REFRESH_S);
    }
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
