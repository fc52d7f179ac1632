//! A model and what it makes of recordings.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{anyhow, ensure};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods as _};
use pyo3::prelude::*;
use rayon::prelude::*;
use srf::model::config::ModelConfig;
use srf::model::stream::TapConfig;
use srf::{DEFAULT_MODEL, Recognizer, StreamOptions, TranscribeError, default_model, directory, models_home};
use srf_audio::features::cmvn::CmvnStats;

use crate::audio::{Audio, Part, matrix};
use crate::errors::{compute, raise};
use crate::interrupt::interruptible;
use crate::options::Options;
use crate::results::{Said, Segment, Transcript, segment};
use crate::stream::Stream;

/// Recordings of a list that are transcribed before their results are handed out, per thread.
const BATCH_PER_THREAD: usize = 4;

/// A model that is ready to recognise.
#[pyclass(frozen, module = "srf._srf")]
pub(crate) struct Model {
    pub(crate) recognizer: Recognizer,
    /// Where it was found.
    #[pyo3(get)]
    directory: PathBuf,
}

#[pymethods]
impl Model {
    /// The model that `name` is the directory or name of, or the default; those of the package are below `bundled`.
    #[staticmethod]
    fn open(py: Python<'_>, name: Option<PathBuf>, bundled: PathBuf) -> PyResult<Self> {
        compute(py, || {
            srf_kernels::isa()?;
            let directory = find(name, &bundled)?;
            Ok(Self { recognizer: Recognizer::open(&directory)?, directory })
        })
    }

    /// The symbols of the classes; those of padding and blank are empty.
    #[getter]
    fn labels(&self) -> Vec<&str> {
        let labels = self.recognizer.labels();
        (0..labels.n_classes()).map(|class| labels.symbol(class).unwrap_or_default()).collect()
    }

    /// The class of the blank.
    #[getter]
    fn blank(&self) -> usize {
        self.recognizer.labels().blank()
    }

    /// What the labels are: phones, chars or words.
    #[getter]
    fn units(&self) -> String {
        self.recognizer.labels().units().to_string()
    }

    /// The rate that recordings are resampled to.
    #[getter]
    fn sample_rate_hz(&self) -> u32 {
        self.recognizer.features().sample_rate_hz
    }

    /// From one slice (row of log-probabilities) to the next.
    #[getter]
    fn slice_s(&self) -> f64 {
        self.recognizer.timing().slice_s()
    }

    /// When the first slice starts; negative, because slices are centred on their frames.
    #[getter]
    fn start_s(&self) -> f64 {
        self.recognizer.timing().clock().start_s
    }

    /// The algorithmic delay; None if the model needs the whole utterance.
    #[getter]
    fn delay_ms(&self) -> Option<f64> {
        self.recognizer.timing().algorithmic_ms()
    }

    /// Whether it has a lexicon and a language model of its own.
    #[getter]
    fn has_words(&self) -> bool {
        self.recognizer.words().is_some()
    }

    /// The description of the model, in Markdown.
    #[getter]
    fn card(&self) -> &str {
        self.recognizer.card()
    }

    fn transcribe(
        &self,
        options: &Options,
        audio: &Bound<'_, PyAny>,
        rate_hz: Option<u32>,
        part: Part,
    ) -> PyResult<Transcript> {
        let py = audio.py();
        let audio = Audio::new(audio, rate_hz, part)?;
        let transcript = compute(py, || Ok(transcribe(&self.recognizer, &audio, &options.stream)?))?;
        Transcript::new(py, transcript)
    }

