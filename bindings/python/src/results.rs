//! Transcripts and their parts as Python objects.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyClass, PyClassInitializer};
use srf::align;
use srf_text::output::{self, Format, SubtitleOptions};

use crate::errors::raise;

/// What was recognised in a recording.
#[pyclass(frozen, module = "srf")]
pub(crate) struct Transcript {
    inner: output::Transcript,
    /// The segments, in the order of time.
    #[pyo3(get)]
    segments: Py<PyTuple>,
}

/// An utterance: what was said between two pauses.
#[pyclass(frozen, module = "srf")]
pub(crate) struct Segment {
    /// The text.
    #[pyo3(get)]
    text: String,
    /// When it starts, in seconds.
    #[pyo3(get)]
    start_s: f64,
    /// When it ends, in seconds.
    #[pyo3(get)]
    end_s: f64,
    /// Words with times and confidences; empty if the labels are phones and there is no lexicon.
    #[pyo3(get)]
    words: Py<PyTuple>,
    /// Labels with times, confidences and evidence.
    #[pyo3(get)]
    tokens: Py<PyTuple>,
    /// From 0 to 1; None if unknown.
    #[pyo3(get)]
    confidence: Option<f32>,
    /// Other hypotheses, the best first.
    #[pyo3(get)]
    alternatives: Py<PyTuple>,
    /// The score of the search: a logarithm.
    #[pyo3(get)]
    score: f64,
    /// The rule that ended it: `rule1`, `rule2`, `rule3`, `end_of_sentence` or `flush`; None while it goes on.
    #[pyo3(get)]
    ended_by: Option<&'static str>,
    json: String,
}

/// A word.
#[pyclass(frozen, get_all, module = "srf")]
pub(crate) struct Word {
    text: String,
    start_s: f64,
    end_s: f64,
    confidence: Option<f32>,
}

/// A label of the model: a phone, a character or a word.
#[pyclass(frozen, get_all, module = "srf")]
pub(crate) struct Token {
    text: String,
    start_s: f64,
    end_s: f64,
    confidence: Option<f32>,
    /// What the routing decided; None unless it was asked for.
    evidence: Option<Py<Evidence>>,
    /// How late it was known; None if it was not measured.
    delay: Option<Py<Delay>>,
}

/// What the routing decided where a label peaks.
#[pyclass(frozen, get_all, module = "srf")]
pub(crate) struct Evidence {
    /// The probability of the label.
    posterior: f32,
    /// Its share of all coupling.
    coupling_mass: f32,
    /// The next most probable label.
    runner_up: String,
    /// Whether the label with the largest coupling is the most probable one.
    agrees: bool,
}

/// How late a label was known, in milliseconds.
#[pyclass(frozen, get_all, module = "srf")]
pub(crate) struct Delay {
    algorithmic_ms: f64,
    buffering_ms: f64,
    compute_ms: f64,
}

/// Another hypothesis.
#[pyclass(frozen, get_all, module = "srf")]
pub(crate) struct Alternative {
    text: String,
    confidence: f32,
    score: f64,
}

/// A label that should have been said, and how well it was.
#[pyclass(frozen, get_all, module = "srf")]
pub(crate) struct Said {
    text: String,
    start_s: f64,
    end_s: f64,
    confidence: Option<f32>,
    /// 0 to 100: the posterior of the label between its neighbours, in per cent.
    score: f32,
    /// The label that was heard in its place; None where it was left out.
    heard: Option<String>,
    /// The share of what was heard, 0 to 100.
    heard_score: f32,
}

impl Transcript {
    pub(crate) fn new(py: Python<'_>, inner: output::Transcript) -> PyResult<Self> {
        Ok(Self { segments: segments(py, &inner.segments)?, inner })
    }

    fn written(&self, format: Format) -> String {
        self.inner.format(format)
    }
}

#[pymethods]
impl Transcript {
    /// The text of all segments.
    #[getter]
    fn text(&self) -> String {
        self.inner.text()
    }

    /// The name of the recording.
    #[getter]
    fn id(&self) -> &str {
        &self.inner.id
    }

