//! Utterance ids as one field of a line: what would end the field or the line is percent-encoded.

use std::borrow::Cow;
use std::fmt::Write as _;

/// An id that formats with blanks between fields, brackets around ids and `;` before comments can hold.
///
/// Blanks, control characters, brackets, `;`, `%` and characters that reorder text are encoded as `%` and two
/// hexadecimal digits per byte; different ids stay different, and [`decode`] returns them. The empty id is `%`.
///
/// ```
/// use srf_base::ids::{decode, encode};
///
/// assert_eq!(encode("talks/7-b"), "talks/7-b");
/// assert_eq!(encode("a (1)\n"), "a%20%281%29%0A");
/// assert_eq!(decode(&encode("a (1)\n")), "a (1)\n");
/// ```
pub fn encode(id: &str) -> Cow<'_, str> {
    if id.is_empty() {
        return Cow::Borrowed("%");
    }
    if !id.chars().any(is_encoded) {
        return Cow::Borrowed(id);
    }
    let mut encoded = String::with_capacity(id.len() + 8);
    for c in id.chars() {
        if is_encoded(c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(encoded, "%{byte:02X}");
            }
        } else {
            encoded.push(c);
        }
    }
    Cow::Owned(encoded)
}

/// The id that [`encode`] encoded; text that it would not have written is returned as it is.
pub fn decode(field: &str) -> Cow<'_, str> {
    if field == "%" {
        return Cow::Borrowed("");
    }
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let hex = || std::str::from_utf8(others.get(..2)?).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let code = (*first == b'%').then(hex).flatten();
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &others[2..] } else { others };
    }
    match String::from_utf8(bytes) {
        Ok(id) if id != field && encode(&id).eq_ignore_ascii_case(field) => Cow::Owned(id),
        _ => Cow::Borrowed(field),
    }
}

fn is_encoded(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | ';' | '%') || crate::shell::is_unsafe(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_back_and_stay_different() {
        let ids =
            ["", "%", "%25", "a", "a b", "a_b", "a\nb", "../x", "/", "(a)", "a)", ";;", "\u{202e}", "việt nam", "%0a"];
        let encoded: std::collections::BTreeSet<String> = ids.iter().map(|id| encode(id).into_owned()).collect();
        assert_eq!(encoded.len(), ids.len());
        for id in ids {
            let field = encode(id);
            assert!(!field.is_empty() && !field.contains([' ', '\n', '(', ')', ';']), "{field}");
            assert_eq!(decode(&field), id);
        }
    }

    #[test]
    fn fields_of_other_programs_stay_as_they_are() {
        for field in ["50%", "%zz", "%41", "100%sure", "%é"] {
            assert_eq!(decode(field), field);
        }
        assert_eq!(decode("a%20b%0ac"), "a b\nc");
    }
}
