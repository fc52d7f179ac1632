//! Every dialect gives the text of the recogniser itself, and bad input gets an answer and harms nobody.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn model() -> PathBuf {
    root().join("models/en-phones")
}

fn sample() -> PathBuf {
    root().join("samples/woman-1.wav")
}

/// What the recogniser writes for the sample, without a server.
fn expected() -> String {
    srf::Recognizer::open(model()).unwrap().transcribe(sample()).unwrap().text()
}

/// The sample as 16-bit values; its rate is 16 kHz.
fn values() -> Vec<i16> {
    let recording = srf_audio::Recording::open(sample()).unwrap();
    assert_eq!(recording.info().rate_hz, 16_000);
    recording.read(srf_audio::Selection::default()).unwrap().to_i16()
}

fn s16() -> Vec<u8> {
    values().into_iter().flat_map(i16::to_le_bytes).collect()
}

fn f32s() -> Vec<u8> {
    values().into_iter().flat_map(|value| (f32::from(value) / 32768.0).to_le_bytes()).collect()
}

/// A server that stops when it is dropped.
struct Running {
    address: SocketAddr,
    wyoming: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    finished: tokio::task::JoinHandle<()>,
}

impl Running {
    async fn start(limits: Limits, token_file: Option<PathBuf>) -> Self {
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = ServerConfig {
            models: vec![model()],
            listen,
            wyoming_port: Some(0),
            limits,
            token_file,
            ..ServerConfig::default()
        };
        let server = Server::bind(config).await.unwrap();
        let (address, wyoming) = (server.address(), server.wyoming_address().unwrap());
        let (stop, stopped) = oneshot::channel();
        let finished = tokio::spawn(async move {
            server.run(async { drop(stopped.await) }).await.unwrap();
        });
        Self { address, wyoming, stop: Some(stop), finished }
    }

    async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        tokio::time::timeout(Duration::from_secs(20), self.finished).await.expect("it stops in time").unwrap();
    }
}

async fn http(address: SocketAddr, request: Vec<u8>) -> (u16, String) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").into_bytes()
}

