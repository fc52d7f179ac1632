//! Characters and case of transcripts, by encoding and language.
//!
//! NIST's scorer works on bytes and folds case for the 26 Latin letters only, unless it is given an encoding and a
//! language; both rules are kept here so that its files come out byte for byte.

/// What the bytes of a transcript mean.
///
/// ```
/// use srf_score::{Encoding, Language};
///
/// let turkish = Encoding::Utf8(Language::from_name("babel_turkish").expect("it is known"));
/// assert_eq!(turkish.lower("ISPARTA".as_bytes()), "ısparta".as_bytes());
/// assert_eq!(turkish.upper("i".as_bytes()), "İ".as_bytes());
/// assert_eq!(turkish.characters("ış".as_bytes()).len(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// One byte a character, case only for A to Z.
    #[default]
    Ascii,
    /// ISO 8859-1: one byte a character, case also for the accented letters.
    Latin1,
    /// UTF-8, case for A to Z and for the letters of the language.
    Utf8(Language),
}

/// Which letters beyond A to Z have a case; none for `Generic`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Language {
    #[default]
    Generic,
    Turkish,
    Vietnamese,
    Lithuanian,
    Kurmanji,
    Cebuano,
    Kazakh,
    Mongolian,
    /// G with tilde is one character.
    Guarani,
    /// All of the Cyrillic block.
    Ukrainian,
    /// Every letter that Unicode gives exactly one other case; NIST's scorer has no name for it.
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Lower,
    Upper,
}

impl Language {
    /// The language NIST's `-e utf-8 NAME` means.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "generic" => Self::Generic,
            "babel_turkish" => Self::Turkish,
            "babel_vietnamese" => Self::Vietnamese,
            "babel_lithuanian" => Self::Lithuanian,
            "babel_kurmanji" => Self::Kurmanji,
            "babel_cebuano" => Self::Cebuano,
            "babel_kazakh" => Self::Kazakh,
            "babel_mongolian" => Self::Mongolian,
            "babel_guarani" => Self::Guarani,
            "ukrainian" => Self::Ukrainian,
            _ => return None,
        })
    }

    /// The lower-case letters beyond a to z whose case is folded.
    fn letters(self) -> &'static str {
        match self {
            Self::Generic | Self::Ukrainian | Self::Any => "",
            Self::Turkish => "çöüğş",
            Self::Vietnamese => "đáàảãạăắằẳẵặâấầẩẫậéèẻẽẹêếềểễệíìỉĩịóòỏõọơớờởỡợôốồổỗộúùủũụưứừửữựýỳỷỹỵ",
            Self::Lithuanian => "ąčęėįšųūž",
            Self::Kurmanji => "çêîûş",
            Self::Cebuano => "ñ",
            Self::Kazakh => "абвгдежзийклмнопрстуфхцчшщъыьэюяёәғқңөұүһі",
            Self::Mongolian => "абвгдежзийклмнопрстуфхцчшщъыьэюяёөү",
            Self::Guarani => "ãáẽéĩíõóũúỹýñ",
        }
    }

    fn folds(self, lower: char) -> bool {
        match self {
            Self::Any => true,
            Self::Ukrainian => matches!(lower, '\u{430}'..='\u{4ff}'),
            _ => self.letters().contains(lower),
        }
    }

    fn change(self, c: char, case: Case) -> char {
        match (self, case, c) {
            (Self::Turkish, Case::Lower, 'İ') => 'i',
            (Self::Turkish, Case::Lower, 'I') => 'ı',
            (Self::Turkish, Case::Upper, 'i') => 'İ',
            (Self::Turkish, Case::Upper, 'ı') => 'I',
            (_, Case::Lower, _) if c.is_ascii() => c.to_ascii_lowercase(),
            (_, Case::Upper, _) if c.is_ascii() => c.to_ascii_uppercase(),
            (_, Case::Lower, _) => single(c.to_lowercase()).filter(|l| self.folds(*l)).unwrap_or(c),
            (_, Case::Upper, _) if self.folds(c) => single(c.to_uppercase()).unwrap_or(c),
            (_, Case::Upper, _) => c,
        }
    }
}

