//! Reads Kaldi archives entry by entry.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::{Element, Matrix, ReadArkError, compressed};

/// A longer key means that the file is not an archive.
const MAX_KEY_BYTES: usize = 1 << 12;
const MAX_NUMBER_BYTES: usize = 64;
/// No matrix is larger: 2^31 numbers, as Kaldi counts.
const MAX_VALUES: u64 = 1 << 31;
/// What is read at once; memory grows with what is there, not with what the header claims.
const PIECE_BYTES: usize = 1 << 16;

/// Reads an archive entry by entry.
pub struct Reader<R> {
    pub(super) name: String,
    input: R,
    pub(super) at: u64,
}

impl Reader<BufReader<File>> {
    /// Opens the archive at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadArkError> {
        let name = path.as_ref().display().to_string();
        match File::open(&path) {
            Ok(file) => Ok(Self::new(name, BufReader::new(file))),
            Err(cause) => Err(ReadArkError::Io { name, cause }),
        }
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`; `name` is what error messages call it.
    pub fn new(name: impl Into<String>, input: R) -> Self {
        Self { name: name.into(), input, at: 0 }
    }

    /// The next entry, or `None` at the end.
    pub fn next_entry<E: Element>(&mut self) -> Result<Option<(String, Matrix<E>)>, ReadArkError> {
        // Entries in text end in a newline.
        self.skip_whitespace()?;
        if self.peek()?.is_none() {
            return Ok(None);
        }
        let key = self.word(MAX_KEY_BYTES, "a key and a space")?;
        let key = String::from_utf8(key).map_err(|e| self.found(e.as_bytes(), "a key in UTF-8"))?;
        self.byte()?;
        Ok(Some((key, self.matrix()?)))
    }

    /// The matrix that starts here, after its key.
    pub fn matrix<E: Element>(&mut self) -> Result<Matrix<E>, ReadArkError> {
        if self.peek()? != Some(0) {
            return self.text_matrix();
        }
        self.byte()?;
        let marker = self.byte()?;
        if marker != b'B' {
            return Err(self.found(&[0, marker], "`\\0B`, the mark of a binary entry"));
        }
        let token = self.word(8, "a matrix type")?;
        self.byte()?;
        match token.as_slice() {
            b"FM" => self.binary_matrix(|bytes: [u8; 4]| E::from_f32(f32::from_le_bytes(bytes))),
            b"DM" => self.binary_matrix(|bytes: [u8; 8]| E::from_f64(f64::from_le_bytes(bytes))),
            b"CM" | b"CM2" | b"CM3" => compressed::read(self, &token),
            other => Err(self.found(other, "a matrix: `FM`, `DM`, `CM`, `CM2` or `CM3`")),
        }
    }

    fn binary_matrix<E, const N: usize>(&mut self, decode: impl Fn([u8; N]) -> E) -> Result<Matrix<E>, ReadArkError> {
        let n_rows = self.sized_count()?;
        let n_cols = self.sized_count()?;
        self.check_size(n_rows, n_cols)?;
        let mut values = Vec::new();
        self.bytes_in_pieces(n_rows * n_cols * N as u64, N, |piece| {
            values.extend(piece.as_chunks::<N>().0.iter().map(|&bytes| decode(bytes)));
        })?;
        Ok(Matrix { n_cols: n_cols as usize, values })
    }

    /// A byte of 4 and a 32-bit count.
    fn sized_count(&mut self) -> Result<u64, ReadArkError> {
        let [size] = self.bytes()?;
        if size != 4 {
            return Err(self.found(&[size], "the byte 4 before a 32-bit count"));
        }
        self.count()
    }

    pub(super) fn count(&mut self) -> Result<u64, ReadArkError> {
        let bytes = self.bytes()?;
        let count = i32::from_le_bytes(bytes);
        u64::try_from(count).map_err(|_| self.found(count.to_string().as_bytes(), "a count"))
    }

    pub(super) fn check_size(&self, n_rows: u64, n_cols: u64) -> Result<(), ReadArkError> {
        // An empty matrix has neither; rows of nothing could be claimed without end.
        let is_good = n_rows * n_cols <= MAX_VALUES && (n_cols == 0) == (n_rows == 0);
        let found = format!("{n_rows} x {n_cols}");
        if is_good { Ok(()) } else { Err(self.found(found.as_bytes(), "a matrix of at most 2^31 numbers")) }
    }

    /// Reads `n_bytes` in pieces of a multiple of `unit`.
    pub(super) fn bytes_in_pieces(
        &mut self,
        n_bytes: u64,
        unit: usize,
        mut use_piece: impl FnMut(&[u8]),
    ) -> Result<(), ReadArkError> {
        let mut piece = vec![0; (PIECE_BYTES / unit * unit).min(usize::try_from(n_bytes).unwrap_or(usize::MAX))];
        let mut n_left = n_bytes;
        while n_left > 0 {
            let now = n_left.min(piece.len() as u64) as usize;
            self.fill(&mut piece[..now])?;
            use_piece(&piece[..now]);
            n_left -= now as u64;
        }
        Ok(())
    }

    /// `[`, rows of numbers ended by newlines, `]`.
    fn text_matrix<E: Element>(&mut self) -> Result<Matrix<E>, ReadArkError> {
        self.skip_whitespace()?;
        let open = self.word(MAX_NUMBER_BYTES, "`[`")?;
        if open != b"[" {
            return Err(self.found(&open, "`[`"));
        }
        let mut matrix = Matrix { n_cols: 0, values: Vec::new() };
        let mut row_start = 0;
        loop {
            match self.peek()? {
                Some(b'\n') => {
                    self.end_row(&mut matrix, &mut row_start)?;
                    self.byte()?;
                }
                Some(b']') => {
                    self.end_row(&mut matrix, &mut row_start)?;
                    self.byte()?;
                    return Ok(matrix);
                }
                Some(byte) if byte.is_ascii_whitespace() => {
                    self.byte()?;
                }
                _ => {
                    let word = self.word(MAX_NUMBER_BYTES, "a number")?;
                    let number = std::str::from_utf8(&word).ok().and_then(|text| text.parse().ok());
                    matrix.values.push(E::from_f64(number.ok_or_else(|| self.found(&word, "a number or `]`"))?));
                }
            }
        }
    }

    fn end_row<E>(&mut self, matrix: &mut Matrix<E>, row_start: &mut usize) -> Result<(), ReadArkError> {
        let found = matrix.values.len() - *row_start;
        *row_start = matrix.values.len();
        if matrix.n_cols == 0 {
            matrix.n_cols = found;
        }
        if found != 0 && found != matrix.n_cols {
            return Err(ReadArkError::Ragged { name: self.name.clone(), at: self.at, found, expected: matrix.n_cols });
        }
        Ok(())
    }

    /// Bytes up to the next whitespace (or `]`, which may touch a number), at least one and at most `max`.
    fn word(&mut self, max: usize, expected: &'static str) -> Result<Vec<u8>, ReadArkError> {
        let mut word = Vec::new();
        while let Some(byte) = self.peek()? {
            if byte.is_ascii_whitespace() || (byte == b']' && !word.is_empty()) {
                break;
            }
            if word.len() == max {
                word.truncate(16);
                return Err(self.found(&word, expected));
            }
            word.push(self.byte()?);
        }
        if word.is_empty() || self.peek()?.is_none() {
            return Err(ReadArkError::BreaksOff { name: self.name.clone(), at: self.at });
        }
        Ok(word)
    }

    fn skip_whitespace(&mut self) -> Result<(), ReadArkError> {
        while self.peek()?.is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.byte()?;
        }
        Ok(())
    }

    fn peek(&mut self) -> Result<Option<u8>, ReadArkError> {
        loop {
            match self.input.fill_buf() {
                Ok(buffer) => return Ok(buffer.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(ReadArkError::Io { name: self.name.clone(), cause }),
            }
        }
    }

    fn byte(&mut self) -> Result<u8, ReadArkError> {
        let [byte] = self.bytes()?;
        Ok(byte)
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadArkError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), ReadArkError> {
        match self.input.read_exact(bytes) {
            Ok(()) => {
                self.at += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(ReadArkError::BreaksOff { name: self.name.clone(), at: self.at })
            }
            Err(cause) => Err(ReadArkError::Io { name: self.name.clone(), cause }),
        }
    }

    pub(super) fn found(&self, found: &[u8], expected: &'static str) -> ReadArkError {
        let found = found.escape_ascii().to_string();
        ReadArkError::Found { name: self.name.clone(), at: self.at, found, expected }
    }
}

#[cfg(test)]
mod tests;
