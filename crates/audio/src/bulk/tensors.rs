//! Writes a safetensors file tensor by tensor, without holding them in memory.
//!
//! The format wants all shapes before the first number, so the numbers are kept in a second file until all shapes are known.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use safetensors::{Dtype, View};

use crate::ark::Matrix;

/// The file being written.
pub(super) struct Writer {
    path: PathBuf,
    waiting_path: PathBuf,
    waiting: BufWriter<File>,
    tensors: Vec<(String, [usize; 2], u64)>,
    /// Bytes waiting.
    at: u64,
}

impl Writer {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let mut waiting_path = path.as_os_str().to_owned();
        waiting_path.push(".unfinished");
        let waiting_path = PathBuf::from(waiting_path);
        let waiting =
            BufWriter::new(File::options().create(true).truncate(true).read(true).write(true).open(&waiting_path)?);
        Ok(Self { path: path.to_owned(), waiting_path, waiting, tensors: Vec::new(), at: 0 })
    }

    pub(super) fn write(&mut self, name: &str, matrix: &Matrix) -> io::Result<()> {
        self.tensors.push((name.to_owned(), [matrix.n_rows(), matrix.n_cols], self.at));
        self.at += 4 * matrix.values.len() as u64;
        matrix.values.iter().try_for_each(|value| self.waiting.write_all(&value.to_le_bytes()))
    }

    pub(super) fn finish(self) -> io::Result<()> {
        let file = self.waiting.into_inner().map_err(io::IntoInnerError::into_error)?;
        let waiting = Rc::new(Waiting { file: RefCell::new(file), error: RefCell::new(None) });
        let views = self.tensors.into_iter().map(|(name, shape, at)| {
            let waiting = Rc::clone(&waiting);
            (name, WaitingTensor { waiting, shape, at })
        });
        let written = safetensors::serialize_to_file(views, None, &self.path).map_err(io::Error::other);
        // The library makes files for their owner only; this one is for whom new files are for.
        if written.is_ok() {
            std::fs::set_permissions(&self.path, std::fs::metadata(&self.waiting_path)?.permissions())?;
        }
        std::fs::remove_file(&self.waiting_path)?;
        waiting.error.take().map_or(written, Err)
    }
}

struct Waiting {
    file: RefCell<File>,
    /// A view cannot fail; what went wrong is kept for the end.
    error: RefCell<Option<io::Error>>,
}

struct WaitingTensor {
    waiting: Rc<Waiting>,
    shape: [usize; 2],
    at: u64,
}

impl View for WaitingTensor {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let mut bytes = vec![0; self.data_len()];
        let mut file = self.waiting.file.borrow_mut();
        let read = file.seek(SeekFrom::Start(self.at)).and_then(|_| file.read_exact(&mut bytes));
        if let Err(error) = read {
            *self.waiting.error.borrow_mut() = Some(error);
        }
        bytes.into()
    }

    fn data_len(&self) -> usize {
        4 * self.shape[0] * self.shape[1]
    }
}
