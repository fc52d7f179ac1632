//! Writes the file of events, and reads it as one consistent history.
//!
//! A process that dies may leave half a line at the end, and events after its last checkpoint. [`Log::open`] cuts the
//! half line off, so that what follows starts on a line of its own. [`History::parse`] drops what a later
//! [`Event::Resume`] takes back, so a history is what one uninterrupted run would have logged, with its resumptions.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::{EndReason, EpochEnd, Event, Examples, Health, Record, RunEnd, RunStart, SkippedBatch, SkippedUtterance};

/// Name of the file in a run directory.
pub const FILE_NAME: &str = "log.jsonl";

/// No record is longer; a longer line is one that a disk made up.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Why the file of events could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum LogError {
    #[error("could not read `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write `{path}`: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("`{path}` is not the log of a run: none of its {n_lines} lines is the start of one")]
    NoStart { path: PathBuf, n_lines: usize },
}

/// The file of events, open at its end.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    /// Opens `path`, or makes it, and cuts off half a line that a killed process left at its end.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let opened = || -> io::Result<File> {
            let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
            let whole_bytes = end_of_last_line(&mut file)?;
            if whole_bytes < file.metadata()?.len() {
                file.set_len(whole_bytes)?;
            }
            Ok(file)
        };
        let file = opened().map_err(|source| LogError::Write { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Appends a record as one line, in one write, so that a kill can only cut its end off.
    pub fn append(&mut self, record: &Record) -> Result<(), LogError> {
        let mut line = serde_json::to_vec(record).expect("records have only text keys");
        line.push(b'\n');
        self.file.write_all(&line).map_err(|source| LogError::Write { path: self.path.clone(), source })
    }

    /// Waits until the disk has everything.
    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(|source| LogError::Write { path: self.path.clone(), source })
    }
}

/// Where the last whole line ends.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    const BLOCK_BYTES: u64 = 1 << 16;
    let mut end = file.metadata()?.len();
    let mut block = Vec::with_capacity(BLOCK_BYTES as usize);
    while end > 0 {
        let start = end.saturating_sub(BLOCK_BYTES);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        (&*file).take(end - start).read_to_end(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// What happened in a run, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Every record that still counts.
    pub records: Vec<Record>,
    /// Lines that are no records: torn by a kill, or damaged.
    pub n_unreadable: usize,
    /// Records that a resumption took back.
    pub n_superseded: usize,
}

/// What the events of one kind in a history hold.
macro_rules! all {
    ($history:ident, $kind:ident) => {
        $history.events().filter_map(|event| if let Event::$kind(held) = event { Some(held) } else { None })
    };
}

impl History {
    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self, LogError> {
        let read = |source| LogError::Read { path: path.to_owned(), source };
        let mut reader = BufReader::new(File::open(path).map_err(read)?);
        let mut history = Self::default();
        let (mut line, mut n_lines) = (Vec::new(), 0);
        loop {
            line.clear();
            if reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(read)? == 0 {
                break;
            }
            n_lines += 1;
            history.add_line(&line);
        }
        let is_run = history.start().is_some();
        is_run.then_some(history).ok_or(LogError::NoStart { path: path.to_owned(), n_lines })
    }

    /// Reads the lines of `text`.
    pub fn parse(text: &[u8]) -> Self {
        let mut history = Self::default();
        text.split_inclusive(|byte| *byte == b'\n').for_each(|line| history.add_line(line));
        history
    }

    fn add_line(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(record) => self.add(record),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) => self.n_unreadable += 1,
        }
    }

    /// Adds what happened next.
    pub fn add(&mut self, record: Record) {
        let n_before = self.records.len();
        match record.event {
            Event::Start(_) => self.records.clear(),
            Event::Resume(_) => self.records.retain(|before| before.step <= record.step && !is_end(before)),
            _ => self.forget_same(&record),
        }
        self.n_superseded += n_before - self.records.len();
        self.records.push(record);
    }

    /// Drops earlier events of the same step: a checkpoint may lie between the last step of an epoch and the
    /// events of its end, which are then reported again.
    fn forget_same(&mut self, record: &Record) {
        let n_earlier = self.records.iter().rev().take_while(|before| before.step == record.step).count();
        let same_step = self.records.len() - n_earlier;
        if let Some(at) = self.records[same_step..].iter().position(|before| is_same(before, record)) {
            self.records.remove(same_step + at);
        }
    }

    /// Every event.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.records.iter().map(|record| &record.event)
    }

    /// What the run is made of.
    pub fn start(&self) -> Option<&RunStart> {
        all!(self, Start).next().map(|start| &**start)
    }

    /// The epochs that ended, the first one first.
    pub fn epochs(&self) -> impl Iterator<Item = &EpochEnd> {
        all!(self, Epoch).map(|epoch| &**epoch)
    }

    /// Health of the capsules by epoch.
    pub fn health(&self) -> impl Iterator<Item = &Health> {
        all!(self, Health)
    }

    /// The examples of the last epoch that has any.
    pub fn last_examples(&self) -> Option<&Examples> {
        all!(self, Examples).last()
    }

    /// Batches that were left out.
    pub fn skipped_batches(&self) -> impl Iterator<Item = &SkippedBatch> {
        all!(self, SkippedBatch)
    }

    /// Utterances that were left out.
    pub fn skipped_utterances(&self) -> impl Iterator<Item = &SkippedUtterance> {
        all!(self, SkippedUtterance)
    }

    /// How often the run was resumed.
    pub fn n_resumptions(&self) -> usize {
        all!(self, Resume).count()
    }

    /// How the run ended; absent while it runs, and after a kill.
    pub fn end(&self) -> Option<&RunEnd> {
        all!(self, End).next()
    }

    /// Whether there is nothing left to do.
    pub fn is_finished(&self) -> bool {
        self.end().is_some_and(|end| matches!(end.reason, EndReason::Completed | EndReason::StoppedEarly))
    }
}

fn is_end(record: &Record) -> bool {
    matches!(record.event, Event::End(_))
}

/// Whether two records of the same step report the same thing.
fn is_same(before: &Record, record: &Record) -> bool {
    let happens_once = matches!(
        record.event,
        Event::Steps(_) | Event::Epoch(_) | Event::Examples(_) | Event::Health(_) | Event::End(_)
    );
    let is_same_kind = std::mem::discriminant(&before.event) == std::mem::discriminant(&record.event);
    before.event == record.event || (happens_once && is_same_kind)
}

#[cfg(test)]
mod tests;
