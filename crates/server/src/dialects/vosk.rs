//! Vosk's WebSocket protocol: a JSON configuration, 16-bit samples, one reply per message.

use std::net::IpAddr;

use axum::extract::{Request, State, WebSocketUpgrade};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use srf::Segment;

use super::{Incoming, Socket, Whole, from_s16, items, joined, rounded};
use crate::engine::Session;
use crate::http::{ApiError, App, client_address};
use crate::options::SessionOptions;

/// What Vosk's server assumes where a client names no rate.
const DEFAULT_RATE_HZ: u32 = 8000;

#[derive(Debug, Default, Deserialize)]
struct Control {
    config: Option<Config>,
    eof: Option<Value>,
    reset: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
struct Config {
    sample_rate: Option<f64>,
    #[serde(default)]
    phrase_list: Vec<String>,
    #[serde(default = "yes")]
    words: bool,
    #[serde(default)]
    max_alternatives: usize,
    model: Option<String>,
    #[serde(default)]
    hotwords: Vec<String>,
    endpoint_silence: Option<f64>,
}

fn yes() -> bool {
    true
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sample_rate: None,
            phrase_list: Vec::new(),
            words: true,
            max_alternatives: 0,
            model: None,
            hotwords: Vec::new(),
            endpoint_silence: None,
        }
    }
}

impl Config {
    fn rate_hz(&self) -> Result<u32, ApiError> {
        match self.sample_rate {
            None => Ok(DEFAULT_RATE_HZ),
            Some(rate) if (1000.0..=384_000.0).contains(&rate) => Ok(rate as u32),
            Some(rate) => Err(ApiError::bad_field("sample_rate", &rate.to_string(), "1000 to 384000")),
        }
    }

    fn options(&self) -> Result<SessionOptions, ApiError> {
        let mut options = SessionOptions {
            model: self.model.clone(),
            n_best: self.max_alternatives.clamp(1, 100),
            hotwords: self.hotwords.clone(),
            // Vosk's marker for words outside the list has no counterpart here.
            phrases: self.phrase_list.iter().filter(|phrase| *phrase != "[unk]").cloned().collect(),
            partials: true,
            ..SessionOptions::default()
        };
        if let Some(silence) = self.endpoint_silence {
            let wrong = |()| ApiError::bad_field("endpoint_silence", &silence.to_string(), "seconds from 0.1 to 60");
            options.set_trailing_silence(silence).map_err(wrong)?;
        }
        Ok(options)
    }
}

pub(crate) async fn socket(State(app): State<App>, upgrade: WebSocketUpgrade, request: Request) -> Response {
    let client = client_address(request.extensions());
    Socket::upgrade(app.clone(), upgrade, move |socket| serve(app, client, socket, None))
}

/// Serves one client; `first` is a message that was received already.
pub(crate) async fn serve(app: App, client: IpAddr, mut socket: Socket, first: Option<Incoming>) {
    let mut state = Conversation { config: Config::default(), session: None, whole: Whole::default() };
    let result = state.converse(&app, client, &mut socket, first).await;
    if let Err(error) = &result {
        socket.send(&error.body()).await;
    }
    socket.close(result.as_ref().err()).await;
}

struct Conversation {
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
                    let control: Control = serde_json::from_str(&text)
                        .map_err(|error| ApiError::bad_message(format!("not a message of Vosk's protocol: {error}")))?;
                    if control.eof.is_some() {
                        let reply = self.flush().await?;
                        socket.send(&reply).await;
                        return Ok(());
                    }
                    if let Some(config) = control.config {
                        // Checked now, so that a mistake is reported before any audio.
                        config.rate_hz()?;
                        config.options()?;
                        self.config = config;
                        self.session = None;
                    }
                    if control.reset.is_some() { Some(self.flush().await?) } else { None }
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
            self.session = Some(app.engine.session(client, self.config.options()?).await?);
        }
        let session = self.session.as_mut().ok_or_else(ApiError::internal)?;
        let samples = from_s16(&self.whole.join(bytes, 2));
        let update = session.accept(samples, self.config.rate_hz()?).await?;
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
        if self.config.max_alternatives > 0 {
            let confidence = finals.iter().filter_map(|segment| segment.confidence).fold(1.0, f32::min);
            let mut all = vec![json!({"text": text, "confidence": confidence})];
            if self.config.words {
                all[0]["result"] = words.into();
            }
            if let [only] = finals {
                let other = |a: &srf::Alternative| json!({"text": a.text, "confidence": a.confidence});
                all.extend(only.alternatives.iter().map(other));
            }
            return json!({"alternatives": all});
        }
        let mut result = json!({"text": text});
        if self.config.words && !words.is_empty() {
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
