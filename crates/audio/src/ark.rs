//! Kaldi archives: keyed matrices in `ark` and `scp` files, read and written.
//!
//! An archive is a row of entries, each a key and a matrix in one of Kaldi's forms: binary of either precision
//! (`FM`, `DM`), compressed (`CM`, `CM2`, `CM3`) or text. All are read; binary and text are written.
//! An `scp` file says for each key in which archive, and where in it, its matrix lies.
//!
//! ```
//! use srf_audio::ark::{Form, Matrix, ReadArkError, Reader, RowRange, ScpEntry, Writer, load_scp};
//!
//! # let dir = tempfile::tempdir()?;
//! # let [ark, scp] = ["feats.ark", "feats.scp"].map(|name| dir.path().join(name));
//! let matrix: Matrix = Matrix { n_cols: 2, values: vec![1.0, 2.0, 3.0, 4.0] };
//! let mut writer = Writer::create(&ark, Some(&scp), Form::Binary)?;
//! writer.write("utt1", &matrix)?;
//! writer.finish()?;
//!
//! // One after the other.
//! let mut reader = Reader::open(&ark)?;
//! while let Some((key, matrix)) = reader.next_entry::<f32>()? {
//!     assert_eq!((key.as_str(), matrix.n_rows()), ("utt1", 2));
//! }
//! // By the list of places, here only the second row.
//! let entries: Vec<ScpEntry> = load_scp(&scp)?;
//! let second = ScpEntry { rows: Some(RowRange { first: 1, last: 1 }), ..entries[0].clone() };
//! assert_eq!(second.read::<f32>()?.values, [3.0, 4.0]);
//! assert!(matches!(Reader::open("no.ark"), Err(ReadArkError::Io { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compressed;
mod read;
mod scp;
mod write;

use std::io;

pub use read::Reader;
pub use scp::{RowRange, ScpEntry, load_scp};
pub use write::{Form, Writer};

/// Rows of numbers.
///
/// # Shapes
/// - values `[row, column]`, row by row
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Matrix<E = f32> {
    /// Numbers per row.
    pub n_cols: usize,
    /// All rows, one after the other.
    pub values: Vec<E>,
}

impl<E> Matrix<E> {
    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.values.len().checked_div(self.n_cols).unwrap_or(0)
    }
}

/// What a matrix can be made of: `f32` or `f64`.
pub trait Element: Copy + std::fmt::Debug + private::Sealed {
    /// From the narrower of the two.
    fn from_f32(value: f32) -> Self;
    /// From the wider of the two.
    fn from_f64(value: f64) -> Self;
    #[doc(hidden)]
    const TOKEN: &'static str;
    #[doc(hidden)]
    fn write(self, bytes: &mut Vec<u8>);
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Element for f32 {
    fn from_f32(value: f32) -> Self {
        value
    }
    fn from_f64(value: f64) -> Self {
        value as Self
    }
    const TOKEN: &'static str = "FM ";
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Element for f64 {
    fn from_f32(value: f32) -> Self {
        value.into()
    }
    fn from_f64(value: f64) -> Self {
        value
    }
    const TOKEN: &'static str = "DM ";
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

/// Why an archive or an entry of it could not be read.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadArkError {
    #[error("could not read `{name}`: {cause}")]
    Io { name: String, cause: io::Error },
    #[error("`{name}` breaks off at byte {at}, inside an entry")]
    BreaksOff { name: String, at: u64 },
    #[error("`{name}`: found `{found}` at byte {at}, expected {expected}")]
    Found { name: String, at: u64, found: String, expected: &'static str },
    #[error("`{name}`: the row that ends at byte {at} has {found} numbers, those before it have {expected}")]
    Ragged { name: String, at: u64, found: usize, expected: usize },
    #[error("{name}:{line}: found `{found}`, expected {expected}")]
    ScpLine { name: String, line: usize, found: String, expected: &'static str },
    #[error("`{name}`: rows {first} to {last} were asked for, there are {n_rows}")]
    Rows { name: String, first: usize, last: usize, n_rows: usize },
}