    /// The file; None for samples.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.inner.path.clone()
    }

    /// The length of the recording.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.inner.duration_s
    }

    /// What is missing of a recording that was cut off; None if nothing is.
    #[getter]
    fn incomplete(&self) -> Option<&str> {
        self.inner.incomplete.as_deref()
    }

    /// The transcript in the format of this name: text, json, ctm, trn, srt, vtt, textgrid or csv.
    #[pyo3(signature = (name, *, line_chars = 42, max_lines = 2, max_s = 7.0))]
    fn format(&self, name: &str, line_chars: usize, max_lines: usize, max_s: f64) -> PyResult<String> {
        let format: Format = name.parse().map_err(|error: output::UnknownFormat| raise(error.into()))?;
        Ok(self.inner.format_with(format, &SubtitleOptions { line_chars, max_lines, max_s }))
    }

    /// One segment per line.
    fn to_text(&self) -> String {
        self.written(Format::Text)
    }

    /// JSON with everything.
    fn to_json(&self) -> String {
        self.written(Format::Json)
    }

    /// What `to_json` says, as a dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (self.to_json(),))
    }

    /// NIST's time-marked words.
    fn to_ctm(&self) -> String {
        self.written(Format::Ctm)
    }

    /// NIST's `text (id)`.
    fn to_trn(&self) -> String {
        self.written(Format::Trn)
    }

    /// SubRip subtitles.
    fn to_srt(&self) -> String {
        self.written(Format::Srt)
    }

    /// Web subtitles.
    fn to_vtt(&self) -> String {
        self.written(Format::Vtt)
    }

    /// Praat's TextGrid.
    fn to_textgrid(&self) -> String {
        self.written(Format::TextGrid)
    }

    /// A table of segments.
    fn to_csv(&self) -> String {
        self.written(Format::Csv)
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("Transcript({:?}, duration_s={:.2})", self.text(), self.inner.duration_s)
    }
}

#[pymethods]
impl Segment {
    /// Everything as a dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.json,))
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Segment({:?}, start_s={:.2}, end_s={:.2})", self.text, self.start_s, self.end_s)
    }
}

/// Shows an object by its text and times.
macro_rules! timed_repr {
    ($($class:ident),+) => {$(
        #[pymethods]
        impl $class {
            fn __repr__(&self) -> String {
                format!("{}({:?}, start_s={:.2}, end_s={:.2})", stringify!($class), self.text, self.start_s, self.end_s)
            }
        }
    )+};
}
timed_repr!(Said, Token, Word);

#[pymethods]
impl Alternative {
    fn __repr__(&self) -> String {
        format!("Alternative({:?}, confidence={:.2})", self.text, self.confidence)
    }
}

#[pymethods]
impl Evidence {
    fn __repr__(&self) -> String {
        let Self { posterior, coupling_mass, runner_up, .. } = self;
        format!("Evidence(posterior={posterior:.3}, coupling_mass={coupling_mass:.3}, runner_up={runner_up:?})")
    }
}

#[pymethods]
impl Delay {
    fn __repr__(&self) -> String {
        let Self { algorithmic_ms, buffering_ms, compute_ms } = self;
        format!("Delay(algorithmic_ms={algorithmic_ms:.1}, buffering_ms={buffering_ms:.1}, compute_ms={compute_ms:.1})")
    }
}

pub(crate) fn segments(py: Python<'_>, segments: &[output::Segment]) -> PyResult<Py<PyTuple>> {
    tuple(py, segments.iter().map(|one| segment(py, one)))
}

pub(crate) fn segment(py: Python<'_>, segment: &output::Segment) -> PyResult<Segment> {
    let word = |word: &output::Word| {
        let output::Word { text, start_s, end_s, confidence } = word.clone();
        Ok(Word { text, start_s, end_s, confidence })
    };
    let alternative = |alternative: &output::Alternative| {
        let output::Alternative { text, confidence, score } = alternative.clone();
        Ok(Alternative { text, confidence, score })
    };
    Ok(Segment {
        text: segment.text.clone(),
        start_s: segment.start_s,
        end_s: segment.end_s,
        words: tuple(py, segment.words.iter().map(word))?,
        tokens: tuple(py, segment.tokens.iter().map(|one| token(py, one)))?,
        confidence: segment.confidence,
        alternatives: tuple(py, segment.alternatives.iter().map(alternative))?,
        score: segment.score,
        ended_by: segment.ended_by.map(output::EndReason::name),
        json: segment.to_json(),
    })
}

fn token(py: Python<'_>, token: &output::TokenResult) -> PyResult<Token> {
    let evidence = token.evidence.clone().map(|evidence| {
        let output::Evidence { posterior, coupling_mass, runner_up, agrees } = evidence;
        Py::new(py, Evidence { posterior, coupling_mass, runner_up, agrees })
    });
    let delay = token.delay.map(|delay| {
        let output::Delay { algorithmic_ms, buffering_ms, compute_ms } = delay;
        Py::new(py, Delay { algorithmic_ms, buffering_ms, compute_ms })
    });
    Ok(Token {
        text: token.text.clone(),
        start_s: token.start_s,
        end_s: token.end_s,
        confidence: token.confidence,
        evidence: evidence.transpose()?,
        delay: delay.transpose()?,
    })
}

impl From<align::Said> for Said {
    fn from(said: align::Said) -> Self {
        let align::Said { token, score, heard, heard_score } = said;
        let output::TokenResult { text, start_s, end_s, confidence, .. } = token;
        Self { text, start_s, end_s, confidence, score, heard, heard_score }
    }
}

/// A tuple of objects of one class.
fn tuple<T: Into<PyClassInitializer<T>> + PyClass>(
    py: Python<'_>,
    items: impl Iterator<Item = PyResult<T>>,
) -> PyResult<Py<PyTuple>> {
    let items = items.map(|item| Py::new(py, item?)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, items)?.unbind())
}
