//! One recogniser and its streams, called with bytes and answering with JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use srf::audio::Recording;
use srf::decoding::{Decoding, DecodingError};
use srf::text::fusion::{DEFAULT_HOTWORD_SCORE, Hotword};
use srf::{
    AcceptError, EndpointRules, Format, ReadAudioError, ReadModelError, Recognizer, Segment, Selection,
    StartStreamError, Stream, StreamOptions, Transcript,
};

/// The recogniser and its streams.
#[derive(Default)]
pub(crate) struct Engine {
    files: BTreeMap<String, Vec<u8>>,
    recognizer: Option<Recognizer>,
    streams: BTreeMap<u32, Running>,
    n_started: u32,
}

/// A stream and what it has recognised so far.
struct Running {
    stream: Stream,
    segments: Vec<Segment>,
}

/// What a call says instead of a result.
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// An error with its causes, on one line.
    fn of(error: &dyn std::error::Error, hint: Option<String>) -> Self {
        let causes = std::iter::successors(error.source(), |cause| cause.source());
        let message = causes.fold(error.to_string(), |message, cause| format!("{message}: {cause}"));
        Self { message, hint }
    }

    pub(crate) fn to_json(&self) -> String {
        match &self.hint {
            Some(hint) => json!({ "message": self.message, "hint": hint }),
            None => json!({ "message": self.message }),
        }
        .to_string()
    }
}

/// Errors of the library that have a hint.
macro_rules! failures {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::of(&error, error.hint())
            }
        })*
    };
}
failures!(ReadModelError, ReadAudioError, StartStreamError, AcceptError, DecodingError);

/// How to decode, as JavaScript writes it; a key that is missing has the value of the command.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Options {
    /// Width of the beam; 1 is greedy. The model's own if it is missing.
    beam: Option<usize>,
    /// Whether a model with words writes its labels instead.
    phones: bool,
    /// Readings per segment.
    n_best: Option<usize>,
    /// Phrases to favour, each with its score after a colon if it has one.
    hotwords: Vec<String>,
    /// Whether a pause ends a segment; true if it is missing.
    endpoints: Option<bool>,
    /// Whether tokens carry what the routing decided.
    evidence: bool,
    /// Whether softmax and couplings of every slice are kept.
    slices: bool,
}

impl Engine {
    pub(crate) fn add_file(&mut self, name: &[u8], content: &[u8]) -> Result<(), Failure> {
        self.files.insert(text(name)?.to_owned(), content.to_vec());
        Ok(())
    }

    /// Opens the model and forgets its files; its description.
    pub(crate) fn open(&mut self) -> Result<String, Failure> {
        let files = std::mem::take(&mut self.files);
        let recognizer = self.recognizer.insert(Recognizer::from_files(&files)?);
        let labels = recognizer.labels();
        let names: Vec<&str> = (0..labels.n_classes()).map(|class| labels.symbol(class).unwrap_or("·")).collect();
        let description = json!({
            "labels": names,
            "units": labels.units().to_string(),
            "writesWords": recognizer.words().is_some(),
            "canStream": recognizer.can_stream(),
            "sliceSeconds": recognizer.timing().slice_s(),
            "delayMs": recognizer.timing().algorithmic_ms(),
            "rateHz": recognizer.features().sample_rate_hz,
            "card": recognizer.card(),
        });
        Ok(description.to_string())
    }

    fn recognizer(&self) -> Result<&Recognizer, Failure> {
        self.recognizer.as_ref().ok_or_else(|| Failure::new("no model was opened"))
    }

    /// The options of a stream from their JSON; no bytes are no options.
    fn options(&self, options: &[u8]) -> Result<StreamOptions, Failure> {
        let options: Options = match options {
            [] => Options::default(),
            bytes => serde_json::from_slice(bytes).map_err(|error| Failure::new(format!("options: {error}")))?,
        };
        let hotwords = Hotword::parse_list(&options.hotwords.join("\n"), DEFAULT_HOTWORD_SCORE);
        let hotwords = hotwords.map_err(|error| Failure::of(&error, None))?;
        let decoding = Decoding {
            is_greedy: options.beam == Some(1),
            writes_labels: options.phones,
            beam: options.beam,
            hotwords,
            ..Decoding::default()
        };
        let decoder = decoding.decoder(self.recognizer()?)?;
        Ok(StreamOptions {
            decoder: Some(decoder),
            n_best: options.n_best.unwrap_or(1),
            endpoint: options.endpoints.unwrap_or(true).then(EndpointRules::default),
            has_evidence: options.evidence,
            keeps_slices: options.slices,
            ..StreamOptions::default()
        })
    }

