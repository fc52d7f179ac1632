//! The C library of srf: a recogniser, its streams, and results as text or JSON.
//!
//! `srf.h` is written from this file by cbindgen. Pointers that C hands over are checked for NULL; a panic becomes an
//! error like others.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::ptr;
use std::slice;

use anyhow::{Context as _, anyhow};
use srf::options::from_json;
use srf::{
    AcceptError, Format, NoModelError, ReadModelError, Recognizer, Segment, StartStreamError, Stream, StreamOptions,
    TranscribeError, Transcript, default_model, directory,
};

/// How a call ended.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SrfStatus {
    /// It did what it is for.
    SrfOk = 0,
    /// It did not; srf_error() says why.
    SrfError = 1,
}

/// A model that is ready to recognise.
pub struct SrfRecognizer {
    recognizer: Recognizer,
    options: StreamOptions,
}

/// The state of one speaker's live stream.
pub struct SrfStream {
    stream: Stream,
}

thread_local! {
    /// The text and the hint of the last error of this thread.
    static ERROR: RefCell<[CString; 2]> = RefCell::default();
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn srf_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no zero byte"),
    };
    VERSION.as_ptr()
}

/// What went wrong in the last call of this thread that failed, in one line; valid until its next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn srf_error() -> *const c_char {
    ERROR.with_borrow(|error| error[0].as_ptr())
}

/// What to do about it; empty if nothing is known. Valid as srf_error() is.
#[unsafe(no_mangle)]
pub extern "C" fn srf_hint() -> *const c_char {
    ERROR.with_borrow(|error| error[1].as_ptr())
}

/// Opens a model directory, or the default model if `model` is NULL.
///
/// `options` is NULL or JSON such as {"n_best": 3, "hotwords": {"text": "forty two\n"}, "endpoint": false}; its keys
/// are those of srf::options. Free the recogniser with srf_recognizer_free().
///
/// # Safety
/// `model` and `options` are NULL or texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_recognizer_open(model: *const c_char, options: *const c_char) -> *mut SrfRecognizer {
    // SAFETY: as the caller promises.
    let (model, options) = unsafe { (text(model, "model"), text(options, "options")) };
    owned(|| {
        srf_kernels::isa()?;
        let dir = match model? {
            Some(path) => directory::resolve(&PathBuf::from(path)),
            None => default_model()?,
        };
        let recognizer = Recognizer::open(dir)?;
        let options = options?.map_or_else(|| Ok(StreamOptions::default()), |json| from_json(json, &recognizer))?;
        Ok(SrfRecognizer { recognizer, options })
    })
}

/// Frees a recogniser; its streams may go on. NULL is allowed.
///
/// # Safety
/// `recognizer` is NULL or from srf_recognizer_open(), and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_recognizer_free(recognizer: *mut SrfRecognizer) {
    if !recognizer.is_null() {
        // SAFETY: it came from `Box::into_raw`, as the caller promises.
        drop(unsafe { Box::from_raw(recognizer) });
    }
}

/// The rate that recordings are resampled to, in Hz; 0 if `recognizer` is NULL.
///
/// # Safety
/// `recognizer` is NULL or from srf_recognizer_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_recognizer_rate_hz(recognizer: *const SrfRecognizer) -> u32 {
    // SAFETY: as the caller promises.
    unsafe { recognizer.as_ref() }.map_or(0, |one| one.recognizer.features().sample_rate_hz)
}

/// Transcribes a recording of any format and rate.
///
/// `format` is text, json, ctm, trn, srt, vtt, textgrid or csv.
///
/// # Safety
/// `recognizer` is from srf_recognizer_open(); `path` and `format` are texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_transcribe_file(
    recognizer: *const SrfRecognizer,
    path: *const c_char,
    format: *const c_char,
) -> *mut c_char {
    // SAFETY: as the caller promises.
    let (recognizer, path, format) = unsafe { (recognizer.as_ref(), text(path, "path"), text(format, "format")) };
    written(|| {
        let SrfRecognizer { recognizer, options } = recognizer.context("`recognizer` is NULL")?;
        let path = PathBuf::from(path?.context("`path` is NULL")?);
        format_transcript(&recognizer.transcribe_with(&path.into(), options)?, format?)
    })
}

