//! `srf convert`: converts recordings to 16-bit WAV.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use rayon::prelude::*;
use srf_audio::convert::{Conversion, ConvertError, Converted, convert};
use srf_audio::{Channel, ReadAudioError, Recording};

use crate::Exit;
use crate::commands::recordings;
use crate::printer::{Printer, human_duration};

/// Turn any recording into a 16-bit WAV
///
/// Reads WAV, NIST SPHERE (with shorten), FLAC, MP3, Ogg Vorbis, AIFF, MP4 and Matroska (AAC, ALAC), detected by content;
/// other codecs, such as Opus, through `ffmpeg` where it is installed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf convert talk.mp3 talk.wav --rate 16000
  srf convert call.sph left.wav --channel 0 --start 12.5 --end 20
  srf convert recordings/ wavs/             # all recordings below recordings/, same layout
  srf convert a.flac b.flac wavs/")]
pub(crate) struct Args {
    /// Recordings, or directories of them
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,

    /// The WAV file to write; a directory when there are several recordings
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// Sample rate of the WAV [default: that of the recording]
    #[arg(long, value_name = "HZ")]
    rate: Option<u32>,

    /// Keep only one channel: its number from 0, or `mix` for the mean of all [default: all channels]
    #[arg(long, value_name = "N|mix", value_parser = parse_channel)]
    channel: Option<Channel>,

    /// Where to start, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    start: f64,

    /// Where to end, in seconds [default: the end of the recording]
    #[arg(long, value_name = "S")]
    end: Option<f64>,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { inputs, output, rate, channel, start, end } = args;
    let conversion = Conversion { channel, start_s: start, end_s: end, rate_hz: rate };
    if let [input] = inputs.as_slice()
        && !input.is_dir()
        && !output.is_dir()
        && !ends_in_separator(&output)
    {
        let converted = convert_one(input, &output, conversion)?;
        let is_complete = report(input, &converted, out);
        let length = human_duration(converted.duration_s());
        out.note(format!("{}: {length} at {} Hz", output.display(), converted.rate_hz));
        return Ok(if is_complete { Exit::Done } else { Exit::Problems });
    }
    convert_many(&inputs, &output, conversion, out)
}

fn ends_in_separator(path: &Path) -> bool {
    path.as_os_str().to_string_lossy().ends_with(std::path::is_separator)
}

fn parse_channel(text: &str) -> Result<Channel, String> {
    if text == "mix" {
        return Ok(Channel::Mix);
    }
    text.parse().map(Channel::Only).map_err(|_| "expected a number from 0, or `mix`".to_owned())
}

fn convert_one(source: &Path, target: &Path, conversion: Conversion) -> Result<Converted, ConvertError> {
    convert(&Recording::open(source)?, conversion, target)
}

/// Notes clipping, and reports a recording that was cut off; `false` for the latter.
fn report(source: &Path, converted: &Converted, out: &Printer) -> bool {
    if converted.n_clipped > 0 {
        out.note(format!("{}: {} samples were too loud and are clipped", source.display(), converted.n_clipped));
    }
    if let Some(missing) = &converted.incomplete {
        out.problem(format!("{missing}; what is there was converted"));
    }
    converted.incomplete.is_none()
}

/// Converts all recordings into a directory; failures are reported and the rest continues.
fn convert_many(sources: &[PathBuf], target: &Path, conversion: Conversion, out: &Printer) -> anyhow::Result<Exit> {
    if target.is_file() {
        bail!("`{}` is a file, expected a directory for several recordings", target.display());
    }
    let (pairs, mut n_problems) = pair_up(sources, target, out);
    let progress = out.progress("converting", pairs.len() as u64);
    let results: Vec<_> = pairs
        .par_iter()
        .map(|(source, target)| {
            let made = target.parent().map_or(Ok(()), std::fs::create_dir_all);
            let made = made.map_err(|cause| ConvertError::Write { path: target.clone(), cause });
            let result = made.and_then(|()| convert_one(source, target, conversion));
            progress.inc(1);
            result
        })
        .collect();
    progress.finish_and_clear();
    let mut total_s = 0.0;
    let mut n_done = 0;
    for ((source, _), result) in pairs.iter().zip(results) {
        match result {
            Ok(converted) => {
                n_problems += usize::from(!report(source, &converted, out));
                total_s += converted.duration_s();
                n_done += 1;
            }
            Err(error) => {
                out.problem(error);
                n_problems += 1;
            }
        }
    }
    out.note(format!("{n_done} recordings, {}, in {}", human_duration(total_s), target.display()));
    Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
}

/// Each recording with the file it becomes, and how many had a problem already.
fn pair_up(sources: &[PathBuf], target: &Path, out: &Printer) -> (Vec<(PathBuf, PathBuf)>, usize) {
    let mut pairs = Vec::new();
    let mut taken: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut n_problems = 0;
    for source in sources {
        let (found, problems): (Vec<PathBuf>, Vec<ReadAudioError>) =
            if source.is_dir() { recordings::below(source) } else { (vec![source.clone()], Vec::new()) };
        n_problems += problems.len();
        for problem in problems {
            out.problem(problem);
        }
        for path in found {
            let inside = path.strip_prefix(source).ok().filter(|inside| !inside.as_os_str().is_empty());
            let name = inside.map_or_else(|| path.file_name().map(PathBuf::from).unwrap_or_default(), Path::to_owned);
            let goal = target.join(name).with_extension("wav");
            if let Some(other) = taken.get(&goal) {
                n_problems += 1;
                out.problem(format!(
                    "`{}` would overwrite `{}`, made of `{}`",
                    path.display(),
                    goal.display(),
                    other.display()
                ));
                continue;
            }
            taken.insert(goal.clone(), path.clone());
            pairs.push((path, goal));
        }
    }
    (pairs, n_problems)
}