fn post(path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn form(path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
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

fn json_of(body: &str) -> Value {
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

async fn socket(
    address: SocketAddr,
    path: &str,
) -> tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<TcpStream>> {
    connect_async(format!("ws://{address}{path}")).await.unwrap().0
}

fn join(texts: &[String]) -> String {
    texts.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn files_give_the_text_of_the_recogniser() {
    let server = Running::start(Limits::default(), None).await;
    let expected = expected();
    assert!(!expected.is_empty());
    let transcriptions = "/v1/audio/transcriptions";
    let (status, body) = http(server.address, form(transcriptions, &[("model", "whisper-1")])).await;
    assert_eq!((status, json_of(&body)["text"].as_str().unwrap()), (200, expected.as_str()));
    let (status, body) = http(server.address, form("/inference", &[])).await;
    assert_eq!((status, json_of(&body)["text"].as_str().unwrap().trim_end()), (200, expected.as_str()));
    let (status, body) = http(server.address, post("/v1/listen", "audio/wav", &std::fs::read(sample()).unwrap())).await;
    let transcript = &json_of(&body)["results"]["channels"][0]["alternatives"][0]["transcript"];
    assert_eq!((status, transcript.as_str().unwrap()), (200, expected.as_str()));
    let (status, body) = http(server.address, form(transcriptions, &[("response_format", "text")])).await;
    assert_eq!((status, body.trim_end()), (200, expected.as_str()));
    let (_, body) = http(server.address, form(transcriptions, &[("response_format", "srt")])).await;
    assert!(body.starts_with("1\n00:00:0"), "{body}");
    let fields = [("response_format", "verbose_json"), ("timestamp_granularities[]", "word")];
    let (_, body) = http(server.address, form(transcriptions, &fields)).await;
    let verbose = json_of(&body);
    assert_eq!(verbose["text"], expected);
    let words = verbose["words"].as_array().unwrap();
    assert_eq!(words.len(), expected.split(' ').count());
    let (_, body) = http(server.address, form(transcriptions, &[("stream", "true")])).await;
    assert!(body.contains("event: transcript.text.delta") && body.contains("transcript.text.done"), "{body}");
    server.stop().await;
}

#[tokio::test]
async fn vosk_gives_the_text_of_the_recogniser_however_the_samples_are_cut() {
    let server = Running::start(Limits::default(), None).await;
    for (path, piece) in [("/", 6400), ("/vosk", 999)] {
        let mut texts = Vec::new();
        let config = json!({"config": {"sample_rate": 16000}}).to_string();
        let mut socket = socket(server.address, path).await;
        socket.send(Message::text(config)).await.unwrap();
        for bytes in s16().chunks(piece) {
            socket.send(Message::binary(bytes.to_vec())).await.unwrap();
            let reply = json_of(socket.next().await.unwrap().unwrap().to_text().unwrap());
            texts.push(reply["text"].as_str().unwrap_or_default().to_owned());
        }
        socket.send(Message::text(r#"{"eof" : 1}"#)).await.unwrap();
        let reply = json_of(socket.next().await.unwrap().unwrap().to_text().unwrap());
        texts.push(reply["text"].as_str().unwrap().to_owned());
        assert_eq!(join(&texts), expected());
    }
    server.stop().await;
}

#[tokio::test]
async fn sherpa_deepgram_realtime_and_the_page_give_the_text_of_the_recogniser() {
    let server = Running::start(Limits::default(), None).await;
    let expected = expected();
    assert_eq!(sherpa_streaming(server.address).await, expected);
    assert_eq!(sherpa_offline(server.address).await, expected);
    assert_eq!(deepgram(server.address).await, expected);
    assert_eq!(realtime(server.address).await, expected);
    assert_eq!(page(server.address).await, expected);
    assert_eq!(wyoming(server.wyoming).await, expected);
    server.stop().await;
}

async fn sherpa_streaming(address: SocketAddr) -> String {
    let mut socket = socket(address, "/").await;
    for bytes in f32s().chunks(12_800) {
        socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }
    socket.send(Message::text("Done")).await.unwrap();
    let mut texts = Vec::new();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        if text.as_str() == "Done!" {
            break;
        }
        let result = json_of(text.as_str());
        if result["is_final"] == true {
            texts.push(result["text"].as_str().unwrap().to_owned());
        }
    }
    join(&texts)
}

async fn sherpa_offline(address: SocketAddr) -> String {
    let mut socket = socket(address, "/").await;
    let samples = f32s();
    let head = [16_000_i32.to_le_bytes(), (samples.len() as i32).to_le_bytes()].concat();
    for bytes in [head, samples].concat().chunks(10_240) {
        socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }
    let text = socket.next().await.unwrap().unwrap();
    json_of(text.to_text().unwrap())["text"].as_str().unwrap().to_owned()
}

async fn deepgram(address: SocketAddr) -> String {
    let mut socket = socket(address, "/v1/listen?encoding=linear16&sample_rate=16000&interim_results=true").await;
    for bytes in s16().chunks(3001) {
        socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }
    socket.send(Message::text(r#"{"type": "KeepAlive"}"#)).await.unwrap();
    socket.send(Message::text(r#"{"type": "CloseStream"}"#)).await.unwrap();
    let mut texts = Vec::new();
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let message = json_of(text.as_str());
        if message["is_final"] == true {
            texts.push(message["channel"]["alternatives"][0]["transcript"].as_str().unwrap().to_owned());
        }
    }
    join(&texts)
}

async fn realtime(address: SocketAddr) -> String {
    use base64::Engine as _;
    let mut socket = socket(address, "/v1/realtime").await;
    let update = json!({"type": "session.update", "session": {"audio": {"input": {"format": {"rate": 16000}}}}});
    socket.send(Message::text(update.to_string())).await.unwrap();
    for bytes in s16().chunks(9600) {
        let audio = base64::prelude::BASE64_STANDARD.encode(bytes);
        let append = json!({"type": "input_audio_buffer.append", "audio": audio});
        socket.send(Message::text(append.to_string())).await.unwrap();
    }
    socket.send(Message::text(r#"{"type": "input_audio_buffer.commit"}"#)).await.unwrap();
    let mut texts = Vec::new();
    let mut is_committed = false;
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let event = json_of(text.as_str());
        is_committed |= event["type"] == "input_audio_buffer.committed";
        if event["type"] == "conversation.item.input_audio_transcription.completed" {
            texts.push(event["transcript"].as_str().unwrap().to_owned());
            if is_committed {
                break;
            }
        }
    }
    join(&texts)
}

async fn page(address: SocketAddr) -> String {
    let mut socket = socket(address, "/live").await;
    socket.send(Message::text(r#"{"rate": 16000, "routing": true}"#)).await.unwrap();
    for bytes in f32s().chunks(2560) {
        socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }
    socket.send(Message::text(r#"{"end": true}"#)).await.unwrap();
    let mut n_slices = 0;
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let message = json_of(text.as_str());
        if message["type"] == "slices" {
            let couplings = message["coupling"].as_array().unwrap();
            assert_eq!(couplings.len(), message["posterior"].as_array().unwrap().len());
            n_slices += couplings.len();
        }
        if message["type"] == "done" {
            assert!(n_slices > 10 && message["formats"]["srt"].as_str().unwrap().contains("-->"));
            return message["text"].as_str().unwrap().to_owned();
        }
    }
    panic!("the server closed the connection before the end");
}

async fn wyoming(address: SocketAddr) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let mut send = async |head: Value, payload: &[u8]| {
        socket.write_all(format!("{head}\n").as_bytes()).await.unwrap();
        socket.write_all(payload).await.unwrap();
    };
    let format = json!({"rate": 16000, "width": 2, "channels": 1});
    send(json!({"type": "audio-start", "data": format}), &[]).await;
    for bytes in s16().chunks(2048) {
        send(json!({"type": "audio-chunk", "data": format, "payload_length": bytes.len()}), bytes).await;
    }
    send(json!({"type": "audio-stop"}), &[]).await;
    let mut answer = vec![0; 1 << 16];
    let n = socket.read(&mut answer).await.unwrap();
    let text = String::from_utf8_lossy(&answer[..n]).into_owned();
    let (head, data) = text.split_once('\n').unwrap();
    assert_eq!(json_of(head)["type"], "transcript");
    json_of(data)["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn bad_requests_get_a_code_and_one_line() {
    let server = Running::start(Limits { body_bytes: 1 << 20, ..Limits::default() }, None).await;
    let code = |body: &str| json_of(body)["error"]["code"].as_str().unwrap().to_owned();
    let cases = [
        (get("/nothing"), 404, "not_found"),
        (form("/inference", &[("model", "none-such")]), 404, "model_not_found"),
        (form("/inference", &[("n_best", "many")]), 400, "invalid_field"),
        (form("/v1/audio/transcriptions", &[("response_format", "xml")]), 400, "invalid_field"),
        (post("/v1/listen", "audio/wav", b"this is not audio"), 400, "invalid_audio"),
        (post("/v1/listen", "audio/wav", b""), 400, "no_audio"),
        (post("/v1/listen", "audio/wav", &vec![0; 2 << 20]), 413, "too_large"),
        (post("/inference", "text/plain", b"x"), 400, "invalid_message"),
    ];
    for (request, status, expected) in cases {
        let (found, body) = http(server.address, request).await;
        assert_eq!((found, code(&body).as_str()), (status, expected), "{body}");
        assert!(!json_of(&body)["error"]["message"].as_str().unwrap().contains('\n'));
    }
    let (status, _) = http(server.address, get("/health")).await;
    assert_eq!(status, 200);
    let (_, metrics) = http(server.address, get("/metrics")).await;
    assert!(metrics.contains("srf_errors_total{code=\"invalid_audio\"} 1"), "{metrics}");
    assert!(metrics.contains("srf_streams 0"), "{metrics}");
    server.stop().await;
}

#[tokio::test]
async fn garbage_on_sockets_ends_that_socket_only() {
    let server = Running::start(Limits::default(), None).await;
    for path in ["/", "/vosk", "/sherpa", "/sherpa/offline", "/v1/listen", "/v1/realtime", "/live"] {
        for garbage in [Message::text("{not json"), Message::text("[1, 2"), Message::binary(vec![255; 7])] {
            let mut socket = socket(server.address, path).await;
            socket.send(garbage).await.unwrap();
            let _ = socket.close(None).await;
            while let Ok(Some(Ok(_))) = tokio::time::timeout(Duration::from_secs(5), socket.next()).await {}
        }
    }
    let (status, _) = http(server.address, form("/inference", &[])).await;
    assert_eq!(status, 200);
    server.stop().await;
}

#[tokio::test]
async fn keys_limits_and_a_stop_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    std::fs::write(&keys, "# keys\nsecret\n").unwrap();
    let limits = Limits { streams: 1, idle: Duration::from_millis(500), ..Limits::default() };
    let server = Running::start(limits, Some(keys)).await;
    let (status, _) = http(server.address, get("/v1/models")).await;
    assert_eq!(status, 401);
    let with_key = |mut request: Vec<u8>| {
        let at = request.windows(2).position(|two| two == b"\r\n").unwrap() + 2;
        request.splice(at..at, *b"authorization: Bearer secret\r\n");
        request
    };
    let (status, body) = http(server.address, with_key(get("/v1/models"))).await;
    assert_eq!((status, json_of(&body)["data"][0]["id"].as_str().unwrap()), (200, "en-phones"));
    // One stream holds the only place; a second is refused; the first is closed when it sends nothing.
    let mut first = socket(server.address, "/live").await;
    first.send(Message::text(r#"{"rate": 16000, "key": "secret"}"#)).await.unwrap();
    assert!(first.next().await.unwrap().unwrap().to_text().unwrap().contains("ready"));
    let (status, body) = http(server.address, with_key(form("/inference", &[]))).await;
    assert_eq!((status, json_of(&body)["error"]["code"].as_str().unwrap()), (503, "too_many_streams"));
    let last = first.next().await.unwrap().unwrap();
    assert!(last.to_text().unwrap().contains("timeout"), "{last}");
    while let Some(Ok(_)) = first.next().await {}
    let (status, _) = http(server.address, with_key(form("/inference", &[]))).await;
    assert_eq!(status, 200);
    server.stop().await;
}
