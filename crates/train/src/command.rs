//! A command as a shell takes it: its words in, one line out.

/// The words with spaces between them, in quotes where a shell would read them differently.
pub(crate) fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as it is, or in quotes where a shell would read it differently.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_space_is_quoted() {
        assert_eq!(quoted("demo/model"), "demo/model");
        assert_eq!(quoted("it's a demo"), r"'it'\''s a demo'");
    }

    #[test]
    fn a_shell_reads_the_line_as_the_words_it_was_made_of() {
        let words =
            ["echo", "training.epochs=3", "tf-*:a={b=[1]}", "it's", "", "two words", "$HOME"].map(str::to_owned);
        let line = line(&words);
        assert_eq!(line, r"echo training.epochs=3 'tf-*:a={b=[1]}' 'it'\''s' '' 'two words' '$HOME'");
        if cfg!(unix) {
            let script = format!("set -- {line}; for word; do printf '%s\\n' \"$word\"; done");
            let read = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(read.stdout).unwrap(), words.join("\n") + "\n");
        }
    }
}
