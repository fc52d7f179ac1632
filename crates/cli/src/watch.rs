//! Drawing what the library reports of a long job: begin and advance in, a progress bar out.

use std::sync::Mutex;

use indicatif::ProgressBar;
use srf_train::corpus::Watcher;

use crate::printer::Printer;

/// A bar for the job under way, if any.
pub(crate) struct Bar<'a> {
    out: &'a Printer,
    bar: Mutex<Option<ProgressBar>>,
}

impl<'a> Bar<'a> {
    pub(crate) fn new(out: &'a Printer) -> Self {
        Self { out, bar: Mutex::new(None) }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.replace(None);
    }

    /// Draws `bar` from now on.
    pub(crate) fn show(&self, bar: ProgressBar) {
        self.replace(Some(bar));
    }

    /// Does something to the bar, if there is one.
    pub(crate) fn with(&self, draw: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = &*self.bar.lock().expect("drawing does not panic") {
            draw(bar);
        }
    }

    /// A remark above the bar.
    pub(crate) fn note(&self, text: &str) {
        match &*self.bar.lock().expect("drawing does not panic") {
            Some(bar) => bar.suspend(|| self.out.note(text)),
            None => self.out.note(text),
        }
    }

    fn replace(&self, bar: Option<ProgressBar>) {
        let mut current = self.bar.lock().expect("drawing does not panic");
        if let Some(old) = std::mem::replace(&mut *current, bar) {
            old.finish_and_clear();
        }
    }
}

impl Watcher for Bar<'_> {
    fn begin(&self, what: &'static str, n_steps: usize) {
        self.show(self.out.progress(what, n_steps as u64));
    }

    fn advance(&self) {
        self.with(|bar| bar.inc(1));
    }
}
