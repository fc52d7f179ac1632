//! Sorting and queueing of more records than memory holds: what does not fit goes to temporary files.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::PathBuf;
use std::vec;

use rayon::slice::ParallelSliceMut as _;

/// Bytes that are written or read at once.
const BUFFER_BYTES: usize = 1 << 20;
/// Sorted files that are merged at once; each one needs a buffer and a file handle.
const MAX_RUNS: usize = 64;
/// A buffer never holds fewer records than this, however little memory is allowed.
const MIN_RECORDS: usize = 16;

/// A temporary file that could not be made, written or read.
#[derive(Debug)]
pub(crate) struct TempError(pub(crate) io::Error);

type TempResult<T> = Result<T, TempError>;

impl From<io::Error> for TempError {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

/// Something of fixed size that can go to a file.
pub(crate) trait Record: Copy + Send {
    const BYTES: usize;

    fn put(&self, bytes: &mut Vec<u8>);
    fn get(bytes: &[u8]) -> Self;
}

impl Record for u32 {
    const BYTES: usize = 4;

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn get(bytes: &[u8]) -> Self {
        Self::from_le_bytes(bytes.try_into().expect("a record has its length"))
    }
}

/// Something that is sorted by a key.
pub(crate) trait Keyed: Record {
    type Key: Ord + Copy;

    fn key(&self) -> Self::Key;

    /// Adds an equal record to this one; `false` if both are to be kept.
    fn combine(&mut self, _other: &Self) -> bool {
        false
    }
}

/// How much memory a buffer may take, and where the rest goes.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) bytes: usize,
    pub(crate) temp_dir: PathBuf,
}

impl Room {
    /// A share of the room: `parts` of `whole`.
    pub(crate) fn share(&self, parts: usize, whole: usize) -> Self {
        Self { bytes: self.bytes / whole * parts, temp_dir: self.temp_dir.clone() }
    }

    fn n_records<R>(&self) -> usize {
        (self.bytes / size_of::<R>()).max(MIN_RECORDS)
    }
}

/// Pushes without ever growing beyond `limit`, unlike a vector that doubles.
fn push_within<R>(buffer: &mut Vec<R>, record: R, limit: usize) {
    if buffer.len() == buffer.capacity() {
        let target = (2 * buffer.len()).clamp(MIN_RECORDS, limit.max(buffer.len() + 1));
        buffer.reserve_exact(target - buffer.len());
    }
    buffer.push(record);
}

fn write_records<R: Record>(records: impl Iterator<Item = R>, file: &mut File) -> TempResult<()> {
    let mut bytes = Vec::with_capacity(BUFFER_BYTES + R::BYTES);
    for record in records {
        record.put(&mut bytes);
        if bytes.len() >= BUFFER_BYTES {
            file.write_all(&bytes)?;
            bytes.clear();
        }
    }
    file.write_all(&bytes)?;
    Ok(())
}

/// The records of a temporary file, from its start.
struct FileRecords<R> {
    reader: BufReader<File>,
    bytes: Vec<u8>,
    kind: std::marker::PhantomData<R>,
}

impl<R: Record> FileRecords<R> {
    fn new(mut file: File) -> TempResult<Self> {
        file.rewind()?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(Self { reader, bytes: vec![0; R::BYTES], kind: std::marker::PhantomData })
    }

