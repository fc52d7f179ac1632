//! OpenAI's realtime transcription: events as JSON, samples as base64.

use axum::extract::{Request, State};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use srf::Segment;
use std::net::IpAddr;

use super::{Incoming, Socket, Upgrade, Whole, from_s16};
use crate::engine::Session;
use crate::http::{ApiError, App, client_address};
use crate::options::{self, SessionOptions};

/// The rate of `pcm16`, unless the session names another.
const DEFAULT_RATE_HZ: u32 = 24_000;

pub(crate) async fn socket(State(app): State<App>, upgrade: Upgrade, request: Request) -> Result<Response, ApiError> {
    let client = client_address(request.extensions());
    let mut options = SessionOptions { partials: true, ..SessionOptions::default() };
    let mut fields = options::query(request.uri())?;
    // Clients name a hosted model for the conversation here; the one that transcribes is in the session.
    if fields.get("intent").is_some_and(|intent| intent == "transcription") {
        fields.remove("model");
    }
    options.set_common(&fields)?;
    Ok(Socket::upgrade(app.clone(), upgrade, move |socket| serve(app, client, socket, options)))
}

async fn serve(app: App, client: IpAddr, mut socket: Socket, options: SessionOptions) {
    let mut conversation = Conversation {
        session: None,
        settings: Settings { options, rate_hz: DEFAULT_RATE_HZ },
        whole: Whole::default(),
        partial: String::new(),
        n_items: 0,
        n_events: 0,
    };
    let result = conversation.converse(&app, client, &mut socket).await;
    if let Err(error) = &result {
        socket.send(&json!({"type": "error", "error": error.body()["error"]})).await;
    }
    drop(conversation);
    socket.close(result.as_ref().err()).await;
}

/// What a client sends.
pub(crate) enum Event {
    Update(Value),
    Append(Vec<u8>),
    Commit,
    Clear,
}

impl Event {
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let event: Value =
            serde_json::from_str(text).map_err(|error| ApiError::bad_message(format!("not JSON: {error}")))?;
        match event["type"].as_str().unwrap_or_default() {
            "session.update" | "transcription_session.update" => Ok(Self::Update(event)),
            "input_audio_buffer.append" => {
                let audio = event["audio"].as_str().ok_or_else(|| ApiError::bad_message("`audio` is missing"))?;
                let decoded = BASE64_STANDARD.decode(audio);
                decoded.map(Self::Append).map_err(|e| ApiError::bad_message(format!("`audio` is not base64: {e}")))
            }
            "input_audio_buffer.commit" => Ok(Self::Commit),
            "input_audio_buffer.clear" => Ok(Self::Clear),
            other => {
                let other: String = other.chars().take(60).collect();
                Err(ApiError::bad_message(format!("an event of type `{other}`, which is not served")))
            }
        }
    }
}

/// What session updates change.
pub(crate) struct Settings {
    pub(crate) options: SessionOptions,
    pub(crate) rate_hz: u32,
}

impl Settings {
    /// Takes what a session update says, in the present form and the one before it.
    pub(crate) fn update(&mut self, event: &Value) -> Result<(), ApiError> {
        let session = &event["session"];
        let input = &session["audio"]["input"];
        let first = |values: [&Value; 3]| values.into_iter().find(|value| !value.is_null()).cloned();
        let transcription =
            first([&input["transcription"]["model"], &session["input_audio_transcription"]["model"], &event["model"]]);
        if let Some(model) = transcription {
            self.options.model = model.as_str().map(str::to_owned);
        }
        if let Some(rate) = first([&input["format"]["rate"], &Value::Null, &Value::Null]) {
            let rate_hz = rate.as_u64().filter(|rate| (1000..=384_000).contains(rate));
            let wrong = || ApiError::bad_field("session.audio.input.format.rate", &rate.to_string(), "1000 to 384000");
            self.rate_hz = rate_hz.ok_or_else(wrong)? as u32;
        }
        let turn = first([&input["turn_detection"], &session["turn_detection"], &Value::Null]);
        if let Some(silence_ms) = turn.and_then(|turn| turn["silence_duration_ms"].as_f64()) {
            let _ = self.options.set_trailing_silence((silence_ms / 1000.0).clamp(0.1, 60.0));
        }
        Ok(())
    }
}

