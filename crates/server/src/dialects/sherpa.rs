//! The WebSocket protocols of sherpa-onnx: streaming (32-bit samples, `Done`) and offline (a header, then samples).

use std::net::IpAddr;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};
use srf::Segment;

use super::{Incoming, Socket, Upgrade, Whole, from_f32, items, rounded};
use crate::engine::Session;
use crate::http::{ApiError, App, client_address};
use crate::options::{self, Fields, SessionOptions};

/// The streaming protocol has no field for it; its clients resample to this.
const STREAMING_RATE_HZ: u32 = 16_000;

/// Bytes of the offline header: rate and number of bytes.
const HEADER: usize = 8;

/// Which protocol a first binary message belongs to.
pub(crate) enum Guess {
    Streaming,
    Offline,
    /// Not 32-bit samples in -1..1.
    Neither,
}

/// Tells the dialects apart by what the first bytes can mean.
pub(crate) fn guess(bytes: &[u8]) -> Guess {
    if let Some((rate_hz, n_bytes)) = header(bytes)
        && (4000..=384_000).contains(&rate_hz)
        && n_bytes.is_multiple_of(4)
        && n_bytes >= bytes.len().saturating_sub(HEADER)
    {
        return Guess::Offline;
    }
    let samples = from_f32(&bytes[..bytes.len().min(4000)]);
    let is_sample = |value: &f32| *value == 0.0 || (1e-9..=1.5).contains(&value.abs());
    if bytes.len().is_multiple_of(4) && samples.iter().all(is_sample) { Guess::Streaming } else { Guess::Neither }
}

fn header(bytes: &[u8]) -> Option<(u32, usize)> {
    let field = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(i32::from_le_bytes);
    Some((u32::try_from(field(0)?).ok()?, usize::try_from(field(4)?).ok()?))
}

/// Who asks, and the options in the address of the socket.
pub(crate) struct Asked {
    pub(crate) client: IpAddr,
    pub(crate) fields: Fields,
}

impl Asked {
    fn new(request: &Request) -> Result<Self, ApiError> {
        Ok(Self { client: client_address(request.extensions()), fields: options::query(request.uri())? })
    }

    fn options(&self, partials: bool) -> Result<SessionOptions, ApiError> {
        let mut options = SessionOptions { partials, ..SessionOptions::default() };
        options.set_common(&self.fields)?;
        Ok(options)
    }
}

pub(crate) async fn streaming(
    State(app): State<App>,
    upgrade: Upgrade,
    request: Request,
) -> Result<Response, ApiError> {
    let asked = Asked::new(&request)?;
    asked.options(true)?;
    Ok(Socket::upgrade(app.clone(), upgrade, move |socket| serve_streaming(app, asked, socket, None)))
}

pub(crate) async fn offline(State(app): State<App>, upgrade: Upgrade, request: Request) -> Result<Response, ApiError> {
    let asked = Asked::new(&request)?;
    asked.options(false)?;
    Ok(Socket::upgrade(app.clone(), upgrade, move |socket| serve_offline(app, asked, socket, None)))
}

pub(crate) async fn serve_streaming(app: App, asked: Asked, mut socket: Socket, first: Option<Bytes>) {
    let result = stream(&app, &asked, &mut socket, first).await;
    if let Err(error) = &result {
        socket.send(&error.body()).await;
    }
    socket.close(result.as_ref().err()).await;
}

async fn stream(app: &App, asked: &Asked, socket: &mut Socket, mut first: Option<Bytes>) -> Result<(), ApiError> {
    let mut session = app.engine.session(asked.client, asked.options(true)?).await?;
    let mut whole = Whole::default();
    let mut n_segments = 0;
    loop {
        let message = match first.take() {
            Some(bytes) => Incoming::Binary(bytes),
            None => socket.receive().await?,
        };
        match message {
            Incoming::Closed => return Ok(()),
            Incoming::Binary(bytes) => {
                let update = session.accept(from_f32(&whole.join(&bytes, 4)), STREAMING_RATE_HZ).await?;
                for segment in &update.finals {
                    socket.send(&result(segment, n_segments, true, false)).await;
                    n_segments += 1;
                }
                if let Some(partial) = update.partial
                    && !socket.send(&result(&partial, n_segments, false, false)).await
                {
                    return Ok(());
                }
            }
            Incoming::Text(text) if text.trim() != "Done" => {
                return Err(ApiError::bad_message("a text message that is not `Done`, expected samples or `Done`"));
            }
            Incoming::Text(_) | Incoming::Stopping => {
                finish(&mut session, socket, n_segments).await?;
                return Ok(());
            }
        }
    }
}

async fn finish(session: &mut Session, socket: &mut Socket, mut n_segments: usize) -> Result<(), ApiError> {
    let finals = session.flush().await?;
    for (index, segment) in finals.iter().enumerate() {
        socket.send(&result(segment, n_segments, true, index + 1 == finals.len())).await;
        n_segments += 1;
    }
    if finals.is_empty() {
        socket.send(&result(&Segment::default(), n_segments, true, true)).await;
    }
    socket.send_text("Done!".to_owned()).await;
    Ok(())
}

