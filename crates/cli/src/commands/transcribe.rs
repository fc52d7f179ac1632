//! `srf transcribe`: transcribes recordings, a pipe or a microphone.

mod channels;
pub(crate) mod files;
mod live;
#[cfg(feature = "mic")]
mod microphone;
mod stdin;

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use srf::{StreamOptions, Units};
use srf_audio::RawFormat;
use srf_text::output::{Format, SubtitleOptions};

use self::channels::Channels;
use self::stdin::Sound;
use super::recognition::{DecodingArgs, EndpointArgs, ModelArgs};
use super::thread_pool;
use crate::Exit;
use crate::printer::Printer;

/// Write down what is said in recordings
///
/// Recordings of any kind and rate, on all cores; their results are the same alone, together and streamed.
/// Stdin (`-`) may be a recording of any format, or raw 16-bit samples with `--raw`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf transcribe talk.flac
  srf transcribe recordings/ --format srt --out subtitles/
  srf transcribe data/timit/test.jsonl --format trn > hyp.trn
  srf transcribe talk.wav --format json --nbest 5
  srf transcribe call.wav --channels split
  arecord -f S16_LE -r 16000 -t raw | srf transcribe - --raw --stream
  ffmpeg -i film.mkv -f wav - | srf transcribe - --format vtt > film.vtt")]
pub(crate) struct Args {
    /// Recordings, directories of them, JSONL manifests, Kaldi data directories, `wav.scp` files, or `-` for stdin
    #[arg(value_name = "INPUT", required_unless_present = "mic")]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    model: ModelArgs,

    /// What to write: text, json, ctm, trn, srt, vtt, textgrid or csv
    #[arg(long, short, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,

    /// A file for each recording in this directory, instead of all on stdout
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Show results as they come, one recording after the other; JSON then has the delay of every token
    #[arg(long)]
    stream: bool,

    /// How much is given to a stream at once
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    chunk_ms: f64,

    /// Listen to the microphone until Enter is pressed
    #[arg(long, conflicts_with = "inputs")]
    mic: bool,

    /// Stdin has no header: 16-bit samples, little-endian, mono
    #[arg(long)]
    raw: bool,

    /// Sample rate of raw samples on stdin; implies --raw [default: the model's rate]
    #[arg(long, value_name = "HZ")]
    rate: Option<u32>,

    /// Transcribe only this channel, counted from 0
    #[arg(long, value_name = "N")]
    channel: Option<usize>,

    /// How recordings of several channels are transcribed
    #[arg(long, value_enum, default_value_t = ChannelMode::Mix, conflicts_with = "channel")]
    channels: ChannelMode,

    /// Longest time a subtitle is shown
    #[arg(long, value_name = "S", default_value_t = SubtitleOptions::default().max_s)]
    subtitle_s: f64,

    /// Characters per line of subtitles
    #[arg(long, value_name = "N", default_value_t = SubtitleOptions::default().line_chars)]
    subtitle_chars: usize,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    #[command(flatten)]
    decoding: DecodingArgs,

    #[command(flatten)]
    endpoint: EndpointArgs,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum ChannelMode {
    /// The mean of all channels
    Mix,
    /// Each channel by itself, as a speaker of its own
    Split,
}

fn resolve_channels(channel: Option<usize>, mode: ChannelMode) -> Channels {
    match (channel, mode) {
        (Some(channel), _) => Channels::Only(channel),
        (None, ChannelMode::Split) => Channels::Split,
        (None, ChannelMode::Mix) => Channels::Mix,
    }
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args {
        inputs,
        model,
        format,
        out: dir,
        stream,
        chunk_ms,
        mic,
        raw,
        rate,
        channel,
        channels,
        subtitle_s,
        subtitle_chars,
        threads,
        decoding,
        endpoint,
    } = args;
    ensure!((1.0..=60_000.0).contains(&chunk_ms), "--chunk-ms is {chunk_ms}, expected 1 to 60000");
    let is_stdin = inputs.iter().any(|input| input == Path::new("-"));
    ensure!(!is_stdin || inputs.len() == 1, "`-` (stdin) cannot be combined with other inputs");
    ensure!((0.5..=60.0).contains(&subtitle_s), "--subtitle-s is {subtitle_s}, expected 0.5 to 60");
    ensure!((8..=500).contains(&subtitle_chars), "--subtitle-chars is {subtitle_chars}, expected 8 to 500");
    let channels = resolve_channels(channel, channels);
    let endpoint = endpoint.resolve()?;
    let recognizer = model.open()?;
    if recognizer.labels().units() == Units::Phones && format == Format::Text && !decoding.has_lexicon() {
        out.note("the output is phones, because the labels of this model are phones; `--lexicon FILE` gives words");
    }
    let decoding = decoding.resolve(recognizer.labels())?;
    let options = StreamOptions { endpoint, has_evidence: format == Format::Json, ..decoding };
    let subtitles = SubtitleOptions { max_s: subtitle_s, line_chars: subtitle_chars, ..SubtitleOptions::default() };
    let sink = files::Sink::new(format, dir, out)?.with_subtitles(subtitles);
    if stream && !recognizer.can_stream() {
        out.note("this model needs the whole utterance: results come at the end of each recording");
    }
    let live = live::Live { recognizer: &recognizer, options: &options, channels, chunk_ms, out };
    if mic {
        return microphone(&live, sink);
    }
    if is_stdin {
        let Some(channel) = channels.of_pipe() else {
            bail!("stdin cannot be split into channels; choose one with `--channel N`, or give a file")
        };
        let model_hz = recognizer.features().sample_rate_hz;
        let is_raw = raw || rate.is_some();
        let raw = is_raw.then(|| RawFormat { rate_hz: rate.unwrap_or(model_hz), n_channels: 1 });
        return live.pipe(Sound::stdin(raw, channel)?, stream, sink);
    }
    if stream {
        return live.files(&inputs, sink);
    }
    thread_pool(threads)?.install(|| files::transcribe(&recognizer, &inputs, &options, channels, sink, out))
}

#[cfg(feature = "mic")]
fn microphone(live: &live::Live<'_>, sink: files::Sink<'_>) -> anyhow::Result<Exit> {
    microphone::listen(live, sink)
}

#[cfg(not(feature = "mic"))]
fn microphone(_live: &live::Live<'_>, _sink: files::Sink<'_>) -> anyhow::Result<Exit> {
    anyhow::bail!(
        "this `srf` was built without the microphone; build it with `--features mic`, or pipe: `arecord -t raw ... | srf transcribe - --raw`"
    )
}