    pub(crate) fn transcribe(&self, options: &[u8], samples: &[u8], rate_hz: u32) -> Result<String, Failure> {
        self.transcript(options, &floats(samples)?, rate_hz, Transcript::default())
    }

    /// Transcribes a recording of any format; of one that was cut off, the rest.
    pub(crate) fn transcribe_file(&self, options: &[u8], name: &[u8], content: &[u8]) -> Result<String, Failure> {
        let name = text(name)?;
        let mut blocks = Recording::from_bytes(name, content)?.blocks(Selection::default())?;
        let mut samples = Vec::new();
        while let Some(block) = blocks.next_block()? {
            samples.extend_from_slice(block);
        }
        let (id, _) = name.rsplit_once('.').unwrap_or((name, ""));
        let incomplete = blocks.incomplete().map(|error| error.to_string());
        let transcript = Transcript { id: id.to_owned(), incomplete, ..Transcript::default() };
        self.transcript(options, &samples, blocks.rate_hz(), transcript)
    }

    /// Fills in the result of `samples`.
    fn transcript(&self, options: &[u8], samples: &[f32], rate_hz: u32, known: Transcript) -> Result<String, Failure> {
        let recognizer = self.recognizer()?;
        let mut options = self.options(options)?;
        if recognizer.is_by_speaker() {
            options.statistics = Some(recognizer.statistics_of(samples, rate_hz)?);
        }
        let mut stream = recognizer.stream(&options)?;
        stream.accept(samples, rate_hz)?;
        Ok(written(&Transcript { duration_s: stream.accepted_s(), segments: stream.finish(), ..known }))
    }

    /// Starts a stream; its number.
    pub(crate) fn stream(&mut self, options: &[u8]) -> Result<u32, Failure> {
        let stream = self.recognizer()?.stream(&self.options(options)?)?;
        self.n_started += 1;
        self.streams.insert(self.n_started, Running { stream, segments: Vec::new() });
        Ok(self.n_started)
    }

    fn running(&mut self, stream: u32) -> Result<&mut Running, Failure> {
        self.streams.get_mut(&stream).ok_or_else(|| Failure::new("the stream was freed"))
    }

    pub(crate) fn accept(&mut self, stream: u32, samples: &[u8], rate_hz: u32) -> Result<String, Failure> {
        let Running { stream, segments } = self.running(stream)?;
        stream.accept(&floats(samples)?, rate_hz)?;
        let ended = stream.take_ended();
        let finals: Vec<String> = ended.iter().map(Segment::to_json).collect();
        segments.extend(ended);
        let partial = stream.partial().map_or("null".to_owned(), |segment| segment.to_json());
        Ok(format!(r#"{{"finals":[{}],"partial":{partial}}}"#, finals.join(",")))
    }

    /// How many slices there are, and their values.
    pub(crate) fn slices(&mut self, stream: u32) -> Result<(u32, Vec<u8>), Failure> {
        let slices = self.running(stream)?.stream.take_slices().unwrap_or_default();
        let values = slices.posteriors.iter().chain(&slices.couplings);
        let n_slices = u32::try_from(slices.n_slices()).map_err(|error| Failure::new(error.to_string()))?;
        Ok((n_slices, values.flat_map(|value| value.to_le_bytes()).collect()))
    }

    pub(crate) fn finish(&mut self, stream: u32) -> Result<String, Failure> {
        let Running { stream, segments } = self.running(stream)?;
        // Not `finish`, which also forgets how much was accepted and the slices.
        stream.flush();
        let duration_s = stream.accepted_s();
        segments.extend(stream.take_ended());
        let segments = std::mem::take(segments);
        Ok(written(&Transcript { duration_s, segments, ..Transcript::default() }))
    }

    pub(crate) fn free(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }
}

/// A transcript in all formats.
fn written(transcript: &Transcript) -> String {
    let file = |format: Format| (format.extension().to_owned(), Value::from(transcript.format(format)));
    let formats: serde_json::Map<String, Value> = Format::ALL.into_iter().map(file).collect();
    let transcript = transcript.format(Format::Json);
    format!(r#"{{"transcript":{},"formats":{}}}"#, transcript.trim_end(), Value::Object(formats))
}

fn text(bytes: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(bytes).map_err(|error| Failure::new(format!("a name: {error}")))
}

fn floats(bytes: &[u8]) -> Result<Vec<f32>, Failure> {
    let (floats, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Failure::new("samples are 32-bit floats, but the last one is cut off"));
    }
    Ok(floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}
