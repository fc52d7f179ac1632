//! Text for shells and terminals: quoting of commands, escaping of control characters.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// A word quoted for a POSIX shell where it needs to be.
///
/// ```
/// assert_eq!(srf_base::shell::quote("demo/model"), "demo/model");
/// assert_eq!(srf_base::shell::quote("it's a demo"), "\"it's a demo\"");
/// ```
pub fn quote(word: &str) -> Cow<'_, str> {
    // A NUL byte cannot be part of an argument, so no shell can be given one.
    shlex::try_quote(word).unwrap_or(Cow::Borrowed(word))
}

/// [`quote`] for a path; bytes that are not UTF-8 are shown as U+FFFD.
pub fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy()).into_owned()
}

/// A command line that a POSIX shell splits into exactly `words`.
///
/// ```
/// use srf_base::shell::{command_line, quote_path};
///
/// assert_eq!(command_line(&["srf", "transcribe", "my talk.wav"]), "srf transcribe 'my talk.wav'");
/// assert_eq!(quote_path(std::path::Path::new("talk.wav")), "talk.wav");
/// ```
pub fn command_line<W: AsRef<str>>(words: &[W]) -> String {
    words.iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Text that is safe to print on a terminal: control characters, which could move the cursor or change colours, and
/// characters that reorder text are written as Rust escapes such as `\u{1b}`.
///
/// ```
/// assert_eq!(srf_base::shell::escape_controls("a\u{1b}[31mb"), "a\\u{1b}[31mb");
/// assert_eq!(srf_base::shell::escape_controls("tiếng Việt"), "tiếng Việt");
/// ```
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) {
            let _ = write!(escaped, "{}", c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_shell_reads_the_line_as_the_words_it_was_made_of() {
        let words = ["echo", "training.epochs=3", "tf-*:a={b=[1]}", "it's", "", "two words", "$HOME", "a\"b`c`\\"];
        let script = format!("set -- {}; for word; do printf '%s\\n' \"$word\"; done", command_line(&words));
        let read = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(read.stdout).unwrap(), words.join("\n") + "\n");
    }
}
