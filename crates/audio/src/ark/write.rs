//! Writes Kaldi archives and the script files that point into them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{Element, Matrix};

/// Numbers turned into bytes at once; a long matrix is not held twice.
const PIECE_VALUES: usize = 1 << 14;

/// How matrices are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    /// Four or eight bytes a number.
    #[default]
    Binary,
    /// For people to read; numbers keep all their digits.
    Text,
}

/// Writes an archive entry by entry.
pub struct Writer {
    ark: BufWriter<File>,
    ark_path: PathBuf,
    scp: Option<BufWriter<File>>,
    form: Form,
    /// Bytes written so far.
    at: u64,
}

impl Writer {
    /// Creates the archive at `ark`, and at `scp` a script file that names it by the path given here.
    pub fn create(ark: impl AsRef<Path>, scp: Option<&Path>, form: Form) -> io::Result<Self> {
        let scp = scp.map(File::create).transpose()?.map(BufWriter::new);
        let ark_path = ark.as_ref().to_owned();
        Ok(Self { ark: BufWriter::new(File::create(ark)?), ark_path, scp, form, at: 0 })
    }

    /// Appends one entry. A key is not empty and has no white space.
    pub fn write<E: Element>(&mut self, key: &str, matrix: &Matrix<E>) -> io::Result<()> {
        if key.is_empty() || key.contains(char::is_whitespace) {
            let message =
                format!("`{}` cannot be a key of an archive: it is empty or has white space", key.escape_debug());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut bytes = format!("{key} ").into_bytes();
        if let Some(scp) = &mut self.scp {
            writeln!(scp, "{key} {}:{}", self.ark_path.display(), self.at + bytes.len() as u64)?;
        }
        match self.form {
            Form::Binary => {
                binary_header(matrix, &mut bytes)?;
                for values in matrix.values.chunks(PIECE_VALUES) {
                    for value in values {
                        value.write(&mut bytes);
                    }
                    self.append(&mut bytes)?;
                }
            }
            Form::Text => {
                bytes.extend(b" [");
                for row in matrix.values.chunks_exact(matrix.n_cols.max(1)) {
                    text_row(row, &mut bytes)?;
                    self.append(&mut bytes)?;
                }
                bytes.extend(b" ]\n");
            }
        }
        self.append(&mut bytes)
    }

    /// Writes `bytes` and empties it.
    fn append(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.ark.write_all(bytes)?;
        self.at += bytes.len() as u64;
        bytes.clear();
        Ok(())
    }

    /// Writes what is still held back.
    pub fn finish(mut self) -> io::Result<()> {
        self.ark.flush()?;
        self.scp.as_mut().map_or(Ok(()), Write::flush)
    }
}

fn binary_header<E: Element>(matrix: &Matrix<E>, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.extend(b"\0B");
    bytes.extend(E::TOKEN.bytes());
    let n_cols = if matrix.values.is_empty() { 0 } else { matrix.n_cols };
    for count in [matrix.n_rows(), n_cols] {
        let count = i32::try_from(count).map_err(|_| io::Error::other("the matrix is too large for an archive"))?;
        bytes.push(4);
        bytes.extend(count.to_le_bytes());
    }
    Ok(())
}

fn text_row<E: Element>(row: &[E], bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.extend(b"\n ");
    for value in row {
        // Unlike the display form, this one has exponents.
        write!(bytes, " {value:?}")?;
    }
    Ok(())
}
