//! Lines of text files that strangers wrote: a file in, its readable lines out, the unreadable ones told.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use super::problem::{Fault, Problems};

/// The longest line that is read; longer ones are told and skipped.
pub(crate) const MAX_LINE_BYTES: usize = 4 << 20;

/// Hands every line of the file at `path` to `each`, with its number from 1.
pub(crate) fn for_each_line(path: &Path, problems: &mut Problems, each: impl FnMut(usize, &str, &mut Problems)) {
    match File::open(path) {
        Ok(file) => for_each_line_of(BufReader::new(file), path, problems, each),
        Err(error) => problems.add(path, None, error),
    }
}

/// The same of anything that can be read; `path` is what problems call it.
pub(crate) fn for_each_line_of(
    mut reader: impl BufRead,
    path: &Path,
    problems: &mut Problems,
    mut each: impl FnMut(usize, &str, &mut Problems),
) {
    let mut bytes = Vec::new();
    for number in 1.. {
        match next_line(&mut reader, &mut bytes) {
            Ok(Line::End) => return,
            Ok(Line::TooLong) => problems.add(path, Some(number), Fault::LineTooLong { limit: MAX_LINE_BYTES }),
            Ok(Line::Whole) => match std::str::from_utf8(strip(&bytes, number)) {
                Ok(line) => each(number, line, problems),
                Err(error) => problems.add(path, Some(number), Fault::NotUtf8 { at: error.valid_up_to() + 1 }),
            },
            Err(error) => return problems.add(path, Some(number), error),
        }
    }
}

/// A whole text file of at most `limit` bytes in UTF-8, or in UTF-16 with its mark (as Praat writes it).
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, Fault> {
    let file = File::open(path)?;
    let found = file.metadata()?.len();
    if limit < found {
        return Err(Fault::FileTooLarge { found, limit });
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    decode(bytes)
}

fn decode(bytes: Vec<u8>) -> Result<String, Fault> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        Ok(String::from_utf16_lossy(&units))
    };
    match &bytes[..] {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|error| Fault::NotUtf8 { at: error.utf8_error().valid_up_to() + 1 }),
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

fn next_line(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<Line> {
    bytes.clear();
    let limit = MAX_LINE_BYTES as u64 + 1;
    let n_read = reader.by_ref().take(limit).read_until(b'\n', bytes)?;
    if n_read == 0 {
        return Ok(Line::End);
    }
    if bytes.last() == Some(&b'\n') || bytes.len() <= MAX_LINE_BYTES {
        return Ok(Line::Whole);
    }
    reader.skip_until(b'\n')?;
    Ok(Line::TooLong)
}

/// Without the line's end, and without the mark that some editors put before the first line.
fn strip(bytes: &[u8], number: usize) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if number == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(bytes: &[u8]) -> (Vec<(usize, String)>, Vec<String>) {
        let mut problems = Problems::default();
        let mut lines = Vec::new();
        for_each_line_of(bytes, Path::new("f"), &mut problems, |number, line, _| lines.push((number, line.to_owned())));
        (lines, problems.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn good_lines_go_on_after_bad_ones() {
        let mut bytes = b"\xef\xbb\xbfone\r\n\xff\xfe\n".to_vec();
        bytes.extend(vec![b'x'; MAX_LINE_BYTES + 1]);
        bytes.extend(b"\nfour");
        let (lines, problems) = lines_of(&bytes);
        assert_eq!(lines, [(1, "one".to_owned()), (4, "four".to_owned())]);
        assert_eq!(problems, ["f:2: not UTF-8 from byte 1 on", "f:3: line is longer than 4194304 bytes"]);
    }

    #[test]
    fn the_longest_line_is_whole() {
        let (lines, problems) = lines_of(&vec![b'x'; MAX_LINE_BYTES]);
        assert_eq!((lines.len(), problems.len()), (1, 0));
    }
}
