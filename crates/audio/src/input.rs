//! Where the bytes of a recording come from: a file, memory or a pipe.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

use symphonia::core::io::MediaSource;

/// The bytes of a recording, which can be opened any number of times.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Data {
    pub(crate) fn open(&self) -> io::Result<Input> {
        match self {
            Self::File(path) => {
                // Opening a FIFO or a device could block for ever.
                let metadata = std::fs::metadata(path)?;
                if metadata.is_dir() {
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
                }
                if !metadata.is_file() {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
                }
                let reader = Reader::File(BufReader::with_capacity(1 << 15, File::open(path)?));
                Ok(Input { n_bytes: metadata.len(), reader })
            }
            Self::Bytes(bytes) => {
                Ok(Input { n_bytes: bytes.len() as u64, reader: Reader::Bytes(Cursor::new(Arc::clone(bytes))) })
            }
        }
    }
}

/// An opened recording.
pub(crate) struct Input {
    n_bytes: u64,
    reader: Reader,
}

enum Reader {
    File(BufReader<File>),
    Bytes(Cursor<Arc<[u8]>>),
    /// With the number of bytes read so far.
    Pipe(Box<dyn Read + Send + Sync>, u64),
}

impl Input {
    /// Reads a pipe, whose length is not known; it can only be read forwards.
    pub(crate) fn pipe(reader: Box<dyn Read + Send + Sync>) -> Self {
        Self { n_bytes: u64::MAX, reader: Reader::Pipe(reader, 0) }
    }

    /// The length in bytes; `u64::MAX` for a pipe.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Reads until `buffer` is full or the data ends; the number of bytes read.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut n_read = 0;
        while n_read < buffer.len() {
            match self.read(&mut buffer[n_read..]) {
                Ok(0) => break,
                Ok(n) => n_read += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(n_read)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.reader {
            Reader::File(file) => file.read(buffer),
            Reader::Bytes(bytes) => bytes.read(buffer),
            Reader::Pipe(pipe, at) => pipe.read(buffer).inspect(|n_read| *at += *n_read as u64),
        }
    }
}

impl Seek for Input {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match &mut self.reader {
            Reader::File(file) => file.seek(position),
            Reader::Bytes(bytes) => bytes.seek(position),
            Reader::Pipe(pipe, at) => {
                let n_skipped = match position {
                    SeekFrom::Start(target) => target.checked_sub(*at),
                    _ => None,
                };
                let n_skipped = n_skipped.ok_or(io::ErrorKind::NotSeekable)?;
                *at += io::copy(&mut pipe.take(n_skipped), &mut io::sink())?;
                Ok(*at)
            }
        }
    }
}

impl MediaSource for Input {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.n_bytes)
    }
}