    fn next(&mut self) -> TempResult<Option<R>> {
        match self.reader.read_exact(&mut self.bytes) {
            Ok(()) => Ok(Some(R::get(&self.bytes))),
            // Only whole records are written, so that this is the end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// A queue: records come out in the order in which they went in.
pub(crate) struct Queue<R> {
    memory: Vec<R>,
    limit: usize,
    file: Option<File>,
    room: Room,
    len: u64,
}

impl<R: Record> Queue<R> {
    pub(crate) fn new(room: Room) -> Self {
        Self { memory: Vec::new(), limit: room.n_records::<R>(), file: None, room, len: 0 }
    }

    pub(crate) fn push(&mut self, record: R) -> TempResult<()> {
        if self.memory.len() == self.limit {
            self.spill()?;
        }
        push_within(&mut self.memory, record, self.limit);
        self.len += 1;
        Ok(())
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn spill(&mut self) -> TempResult<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.room.temp_dir)?,
        };
        write_records(self.memory.drain(..), &mut file)?;
        self.file = Some(file);
        Ok(())
    }

    pub(crate) fn into_records(self) -> TempResult<QueueRecords<R>> {
        let file = self.file.map(FileRecords::new).transpose()?;
        Ok(QueueRecords { file, memory: self.memory.into_iter() })
    }
}

/// The records of a [`Queue`].
pub(crate) struct QueueRecords<R> {
    file: Option<FileRecords<R>>,
    memory: vec::IntoIter<R>,
}

impl<R: Record> QueueRecords<R> {
    pub(crate) fn next(&mut self) -> TempResult<Option<R>> {
        if let Some(file) = &mut self.file {
            if let Some(record) = file.next()? {
                return Ok(Some(record));
            }
            self.file = None;
        }
        Ok(self.memory.next())
    }
}

/// Sorts records by their keys; equal ones are combined where [`Keyed::combine`] does so.
pub(crate) struct Sorter<R> {
    buffer: Vec<R>,
    limit: usize,
    runs: Vec<File>,
    room: Room,
}

impl<R: Keyed> Sorter<R>
where
    R::Key: Send + Sync,
{
    pub(crate) fn new(room: Room) -> Self {
        Self { buffer: Vec::new(), limit: room.n_records::<R>(), runs: Vec::new(), room }
    }

    pub(crate) fn push(&mut self, record: R) -> TempResult<()> {
        if self.buffer.len() == self.limit {
            self.spill()?;
        }
        push_within(&mut self.buffer, record, self.limit);
        Ok(())
    }

    /// Sorts the buffer and combines equal records.
    fn sort(&mut self) {
        self.buffer.par_sort_unstable_by_key(Keyed::key);
        self.buffer.dedup_by(|next, first| next.key() == first.key() && first.combine(next));
    }

    fn spill(&mut self) -> TempResult<()> {
        self.sort();
        // Text that repeats itself shrinks so much that the buffer has room again.
        if self.buffer.len() <= self.limit / 2 {
            return Ok(());
        }
        if self.runs.len() == MAX_RUNS {
            let mut merged: Merge<R> = Merge::new(std::mem::take(&mut self.runs), Vec::new())?;
            let mut file = tempfile::tempfile_in(&self.room.temp_dir)?;
            let mut failure = None;
            let records = std::iter::from_fn(|| {
                merged.next().unwrap_or_else(|error| {
                    failure = Some(error);
                    None
                })
            });
            write_records(records, &mut file)?;
            failure.map_or(Ok(()), Err)?;
            self.runs.push(file);
        }
        let mut file = tempfile::tempfile_in(&self.room.temp_dir)?;
        write_records(self.buffer.drain(..), &mut file)?;
        self.runs.push(file);
        Ok(())
    }

    pub(crate) fn into_sorted(mut self) -> TempResult<Sorted<R>> {
        self.sort();
        if self.runs.is_empty() {
            return Ok(Sorted::Memory(self.buffer.into_iter()));
        }
        Merge::new(self.runs, self.buffer).map(Sorted::Merge)
    }
}

/// Records in the order of their keys.
pub(crate) enum Sorted<R: Keyed> {
    Memory(vec::IntoIter<R>),
    Merge(Merge<R>),
}

impl<R: Keyed> Sorted<R> {
    pub(crate) fn next(&mut self) -> TempResult<Option<R>> {
        match self {
            Self::Memory(records) => Ok(records.next()),
            Self::Merge(merge) => merge.next(),
        }
    }
}

enum Run<R> {
    File(FileRecords<R>),
    Memory(vec::IntoIter<R>),
}

impl<R: Record> Run<R> {
    fn next(&mut self) -> TempResult<Option<R>> {
        match self {
            Self::File(records) => records.next(),
            Self::Memory(records) => Ok(records.next()),
        }
    }
}

/// The first record that is left of a run.
struct Head<R> {
    record: R,
    run: usize,
}

impl<R: Keyed> Ord for Head<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.record.key().cmp(&other.record.key()).then(self.run.cmp(&other.run))
    }
}

impl<R: Keyed> PartialOrd for Head<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Keyed> PartialEq for Head<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<R: Keyed> Eq for Head<R> {}

/// Sorted runs merged into one.
pub(crate) struct Merge<R: Keyed> {
    runs: Vec<Run<R>>,
    heads: BinaryHeap<Reverse<Head<R>>>,
}

impl<R: Keyed> Merge<R> {
    fn new(files: Vec<File>, memory: Vec<R>) -> TempResult<Self> {
        let mut runs = Vec::with_capacity(files.len() + 1);
        for file in files {
            runs.push(Run::File(FileRecords::new(file)?));
        }
        runs.push(Run::Memory(memory.into_iter()));
        let mut heads = BinaryHeap::with_capacity(runs.len());
        for (run, records) in runs.iter_mut().enumerate() {
            heads.extend(records.next()?.map(|record| Reverse(Head { record, run })));
        }
        Ok(Self { runs, heads })
    }

    fn next(&mut self) -> TempResult<Option<R>> {
        let Some(mut first) = self.pop()? else { return Ok(None) };
        while let Some(Reverse(head)) = self.heads.peek() {
            if head.record.key() != first.key() || !first.combine(&head.record) {
                break;
            }
            self.pop()?;
        }
        Ok(Some(first))
    }

    fn pop(&mut self) -> TempResult<Option<R>> {
        let Some(mut top) = self.heads.peek_mut() else { return Ok(None) };
        let record = top.0.record;
        match self.runs[top.0.run].next()? {
            Some(next) => top.0.record = next,
            None => drop(std::collections::binary_heap::PeekMut::pop(top)),
        }
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::count::Counted;

    fn room(bytes: usize) -> Room {
        Room { bytes, temp_dir: std::env::temp_dir() }
    }

    proptest! {
        #[test]
        fn sorting_does_not_depend_on_memory(
            keys in prop::collection::vec(0..2000u64, 0..3000),
            n_bytes in prop::sample::select(vec![0, 1000, 1 << 20]),
        ) {
            let mut sorter = Sorter::new(room(n_bytes));
            let mut queue = Queue::new(room(n_bytes));
            for key in &keys {
                sorter.push(Counted { ngram: *key, count: 1 }).unwrap();
                queue.push(*key).unwrap();
            }
            let mut expected = keys.clone();
            expected.sort_unstable();
            let mut sorted = sorter.into_sorted().unwrap();
            for group in expected.chunk_by(|a, b| a == b) {
                let record = sorted.next().unwrap().unwrap();
                prop_assert_eq!((record.ngram, record.count), (group[0], group.len() as u64));
            }
            prop_assert!(sorted.next().unwrap().is_none());
            prop_assert_eq!(queue.len(), keys.len() as u64);
            let mut records = queue.into_records().unwrap();
            for key in keys {
                prop_assert_eq!(records.next().unwrap(), Some(key));
            }
            prop_assert!(records.next().unwrap().is_none());
        }
    }
}
