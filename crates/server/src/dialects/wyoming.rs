//! The Wyoming protocol of Home Assistant: JSON lines with data and payload over TCP.

use std::net::{IpAddr, SocketAddr};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::{Whole, from_s16, joined};
use crate::engine::Session;
use crate::http::{ApiError, App, stopped};
use crate::options::{self, SessionOptions};

/// Bytes of a header line.
const MAX_HEADER: u64 = 64 << 10;

#[derive(Debug, Deserialize)]
struct Header {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    data: Value,
    #[serde(default)]
    data_length: usize,
    #[serde(default)]
    payload_length: usize,
}

/// An event as it was received.
pub(crate) struct Event {
    kind: String,
    data: Value,
    payload: Vec<u8>,
}

impl Event {
    /// The options that `transcribe` asks for.
    pub(crate) fn options(&self) -> Result<SessionOptions, ApiError> {
        let mut fields = options::object(&self.data);
        if let Some(name) = fields.remove("name") {
            fields.insert("model".to_owned(), name);
        }
        let mut options = SessionOptions::default();
        options.set_common(&fields)?;
        Ok(options)
    }

    /// The rate of a piece of audio, if its format is served.
    pub(crate) fn rate_hz(&self) -> Result<u32, ApiError> {
        let number = |name: &str, usual: u64| self.data[name].as_u64().unwrap_or(usual);
        let (rate_hz, width, channels) = (number("rate", 16_000), number("width", 2), number("channels", 1));
        if width != 2 || channels != 1 || !(1000..=384_000).contains(&rate_hz) {
            let found = format!("{rate_hz} Hz, {width} bytes, {channels} channels");
            return Err(ApiError::bad_field("audio-chunk", &found, "1000 to 384000 Hz, 2 bytes, 1 channel"));
        }
        Ok(rate_hz as u32)
    }
}

type Reader = BufReader<tokio::net::tcp::OwnedReadHalf>;
type Writer = tokio::net::tcp::OwnedWriteHalf;

/// Serves one connection.
pub(crate) async fn serve(app: App, socket: TcpStream, client: SocketAddr) {
    let _ = socket.set_nodelay(true);
    let (reader, mut writer) = socket.into_split();
    let mut reader = BufReader::new(reader);
    let mut state = Conversation {
        app,
        client: client.ip(),
        session: None,
        options: SessionOptions::default(),
        texts: Vec::new(),
        whole: Whole::default(),
    };
    if let Err(error) = state.converse(&mut reader, &mut writer).await {
        state.app.engine.metrics.count_error(error.code);
        let data = json!({"text": error.message, "code": error.code});
        let _ = write_event(&mut writer, "error", data).await;
    }
}

struct Conversation {
    app: App,
    client: IpAddr,
    session: Option<Session>,
    options: SessionOptions,
    texts: Vec<String>,
    whole: Whole,
}

impl Conversation {
    async fn converse(&mut self, reader: &mut Reader, writer: &mut Writer) -> Result<(), ApiError> {
        let limits = self.app.engine.limits.clone();
        let mut stopping = self.app.stopping.clone();
        loop {
            let event = tokio::select! {
                event = tokio::time::timeout(limits.idle, read_event(reader, limits.message_bytes)) => event,
                // What is being said may be said to its end, within the time for stopping.
                () = stopped(&mut stopping), if self.session.is_none() => return Err(ApiError::stopping()),
            };
            let event = event.map_err(|_| ApiError::timed_out("nothing was received", limits.idle))??;
            let Some(event) = event else { return Ok(()) };
            let reply = match event.kind.as_str() {
                "describe" => Some(("info", self.info())),
                "transcribe" => {
                    self.options = event.options()?;
                    None
                }
                "audio-start" => {
                    self.session = None;
                    self.texts.clear();
                    None
                }
                "audio-chunk" => {
                    self.accept(&event).await?;
                    None
                }
                "audio-stop" => Some(("transcript", json!({"text": self.finish().await?}))),
                "ping" => Some(("pong", event.data.clone())),
                // Events of other services of the protocol are not for a recogniser.
                _ => None,
            };
            if let Some((kind, data)) = reply {
                write_event(writer, kind, data).await.map_err(|error| ApiError::bad_message(error.to_string()))?;
            }
        }
    }

    async fn accept(&mut self, event: &Event) -> Result<(), ApiError> {
        let rate_hz = event.rate_hz()?;
        if self.session.is_none() {
            self.session = Some(self.app.engine.session(self.client, self.options.clone()).await?);
        }
        let session = self.session.as_mut().ok_or_else(ApiError::internal)?;
        let update = session.accept(from_s16(&self.whole.join(&event.payload, 2)), rate_hz).await?;
        self.texts.extend(update.finals.into_iter().map(|segment| segment.text));
        Ok(())
    }

    async fn finish(&mut self) -> Result<String, ApiError> {
        if let Some(mut session) = self.session.take() {
            self.texts.push(joined(&session.flush().await?));
        }
        let texts = std::mem::take(&mut self.texts);
        Ok(texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "))
    }

    fn info(&self) -> Value {
        let attribution = json!({"name": "srf", "url": ""});
        let model = |name: String| {
            json!({
                "name": name, "attribution": attribution, "installed": true, "description": "a capsule network",
                "version": env!("CARGO_PKG_VERSION"), "languages": ["en"],
            })
        };
        let models: Vec<Value> = self.app.engine.model_names().into_iter().map(model).collect();
        json!({
            "asr": [{
                "name": "srf", "attribution": attribution, "installed": true,
                "description": "speech recognition by sequential routing of capsules",
                "version": env!("CARGO_PKG_VERSION"), "models": models, "supports_transcript_streaming": false,
            }],
            "tts": [], "handle": [], "intent": [], "wake": [], "mic": [], "snd": [],
        })
    }
}

/// The next event; `None` at the end of the connection.
pub(crate) async fn read_event<R>(reader: &mut R, limit: usize) -> Result<Option<Event>, ApiError>
where
    R: AsyncBufRead + Unpin,
{
    let wrong = |problem: String| ApiError::bad_message(format!("not an event of the Wyoming protocol: {problem}"));
    let mut line = Vec::new();
    let mut head = (&mut *reader).take(MAX_HEADER);
    head.read_until(b'\n', &mut line).await.map_err(|error| wrong(error.to_string()))?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(wrong(format!("a header of more than {MAX_HEADER} bytes, or cut off")));
    }
    let Header { kind, mut data, data_length, payload_length } =
        serde_json::from_slice(&line).map_err(|error| wrong(error.to_string()))?;
    if data_length.saturating_add(payload_length) > limit {
        return Err(ApiError::too_large(limit));
    }
    let mut more = vec![0; data_length];
    reader.read_exact(&mut more).await.map_err(|error| wrong(error.to_string()))?;
    if data_length > 0 {
        let extra: Value = serde_json::from_slice(&more).map_err(|error| wrong(error.to_string()))?;
        match (&mut data, extra) {
            (Value::Object(data), Value::Object(extra)) => data.extend(extra),
            (data, extra) => *data = extra,
        }
    }
    let mut payload = vec![0; payload_length];
    reader.read_exact(&mut payload).await.map_err(|error| wrong(error.to_string()))?;
    Ok(Some(Event { kind, data, payload }))
}

async fn write_event(writer: &mut Writer, kind: &str, data: Value) -> std::io::Result<()> {
    let data = data.to_string();
    let header = json!({"type": kind, "version": "1.0.0", "data_length": data.len()});
    writer.write_all(format!("{header}\n{data}").as_bytes()).await?;
    writer.flush().await
}
