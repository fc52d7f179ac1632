//! Vosk's WebSocket protocol: a JSON configuration, 16-bit samples, one reply per message.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use srf::Segment;

use super::{Incoming, Socket, Upgrade, Whole, from_s16, items, joined, rounded};
use crate::engine::Session;
use crate::http::{ApiError, App, client_address};
use crate::options::{self, Fields, SessionOptions};

/// What Vosk's server assumes where a client names no rate.
const DEFAULT_RATE_HZ: u32 = 8000;

/// A text message.
#[derive(Debug, Default)]
pub(crate) struct Control {
    config: Option<Config>,
    is_end: bool,
    is_reset: bool,
}

#[derive(Clone, Debug)]
struct Config {
    rate_hz: u32,
    has_words: bool,
    /// Whether results are lists of alternatives.
    has_alternatives: bool,
    options: SessionOptions,
}

/// The fields that are Vosk's own; all others are those of every dialect.
#[derive(Deserialize)]
struct Named {
    sample_rate: Option<f64>,
    #[serde(default)]
    phrase_list: Vec<String>,
    words: Option<bool>,
    #[serde(default)]
    max_alternatives: usize,
}

impl Control {
    /// `usual` are the options that the address of the socket gave.
    pub(crate) fn parse(text: &str, usual: &SessionOptions) -> Result<Self, ApiError> {
        let wrong = |error| ApiError::bad_message(format!("not a message of Vosk's protocol: {error}"));
        let value: Value = serde_json::from_str(text).map_err(wrong)?;
        if !value.is_object() {
            return Err(ApiError::bad_message("not a message of Vosk's protocol: expected a JSON object"));
        }
        let is_there = |name: &str| value.get(name).is_some_and(|value| !value.is_null());
        let config = if is_there("config") {
            let named = Named::deserialize(&value["config"]).map_err(wrong)?;
            let mut options = usual.clone();
            options.set_common(&options::object(&value["config"]))?;
            Some(Config::new(&named, options)?)
        } else {
            None
        };
        Ok(Self { config, is_end: is_there("eof"), is_reset: is_there("reset") })
    }
}

impl Config {
    fn new(named: &Named, mut options: SessionOptions) -> Result<Self, ApiError> {
        let rate_hz = match named.sample_rate {
            None => DEFAULT_RATE_HZ,
            Some(rate) if (1000.0..=384_000.0).contains(&rate) => rate as u32,
            Some(rate) => return Err(ApiError::bad_field("sample_rate", &rate.to_string(), "1000 to 384000")),
        };
        if named.max_alternatives > 0 {
            options.n_best = named.max_alternatives.min(100);
        }
        // Vosk's marker for words outside the list has no counterpart here.
        options.phrases.extend(named.phrase_list.iter().filter(|phrase| *phrase != "[unk]").cloned());
        let has_alternatives = named.max_alternatives > 0;
        Ok(Self { rate_hz, has_words: named.words.unwrap_or(true), has_alternatives, options })
    }
}

/// The options of a socket, before any configuration.
pub(crate) fn usual(fields: &Fields) -> Result<SessionOptions, ApiError> {
    let mut options = SessionOptions { partials: true, ..SessionOptions::default() };
    options.set_common(fields)?;
    Ok(options)
}

pub(crate) async fn socket(State(app): State<App>, upgrade: Upgrade, request: Request) -> Result<Response, ApiError> {
    let client = client_address(request.extensions());
    let usual = usual(&options::query(request.uri())?)?;
    Ok(Socket::upgrade(app.clone(), upgrade, move |socket| serve(app, client, socket, usual, None)))
}

/// Serves one client; `first` is a message that was received already.
pub(crate) async fn serve(
    app: App,
    client: IpAddr,
    mut socket: Socket,
    usual: SessionOptions,
    first: Option<Incoming>,
) {
    let config = Config { rate_hz: DEFAULT_RATE_HZ, has_words: true, has_alternatives: false, options: usual.clone() };
    let mut state = Conversation { usual, config, session: None, whole: Whole::default() };
    let result = state.converse(&app, client, &mut socket, first).await;
    if let Err(error) = &result {
        socket.send(&error.body()).await;
    }
    drop(state);
    socket.close(result.as_ref().err()).await;
}

struct Conversation {
    usual: SessionOptions,
    config: Config,
    session: Option<Session>,
    whole: Whole,
}

impl Conversation {
    async fn converse(
        &mut self,
        app: &App,
        client: IpAddr,
        socket: &mut Socket,
        mut first: Option<Incoming>,
    ) -> Result<(), ApiError> {
        loop {
            let message = match first.take() {
                Some(message) => message,
                None => socket.receive().await?,
            };
            let reply = match message {
                Incoming::Binary(bytes) => Some(self.accept(app, client, &bytes).await?),
                Incoming::Closed => return Ok(()),
                Incoming::Stopping => {
                    let reply = self.flush().await?;
                    socket.send(&reply).await;
                    return Err(ApiError::stopping());
                }
                Incoming::Text(text) => {
                    let control = Control::parse(&text, &self.usual)?;
                    if control.is_end {
                        let reply = self.flush().await?;
                        socket.send(&reply).await;
                        return Ok(());
                    }
                    if let Some(config) = control.config {
                        self.config = config;
                        self.session = None;
                    }
                    if control.is_reset { Some(self.flush().await?) } else { None }
                }
            };
            if let Some(reply) = reply
                && !socket.send(&reply).await
            {
                return Ok(());
            }
        }
    }

    async fn accept(&mut self, app: &App, client: IpAddr, bytes: &[u8]) -> Result<Value, ApiError> {
        if self.session.is_none() {
            self.session = Some(app.engine.session(client, self.config.options.clone()).await?);
        }
        let session = self.session.as_mut().ok_or_else(ApiError::internal)?;
        let samples = from_s16(&self.whole.join(bytes, 2));
        let update = session.accept(samples, self.config.rate_hz).await?;
        Ok(if update.finals.is_empty() {
            json!({"partial": update.partial.map_or_else(String::new, |partial| partial.text)})
        } else {
            self.result(&update.finals)
        })
    }

    async fn flush(&mut self) -> Result<Value, ApiError> {
        let finals = match &mut self.session {
            Some(session) => session.flush().await?,
            None => Vec::new(),
        };
        Ok(self.result(&finals))
    }

    /// One message for the utterances that ended, usually one.
    fn result(&self, finals: &[Segment]) -> Value {
        let words: Vec<Value> = finals.iter().flat_map(items).map(|item| word(&item)).collect();
        let text = joined(finals);
        if self.config.has_alternatives {
            let confidence = finals.iter().filter_map(|segment| segment.confidence).fold(1.0, f32::min);
            let mut all = vec![json!({"text": text, "confidence": confidence})];
            if self.config.has_words {
                all[0]["result"] = words.into();
            }
            if let [only] = finals {
                let other = |a: &srf::Alternative| json!({"text": a.text, "confidence": a.confidence});
                all.extend(only.alternatives.iter().map(other));
            }
            return json!({"alternatives": all});
        }
        let mut result = json!({"text": text});
        if self.config.has_words && !words.is_empty() {
            result["result"] = words.into();
        }
        result
    }
}

fn word(item: &super::Item<'_>) -> Value {
    json!({
        "conf": item.confidence, "start": rounded(item.start_s), "end": rounded(item.end_s), "word": item.text,
    })
}
