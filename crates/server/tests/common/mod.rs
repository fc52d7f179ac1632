//! A server in the process of the test, and small clients of it.

#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod dialects;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use srf_server::{Limits, Server, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn model() -> PathBuf {
    root().join("models/en-phones")
}

pub(crate) fn sample() -> PathBuf {
    root().join("samples/woman-1.wav")
}

/// What the recogniser writes for the sample, without a server.
pub(crate) fn expected() -> String {
    srf::Recognizer::open(model()).unwrap().transcribe(sample()).unwrap().text()
}

/// The sample as 16-bit values; its rate is 16 kHz.
pub(crate) fn values() -> Vec<i16> {
    let recording = srf_audio::Recording::open(sample()).unwrap();
    assert_eq!(recording.info().rate_hz, 16_000);
    recording.read(srf_audio::Selection::default()).unwrap().to_i16()
}

pub(crate) fn s16() -> Vec<u8> {
    values().into_iter().flat_map(i16::to_le_bytes).collect()
}

pub(crate) fn f32s() -> Vec<u8> {
    values().into_iter().flat_map(|value| (f32::from(value) / 32768.0).to_le_bytes()).collect()
}

/// A server that stops when it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) wyoming: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    finished: tokio::task::JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::start_with(ServerConfig { limits, ..ServerConfig::default() }).await
    }

    /// Starts a server with the bundled model on free ports.
    pub(crate) async fn start_with(config: ServerConfig) -> Self {
        let listen = "127.0.0.1:0".parse().unwrap();
        let models = if config.models.is_empty() { vec![model()] } else { config.models };
        let mut limits = config.limits;
        // A test machine may be busy with other things; the test of overload sets its own limit.
        if limits.max_queue == Limits::default().max_queue {
            limits.max_queue = Duration::from_mins(1);
        }
        let config = ServerConfig { models, listen, wyoming_port: Some(0), limits, ..config };
        let server = Server::bind(config).await.unwrap();
        let (address, wyoming) = (server.address(), server.wyoming_address().unwrap());
        let (stop, stopped) = oneshot::channel();
        let finished = tokio::spawn(async move {
            server.run(async { drop(stopped.await) }).await.unwrap();
        });
        Self { address, wyoming, stop: Some(stop), finished }
    }

    /// Sends the signal to stop; `stop` waits for the end.
    pub(crate) fn begin_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) async fn stop(mut self) {
        if self.stop.is_some() {
            self.begin_stop();
        }
        tokio::time::timeout(Duration::from_secs(20), self.finished).await.expect("it stops in time").unwrap();
    }
}

pub(crate) async fn http(address: SocketAddr, request: Vec<u8>) -> (u16, String) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").into_bytes()
}

pub(crate) fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

pub(crate) fn form(path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        body.extend(format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes());
    }
    let head =
        "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\ncontent-type: audio/wav\r\n\r\n";
    body.extend(head.bytes());
    body.extend(std::fs::read(sample()).unwrap());
    body.extend(b"\r\n--b--\r\n");
    post(path, "multipart/form-data; boundary=b", &body)
}

pub(crate) fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

pub(crate) type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>>;

pub(crate) async fn socket(address: SocketAddr, path: &str) -> Socket {
    connect_async(format!("ws://{address}{path}")).await.unwrap().0
}

pub(crate) fn join(texts: &[String]) -> String {
    texts.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

/// A number on the page of metrics.
pub(crate) async fn metric(address: SocketAddr, name: &str) -> f64 {
    let (_, page) = http(address, get("/metrics")).await;
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned));
    line.unwrap_or_else(|| panic!("no `{name}` in {page}")).parse().unwrap()
}

/// Recognises the sample in Vosk's protocol with pieces of `piece` bytes.
pub(crate) async fn vosk(address: SocketAddr, path: &str, piece: usize) -> String {
    let mut texts = Vec::new();
    let config = json!({"config": {"sample_rate": 16000}}).to_string();
    let mut socket = socket(address, path).await;
    socket.send(Message::text(config)).await.unwrap();
    for bytes in s16().chunks(piece) {
        socket.send(Message::binary(bytes.to_vec())).await.unwrap();
        let reply = json_of(socket.next().await.unwrap().unwrap().to_text().unwrap());
        texts.push(reply["text"].as_str().unwrap_or_default().to_owned());
    }
    socket.send(Message::text(r#"{"eof" : 1}"#)).await.unwrap();
    let reply = json_of(socket.next().await.unwrap().unwrap().to_text().unwrap());
    texts.push(reply["text"].as_str().unwrap().to_owned());
    join(&texts)
}
