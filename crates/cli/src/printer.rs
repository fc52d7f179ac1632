//! The one place that knows how to talk: data to stdout, remarks and progress to stderr, colours only on a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::hint::hint;

/// How much of a partial result is shown: it must not wrap, or it could not be replaced.
const PARTIAL_CHARS: usize = 79;

/// Where a command writes; made once in `main`.
pub(crate) struct Printer {
    stdout: io::Stdout,
    is_quiet: bool,
    has_colour: bool,
}

impl Printer {
    pub(crate) fn new(is_quiet: bool) -> Self {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { stdout: io::stdout(), is_quiet, has_colour: !no_colour && io::stderr().is_terminal() }
    }

    /// Data: a line on stdout.
    pub(crate) fn line(&self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.stdout.lock(), "{text}")
    }

    /// Data that is not lines of text: bytes on stdout.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.lock().write_all(bytes)
    }

    /// A remark to the person at the terminal: a line on stderr, silent under `--quiet`.
    pub(crate) fn note(&self, text: impl std::fmt::Display) {
        if !self.is_quiet {
            // A remark that cannot be shown is not worth failing for.
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }

    /// Whether [`Printer::partial`] shows anything: on a terminal only.
    pub(crate) fn shows_partial(&self) -> bool {
        !self.is_quiet && io::stderr().is_terminal()
    }

    /// What may still change: shown on the last line of the terminal, in place of what was there.
    pub(crate) fn partial(&self, text: &str) {
        if self.shows_partial() {
            let skipped = text.chars().count().saturating_sub(PARTIAL_CHARS);
            let end: String = text.chars().skip(skipped).collect();
            let _ = write!(io::stderr().lock(), "\r\x1b[K{end}");
        }
    }

    /// A problem that does not stop the command: a line on stderr, always shown.
    pub(crate) fn problem(&self, text: impl std::fmt::Display) {
        let _ = writeln!(io::stderr().lock(), "{} {text}", self.paint("33", "problem:"));
    }

    /// What stopped the command: the chain of causes on one line, then what to do about it.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let mut stderr = io::stderr().lock();
        let _ = writeln!(stderr, "{} {}", self.paint("1;31", "error:"), told(error));
        if let Some(hint) = hint(error) {
            let _ = writeln!(stderr, "\n{} {hint}", self.paint("1;36", "hint:"));
        }
    }

    /// A progress bar over `n_steps`, drawn on a terminal only.
    pub(crate) fn progress(&self, what: &'static str, n_steps: u64) -> ProgressBar {
        let target = if self.is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {per_sec} {eta} left {msg}")
            .expect("the template is a constant")
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(Some(n_steps), target).with_style(style).with_prefix(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.has_colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The chain of causes on one line; a cause that the error above it has told already is not told again.
fn told(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match line.as_str() {
        "" => cause,
        line if line.ends_with(&cause) => line.to_owned(),
        line => format!("{line}: {cause}"),
    })
}

/// A length of time as people say it: `3.4 s`, `12.5 min`, `10.8 h`.
pub(crate) fn human_duration(duration_s: f64) -> String {
    match duration_s {
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3600.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.2} h", s / 3600.0),
    }
}

/// Whether `error` is a reader that closed our stdout.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn every_cause_is_told_once() {
        let error = anyhow!("no room").context("could not write `a`: no room").context("saving");
        assert_eq!(told(&error), "saving: could not write `a`: no room");
        assert_eq!(told(&anyhow!("no room").context("could not write `a`")), "could not write `a`: no room");
    }
}
