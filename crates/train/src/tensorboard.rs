//! Event files of TensorBoard (`RUN/tensorboard/events.out.tfevents.*`) from the records of a run.
//!
//! A file is a sequence of frames, each a small protocol buffer with a checksum.
//! Every process of a run writes a file of its own, which begins by saying at which step it starts: TensorBoard then
//! drops what files before it say of later steps.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::events::{EpochEnd, Event, LayerHealth, Measured, Record, Steps};

/// Name of the directory of event files in a run directory.
pub const DIRECTORY_NAME: &str = "tensorboard";

/// Why an event file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("could not write `{path}`: {source}")]
#[allow(missing_docs)] // the messages say what the fields are
pub struct TensorBoardError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// An event file that grows.
#[derive(Debug)]
pub struct TensorBoard {
    path: PathBuf,
    file: BufWriter<File>,
}

impl TensorBoard {
    /// Begins a new file in `dir`, which is made where there is none, for a process that starts at `step`.
    pub fn create(dir: &Path, time_s: f64, step: u64) -> Result<Self, TensorBoardError> {
        let at = |path: &Path, source| TensorBoardError { path: path.to_owned(), source };
        fs::create_dir_all(dir).map_err(|source| at(dir, source))?;
        let (path, file) = new_file(dir, time_s).map_err(|source| at(dir, source))?;
        let mut board = Self { path, file: BufWriter::new(file) };
        board.write(&version(time_s))?;
        // Records of this process come after the steps that were already taken.
        board.write(&session_start(time_s, step + 1))?;
        Ok(board)
    }

    /// Adds the numbers of a record, if it has any, and hands them to the system.
    pub fn add(&mut self, record: &Record) -> Result<(), TensorBoardError> {
        let scalars = scalars(&record.event);
        if scalars.is_empty() {
            return Ok(());
        }
        self.write(&summary(record, &scalars))?;
        self.file.flush().map_err(|source| TensorBoardError { path: self.path.clone(), source })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, message: &Message) -> Result<(), TensorBoardError> {
        let written = self.file.write_all(&framed(message.bytes()));
        written.map_err(|source| TensorBoardError { path: self.path.clone(), source })
    }
}

/// A file that was not there before; TensorBoard reads the files of a directory in the order of their names.
fn new_file(dir: &Path, time_s: f64) -> io::Result<(PathBuf, File)> {
    let time_s = time_s as u64;
    let mut number = 0;
    loop {
        let path = dir.join(format!("events.out.tfevents.{time_s:010}.{number:04}.srf"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            opened => return opened.map(|file| (path, file)),
        }
    }
}

// The numbers of fields are those of TensorFlow's `event.proto` and `summary.proto`.
const WALL_TIME: u32 = 1;
const STEP: u32 = 2;
const FILE_VERSION: u32 = 3;
const SUMMARY: u32 = 5;
const SESSION_LOG: u32 = 7;
const SESSION_STATUS: u32 = 1;
const SESSION_STARTS: u64 = 1;
const SUMMARY_VALUE: u32 = 1;
const VALUE_TAG: u32 = 1;
const VALUE_SIMPLE: u32 = 2;

fn version(time_s: f64) -> Message {
    let mut event = Message::default();
    event.double(WALL_TIME, time_s);
    event.text(FILE_VERSION, "brain.Event:2");
    event
}

fn session_start(time_s: f64, step: u64) -> Message {
    let mut log = Message::default();
    log.whole(SESSION_STATUS, SESSION_STARTS);
    let mut event = Message::default();
    event.double(WALL_TIME, time_s);
    event.whole(STEP, step);
    event.message(SESSION_LOG, &log);
    event
}

fn summary(record: &Record, scalars: &[(String, f64)]) -> Message {
    let mut summary = Message::default();
    for (tag, value) in scalars {
        let mut one = Message::default();
        one.text(VALUE_TAG, tag);
        one.float(VALUE_SIMPLE, *value as f32);
        summary.message(SUMMARY_VALUE, &one);
    }
    let mut event = Message::default();
    event.double(WALL_TIME, record.time_s);
    event.whole(STEP, record.step);
    event.message(SUMMARY, &summary);
    event
}

/// The numbers of an event by name; the part before the slash is the group they are shown in.
fn scalars(event: &Event) -> Vec<(String, f64)> {
    match event {
        Event::Steps(steps) => of_steps(steps),
        Event::Epoch(epoch) => of_epoch(epoch),
        Event::Health(health) => health.layers.iter().flat_map(of_layer).collect(),
        _ => Vec::new(),
    }
}

fn of_steps(steps: &Steps) -> Vec<(String, f64)> {
    let values = [
        ("step/loss", steps.loss),
        ("step/gradient_norm", steps.gradient_norm),
        ("step/learning_rate", steps.learning_rate),
        ("speed/frames_per_s", steps.speed.frames_per_s()),
        ("speed/wait_share", steps.speed.wait_share()),
    ];
    values.map(|(tag, value)| (tag.to_owned(), value)).into()
}

fn of_epoch(epoch: &EpochEnd) -> Vec<(String, f64)> {
    let of_part = |part: &str, measured: &Measured| {
        let errors = measured.errors.as_ref();
        let rate = errors.and_then(|errors| Some((errors.measure.to_lowercase(), errors.rate()?)));
        let rate = rate.map(|(measure, rate)| (format!("{measure}/{part}"), rate));
        std::iter::once((format!("loss/{part}"), measured.loss)).chain(rate).collect::<Vec<_>>()
    };
    let mut scalars = of_part("train", &epoch.train);
    scalars.extend(epoch.validation.iter().flat_map(|measured| of_part("validation", measured)));
    scalars
}

fn of_layer(layer: &LayerHealth) -> Vec<(String, f64)> {
    let name = &layer.name;
    let dead_share = layer.n_dead as f64 / layer.n_capsules.max(1) as f64;
    let agreement = layer.agreement.map(|agreement| (format!("agreement/{name}"), agreement));
    let scalars = [(format!("entropy/{name}"), layer.entropy), (format!("dead_share/{name}"), dead_share)];
    scalars.into_iter().chain(agreement).collect()
}

/// A protocol buffer under construction.
#[derive(Debug, Default)]
struct Message {
    bytes: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;
const FIXED_32: u32 = 5;

impl Message {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn whole(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    fn double(&mut self, field: u32, value: f64) {
        self.key(field, FIXED_64);
        self.bytes.extend(value.to_le_bytes());
    }

    fn float(&mut self, field: u32, value: f32) {
        self.key(field, FIXED_32);
        self.bytes.extend(value.to_le_bytes());
    }

    fn text(&mut self, field: u32, value: &str) {
        self.delimited(field, value.as_bytes());
    }

    fn message(&mut self, field: u32, value: &Message) {
        self.delimited(field, &value.bytes);
    }

    fn delimited(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.bytes.extend(value);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    /// Seven bits a byte, the least first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// `payload` in a frame: its length, the checksum of that, itself, and its checksum.
fn framed(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut frame = Vec::with_capacity(payload.len() + 16);
    frame.extend(length);
    frame.extend(masked_checksum(&length).to_le_bytes());
    frame.extend(payload);
    frame.extend(masked_checksum(payload).to_le_bytes());
    frame
}

/// CRC-32C, turned and shifted: a checksum over bytes that hold checksums would be weak otherwise.
fn masked_checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests;
