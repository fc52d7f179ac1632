//! All output of the program: data to stdout; notes, problems, errors and progress bars to stderr.
//!
//! Colors and bars appear on terminals only, and nothing that is printed to a terminal can control it.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};
use std::ops::Deref;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};
use srf_base::shell::escape_controls;
use srf_train::corpus::Watcher;

use crate::hint::hint;

/// Columns of a partial result: it must not wrap, or it could not be overwritten.
const PARTIAL_CHARS: usize = 79;

/// Writes the output of a command; created once in `main`.
pub(crate) struct Printer {
    stdout: io::Stdout,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    is_quiet: bool,
    has_color: bool,
    /// Bars being drawn. Everything else is printed while they are suspended, so that no part of a bar remains.
    bars: MultiProgress,
}

impl Printer {
    pub(crate) fn new(is_quiet: bool) -> Self {
        let stderr_is_terminal = io::stderr().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let target = if is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Self {
            stdout: io::stdout(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal,
            is_quiet,
            has_color: !no_color && stderr_is_terminal,
            bars: MultiProgress::with_draw_target(target),
        }
    }

    /// Data: a line on stdout.
    pub(crate) fn line(&self, text: impl Display) -> io::Result<()> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    /// Data: bytes on stdout.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        if !self.stdout_is_terminal {
            return self.stdout.lock().write_all(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        self.bars.suspend(|| self.stdout.lock().write_all(escape_lines(&text).as_bytes()))
    }

    /// A note for the user: a line on stderr, suppressed by `--quiet`.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.is_quiet {
            self.stderr_line(&escape_lines(&text.to_string()));
        }
    }

    /// A problem that does not stop the command: a line on stderr.
    pub(crate) fn problem(&self, text: impl Display) {
        let text = text.to_string();
        self.stderr_line(&format!("{} {}", self.paint("33", "problem:"), escape_controls(&text)));
    }

    /// The error that stopped the command, with its causes on one line, then a hint if there is one.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let text = one_line(error);
        self.stderr_line(&format!("{} {}", self.paint("1;31", "error:"), escape_controls(&text)));
        if let Some(text) = hint(error) {
            self.hint(&text);
        }
    }

    /// Advice on the problem printed before it.
    pub(crate) fn hint(&self, text: &str) {
        self.stderr_line(&format!("\n{} {}", self.paint("1;36", "hint:"), escape_lines(text)));
    }

    /// Whether [`Printer::partial`] prints anything: on a terminal only.
    pub(crate) fn shows_partial(&self) -> bool {
        !self.is_quiet && self.stderr_is_terminal
    }

    /// A result that may still change: replaces the last line of the terminal.
    pub(crate) fn partial(&self, text: &str) {
        if self.shows_partial() {
            let text = escape_controls(text);
            let skipped = text.chars().count().saturating_sub(PARTIAL_CHARS);
            let end: String = text.chars().skip(skipped).collect();
            let _ = write!(io::stderr().lock(), "\r\x1b[K{end}");
        }
    }

    /// A progress bar of `n_steps` steps, drawn on a terminal only and removed when it is dropped.
    pub(crate) fn progress(&self, what: &'static str, n_steps: u64) -> Progress {
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {rate} {eta} left {msg}")
            .expect("the template is a constant")
            .with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = out.write_str(&rate(state.per_sec()));
            })
            .progress_chars("=> ");
        let bar = ProgressBar::new(n_steps).with_style(style).with_prefix(what).with_finish(ProgressFinish::AndClear);
        let bar = self.bars.add(bar);
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress(bar)
    }

    /// Best effort: a message that cannot be printed is no reason to fail.
    fn stderr_line(&self, text: &str) {
        self.bars.suspend(|| {
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.has_color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A progress bar of a [`Printer`].
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Runs `print`. The printer suspends its bars by itself; suspending this one as well would deadlock.
    #[expect(clippy::unused_self, reason = "hides the method of the bar")]
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        print()
    }
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

/// Draws the progress that library functions report.
pub(crate) struct Bar<'a> {
    out: &'a Printer,
    bar: Mutex<Option<Progress>>,
}

impl<'a> Bar<'a> {
    pub(crate) fn new(out: &'a Printer) -> Self {
        Self { out, bar: Mutex::new(None) }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.replace(None);
    }

    /// Draws `bar` from now on.
    pub(crate) fn show(&self, bar: Progress) {
        self.replace(Some(bar));
    }

    /// Calls `draw` with the bar, if there is one.
    pub(crate) fn with(&self, draw: impl FnOnce(&Progress)) {
        if let Some(bar) = &*self.bar.lock().expect("drawing does not panic") {
            draw(bar);
        }
    }

    /// [`Printer::note`].
    pub(crate) fn note(&self, text: &str) {
        self.out.note(text);
    }

    fn replace(&self, bar: Option<Progress>) {
        let old = std::mem::replace(&mut *self.bar.lock().expect("drawing does not panic"), bar);
        if let Some(old) = old {
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

/// Text with its control characters escaped, lines and tabs kept.
fn escape_lines(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| matches!(c, '\n' | '\t');
    if text.split(is_plain).all(|part| matches!(escape_controls(part), Cow::Borrowed(_))) {
        return Cow::Borrowed(text);
    }
    let parts = text.split_inclusive(is_plain).map(|part| {
        let (part, end) = part.strip_suffix(is_plain).map_or((part, ""), |start| (start, &part[start.len()..]));
        escape_controls(part).into_owned() + end
    });
    Cow::Owned(parts.collect())
}

/// Steps per second with three significant digits at most.
fn rate(per_s: f64) -> String {
    let n_decimals = usize::from(per_s < 10.0);
    format!("{per_s:.n_decimals$}/s")
}

/// The chain of causes on one line, without causes that the line already ends with.
fn one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |mut line, cause| {
        if line.is_empty() {
            return cause;
        }
        if !line.ends_with(&cause) {
            let _ = write!(line, ": {cause}");
        }
        line
    })
}

/// A duration with its unit: `3.40 s`, `12.5 min`, `10.80 h`.
pub(crate) fn human_duration(duration_s: f64) -> String {
    match duration_s {
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3600.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.2} h", s / 3600.0),
    }
}

/// Rows with every column as wide as its widest cell: `n_left` columns aligned to the left, the others to the right.
pub(crate) fn table(rows: &[Vec<String>], n_left: usize) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column)).map(|cell| cell.chars().count());
    let widths: Vec<usize> = (0..n_columns).map(|column| cells(column).max().unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < n_left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Whether `error` means that the reader closed our stdout.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["run", "n"], ["a", "10"], ["größer", "7"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows, 2), "run     n\na       10\ngrößer  7");
        assert_eq!(table(&rows, 1), "run      n\na       10\ngrößer   7");
    }

    #[test]
    fn every_cause_is_printed_once() {
        let error = anyhow!("no room").context("could not write `a`: no room").context("saving");
        assert_eq!(one_line(&error), "saving: could not write `a`: no room");
        assert_eq!(one_line(&anyhow!("no room").context("could not write `a`")), "could not write `a`: no room");
    }

    #[test]
    fn control_characters_are_escaped_and_lines_and_tabs_kept() {
        assert_eq!(escape_lines("a\tb\nc\n"), "a\tb\nc\n");
        assert_eq!(escape_lines("id\u{1b}[2J\tx\r\ny\u{7}\n"), "id\\u{1b}[2J\tx\\r\ny\\u{7}\n");
    }

    #[test]
    fn rates_have_few_digits() {
        assert_eq!([1054.5578, 12.3, 0.456].map(rate), ["1055/s", "12/s", "0.5/s"]);
    }
}
