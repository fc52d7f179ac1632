//! `srf transcribe`: transcribes recordings, a pipe or a microphone.

mod channels;
pub(crate) mod files;
mod live;
#[cfg(feature = "mic")]
mod microphone;
mod stdin;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{bail, ensure};
use srf::StreamOptions;
use srf_audio::RawFormat;
use srf_text::output::{Format, SubtitleOptions};

use self::channels::Channels;
use self::stdin::Sound;
use super::recognition::{DecodingArgs, EndpointArgs, ModelArgs, VadArgs, note_output};
use super::thread_pool;
use crate::Exit;
use crate::printer::Printer;

/// Transcribe recordings
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
  srf transcribe talk.mp3 --vad --format srt > talk.srt
  arecord -f S16_LE -r 16000 -t raw | srf transcribe - --raw --stream
  arecord -f S16_LE -r 16000 -t raw | srf transcribe - --raw --stream --format json
  ffmpeg -i film.mkv -f wav - | srf transcribe - --format vtt > film.vtt")]
pub(crate) struct Args {
    /// Recordings, directories of them, JSONL manifests, Kaldi data directories, `wav.scp` files, or `-` for stdin
    #[arg(value_name = "INPUT", required_unless_present = "mic")]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    model: ModelArgs,

    /// Output format: text, json, ctm, trn, srt, vtt, textgrid or csv
    #[arg(long, short, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,

    /// Write one file per recording to this directory instead of stdout
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Show results as they come, one recording after the other, until the end, Ctrl-C or SIGTERM
    ///
    /// Text is written a line per utterance, subtitles cue by cue, and JSON as an object per partial result and per
    /// utterance, with the delay of every token; other formats at the end of each recording.
    #[arg(long)]
    stream: bool,

    /// Length of the chunks fed to a stream
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

    #[command(flatten)]
    vad: VadArgs,
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
        vad,
    } = args;
    ensure!((1.0..=60_000.0).contains(&chunk_ms), "--chunk-ms is {chunk_ms}, expected 1 to 60000");
    let is_stdin = inputs.iter().any(|input| input == Path::new("-"));
    ensure!(!is_stdin || inputs.len() == 1, "`-` (stdin) cannot be combined with other inputs");
    ensure!((0.5..=60.0).contains(&subtitle_s), "--subtitle-s is {subtitle_s}, expected 0.5 to 60");
    ensure!((8..=500).contains(&subtitle_chars), "--subtitle-chars is {subtitle_chars}, expected 8 to 500");
    let channels = resolve_channels(channel, channels);
    let endpoint = endpoint.resolve()?;
    let recognizer = model.open()?;
    let decoding = decoding.resolve(&recognizer)?;
    if let Some(decoder) = decoding.decoder.as_ref().filter(|_| format == Format::Text) {
        note_output(&recognizer, decoder, out);
    }
    let options = StreamOptions { endpoint, vad: vad.resolve(), has_evidence: format == Format::Json, ..decoding };
    let subtitles = SubtitleOptions { max_s: subtitle_s, line_chars: subtitle_chars, ..SubtitleOptions::default() };
    let sink = files::Sink::new(format, dir, out)?.with_subtitles(subtitles);
    if stream && !recognizer.can_stream() {
        out.note("this model needs the whole utterance: results come at the end of each recording");
    }
    let is_live = stream || mic;
    let stop = if is_live { super::train::stop_on_signal()? } else { Arc::default() };
    let live = live::Live { recognizer: &recognizer, options: &options, channels, chunk_ms, out, stop };
    let source = Source { inputs: &inputs, mic, is_stdin, is_raw: raw || rate.is_some(), rate_hz: rate };
    if is_live || is_stdin {
        let finished = listen(&live, &source, stream, sink);
        if live.stop.load(Ordering::Relaxed) {
            out.note("stopped by a signal; what was recognised until then is written");
        }
        return finished;
    }
    thread_pool(threads)?.install(|| files::transcribe(&recognizer, &inputs, &options, channels, sink, out))
}

/// What a stream listens to.
struct Source<'a> {
    inputs: &'a [PathBuf],
    mic: bool,
    is_stdin: bool,
    /// Whether stdin has no header.
    is_raw: bool,
    /// The rate of samples without a header; `None` is the model's.
    rate_hz: Option<u32>,
}

fn listen(live: &live::Live<'_>, source: &Source<'_>, stream: bool, sink: files::Sink<'_>) -> anyhow::Result<Exit> {
    if source.mic {
        return microphone(live, sink);
    }
    if !source.is_stdin {
        return live.files(source.inputs, sink);
    }
    let Some(channel) = live.channels.of_pipe() else {
        bail!("stdin cannot be split into channels; choose one with `--channel N`, or give a file")
    };
    let model_hz = live.recognizer.features().sample_rate_hz;
    let raw = RawFormat { rate_hz: source.rate_hz.unwrap_or(model_hz), n_channels: 1 };
    let raw = source.is_raw.then_some(raw);
    let sound = match Sound::stdin(raw, channel, stream.then(|| Arc::clone(&live.stop))) {
        // A signal before the first samples: there is nothing to write.
        Err(_) if live.stop.load(Ordering::Relaxed) => return Ok(Exit::Done),
        sound => sound?,
    };
    live.pipe(sound, stream, sink)
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