    /// Transcribes a list of recordings, or of samples with their rates.
    fn transcripts(
        &self,
        options: &Options,
        list: Vec<(Bound<'_, PyAny>, Option<u32>)>,
        returns_errors: bool,
    ) -> PyResult<Transcripts> {
        let audio = |(audio, rate_hz): &(Bound<'_, PyAny>, Option<u32>)| Audio::new(audio, *rate_hz, (0.0, None, None));
        let waiting = list.iter().map(audio).collect::<PyResult<_>>()?;
        let (recognizer, options) = (self.recognizer.clone(), options.stream.clone());
        let state = Mutex::new(State { waiting, done: VecDeque::new() });
        Ok(Transcripts { recognizer, options, returns_errors, n: list.len(), state })
    }

    fn stream(&self, py: Python<'_>, options: &Options) -> PyResult<Stream> {
        compute(py, || Ok(Stream::new(self.recognizer.stream(&options.stream)?)))
    }

    /// `[slices, classes]`.
    fn log_probs<'py>(
        &self,
        audio: &Bound<'py, PyAny>,
        rate_hz: Option<u32>,
        part: Part,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let py = audio.py();
        let audio = Audio::new(audio, rate_hz, part)?;
        let values = compute(py, || Ok(log_probs(&self.recognizer, &audio)?))?;
        matrix(py, values, self.recognizer.labels().n_classes())
    }

    /// For each capsule layer its name and `[slices, input capsules, output capsules]`.
    fn couplings<'py>(
        &self,
        audio: &Bound<'py, PyAny>,
        rate_hz: Option<u32>,
        part: Part,
    ) -> PyResult<Vec<(String, Bound<'py, PyArray3<f32>>)>> {
        let py = audio.py();
        let audio = Audio::new(audio, rate_hz, part)?;
        let layers = compute(py, || couplings(&self.recognizer, &audio))?;
        let array = |(index, (values, [n_in, n_out])): (usize, (Vec<f32>, [usize; 2]))| {
            let n_slices = values.len() / (n_in * n_out).max(1);
            let array = PyArray1::from_vec(py, values).reshape([n_slices, n_in, n_out])?;
            PyResult::Ok((format!("caps{}", index + 1), array))
        };
        layers.into_iter().enumerate().map(array).collect()
    }

    /// When each label of `text` was said.
    fn align(&self, audio: &Bound<'_, PyAny>, rate_hz: Option<u32>, part: Part, text: &str) -> PyResult<Segment> {
        let py = audio.py();
        let audio = Audio::new(audio, rate_hz, part)?;
        let aligned = compute(py, || {
            let classes = self.recognizer.labels().encode(text)?;
            let log_probs = log_probs(&self.recognizer, &audio)?;
            self.recognizer.align_log_probs(&log_probs, &classes).map_err(|error| of_recording(&audio, error))
        })?;
        segment(py, &aligned)
    }

    /// How well each label of `text` was said.
    fn gop(&self, audio: &Bound<'_, PyAny>, rate_hz: Option<u32>, part: Part, text: &str) -> PyResult<Vec<Said>> {
        let py = audio.py();
        let audio = Audio::new(audio, rate_hz, part)?;
        let scored = compute(py, || {
            let classes = self.recognizer.labels().encode(text)?;
            let log_probs = log_probs(&self.recognizer, &audio)?;
            let scored = self.recognizer.pronunciation_log_probs(&log_probs, &classes);
            scored.map_err(|error| of_recording(&audio, error))
        })?;
        Ok(scored.into_iter().map(Said::from).collect())
    }
}

/// The directory of a model: what `name` is, or a model of that name in the package or installed.
fn find(name: Option<PathBuf>, bundled: &Path) -> anyhow::Result<PathBuf> {
    let is_model = |dir: &PathBuf| dir.join("config.toml").is_file();
    let Some(path) = name else {
        let bundled = Some(bundled.join(DEFAULT_MODEL)).filter(is_model);
        return Ok(default_model().or_else(|error| bundled.ok_or(error))?);
    };
    if path.exists() {
        return Ok(directory::resolve(&path));
    }
    let name = path.strip_prefix("models").unwrap_or(&path);
    let is_plain = matches!(name.components().collect::<Vec<_>>()[..], [Component::Normal(_)]);
    let named = [bundled.join(name), models_home().join(name)].into_iter().find(|dir| is_plain && is_model(dir));
    Ok(named.unwrap_or(path))
}

fn of_recording(audio: &Audio, error: srf::text::align_ctc::AlignCtcError) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("`{}`", audio.name()))
}

fn transcribe(
    recognizer: &Recognizer,
    audio: &Audio,
    options: &StreamOptions,
) -> Result<srf::Transcript, TranscribeError> {
    match audio {
        Audio::File(utterance) => recognizer.transcribe_with(utterance, options),
        Audio::Samples { values, rate_hz } => recognizer.transcribe_samples_with(values, *rate_hz, options),
    }
}

