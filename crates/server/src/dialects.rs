//! The wire protocols, a file each; this file has what they share.

pub(crate) mod deepgram;
pub(crate) mod live;
pub(crate) mod openai;
pub(crate) mod realtime;
pub(crate) mod sherpa;
pub(crate) mod vosk;
pub(crate) mod whisper_cpp;
pub(crate) mod wyoming;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use axum::extract::{FromRequestParts, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::StreamExt as _;
use serde_json::Value;
use srf::Segment;
use srf_audio::{I16_SCALE, Recording, Selection};
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::engine::{Session, UPLOAD_UNIT, Update};
use crate::http::{ApiError, App, stopped};
use crate::listen::Connection;
use crate::options::Fields;

/// Audio of an upload that is decoded at once.
const DECODED_S: usize = 10;

/// Time for a client to take the last messages.
const FAREWELL: Duration = Duration::from_secs(2);

/// A word, or a label where the model writes no words.
pub(crate) struct Item<'a> {
    pub(crate) text: &'a str,
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    pub(crate) confidence: f32,
}

/// The words of a segment; its labels if the model has no words.
pub(crate) fn items(segment: &Segment) -> Vec<Item<'_>> {
    if segment.words.is_empty() {
        let item = |t: &'_ srf::TokenResult| (t.start_s, t.end_s, t.confidence.unwrap_or(1.0));
        segment.tokens.iter().map(|t| (t.text.as_str(), item(t))).map(Item::from).collect()
    } else {
        let item = |w: &'_ srf::Word| (w.start_s, w.end_s, w.confidence.unwrap_or(1.0));
        segment.words.iter().map(|w| (w.text.as_str(), item(w))).map(Item::from).collect()
    }
}

impl<'a> From<(&'a str, (f64, f64, f32))> for Item<'a> {
    fn from((text, (start_s, end_s, confidence)): (&'a str, (f64, f64, f32))) -> Self {
        Self { text, start_s, end_s, confidence }
    }
}

/// The texts of segments, joined as a transcript joins them.
pub(crate) fn joined<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> String {
    let texts = segments.into_iter().map(|segment| segment.text.as_str()).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join(" ")
}

/// Milliseconds are as exact as any client needs; more digits only make messages longer.
pub(crate) fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// What a client sent.
pub(crate) enum Incoming {
    Text(String),
    Binary(Bytes),
    /// The server shuts down: results so far are wanted, then the end.
    Stopping,
    Closed,
}

/// A request to become a WebSocket, and the connection that it came on.
pub(crate) struct Upgrade {
    inner: WebSocketUpgrade,
    connection: Option<Connection>,
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let connection = parts.extensions.get::<Connection>().cloned();
        let inner = WebSocketUpgrade::from_request_parts(parts, state).await;
        let inner = inner.map_err(|error| ApiError::bad_message(format!("expected a WebSocket: {error}")))?;
        Ok(Self { inner, connection })
    }
}

/// A WebSocket with the limits of the server.
pub(crate) struct Socket {
    inner: WebSocket,
    idle: Duration,
    message_bytes: usize,
    stopping: watch::Receiver<bool>,
    app: App,
    /// Held until the socket is closed: a server that stops waits for it.
    _connection: Option<Connection>,
}

