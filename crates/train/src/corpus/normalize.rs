//! Normalises transcripts of any script: composed characters, one kind of apostrophe, punctuation dropped and counted.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// What becomes of upper and lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Case {
    /// As written.
    #[default]
    Keep,
    /// All lower.
    Lower,
    /// All upper.
    Upper,
}

/// How often each dropped character occurred.
pub type Dropped = BTreeMap<String, usize>;

/// Puts a text into composed form (NFC) and one case, with single spaces.
///
/// With `drop_punctuation` letters, digits, the marks that belong to them, apostrophes and spaces stay; hyphens and
/// dashes become spaces; the rest is dropped and counted in `dropped`.
pub(crate) fn normalize(text: &str, case: Case, drop_punctuation: bool, dropped: &mut Dropped) -> String {
    let composed: String = text.nfc().collect();
    let cased = match case {
        Case::Keep => composed,
        Case::Lower => composed.to_lowercase(),
        Case::Upper => composed.to_uppercase(),
    };
    // Changing the case can decompose a character.
    let mut kept = String::with_capacity(cased.len());
    for c in cased.nfc() {
        match c {
            '’' => kept.push('\''),
            _ if !drop_punctuation || c.is_alphanumeric() || is_combining_mark(c) || c == '\'' || is_joiner(c) => {
                kept.push(c);
            }
            _ if c.is_whitespace() || is_hyphen(c) => kept.push(' '),
            _ => *dropped.entry(c.to_string()).or_insert(0) += 1,
        }
    }
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Invisible characters that decide how the letters around them are written, as in Persian and in Indian scripts.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_hyphen(c: char) -> bool {
    matches!(
        c,
        '-' | '\u{058a}' | '\u{05be}' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_script_keep_their_letters_and_marks() {
        let texts = [
            ("Zoe\u{308} — don’t stop, well-known!", "zoë don't stop well known"), // Latin, decomposed
            ("Tie\u{302}\u{301}ng Vie\u{323}\u{302}t?", "tiếng việt"),             // Vietnamese, decomposed
            ("Ελλα\u{301}δα· ναι;", "ελλάδα ναι"),                                 // Greek
            ("Мои\u{306} дом — здесь.", "мой дом здесь"),                          // Cyrillic
            ("हिन्दी में, क्षत्रिय।", "हिन्दी में क्षत्रिय"),                                // Devanagari: marks and virama
            ("தமிழ் மொழி!", "தமிழ் மொழி"),                                           // Tamil
            ("ภาษาไทย ที่นี่", "ภาษาไทย ที่นี่"),                                          // Thai: vowels and tones above
            ("اَلْعَرَبِيَّةُ، نعم؟", "اَلْعَرَبِيَّةُ نعم"),                                      // Arabic with vowel signs
            ("בֵּית־סֵפֶר׃", "בֵּית סֵפֶר"),                                               // Hebrew, points and maqaf
            ("\u{1112}\u{1161}\u{11ab}국어.", "한국어"),                           // Korean, decomposed
            ("カ\u{3099}クセイ、です。", "ガクセイです"),                          // Japanese, decomposed
            ("你好，世界！", "你好世界"),                                          // Chinese
        ];
        for (text, expected) in texts {
            let expected: String = expected.nfc().collect();
            assert_eq!(normalize(text, Case::Lower, true, &mut Dropped::new()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_dropped_is_counted_and_nothing_is_dropped_unasked() {
        let mut dropped = Dropped::new();
        assert_eq!(normalize("a, b. c, 50 %", Case::Upper, true, &mut dropped), "A B C 50");
        assert_eq!(dropped, Dropped::from([(",".to_owned(), 2), (".".to_owned(), 1), ("%".to_owned(), 1)]));
        let mut dropped = Dropped::new();
        assert_eq!(normalize(" well-known,  yes ", Case::Keep, false, &mut dropped), "well-known, yes");
        assert_eq!(dropped, Dropped::new());
    }
}
