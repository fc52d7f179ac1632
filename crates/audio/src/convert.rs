//! Any recording in, a 16-bit mono WAV out, in bounded memory however long it is.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::error::ReadAudioError;
use crate::recording::{Recording, Selection};
use crate::resample::{ResampleError, Resampler};
use crate::wav;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Converted {
    /// Samples a second.
    pub rate_hz: u32,
    /// Samples in all.
    pub n_samples: u64,
    /// Samples beyond the 16-bit scale, which were put at its end.
    pub n_clipped: u64,
}

impl Converted {
    /// The length in seconds.
    pub fn duration_s(&self) -> f64 {
        self.n_samples as f64 / f64::from(self.rate_hz)
    }
}

/// Why a recording could not be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadAudioError),
    /// The rate cannot be had.
    #[error("`{name}`: {cause}")]
    Resample {
        /// The recording.
        name: String,
        /// Which rate.
        cause: ResampleError,
    },
    /// The WAV file cannot be written.
    #[error("could not write `{path}`: {cause}", path = path.display())]
    Write {
        /// The WAV file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}

impl ConvertError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.hint(),
            _ => None,
        }
    }
}

/// Writes the part selected to `path`, at `rate_hz` or the rate it has.
///
/// The file appears when it is complete; a failure leaves what was there before.
pub fn convert(
    recording: &Recording,
    selection: Selection,
    rate_hz: Option<u32>,
    path: &Path,
) -> Result<Converted, ConvertError> {
    let unfinished = unfinished(path);
    let converted = write(recording, selection, rate_hz, &unfinished).and_then(|converted| {
        std::fs::rename(&unfinished, path).map_err(|cause| ConvertError::Write { path: path.to_owned(), cause })?;
        Ok(converted)
    });
    if converted.is_err() {
        // It may not even have been created.
        let _ = std::fs::remove_file(&unfinished);
    }
    converted
}

/// Beside `path`, so that renaming it stays on one file system.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".unfinished");
    PathBuf::from(name)
}

fn write(
    recording: &Recording,
    selection: Selection,
    rate_hz: Option<u32>,
    path: &Path,
) -> Result<Converted, ConvertError> {
    let write_error = |cause| ConvertError::Write { path: path.to_owned(), cause };
    let from_hz = recording.info().rate_hz;
    let rate_hz = rate_hz.unwrap_or(from_hz);
    let resampler = Resampler::new(from_hz, rate_hz);
    let mut resampler =
        resampler.map_err(|cause| ConvertError::Resample { name: recording.name().to_owned(), cause })?;
    let mut blocks = recording.blocks(selection)?;
    let mut writer =
        File::create(path).and_then(|file| wav::Writer::new(BufWriter::new(file), rate_hz)).map_err(write_error)?;

    let mut converted = Converted { rate_hz, n_samples: 0, n_clipped: 0 };
    let mut output = Vec::new();
    let mut is_last = false;
    while !is_last {
        output.clear();
        if let Some(block) = blocks.next_block()? {
            resampler.accept(block, &mut output);
        } else {
            resampler.finish(&mut output);
            is_last = true;
        }
        converted.n_samples += output.len() as u64;
        converted.n_clipped += output.iter().filter(|value| !(-32768.5..32767.5).contains(*value)).count() as u64;
        writer.push(&output).map_err(write_error)?;
    }
    writer.finish().and_then(|mut file| file.flush()).map_err(write_error)?;
    Ok(converted)
}
