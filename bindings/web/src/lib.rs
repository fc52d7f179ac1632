//! The recogniser as a WebAssembly module: the functions that `srf.js` calls.
//!
//! A module holds one recogniser and any number of streams. Bytes pass through two buffers: JavaScript writes the
//! input of a call to the place that [`srf_input`] returns, and reads the output of the last call from
//! [`srf_output`]. A call returns 0 if it failed; its output is then a JSON object with a `message` and perhaps a
//! `hint`. The functions take numbers and return numbers or the addresses of these buffers, so that no pointer is
//! ever followed here.
#![allow(unsafe_code, reason = "a name that is exported must be the only one of its kind; no memory is touched")]

mod engine;

use std::cell::RefCell;
use std::sync::Mutex;

use engine::{Engine, Failure};

thread_local! {
    static EXCHANGE: RefCell<Exchange> = RefCell::default();
}

/// What the last panic said: after it the module cannot be called any more, but its memory can still be read.
static PANIC: Mutex<String> = Mutex::new(String::new());

#[derive(Default)]
struct Exchange {
    input: Vec<u8>,
    output: Vec<u8>,
    engine: Engine,
}

/// Runs a call: keeps its output, or the failure as its output.
fn call(run: impl FnOnce(&mut Engine, &[u8]) -> Result<(u32, Vec<u8>), Failure>) -> u32 {
    EXCHANGE.with_borrow_mut(|Exchange { input, output, engine }| {
        let (status, bytes) = run(engine, input).unwrap_or_else(|failure| (0, failure.to_json().into_bytes()));
        *output = bytes;
        status
    })
}

/// Splits the input where its first part ends.
fn split(input: &[u8], at: usize) -> Result<(&[u8], &[u8]), Failure> {
    input.split_at_checked(at).ok_or_else(|| Failure::new("the input is shorter than its first part"))
}

/// Makes room for the input of the next call; its address.
#[unsafe(no_mangle)]
pub extern "C" fn srf_input(n_bytes: usize) -> *mut u8 {
    EXCHANGE.with_borrow_mut(|Exchange { input, .. }| {
        input.clear();
        input.resize(n_bytes, 0);
        input.as_mut_ptr()
    })
}

/// The address of the output of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn srf_output() -> *const u8 {
    EXCHANGE.with_borrow(|exchange| exchange.output.as_ptr())
}

/// The length of the output of the last call in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn srf_output_bytes() -> usize {
    EXCHANGE.with_borrow(|exchange| exchange.output.len())
}

/// Remembers what a panic says, for [`srf_panic`].
#[unsafe(no_mangle)]
pub extern "C" fn srf_start() {
    std::panic::set_hook(Box::new(|panic| {
        if let Ok(mut message) = PANIC.lock() {
            *message = panic.to_string();
        }
    }));
}

/// The address of what the last panic said.
#[unsafe(no_mangle)]
pub extern "C" fn srf_panic() -> *const u8 {
    PANIC.lock().map_or(std::ptr::null(), |message| message.as_ptr())
}

/// The length of what the last panic said in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn srf_panic_bytes() -> usize {
    PANIC.lock().map_or(0, |message| message.len())
}

/// Adds a file of the model: its name of `name_bytes`, then its content.
#[unsafe(no_mangle)]
pub extern "C" fn srf_add_file(name_bytes: usize) -> u32 {
    call(|engine, input| {
        let (name, content) = split(input, name_bytes)?;
        engine.add_file(name, content)?;
        Ok((1, Vec::new()))
    })
}

/// Opens the model whose files were added; its description as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn srf_open() -> u32 {
    call(|engine, _| Ok((1, engine.open()?.into_bytes())))
}

/// Transcribes samples (32-bit floats from -1 to 1), before which are options of `options_bytes`.
#[unsafe(no_mangle)]
pub extern "C" fn srf_transcribe(rate_hz: u32, options_bytes: usize) -> u32 {
    call(|engine, input| {
        let (options, samples) = split(input, options_bytes)?;
        Ok((1, engine.transcribe(options, samples, rate_hz)?.into_bytes()))
    })
}

/// Transcribes a recording of any format, before which are options and the name of the file.
#[unsafe(no_mangle)]
pub extern "C" fn srf_transcribe_file(options_bytes: usize, name_bytes: usize) -> u32 {
    call(|engine, input| {
        let (options, rest) = split(input, options_bytes)?;
        let (name, content) = split(rest, name_bytes)?;
        Ok((1, engine.transcribe_file(options, name, content)?.into_bytes()))
    })
}

/// Starts a stream with the options in the input; its number, which is never 0.
#[unsafe(no_mangle)]
pub extern "C" fn srf_stream() -> u32 {
    call(|engine, input| Ok((engine.stream(input)?, Vec::new())))
}

/// Hands samples to a stream; the segments that ended and the current one, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn srf_accept(stream: u32, rate_hz: u32) -> u32 {
    call(|engine, input| Ok((1, engine.accept(stream, input, rate_hz)?.into_bytes())))
}

/// Takes the softmax and then the couplings of the slices since the last call, as 32-bit floats; one more than how
/// many slices there are, for 0 is a failure.
#[unsafe(no_mangle)]
pub extern "C" fn srf_slices(stream: u32) -> u32 {
    call(|engine, _| engine.slices(stream).map(|(n_slices, values)| (n_slices + 1, values)))
}

/// Ends a stream; its transcript. Only slices can be taken from it after that.
#[unsafe(no_mangle)]
pub extern "C" fn srf_finish(stream: u32) -> u32 {
    call(|engine, _| Ok((1, engine.finish(stream)?.into_bytes())))
}

/// Frees a stream.
#[unsafe(no_mangle)]
pub extern "C" fn srf_free(stream: u32) {
    call(|engine, _| {
        engine.free(stream);
        Ok((1, Vec::new()))
    });
}