impl Socket {
    /// Upgrades a request and hands the socket to `serve`.
    pub(crate) fn upgrade<F, R>(app: App, upgrade: Upgrade, serve: F) -> Response
    where
        F: FnOnce(Self) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let (idle, message_bytes) = (app.engine.limits.idle, app.engine.limits.message_bytes);
        let Upgrade { inner: upgrade, connection } = upgrade;
        upgrade
            .protocols(["realtime", "token"])
            .max_message_size(message_bytes)
            .max_frame_size(message_bytes)
            .on_upgrade(move |inner| {
                let stopping = app.stopping.clone();
                serve(Self { inner, idle, message_bytes, stopping, app, _connection: connection })
            })
    }

    /// The next message; a client that sends nothing for too long is an error.
    pub(crate) async fn receive(&mut self) -> Result<Incoming, ApiError> {
        self.receive_until(true).await
    }

    /// Like [`Self::receive`], but not interrupted when the server stops: for files that are half sent.
    pub(crate) async fn receive_rest(&mut self) -> Result<Incoming, ApiError> {
        self.receive_until(false).await
    }

    async fn receive_until(&mut self, may_stop: bool) -> Result<Incoming, ApiError> {
        loop {
            let message = tokio::select! {
                message = tokio::time::timeout(self.idle, self.inner.recv()) => message,
                () = stopped(&mut self.stopping), if may_stop => return Ok(Incoming::Stopping),
            };
            let message = message.map_err(|_| ApiError::timed_out("nothing was received", self.idle))?;
            match message {
                Some(Ok(Message::Text(text))) => return Ok(Incoming::Text(text.as_str().to_owned())),
                Some(Ok(Message::Binary(bytes))) => return Ok(Incoming::Binary(bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) | None => return Ok(Incoming::Closed),
                Some(Err(error)) => return Err(self.broken(&error.to_string())),
            }
        }
    }

    /// What the WebSocket layer says about a message. It has no type for its errors that could be asked for here.
    fn broken(&self, error: &str) -> ApiError {
        if error.contains("too long") || error.contains("too big") {
            return ApiError::too_large(self.message_bytes);
        }
        ApiError::bad_message(error)
    }

    /// Sends a JSON message; `false` if the client is gone.
    pub(crate) async fn send(&mut self, value: &Value) -> bool {
        self.send_text(value.to_string()).await
    }

    pub(crate) async fn send_text(&mut self, text: String) -> bool {
        // A client that does not read must not hold a place for ever.
        let sent = tokio::time::timeout(self.idle, self.inner.send(Message::Text(text.into()))).await;
        matches!(sent, Ok(Ok(())))
    }

    /// Closes the connection, with the reason if it is an error.
    pub(crate) async fn close(mut self, error: Option<&ApiError>) {
        if let Some(error) = error {
            self.app.engine.metrics.count_error(error.code);
        }
        let code = match error.map(|error| error.status.as_u16()) {
            None => 1000,
            Some(413) => 1009,
            Some(429 | 503) => 1013,
            Some(500) => 1011,
            Some(_) => 1008,
        };
        // The reason of a close frame has at most 123 bytes.
        let reason = error.map_or("", |error| error.message.as_str());
        let end = (0..=reason.len().min(120)).rev().find(|end| reason.is_char_boundary(*end)).unwrap_or(0);
        let frame = CloseFrame { code, reason: reason[..end].to_owned().into() };
        let farewell = async {
            let _ = self.inner.send(Message::Close(Some(frame))).await;
            // A connection that is closed with something unread is reset, and the client loses what was sent last.
            while let Some(Ok(_)) = self.inner.recv().await {}
        };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
    }
}

/// A socket at `/`: Vosk's clients begin with a JSON configuration, those of sherpa-onnx with samples.
pub(crate) fn by_first_message(
    app: App,
    client: IpAddr,
    fields: Fields,
    upgrade: Upgrade,
) -> Result<Response, ApiError> {
    let usual = vosk::usual(&fields)?;
    let asked = sherpa::Asked { client, fields };
    Ok(Socket::upgrade(app.clone(), upgrade, async move |mut socket| match socket.receive().await {
        Ok(Incoming::Text(text)) => vosk::serve(app, client, socket, usual, Some(Incoming::Text(text))).await,
        Ok(Incoming::Binary(bytes)) => match sherpa::guess(&bytes) {
            sherpa::Guess::Offline => sherpa::serve_offline(app, asked, socket, Some(bytes)).await,
            sherpa::Guess::Streaming => sherpa::serve_streaming(app, asked, socket, Some(bytes)).await,
            sherpa::Guess::Neither => vosk::serve(app, client, socket, usual, Some(Incoming::Binary(bytes))).await,
        },
        Ok(Incoming::Stopping | Incoming::Closed) => {}
        Err(error) => socket.close(Some(&error)).await,
    }))
}

