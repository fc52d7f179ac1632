//! Shows the progress of training: a bar on a terminal, otherwise lines, and one line per epoch.

use std::io::{self, IsTerminal as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::ProgressStyle;
use srf_train::corpus::Watcher;
use srf_train::events::{Event, Measured, Record};
use srf_train::trainer::{Figures, TrainWatcher};

use crate::printer::{Bar, Printer, human_duration};

/// The bar under way and where lines go.
pub(crate) struct Screen<'a> {
    out: &'a Printer,
    bar: Bar<'a>,
    /// When something was last printed; `None` on a terminal, which has a bar.
    last_line: Option<Mutex<Instant>>,
    /// Without a terminal a line is printed at least this often.
    line_every: Duration,
}

impl<'a> Screen<'a> {
    pub(crate) fn new(out: &'a Printer) -> Self {
        let last_line = (!io::stderr().is_terminal()).then(|| Mutex::new(Instant::now()));
        Self { out, bar: Bar::new(out), last_line, line_every: Duration::from_mins(1) }
    }

    pub(crate) fn with_line_every(self, line_every: Duration) -> Self {
        Self { line_every, ..self }
    }

    fn note(&self, text: &str) {
        self.bar.note(text);
        if let Some(last_line) = &self.last_line {
            *last_line.lock().expect("printing does not panic") = Instant::now();
        }
    }

    fn is_silent(&self) -> bool {
        let elapsed = |last_line: &Mutex<Instant>| last_line.lock().expect("printing does not panic").elapsed();
        self.last_line.as_ref().is_some_and(|last_line| self.line_every <= elapsed(last_line))
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish();
    }
}

impl Watcher for Screen<'_> {
    fn begin(&self, what: &'static str, n_steps: usize) {
        let bar = self.out.progress(what, n_steps as u64);
        if what == "training" {
            let style = ProgressStyle::with_template("{prefix} [{bar:20}] {pos}/{len} {msg}");
            bar.set_style(style.expect("the template is a constant").progress_chars("=> "));
        }
        self.bar.show(bar);
    }

    fn advance(&self) {
        self.bar.advance();
    }
}

impl TrainWatcher for Screen<'_> {
    fn record(&self, record: &Record) {
        match &record.event {
            Event::Start(start) => self.note(&format!(
                "{} parameters, {} classes; {} epochs of {} steps; `*` marks the smallest loss on dev so far",
                start.n_parameters, start.n_classes, start.n_epochs, start.n_steps_per_epoch
            )),
            Event::Resume(resume) => self.note(&format!("going on from `{}`", resume.checkpoint)),
            Event::SkippedUtterance(skipped) => {
                self.note(&format!("problem: utterance `{}` is left out: {}", skipped.id, skipped.reason));
            }
            Event::SkippedBatch(skipped) => self.note(&format!(
                "problem: batch {} of epoch {} is left out: {} (utterances {})",
                skipped.batch,
                skipped.epoch,
                skipped.reason,
                skipped.utterances.join(", ")
            )),
            Event::Epoch(epoch) => {
                let dev = epoch.validation.as_ref().map_or_else(String::new, |dev| format!(", dev {}", measured(dev)));
                self.note(&format!(
                    "epoch {:3}: loss {:.3}{dev}{}, rate {:.2e}, {:.0} frames/s, waited {:.1} %, {}",
                    epoch.epoch,
                    epoch.train.loss,
                    if epoch.is_best { " *" } else { "" },
                    epoch.learning_rate,
                    epoch.speed.frames_per_s(),
                    100.0 * epoch.speed.wait_share(),
                    human_duration(epoch.speed.duration_s + epoch.validation_s),
                ));
            }
            _ => {}
        }
    }

    fn remark(&self, text: &str) {
        self.note(text);
    }

    fn step(&self, figures: &Figures) {
        let Figures { epoch, n_epochs, loss, error_rate, rate, frames_per_s, left_s } = figures;
        let errors =
            error_rate.as_ref().map_or_else(String::new, |(measure, rate)| format!("{measure} {:.1} % ", 100.0 * rate));
        let left = human_duration(*left_s);
        if self.is_silent() {
            self.note(&format!(
                "epoch {epoch}/{n_epochs}: loss {loss:.2} {errors}{frames_per_s:.0} frames/s, {left} left"
            ));
        }
        self.bar.with(|bar| {
            bar.set_prefix(format!("epoch {epoch}/{n_epochs}"));
            bar.set_message(format!("loss {loss:.2} {errors}rate {rate:.1e} {frames_per_s:.0} frames/s {left} left"));
        });
    }
}

/// A loss and the error rates by all measures.
pub(super) fn measured(measured: &Measured) -> String {
    let errors = measured.errors.iter().chain(&measured.other_errors);
    let rates = errors.filter_map(|errors| Some(format!(", {} {:.2} %", errors.measure, 100.0 * errors.rate()?)));
    let of = measured.part().map_or_else(String::new, |[n, all]| format!(" of {n} of {all} utterances"));
    format!("{:.3}{}{of}", measured.loss, rates.collect::<String>())
}