/// The one character of a case mapping that has exactly one.
fn single(mut mapping: impl Iterator<Item = char>) -> Option<char> {
    let first = mapping.next()?;
    mapping.next().is_none().then_some(first)
}

impl Encoding {
    /// `text` in lower case.
    pub fn lower(self, text: &[u8]) -> Vec<u8> {
        self.change(text, Case::Lower)
    }

    /// `text` in upper case.
    pub fn upper(self, text: &[u8]) -> Vec<u8> {
        self.change(text, Case::Upper)
    }

    fn change(self, text: &[u8], case: Case) -> Vec<u8> {
        match self {
            Self::Utf8(language) if language != Language::Generic => {
                let text = String::from_utf8_lossy(text);
                text.chars().map(|c| language.change(c, case)).collect::<String>().into_bytes()
            }
            Self::Latin1 => text.iter().map(|b| change_latin1(*b, case)).collect(),
            Self::Ascii | Self::Utf8(_) if case == Case::Lower => text.to_ascii_lowercase(),
            Self::Ascii | Self::Utf8(_) => text.to_ascii_uppercase(),
        }
    }

    /// The characters of `text`, each as its bytes.
    pub fn characters(self, text: &[u8]) -> Vec<&[u8]> {
        let Self::Utf8(language) = self else { return text.chunks(1).collect() };
        let mut rest = text;
        let mut found = Vec::with_capacity(text.len());
        while !rest.is_empty() {
            let (first, others) = rest.split_at(character_len(rest, language));
            found.push(first);
            rest = others;
        }
        found
    }
}

fn character_len(text: &[u8], language: Language) -> usize {
    if language == Language::Guarani && matches!(text, [b'g' | b'G', 0xcc, 0x83, ..]) {
        return 3;
    }
    let len = match text[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0.. => 4,
        _ => 1,
    };
    len.min(text.len())
}

fn change_latin1(byte: u8, case: Case) -> u8 {
    match (case, byte) {
        (Case::Lower, 192..=223) => byte + 32,
        (Case::Upper, 224..=255) => byte - 32,
        (Case::Lower, _) => byte.to_ascii_lowercase(),
        (Case::Upper, _) => byte.to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(language: Language, upper: &str, lower: &str) {
        let encoding = Encoding::Utf8(language);
        assert_eq!(String::from_utf8(encoding.lower(upper.as_bytes())).unwrap(), lower);
        assert_eq!(String::from_utf8(encoding.upper(lower.as_bytes())).unwrap(), upper);
    }

    #[test]
    fn each_language_folds_its_own_letters_only() {
        utf8(Language::Turkish, "IĞDIR İZMİR", "ığdır izmir");
        utf8(Language::Vietnamese, "ĐƯỜNG", "đường");
        utf8(Language::Ukrainian, "ЇЖАК", "їжак");
        utf8(Language::Kazakh, "ҚАЗАҚ", "қазақ");
        let generic = Encoding::Utf8(Language::Generic);
        assert_eq!(generic.lower("ÇAY".as_bytes()), "Çay".as_bytes());
    }

    #[test]
    fn latin1_folds_single_bytes() {
        assert_eq!(Encoding::Latin1.lower(b"\xc9T\xc9"), b"\xe9t\xe9");
        assert_eq!(Encoding::Ascii.lower(b"\xc9T"), b"\xc9t");
    }

    #[test]
    fn characters_follow_the_encoding() {
        assert_eq!(Encoding::Ascii.characters("é".as_bytes()).len(), 2);
        assert_eq!(Encoding::Utf8(Language::Generic).characters("éa".as_bytes()).len(), 2);
        assert_eq!(Encoding::Utf8(Language::Guarani).characters("g\u{303}a".as_bytes()).len(), 2);
    }
}