/// Transcribes `n_samples` mono samples from -1 to 1 at `rate_hz`; `format` as in srf_transcribe_file().
///
/// # Safety
/// `recognizer` is from srf_recognizer_open(); `samples` are `n_samples` floats; `format` is a text that ends with a
/// zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_transcribe_samples(
    recognizer: *const SrfRecognizer,
    samples: *const f32,
    n_samples: usize,
    rate_hz: u32,
    format: *const c_char,
) -> *mut c_char {
    // SAFETY: as the caller promises.
    let (recognizer, samples) = unsafe { (recognizer.as_ref(), array(samples, n_samples)) };
    // SAFETY: as the caller promises.
    let format = unsafe { text(format, "format") };
    written(|| {
        let SrfRecognizer { recognizer, options } = recognizer.context("`recognizer` is NULL")?;
        format_transcript(&recognizer.transcribe_samples_with(samples?, rate_hz, options)?, format?)
    })
}

/// Starts a live stream of one speaker. Free it with srf_stream_free().
///
/// # Safety
/// `recognizer` is from srf_recognizer_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_open(recognizer: *const SrfRecognizer) -> *mut SrfStream {
    // SAFETY: as the caller promises.
    let recognizer = unsafe { recognizer.as_ref() };
    owned(|| {
        let SrfRecognizer { recognizer, options } = recognizer.context("`recognizer` is NULL")?;
        Ok(SrfStream { stream: recognizer.stream(options)? })
    })
}

/// Frees a stream. NULL is allowed.
///
/// # Safety
/// `stream` is NULL or from srf_stream_open(), and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_free(stream: *mut SrfStream) {
    if !stream.is_null() {
        // SAFETY: it came from `Box::into_raw`, as the caller promises.
        drop(unsafe { Box::from_raw(stream) });
    }
}

/// Accepts `n_samples` mono samples from -1 to 1; the rate of a stream stays the same until it is reset.
///
/// # Safety
/// `stream` is from srf_stream_open(); `samples` are `n_samples` floats.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_accept(
    stream: *mut SrfStream,
    samples: *const f32,
    n_samples: usize,
    rate_hz: u32,
) -> SrfStatus {
    // SAFETY: as the caller promises.
    let (stream, samples) = unsafe { (stream.as_mut(), array(samples, n_samples)) };
    done(|| Ok(stream.context("`stream` is NULL")?.stream.accept(samples?, rate_hz)?))
}

/// Accepts `n_samples` mono samples of 16 bits.
///
/// # Safety
/// `stream` is from srf_stream_open(); `samples` are `n_samples` integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_accept_i16(
    stream: *mut SrfStream,
    samples: *const i16,
    n_samples: usize,
    rate_hz: u32,
) -> SrfStatus {
    // SAFETY: as the caller promises.
    let (stream, samples) = unsafe { (stream.as_mut(), array(samples, n_samples)) };
    done(|| Ok(stream.context("`stream` is NULL")?.stream.accept_i16(samples?, rate_hz)?))
}

/// The text of the current utterance so far; empty if nothing was recognised yet.
///
/// # Safety
/// `stream` is from srf_stream_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_partial(stream: *const SrfStream) -> *mut c_char {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_ref() };
    written(|| Ok(stream.context("`stream` is NULL")?.stream.partial().map(|so_far| so_far.text).unwrap_or_default()))
}

/// Takes the segments that have ended, as a JSON array; each has text, times, words, tokens and confidences.
///
/// # Safety
/// `stream` is from srf_stream_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_take_ended(stream: *mut SrfStream) -> *mut c_char {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_mut() };
    written(|| Ok(array_of(&stream.context("`stream` is NULL")?.stream.take_ended())))
}