struct Conversation {
    session: Option<Session>,
    settings: Settings,
    whole: Whole,
    /// What deltas of the current utterance have said so far.
    partial: String,
    n_items: usize,
    n_events: usize,
}

impl Conversation {
    async fn converse(&mut self, app: &App, client: IpAddr, socket: &mut Socket) -> Result<(), ApiError> {
        self.emit(socket, json!({"type": "session.created", "session": self.described()})).await;
        loop {
            let text = match socket.receive().await? {
                Incoming::Text(text) => text,
                Incoming::Binary(_) => return Err(ApiError::bad_message("a binary message, expected events as JSON")),
                Incoming::Closed => return Ok(()),
                Incoming::Stopping => {
                    self.commit(socket).await?;
                    return Err(ApiError::stopping());
                }
            };
            match Event::parse(&text)? {
                Event::Update(event) => {
                    self.settings.update(&event)?;
                    self.session = None;
                    self.emit(socket, json!({"type": "session.updated", "session": self.described()})).await;
                }
                Event::Append(bytes) => self.append(app, client, socket, &bytes).await?,
                Event::Commit => self.commit(socket).await?,
                Event::Clear => {
                    if let Some(session) = &mut self.session {
                        session.reset().await?;
                    }
                    self.partial.clear();
                    self.emit(socket, json!({"type": "input_audio_buffer.cleared"})).await;
                }
            }
        }
    }

    fn described(&self) -> Value {
        json!({
            "id": "sess_srf", "object": "realtime.transcription_session", "type": "transcription",
            "audio": {"input": {
                "format": {"type": "audio/pcm", "rate": self.settings.rate_hz},
                "transcription": {"model": self.settings.options.model},
            }},
        })
    }

    async fn append(&mut self, app: &App, client: IpAddr, socket: &mut Socket, bytes: &[u8]) -> Result<(), ApiError> {
        if self.session.is_none() {
            self.session = Some(app.engine.session(client, self.settings.options.clone()).await?);
        }
        let session = self.session.as_mut().ok_or_else(ApiError::internal)?;
        let update = session.accept(from_s16(&self.whole.join(bytes, 2)), self.settings.rate_hz).await?;
        for segment in &update.finals {
            self.complete(socket, segment).await;
        }
        if let Some(partial) = update.partial {
            self.delta(socket, &partial).await;
        }
        Ok(())
    }

    /// Sends what a partial result adds. Deltas cannot take words back, so a revision waits for the final result.
    async fn delta(&mut self, socket: &mut Socket, partial: &Segment) {
        if let Some(added) = partial.text.strip_prefix(self.partial.as_str()).filter(|added| !added.is_empty()) {
            let event = json!({
                "type": "conversation.item.input_audio_transcription.delta", "item_id": self.item(),
                "content_index": 0, "delta": added,
            });
            self.partial = partial.text.clone();
            self.emit(socket, event).await;
        }
    }

    async fn complete(&mut self, socket: &mut Socket, segment: &Segment) {
        let event = json!({
            "type": "conversation.item.input_audio_transcription.completed", "item_id": self.item(),
            "content_index": 0, "transcript": segment.text,
            "usage": {"type": "duration", "seconds": (segment.end_s - segment.start_s).ceil()},
        });
        self.emit(socket, event).await;
        self.n_items += 1;
        self.partial.clear();
    }

    async fn commit(&mut self, socket: &mut Socket) -> Result<(), ApiError> {
        let finals = match &mut self.session {
            Some(session) => session.flush().await?,
            None => Vec::new(),
        };
        self.emit(socket, json!({"type": "input_audio_buffer.committed", "item_id": self.item()})).await;
        for segment in &finals {
            self.complete(socket, segment).await;
        }
        if finals.is_empty() {
            self.complete(socket, &Segment::default()).await;
        }
        Ok(())
    }

    fn item(&self) -> String {
        format!("item_{}", self.n_items)
    }

    async fn emit(&mut self, socket: &mut Socket, mut event: Value) {
        event["event_id"] = format!("event_{}", self.n_events).into();
        self.n_events += 1;
        socket.send(&event).await;
    }
}
