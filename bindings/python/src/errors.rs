//! Errors as Python exceptions: the text of the library, with its hint as a note.

use std::any::Any;
use std::error;
use std::panic::{self, AssertUnwindSafe};

use anyhow::anyhow;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use srf::align::AlignError;
use srf::decoding::DecodingError;
use srf::directory::{InvalidParts, ReadModelError};
use srf::options::OptionsError;
use srf::words::WordsError;
use srf::{AcceptError, NoModelError, StartStreamError, TranscribeError};
use srf_audio::ReadAudioError;
use srf_model::config::OverrideError;
use srf_model::weights::LoadWeightsError;
use srf_score::files::ScoreFilesError;
use srf_score::formats::ReadTranscriptError;
use srf_score::pairing::PairError;
use srf_text::align_ctc::AlignCtcError;
use srf_text::fusion::FusionError;
use srf_text::lm::LoadArpaError;
use srf_train::trainer::TrainError;
use srf_train::trainer::prepared::LoadPreparedError;

pyo3::create_exception!(
    srf,
    Error,
    PyException,
    "What went wrong, in one line: where, what was found, what was expected.\n\nWhat to do about it is in `hint` (None \
     if nothing is known), and in `__notes__`, which Python 3.11 and later print."
);

/// The exception of an error; a Python exception that travelled inside it comes out as it was.
pub(crate) fn raise(error: anyhow::Error) -> PyErr {
    let error = match error.downcast::<PyErr>() {
        Ok(python) => return python,
        Err(error) => error,
    };
    let hint = error.chain().find_map(hint);
    Python::attach(|py| {
        let raised = Error::new_err(one_line(&error));
        let value = raised.value(py);
        let noted = value.setattr("hint", hint.as_deref()).and_then(|()| match &hint {
            Some(hint) => value.setattr("__notes__", [format!("hint: {hint}")]),
            None => Ok(()),
        });
        noted.err().unwrap_or(raised)
    })
}

/// The chain of causes on one line, without causes that the line already ends with, as the command prints it.
fn one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match () {
        () if line.is_empty() => cause,
        () if line.ends_with(&cause) => line,
        () => line + ": " + &cause,
    })
}

/// Computes without the GIL.
pub(crate) fn compute<T: Send>(py: Python<'_>, work: impl FnOnce() -> anyhow::Result<T> + Send) -> PyResult<T> {
    py.detach(|| catch(work)).map_err(raise)
}

/// Runs `work`; a panic in it is an error like others.
pub(crate) fn catch<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    // Nothing that `work` changes is used after a panic.
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(anyhow!(Internal(text(&*payload)))))
}

/// A fault of the program.
#[derive(Debug)]
struct Internal(String);

impl std::fmt::Display for Internal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "internal error: {}", self.0)
    }
}

impl error::Error for Internal {}

impl Internal {
    #[expect(clippy::unnecessary_wraps, reason = "like the other errors with hints")]
    fn hint(&self) -> Option<String> {
        Some("this is a fault of srf, not of your program: please report what you called".to_owned())
    }
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}

fn hint(cause: &(dyn error::Error + 'static)) -> Option<String> {
    /// The hint of `cause` if it is one of these types.
    macro_rules! first_hint {
        ($($type:ty),+ $(,)?) => {
            None$(.or_else(|| cause.downcast_ref::<$type>().and_then(<$type>::hint)))+
        };
    }
    first_hint!(
        AcceptError,
        AlignCtcError,
        AlignError,
        DecodingError,
        FusionError,
        Internal,
        InvalidParts,
        LoadArpaError,
        LoadPreparedError,
        LoadWeightsError,
        NoModelError,
        OptionsError,
        OverrideError,
        PairError,
        ReadAudioError,
        ReadModelError,
        ReadTranscriptError,
        ScoreFilesError,
        StartStreamError,
        TrainError,
        TranscribeError,
        WordsError,
    )
}
