//! Files that strangers wrote: their lines, their texts, and where they lie in a tree of folders.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::problem::{Fault, Problems};

/// The longest line that is read; longer ones are reported and skipped.
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

/// Every file below `root`, sorted; folders that cannot be read are reported.
///
/// Links are followed, as collections of discs are made of them, but no folder is entered twice.
pub(crate) fn files(root: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entered = HashSet::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        match fs::canonicalize(&dir).and_then(|real| Ok((real, fs::read_dir(&dir)?))) {
            Err(error) => problems.add(&dir, None, error),
            Ok((real, _)) if entered.contains(&real) => {}
            Ok((real, entries)) => {
                entered.insert(real);
                let (dirs, files): (Vec<_>, Vec<_>) =
                    entries.flatten().map(|entry| entry.path()).partition(|path| path.is_dir());
                pending.extend(dirs);
                found.extend(files);
            }
        }
    }
    found.sort();
    found
}

/// The extension in lower case; empty where there is none.
pub(crate) fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// The name without its last extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The name of the folder `n_up` levels above a file (1 is the one it lies in).
pub(crate) fn ancestor_name(path: &Path, n_up: usize) -> String {
    let ancestor = path.ancestors().nth(n_up).and_then(Path::file_name);
    ancestor.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Files by folder and lower-case stem: the files that belong to a recording.
pub(crate) struct Siblings<'a>(HashMap<(PathBuf, String), Vec<&'a Path>>);

impl<'a> Siblings<'a> {
    pub(crate) fn new(files: &'a [PathBuf]) -> Self {
        let mut by_stem: HashMap<(PathBuf, String), Vec<&Path>> = HashMap::new();
        for path in files {
            by_stem.entry(key(path)).or_default().push(path);
        }
        Self(by_stem)
    }

    /// The file next to `path` with the first of `extensions` that exists, in upper or lower case.
    pub(crate) fn find(&self, path: &Path, extensions: &[&str]) -> Option<&'a Path> {
        let siblings = self.0.get(&key(path))?;
        let with = |wanted: &&str| siblings.iter().copied().find(|other| extension(other) == *wanted);
        extensions.iter().find_map(with)
    }
}

fn key(path: &Path) -> (PathBuf, String) {
    // `x.WAV.wav`, as some copies of TIMIT name the RIFF form of `x.WAV`, belongs to `x`.
    let stem = stem(path).to_lowercase();
    let stem = stem.strip_suffix(".wav").unwrap_or(&stem).to_owned();
    (path.parent().map(Path::to_owned).unwrap_or_default(), stem)
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

    #[test]
    #[cfg(unix)]
    fn a_link_that_leads_back_up_ends() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/x.txt"), "").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/up")).unwrap();
        let mut problems = Problems::default();
        assert_eq!(files(dir.path(), &mut problems), [dir.path().join("a/x.txt")]);
        assert_eq!(problems.0.len(), 0);
    }
}
