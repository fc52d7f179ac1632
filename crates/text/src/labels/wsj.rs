//! Transcripts of the Wall Street Journal corpus as text in the 32 classes of the paper.
//!
//! First the transcript is normalised (verbalised punctuation named, noises and cut words marked), then every
//! character outside the set is deleted and reported.
//!
//! ```
//! use srf_text::labels::wsj::{NOISE, labels, normalise, to_labels};
//!
//! let (characters, foreign) = to_labels(&normalise("He said ,COMMA yes"));
//! assert_eq!((characters.as_str(), foreign), ("HE SAID COMMA YES", vec![',']));
//! assert!(labels().class(&NOISE.to_string()).is_some());
//! assert!(labels().encode(&characters).is_ok());
//! ```

use super::{END_OF_SENTENCE, LabelSet, Units};

/// The letter that stands for any noise.
pub const NOISE: char = 'n';

const NOISE_WORD: &str = "<NOISE>";

/// Space, end of sentence, apostrophe, A to Z, noise: with padding and blank 32 classes.
pub fn labels() -> LabelSet {
    let letters = ('A'..='Z').map(String::from);
    let head = [" ", END_OF_SENTENCE, "'"].map(String::from);
    let symbols = head.into_iter().chain(letters).chain([NOISE.to_string()]);
    LabelSet::new(Units::Chars, symbols).expect("the characters are distinct")
}

/// A transcript of a `.dot` file, without its `(id)`, as upper-case words with noises as `<NOISE>`.
pub fn normalise(transcript: &str) -> String {
    let words = transcript.split_whitespace().filter_map(normalise_word);
    words.collect::<Vec<_>>().join(" ")
}

fn normalise_word(word: &str) -> Option<String> {
    let word = word.to_uppercase().replace(['\\', '~'], "").replace("%PERCENT", "PERCENT").replace(".POINT", "POINT");
    let word = without_brackets(&word);
    let word = if word.starts_with('<') && word.ends_with('>') && word != NOISE_WORD {
        word[1..word.len() - 1].to_owned()
    } else {
        word
    };
    let word = if word == "--DASH" { "-DASH".to_owned() } else { word };
    (!word.is_empty() && word != ".").then_some(word)
}

/// Marks of where a noise begins and ends (`[<x]`, `[x>]`, `[x/]`, `[/x]`) go; a noise by itself (`[x]`) is a word.
fn without_brackets(word: &str) -> String {
    let mut kept = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(open) = rest.find('[') {
        let Some(length) = rest[open..].find(']') else { break };
        kept.push_str(&rest[..open]);
        let inside = &rest[open + 1..open + length];
        let is_edge = inside.starts_with(['<', '/']) || inside.ends_with(['>', '/']);
        if !is_edge {
            kept.push_str(NOISE_WORD);
        }
        rest = &rest[open + length + 1..];
    }
    kept + rest
}

/// A normalised transcript in the 32 classes, and the characters that had to go, in order.
pub fn to_labels(normalised: &str) -> (String, Vec<char>) {
    let mut dropped = Vec::new();
    let mut words = Vec::new();
    for word in normalised.split_whitespace() {
        if word == NOISE_WORD {
            words.push(NOISE.to_string());
            continue;
        }
        let (kept, gone): (String, String) = word.chars().partition(|c| c.is_ascii_uppercase() || *c == '\'');
        dropped.extend(gone.chars());
        words.push(kept);
    }
    words.retain(|word| !word.is_empty());
    (words.join(" "), dropped)
}