/// Ends the utterance now, without waiting for later samples. The stream goes on, and so do its times.
///
/// # Safety
/// `stream` is from srf_stream_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_flush(stream: *mut SrfStream) -> SrfStatus {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_mut() };
    done(|| {
        stream.context("`stream` is NULL")?.stream.flush();
        Ok(())
    })
}

/// Ends the stream and returns the segments that were not taken yet. The stream is at its start again.
///
/// # Safety
/// `stream` is from srf_stream_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_finish(stream: *mut SrfStream) -> *mut c_char {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_mut() };
    written(|| Ok(array_of(&stream.context("`stream` is NULL")?.stream.finish())))
}

/// Forgets everything.
///
/// # Safety
/// `stream` is from srf_stream_open().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_stream_reset(stream: *mut SrfStream) -> SrfStatus {
    // SAFETY: as the caller promises.
    let stream = unsafe { stream.as_mut() };
    done(|| {
        stream.context("`stream` is NULL")?.stream.reset();
        Ok(())
    })
}

/// Frees a text that a function of this library returned. NULL is allowed.
///
/// # Safety
/// `text` is NULL or from this library, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srf_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from `CString::into_raw`, as the caller promises.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// A text of C; `None` for NULL.
///
/// # Safety
/// `text` is NULL or ends with a zero byte.
unsafe fn text<'a>(text: *const c_char, name: &str) -> anyhow::Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(Some(text.to_str().with_context(|| format!("`{name}` is not UTF-8"))?))
}

/// An array of C.
///
/// # Safety
/// `values` are NULL or `n` values.
unsafe fn array<'a, T>(values: *const T, n: usize) -> anyhow::Result<&'a [T]> {
    match (values.is_null(), n) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(anyhow!("`samples` is NULL, expected {n} samples")),
        // SAFETY: as the caller promises.
        (false, _) => Ok(unsafe { slice::from_raw_parts(values, n) }),
    }
}

fn format_transcript(transcript: &Transcript, format: Option<&str>) -> anyhow::Result<String> {
    let format: Format = format.context("`format` is NULL")?.parse()?;
    Ok(transcript.format(format))
}

fn array_of(segments: &[Segment]) -> String {
    format!("[{}]", segments.iter().map(Segment::to_json).collect::<Vec<_>>().join(","))
}

fn owned<T>(make: impl FnOnce() -> anyhow::Result<T>) -> *mut T {
    attempt(make).map_or(ptr::null_mut(), |made| Box::into_raw(Box::new(made)))
}

fn written(write: impl FnOnce() -> anyhow::Result<String>) -> *mut c_char {
    attempt(|| Ok(c_text(&write()?))).map_or(ptr::null_mut(), CString::into_raw)
}

fn done(act: impl FnOnce() -> anyhow::Result<()>) -> SrfStatus {
    if attempt(act).is_some() { SrfStatus::SrfOk } else { SrfStatus::SrfError }
}

/// Runs `action`; what goes wrong is kept for srf_error(). A panic is an error like others.
fn attempt<T>(action: impl FnOnce() -> anyhow::Result<T>) -> Option<T> {
    let result = panic::catch_unwind(AssertUnwindSafe(action));
    let error = match result.unwrap_or_else(|_| Err(anyhow!("internal error: srf panicked"))) {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    let hint = error.chain().find_map(hint).unwrap_or_default();
    ERROR.set([c_text(&format!("{error:#}")), c_text(&hint)]);
    None
}

/// A text for C, without zero bytes.
fn c_text(text: &str) -> CString {
    let bytes = text.bytes().filter(|byte| *byte != 0).collect();
    // SAFETY: zero bytes were left out.
    unsafe { CString::from_vec_unchecked(bytes) }
}

fn hint(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    macro_rules! first_hint {
        ($($type:ty),+ $(,)?) => {
            None$(.or_else(|| cause.downcast_ref::<$type>().and_then(<$type>::hint)))+
        };
    }
    first_hint!(
        AcceptError,
        NoModelError,
        ReadModelError,
        StartStreamError,
        TranscribeError,
        srf::ReadAudioError,
        srf::options::OptionsError,
    )
}
