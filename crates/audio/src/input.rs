//! Where the bytes of a recording come from: a file or memory in, a seekable reader out.

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
                let file = File::open(path)?;
                let metadata = file.metadata()?;
                if metadata.is_dir() {
                    return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
                }
                Ok(Input { n_bytes: metadata.len(), reader: Reader::File(BufReader::with_capacity(1 << 15, file)) })
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
}

impl Input {
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
        }
    }
}

impl Seek for Input {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match &mut self.reader {
            Reader::File(file) => file.seek(position),
            Reader::Bytes(bytes) => bytes.seek(position),
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