/// The statistics of the recording, where the model normalises by them.
fn statistics(recognizer: &Recognizer, audio: &Audio) -> Result<Option<CmvnStats>, TranscribeError> {
    if !recognizer.is_by_speaker() {
        return Ok(None);
    }
    match audio {
        Audio::File(utterance) => recognizer.statistics(utterance),
        Audio::Samples { values, rate_hz } => recognizer
            .statistics_of(values, *rate_hz)
            .map_err(|cause| TranscribeError::Accept { name: audio.name(), cause }),
    }
    .map(Some)
}

fn log_probs(recognizer: &Recognizer, audio: &Audio) -> Result<Vec<f32>, TranscribeError> {
    let mut listener = recognizer.listener(statistics(recognizer, audio)?)?;
    let mut log_probs = Vec::new();
    audio.feed(|block, rate_hz| listener.accept(block, rate_hz, &mut log_probs))?;
    listener.flush(&mut log_probs);
    Ok(log_probs)
}

/// Every coefficient of every layer with the layer's numbers of input and output capsules: one pass for each layer.
fn couplings(recognizer: &Recognizer, audio: &Audio) -> anyhow::Result<Vec<(Vec<f32>, [usize; 2])>> {
    let ModelConfig::Srf(config) = recognizer.model() else {
        return Err(anyhow!("the model is a network without capsules, so it has no couplings"));
    };
    let statistics = statistics(recognizer, audio)?;
    let layer = |index: usize| {
        let mut listener = recognizer.listener(statistics.clone())?;
        listener.tap(Some(TapConfig { full_layer: Some(index), ..TapConfig::default() }));
        let mut log_probs = Vec::new();
        audio.feed(|block, rate_hz| listener.accept(block, rate_hz, &mut log_probs))?;
        listener.flush(&mut log_probs);
        let taps = listener.taps().ok_or_else(|| anyhow!("the network has no taps"))?;
        ensure!(!taps.couplings().is_empty(), "`{}` is too short: it has no slice", audio.name());
        anyhow::Ok((taps.couplings().to_vec(), taps.capsules(index)))
    };
    (0..config.layers).map(layer).collect()
}

/// The transcripts of a list in its order, some of them computed ahead on all cores.
#[pyclass(frozen, module = "srf._srf")]
pub(crate) struct Transcripts {
    recognizer: Recognizer,
    options: StreamOptions,
    /// Whether errors are items of the list, or raised.
    returns_errors: bool,
    n: usize,
    state: Mutex<State>,
}

struct State {
    waiting: VecDeque<Audio>,
    done: VecDeque<Result<srf::Transcript, TranscribeError>>,
}

#[pymethods]
impl Transcripts {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __len__(&self) -> usize {
        self.n
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let stop = AtomicBool::new(false);
        let (next, interrupt) = interruptible(py, &stop, || Ok(self.advance(&stop)));
        if let Some(interrupt) = interrupt {
            return Err(interrupt);
        }
        let Some(next) = next.map_err(raise)? else { return Ok(None) };
        match next {
            Ok(transcript) => Ok(Some(Py::new(py, Transcript::new(py, transcript)?)?.into_any())),
            Err(error) if self.returns_errors => Ok(Some(raise(error.into()).into_value(py).into_any())),
            Err(error) => Err(raise(error.into())),
        }
    }
}

impl Transcripts {
    /// The next result; computes the next batch if none is ready. Stopped, it leaves the batch waiting.
    fn advance(&self, stop: &AtomicBool) -> Option<Result<srf::Transcript, TranscribeError>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { waiting, done } = &mut *state;
        if done.is_empty() {
            let n = waiting.len().min(BATCH_PER_THREAD * rayon::current_num_threads());
            let batch = &waiting.make_contiguous()[..n];
            let one = |audio: &Audio| {
                (!stop.load(Ordering::Relaxed)).then(|| transcribe(&self.recognizer, audio, &self.options))
            };
            let results: Option<VecDeque<_>> = batch.par_iter().map(one).collect();
            *done = results?;
            waiting.drain(..n);
        }
        done.pop_front()
    }
}