/// Samples of 16 bits, little endian.
pub(crate) fn from_s16(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(2).map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])) / I16_SCALE).collect()
}

/// Samples of 32 bits, little endian.
pub(crate) fn from_f32(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
}

/// A raw stream may cut a sample in two: gives what is whole and keeps the rest for the next message.
#[derive(Default)]
pub(crate) struct Whole(Vec<u8>);

impl Whole {
    pub(crate) fn join(&mut self, bytes: &[u8], width: usize) -> Vec<u8> {
        let mut all = std::mem::take(&mut self.0);
        all.extend_from_slice(bytes);
        self.0 = all.split_off(all.len() - all.len() % width);
        all
    }
}

/// The body of a request, and its share of the memory for uploads.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

impl Body {
    /// Reads a body within the limits of size and time, and of what all uploads together may take.
    pub(crate) async fn read(app: &App, body: axum::body::Body) -> Result<Self, ApiError> {
        let limits = &app.engine.limits;
        let read = tokio::time::timeout(limits.body_timeout, Self::read_all(app, body)).await;
        read.map_err(|_| ApiError::timed_out("the body was not complete", limits.body_timeout))?
    }

    async fn read_all(app: &App, body: axum::body::Body) -> Result<Self, ApiError> {
        let limit = app.engine.limits.body_bytes;
        let mut stream = body.into_data_stream();
        let mut bytes = Vec::new();
        let mut share: Option<OwnedSemaphorePermit> = None;
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| ApiError::bad_message(format!("the body was cut off: {error}")))?;
            if bytes.len() + piece.len() > limit {
                return Err(ApiError::too_large(limit));
            }
            bytes.extend_from_slice(&piece);
            let taken = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let missing = bytes.len().div_ceil(UPLOAD_UNIT) - taken;
            let more = Arc::clone(&app.engine.uploads).try_acquire_many_owned(missing as u32);
            let more = more.map_err(|_| ApiError::overloaded())?;
            match &mut share {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
        }
        Ok(Self { bytes: bytes.into(), _share: share })
    }
}

/// Recognises an uploaded recording of any known format; `each` sees the utterances as they end.
pub(crate) async fn recognize_upload(
    app: &App,
    session: &mut Session,
    bytes: Bytes,
    mut each: impl FnMut(&Segment),
) -> Result<Vec<Segment>, ApiError> {
    let opened = app.engine.run(move || {
        let recording = Recording::from_bytes("upload", bytes.to_vec())?;
        recording.blocks(Selection::default())
    });
    let mut blocks = opened.await?.map_err(|error| ApiError::bad_audio(&error))?;
    let mut segments = Vec::new();
    loop {
        let decoded = app.engine.run(move || {
            let rate_hz = blocks.rate_hz();
            let mut samples = Vec::new();
            while samples.len() < DECODED_S * rate_hz as usize {
                match blocks.next_block()? {
                    Some(block) => samples.extend_from_slice(block),
                    None => break,
                }
            }
            Ok((blocks, samples, rate_hz))
        });
        let (rest, samples, rate_hz) =
            decoded.await?.map_err(|error: srf_audio::ReadAudioError| ApiError::bad_audio(&error))?;
        blocks = rest;
        let is_end = samples.is_empty();
        let finals = if is_end {
            session.flush().await?
        } else {
            let Update { finals, .. } = session.accept(samples, rate_hz).await?;
            finals
        };
        for segment in &finals {
            each(segment);
        }
        segments.extend(finals);
        if is_end {
            return Ok(segments);
        }
    }
}
