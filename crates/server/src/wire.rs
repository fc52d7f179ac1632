//! What each dialect makes of a message, without a server: for fuzzing.

use axum::extract::Request;
use axum::http::header;
use futures_util::FutureExt as _;

use crate::dialects::{Body, Whole, deepgram, from_f32, from_s16, live, openai, realtime, sherpa, vosk, wyoming};
use crate::http::ApiError;
use crate::options::{self, SessionOptions};

/// A wire protocol, or a part of one that is parsed by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Text messages of Vosk's clients.
    Vosk,
    /// First binary messages of sherpa-onnx's clients.
    Sherpa,
    /// Text messages of Deepgram's clients.
    Deepgram,
    /// A form with a file, with the boundary `b`.
    OpenAi,
    /// Events of OpenAI's realtime clients.
    Realtime,
    /// The first message of the page.
    Page,
    /// Events over TCP, one after the other.
    Wyoming,
    /// The query of any address.
    Query,
}

/// Bytes of a Wyoming event, as on a server.
const MESSAGE_BYTES: usize = 1 << 20;

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Vosk,
        Self::Sherpa,
        Self::Deepgram,
        Self::OpenAi,
        Self::Realtime,
        Self::Page,
        Self::Wyoming,
        Self::Query,
    ];

    /// Whether a message is accepted; whatever it is, this neither panics nor takes much more memory than the message.
    pub fn accepts(self, message: &[u8]) -> bool {
        let text = || std::str::from_utf8(message).map_err(|error| ApiError::bad_message(error.to_string()));
        match self {
            Self::Vosk => text().and_then(|text| vosk::Control::parse(text, &SessionOptions::default())).is_ok(),
            Self::Sherpa => sherpa(message),
            Self::Deepgram => text().and_then(deepgram::kind).is_ok(),
            Self::OpenAi => form(message).is_ok(),
            Self::Realtime => text().and_then(realtime).is_ok(),
            Self::Page => text().and_then(live::Start::parse).is_ok(),
            Self::Wyoming => wyoming(message).is_ok(),
            Self::Query => text().and_then(|text| query(text, message)).is_ok(),
        }
    }
}

fn sherpa(message: &[u8]) -> bool {
    let mut whole = Whole::default();
    let samples = from_f32(&whole.join(message, 4));
    samples.len() == message.len() / 4 && !matches!(sherpa::guess(message), sherpa::Guess::Neither)
}

fn form(message: &[u8]) -> Result<SessionOptions, ApiError> {
    let request = Request::builder()
        .header(header::CONTENT_TYPE, "multipart/form-data; boundary=b")
        .body(axum::body::Body::from(message.to_vec()))
        .map_err(|error| ApiError::bad_message(error.to_string()))?;
    // All bytes are there, so that nothing is waited for.
    let form = openai::Form::parse(request, Body::default()).now_or_never().ok_or_else(ApiError::internal)??;
    form.options()
}

fn realtime(text: &str) -> Result<(), ApiError> {
    let mut settings = realtime::Settings { options: SessionOptions::default(), rate_hz: 24_000 };
    match realtime::Event::parse(text)? {
        realtime::Event::Update(event) => settings.update(&event),
        realtime::Event::Append(bytes) => {
            from_s16(&Whole::default().join(&bytes, 2));
            Ok(())
        }
        realtime::Event::Commit | realtime::Event::Clear => Ok(()),
    }
}

fn wyoming(mut message: &[u8]) -> Result<(), ApiError> {
    while let Some(event) =
        wyoming::read_event(&mut message, MESSAGE_BYTES).now_or_never().ok_or_else(ApiError::internal)??
    {
        event.options()?;
        event.rate_hz()?;
    }
    Ok(())
}

/// A query and, as if it were the body, samples in the encoding that it names.
fn query(text: &str, message: &[u8]) -> Result<(), ApiError> {
    let uri = format!("/v1/listen?{text}").parse().map_err(|_| ApiError::bad_message("not an address"))?;
    let settings = deepgram::Settings::parse(&options::query(&uri)?)?;
    settings.samples(&mut Whole::default(), message);
    Ok(())
}
