//! The protocol of the page: takes samples, sends text and what the routing decided.
//!
//! The client sends a JSON object (`rate`, `key`, `routing` and the options of every dialect), then binary messages of 32-bit samples, then
//! `{"end": true}`. The server answers with JSON objects that have a `type`: `ready`, `partial`, `final`, `slices`,
//! `done` and `error`.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use srf::{Format, Segment, Slices, Transcript};

use super::{Incoming, Socket, Upgrade, Whole, from_f32};
use crate::engine::{Session, Update};
use crate::http::{ApiError, App, client_address};
use crate::options::{self, SessionOptions};

/// What the page may save.
const FORMATS: [Format; 5] = [Format::Srt, Format::Vtt, Format::Json, Format::TextGrid, Format::Text];

#[derive(Deserialize)]
pub(crate) struct Start {
    rate: u32,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    routing: bool,
    #[serde(skip)]
    options: SessionOptions,
}

impl Start {
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let wrong = |error| ApiError::bad_message(format!("not a start of the page's protocol: {error}"));
        let value: Value = serde_json::from_str(text).map_err(wrong)?;
        let mut start = Self::deserialize(&value).map_err(wrong)?;
        if !(1000..=384_000).contains(&start.rate) {
            return Err(ApiError::bad_field("rate", &start.rate.to_string(), "1000 to 384000"));
        }
        start.options = SessionOptions { partials: true, slices: start.routing, ..SessionOptions::default() };
        start.options.set_common(&options::object(&value))?;
        Ok(start)
    }
}

pub(crate) async fn socket(State(app): State<App>, upgrade: Upgrade, request: Request) -> Response {
    let client = client_address(request.extensions());
    Socket::upgrade(app.clone(), upgrade, async move |mut socket| {
        let result = converse(&app, client, &mut socket).await;
        if let Err(error) = &result {
            socket.send(&json!({"type": "error", "code": error.code, "message": error.message})).await;
        }
        socket.close(result.as_ref().err()).await;
    })
}

async fn converse(app: &App, client: IpAddr, socket: &mut Socket) -> Result<(), ApiError> {
    let Incoming::Text(text) = socket.receive().await? else {
        return Err(ApiError::bad_message("expected a JSON object with `rate` before any samples"));
    };
    let start = Start::parse(&text)?;
    // Browsers cannot send headers with a WebSocket, so the key comes in the first message.
    if !app.is_allowed(start.key.as_deref().map(str::as_bytes)) {
        return Err(ApiError::unauthorized());
    }
    let (_, recognizer) = app.engine.recognizer(start.options.model.as_deref())?;
    let mut session = app.engine.session(client, start.options).await?;
    let labels = recognizer.labels();
    let name = |class| if class == labels.blank() { "blank" } else { labels.symbol(class).unwrap_or("·") };
    let names: Vec<&str> = (0..labels.n_classes()).map(name).collect();
    socket.send(&json!({"type": "ready", "labels": names, "slice_s": recognizer.timing().slice_s()})).await;
    let segments = listen(socket, &mut session, start.rate).await?;
    socket.send(&done(session.accepted_s(), segments)).await;
    Ok(())
}

async fn listen(socket: &mut Socket, session: &mut Session, rate_hz: u32) -> Result<Vec<Segment>, ApiError> {
    let mut whole = Whole::default();
    let mut segments = Vec::new();
    loop {
        let (update, is_end) = match socket.receive().await? {
            Incoming::Binary(bytes) => (session.accept(from_f32(&whole.join(&bytes, 4)), rate_hz).await?, false),
            Incoming::Text(text) if text.contains("\"end\"") => (session.finish().await?, true),
            Incoming::Text(_) => return Err(ApiError::bad_message("expected samples or `{\"end\": true}`")),
            Incoming::Stopping | Incoming::Closed => (session.finish().await?, true),
        };
        let Update { finals, partial, slices } = update;
        for segment in finals {
            socket.send(&json!({"type": "final", "text": segment.text})).await;
            segments.push(segment);
        }
        if let Some(partial) = partial {
            socket.send(&json!({"type": "partial", "text": partial.text})).await;
        }
        if let Some(slices) = slices.filter(|slices| slices.n_slices() > 0) {
            socket.send(&picture(&slices)).await;
        }
        if is_end {
            return Ok(segments);
        }
    }
}

/// How dark a coupling is that is as large as all others; twice that is as dark as it gets. Most lie between.
const EQUAL_SHARE: f32 = 0.2;

/// Slices in 256 steps of darkness: more cannot be seen.
///
/// Small probabilities are shown darker than they are, and couplings compared with equal shares, because routing moves
/// them by tenths, not by factors.
fn picture(slices: &Slices) -> Value {
    let n_classes = slices.n_classes;
    let steps = |values: &[f32], shade: &dyn Fn(f32) -> f32| -> Vec<Vec<u8>> {
        let step = |value: &f32| (shade(*value).clamp(0.0, 1.0) * 255.0).round() as u8;
        values.chunks_exact(n_classes).map(|slice| slice.iter().map(step).collect()).collect()
    };
    let of_share = |share: f32| EQUAL_SHARE + (share * n_classes as f32 - 1.0) * (1.0 - EQUAL_SHARE);
    let (posterior, coupling) = (steps(&slices.posteriors, &f32::sqrt), steps(&slices.couplings, &of_share));
    json!({"type": "slices", "posterior": posterior, "coupling": coupling})
}

fn done(duration_s: f64, segments: Vec<Segment>) -> Value {
    let transcript = Transcript { id: "recording".to_owned(), duration_s, segments, ..Transcript::default() };
    let file = |format: &Format| (format.extension().to_owned(), Value::from(transcript.format(*format)));
    let formats: serde_json::Map<String, Value> = FORMATS.iter().map(file).collect();
    json!({"type": "done", "duration_s": duration_s, "text": transcript.text(), "formats": formats})
}
