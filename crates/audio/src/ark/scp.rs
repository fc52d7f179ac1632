//! Kaldi script files: lines of `key path`, whose matrices are read one at a time.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Element, Matrix, ReadArkError, Reader};

/// A script file larger than this is a file of another kind.
const MAX_SCP_BYTES: u64 = 1 << 30;

/// Rows from `first` to `last`, both included, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The first row.
    pub first: usize,
    /// The last row.
    pub last: usize,
}

/// Where the matrix of a key lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScpEntry {
    /// The key.
    pub key: String,
    /// The archive, or a file with this matrix only.
    pub path: PathBuf,
    /// Bytes before it.
    pub offset: u64,
    /// Rows of it that are meant, if not all.
    pub rows: Option<RowRange>,
}

/// All entries of the scp file at `path`.
pub fn load_scp(path: impl AsRef<Path>) -> Result<Vec<ScpEntry>, ReadArkError> {
    let name = path.as_ref().display().to_string();
    let mut text = String::new();
    let file = File::open(&path).and_then(|file| file.take(MAX_SCP_BYTES).read_to_string(&mut text));
    if let Err(cause) = file {
        return Err(ReadArkError::Io { name, cause });
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| parse_line(&name, index + 1, line)).collect()
}

/// `key path`, `key path:offset`, and either followed by `[first:last]`.
fn parse_line(name: &str, line_number: usize, line: &str) -> Result<ScpEntry, ReadArkError> {
    let error = |found: &str, expected| ReadArkError::ScpLine {
        name: name.to_owned(),
        line: line_number,
        found: found.chars().take(80).collect(),
        expected,
    };
    let expected = "`key path`, `key path:offset` or `key path:offset[first:last]`";
    let (key, rest) = line.trim().split_once(char::is_whitespace).ok_or_else(|| error(line, expected))?;
    let rest = rest.trim();
    if rest.ends_with('|') || rest.starts_with('|') {
        return Err(error(rest, "a path: commands are not run"));
    }
    let (rest, rows) = match rest.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        None => (rest, None),
        Some((rest, range)) => {
            let ends = range.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            let (first, last) =
                ends.filter(|(first, last)| first <= last).ok_or_else(|| error(range, "`first:last`"))?;
            (rest, Some(RowRange { first, last }))
        }
    };
    let (path, offset) = match rest.rsplit_once(':') {
        Some((path, offset)) if !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_digit()) => {
            (path, offset.parse().map_err(|_| error(offset, "an offset"))?)
        }
        _ => (rest, 0),
    };
    Ok(ScpEntry { key: key.to_owned(), path: PathBuf::from(path), offset, rows })
}

impl ScpEntry {
    /// Reads the matrix.
    pub fn read<E: Element>(&self) -> Result<Matrix<E>, ReadArkError> {
        let name = self.path.display().to_string();
        let open = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.offset))?;
            Ok(BufReader::new(file))
        };
        let file = open().map_err(|cause| ReadArkError::Io { name: name.clone(), cause })?;
        let mut reader = Reader::new(name.clone(), file);
        reader.at = self.offset;
        let mut matrix: Matrix<E> = reader.matrix()?;
        if let Some(RowRange { first, last }) = self.rows {
            let n_rows = matrix.n_rows();
            if last >= n_rows {
                return Err(ReadArkError::Rows { name, first, last, n_rows });
            }
            matrix.values.truncate((last + 1) * matrix.n_cols);
            matrix.values.drain(..first * matrix.n_cols);
        }
        Ok(matrix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<ScpEntry, String> {
        parse_line("x.scp", 7, line).map_err(|e| e.to_string())
    }

    #[test]
    fn offsets_and_ranges_are_told_from_paths() {
        let entry = |path: &str, offset, rows: Option<(usize, usize)>| ScpEntry {
            key: "k".to_owned(),
            path: path.into(),
            offset,
            rows: rows.map(|(first, last)| RowRange { first, last }),
        };
        assert_eq!(parse("k a.ark:17"), Ok(entry("a.ark", 17, None)));
        assert_eq!(parse("k a.ark:17[0:9]"), Ok(entry("a.ark", 17, Some((0, 9)))));
        assert_eq!(parse("k  C:/odd name:x.mat "), Ok(entry("C:/odd name:x.mat", 0, None)));
    }

    #[test]
    fn lines_that_are_none_are_told_with_their_number() {
        assert_eq!(parse("k").unwrap_err().split(',').next(), Some("x.scp:7: found `k`"));
        assert_eq!(
            parse("k gunzip -c x |").unwrap_err(),
            "x.scp:7: found `gunzip -c x |`, expected a path: commands are not run"
        );
        assert_eq!(parse("k a.ark:1[5:2]").unwrap_err(), "x.scp:7: found `5:2`, expected `first:last`");
        assert!(parse("k a.ark:99999999999999999999999").is_err());
    }
}