fn result(segment: &Segment, number: usize, is_final: bool, is_eof: bool) -> Value {
    let tokens: Vec<&str> = segment.tokens.iter().map(|token| token.text.as_str()).collect();
    let times: Vec<f64> = segment.tokens.iter().map(|token| rounded(token.start_s - segment.start_s)).collect();
    let confidences: Vec<f32> = segment.tokens.iter().map(|t| t.confidence.unwrap_or(1.0).max(1e-30).ln()).collect();
    let words: Vec<&str> = segment.words.iter().map(|word| word.text.as_str()).collect();
    json!({
        "text": segment.text, "tokens": tokens, "timestamps": times, "ys_probs": confidences, "lm_probs": [],
        "context_scores": [], "segment": number, "words": words, "start_time": rounded(segment.start_s),
        "is_final": is_final, "is_eof": is_eof,
    })
}

pub(crate) async fn serve_offline(app: App, asked: Asked, mut socket: Socket, first: Option<Bytes>) {
    let result = files(&app, &asked, &mut socket, first).await;
    if let Err(error) = &result {
        socket.send(&error.body()).await;
    }
    socket.close(result.as_ref().err()).await;
}

/// A file of the offline protocol that is being received.
struct Upload {
    session: Session,
    rate_hz: u32,
    /// Bytes still to come.
    missing: usize,
    whole: Whole,
    segments: Vec<Segment>,
}

async fn files(app: &App, asked: &Asked, socket: &mut Socket, mut first: Option<Bytes>) -> Result<(), ApiError> {
    let mut upload: Option<Upload> = None;
    let mut head = Vec::new();
    loop {
        let message = match first.take() {
            Some(bytes) => Incoming::Binary(bytes),
            None if upload.is_some() => socket.receive_rest().await?,
            None => socket.receive().await?,
        };
        let mut bytes = match message {
            Incoming::Binary(bytes) => bytes.to_vec(),
            Incoming::Text(text) if text.trim() == "Done" => return Ok(()),
            Incoming::Text(_) => {
                return Err(ApiError::bad_message("a text message that is not `Done`, expected a file or `Done`"));
            }
            Incoming::Stopping => return Err(ApiError::stopping()),
            Incoming::Closed => return Ok(()),
        };
        if upload.is_none() {
            head.append(&mut bytes);
            if head.len() < HEADER {
                continue;
            }
            bytes = head.split_off(HEADER);
            upload = Some(Upload::open(app, asked, &head).await?);
            head.clear();
        }
        if let Some(current) = &mut upload
            && current.accept(&bytes).await?
        {
            let reply = offline_result(&current.segments);
            upload = None;
            socket.send(&reply).await;
        }
    }
}

impl Upload {
    async fn open(app: &App, asked: &Asked, head: &[u8]) -> Result<Self, ApiError> {
        let (rate_hz, missing) =
            header(head).ok_or_else(|| ApiError::bad_message("a negative rate or size in the header"))?;
        if !(1000..=384_000).contains(&rate_hz) {
            return Err(ApiError::bad_field("the rate in the header", &rate_hz.to_string(), "1000 to 384000"));
        }
        if missing > app.engine.limits.body_bytes {
            return Err(ApiError::too_large(app.engine.limits.body_bytes));
        }
        let session = app.engine.session(asked.client, asked.options(false)?).await?;
        Ok(Self { session, rate_hz, missing, whole: Whole::default(), segments: Vec::new() })
    }

    /// Takes bytes; whether the file is complete.
    async fn accept(&mut self, bytes: &[u8]) -> Result<bool, ApiError> {
        if bytes.len() > self.missing {
            let extra = bytes.len() - self.missing;
            return Err(ApiError::bad_message(format!("{extra} bytes more than the header announced")));
        }
        self.missing -= bytes.len();
        let update = self.session.accept(from_f32(&self.whole.join(bytes, 4)), self.rate_hz).await?;
        self.segments.extend(update.finals);
        if self.missing > 0 {
            return Ok(false);
        }
        self.segments.extend(self.session.flush().await?);
        Ok(true)
    }
}

fn offline_result(segments: &[Segment]) -> Value {
    let items: Vec<_> = segments.iter().flat_map(items).collect();
    let times: Vec<f64> = items.iter().map(|item| rounded(item.start_s)).collect();
    let durations: Vec<f64> = items.iter().map(|item| rounded(item.end_s - item.start_s)).collect();
    let tokens: Vec<&str> = items.iter().map(|item| item.text).collect();
    json!({
        "lang": "", "emotion": "", "event": "", "text": super::joined(segments), "timestamps": times,
        "durations": durations, "tokens": tokens, "words": [],
    })
}
