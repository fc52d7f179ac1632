//! Converts recordings to 16-bit WAV, in bounded memory however long they are.
//!
//! ```
//! use srf_audio::convert::{Conversion, ConvertError, Converted, convert};
//! use srf_audio::{Recording, Samples, wav};
//!
//! # let dir = tempfile::tempdir()?;
//! # let [from, to] = ["from.wav", "to.wav"].map(|name| dir.path().join(name));
//! wav::save(&from, &Samples { rate_hz: 8_000, values: vec![0.25; 8_000] })?;
//! let recording = Recording::open(&from)?;
//! let conversion = Conversion { rate_hz: Some(16_000), ..Conversion::default() };
//! let converted: Converted = convert(&recording, conversion, &to)?;
//! assert_eq!((converted.rate_hz, converted.duration_s()), (16_000, 1.0));
//!
//! let nowhere = dir.path().join("no/such/folder.wav");
//! assert!(matches!(convert(&recording, conversion, &nowhere), Err(ConvertError::Write { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use srf_base::files;

use crate::I16_SCALE;
use crate::error::ReadAudioError;
use crate::recording::{Blocks, Channel, Recording, Selection};
use crate::resample::{ResampleError, Resampler};
use crate::wav;

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The sample rate.
    pub rate_hz: u32,
    /// Samples of each channel.
    pub n_samples: u64,
    /// Samples beyond full scale, which were clipped.
    pub n_clipped: u64,
    /// What is missing of a recording that was cut off; what is there was converted.
    pub incomplete: Option<String>,
}

impl Converted {
    /// The length in seconds.
    pub fn duration_s(&self) -> f64 {
        self.n_samples as f64 / f64::from(self.rate_hz)
    }
}

/// Why a recording could not be converted.
#[allow(missing_docs, reason = "the messages say what the fields are")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    #[error(transparent)]
    Read(#[from] ReadAudioError),
    #[error("`{name}`: {cause}")]
    Resample { name: String, cause: ResampleError },
    #[error("could not write `{path}`: {cause}", path = path.display())]
    Write { path: PathBuf, cause: io::Error },
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

/// What of a recording is converted, and to what.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conversion {
    /// One channel, or the mean of all; `None` keeps them all.
    pub channel: Option<Channel>,
    /// Where to start, in seconds.
    pub start_s: f64,
    /// Where to end, in seconds; `None` is the end.
    pub end_s: Option<f64>,
    /// The sample rate; `None` keeps it.
    pub rate_hz: Option<u32>,
}

/// Writes the part that `conversion` names to `path`.
///
/// The file appears when it is complete; a failure leaves what was there before.
pub fn convert(recording: &Recording, conversion: Conversion, path: &Path) -> Result<Converted, ConvertError> {
    let partial = files::partial_path(path);
    let written = write(recording, conversion, &partial).and_then(|converted| {
        std::fs::rename(&partial, path).map_err(|cause| ConvertError::Write { path: path.to_owned(), cause })?;
        Ok(converted)
    });
    if written.is_err() {
        // It may not even have been created.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// One channel on its way to the file.
struct Track {
    blocks: Blocks,
    resampler: Resampler,
    /// Resampled, and not yet written: other channels may lag behind.
    waiting: Vec<f32>,
    is_over: bool,
}

impl Track {
    fn advance(&mut self) -> Result<(), ReadAudioError> {
        if let Some(block) = self.blocks.next_block()? {
            self.resampler.accept(block, &mut self.waiting);
        } else if !self.is_over {
            self.resampler.finish(&mut self.waiting);
            self.is_over = true;
        }
        Ok(())
    }
}

fn write(recording: &Recording, conversion: Conversion, path: &Path) -> Result<Converted, ConvertError> {
    let write_error = |cause| ConvertError::Write { path: path.to_owned(), cause };
    let rate_hz = conversion.rate_hz.unwrap_or(recording.info().rate_hz);
    let mut tracks = tracks(recording, conversion, rate_hz)?;
    let n_channels = tracks.len() as u16;
    let file = File::create(path).and_then(|file| wav::Writer::new(BufWriter::new(file), rate_hz, n_channels));
    let mut writer = file.map_err(write_error)?;
    let mut converted = Converted { rate_hz, n_samples: 0, n_clipped: 0, incomplete: None };
    let mut interleaved = Vec::new();
    while tracks.iter().any(|track| !track.is_over) {
        tracks.iter_mut().try_for_each(Track::advance)?;
        let n = tracks.iter().map(|track| track.waiting.len()).min().unwrap_or(0);
        interleaved.clear();
        interleaved.extend((0..n).flat_map(|at| tracks.iter().map(move |track| track.waiting[at])));
        tracks.iter_mut().for_each(|track| drop(track.waiting.drain(..n)));
        converted.n_samples += n as u64;
        converted.n_clipped +=
            interleaved.iter().filter(|value| !(-32768.5..32767.5).contains(&(**value * I16_SCALE))).count() as u64;
        writer.push(&interleaved).map_err(write_error)?;
    }
    writer.finish().and_then(|mut file| file.flush()).map_err(write_error)?;
    let incomplete = tracks.first().and_then(|track| track.blocks.incomplete());
    converted.incomplete = incomplete.map(|error| error.to_string());
    Ok(converted)
}

/// The channels to write.
fn tracks(recording: &Recording, conversion: Conversion, rate_hz: u32) -> Result<Vec<Track>, ConvertError> {
    let all = || (0..recording.info().n_channels).map(Channel::Only).collect();
    let channels: Vec<Channel> = conversion.channel.map_or_else(all, |channel| vec![channel]);
    let Conversion { start_s, end_s, .. } = conversion;
    let track = |channel| {
        let resampler = Resampler::new(recording.info().rate_hz, rate_hz)
            .map_err(|cause| ConvertError::Resample { name: recording.name().to_owned(), cause })?;
        let blocks = recording.blocks(Selection { channel, start_s, end_s })?;
        Ok(Track { blocks, resampler, waiting: Vec::new(), is_over: false })
    };
    channels.into_iter().map(track).collect()
}
