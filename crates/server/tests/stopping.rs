//! A server that stops finishes its streams, and places that are taken are refused with a reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use srf_server::{Limits, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use common::{Running, Socket, expected, f32s, form, http, json_of, metric, s16, socket};

/// Everything that comes until the server closes: texts, and the code of the close.
async fn rest(socket: &mut Socket) -> (Vec<Value>, Option<u16>) {
    let (mut texts, mut code) = (Vec::new(), None);
    while let Some(Ok(message)) = timeout(Duration::from_mins(1), socket.next()).await.expect("it is closed in time") {
        match message {
            Message::Text(text) if text.starts_with('{') => texts.push(json_of(text.as_str())),
            Message::Close(Some(frame)) => code = Some(frame.code.into()),
            _ => {}
        }
    }
    (texts, code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_get_their_result_when_the_server_stops() {
    let mut server = Running::start(Limits::default()).await;
    let address = server.address;
    let mut vosk = socket(address, "/vosk").await;
    vosk.send(Message::text(r#"{"config": {"sample_rate": 16000}}"#)).await.unwrap();
    vosk.send(Message::binary(s16())).await.unwrap();
    let mut sherpa = socket(address, "/sherpa").await;
    sherpa.send(Message::binary(f32s())).await.unwrap();
    let mut deepgram = socket(address, "/v1/listen?encoding=linear16&sample_rate=16000").await;
    deepgram.send(Message::binary(s16())).await.unwrap();
    let mut page = socket(address, "/live").await;
    page.send(Message::text(r#"{"rate": 16000}"#)).await.unwrap();
    page.send(Message::binary(f32s())).await.unwrap();
    // Files and what is said to Home Assistant are half sent, and can be sent to their end.
    let mut offline = socket(address, "/sherpa/offline").await;
    let samples = f32s();
    let head = [16_000_i32.to_le_bytes(), (samples.len() as i32).to_le_bytes()].concat();
    offline.send(Message::binary([head, samples[..60_000].to_vec()].concat())).await.unwrap();
    let mut wyoming = TcpStream::connect(server.wyoming).await.unwrap();
    let chunk = |bytes: &[u8]| {
        let data = json!({"rate": 16000, "width": 2, "channels": 1});
        let head = json!({"type": "audio-chunk", "data": data, "payload_length": bytes.len()});
        [format!("{head}\n").as_bytes(), bytes].concat()
    };
    wyoming.write_all(&chunk(&s16()[..40_000])).await.unwrap();
    while metric(address, "srf_streams").await < 6.0 || metric(address, "srf_audio_seconds_total").await < 4.0 * 2.8 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    server.begin_stop();
    offline.send(Message::binary(samples[60_000..].to_vec())).await.unwrap();
    wyoming.write_all(&chunk(&s16()[40_000..])).await.unwrap();
    wyoming.write_all(b"{\"type\": \"audio-stop\"}\n").await.unwrap();

    let text_of = |values: &[Value], of: &dyn Fn(&Value) -> Option<String>| {
        values.iter().filter_map(of).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let text = |value: &Value| value["text"].as_str().map(str::to_owned);
    let (values, code) = rest(&mut vosk).await;
    assert_eq!((text_of(&values, &text), code), (expected(), Some(1013)), "Vosk: {values:?}");
    let (values, _) = rest(&mut sherpa).await;
    let of = |value: &Value| text(value).filter(|_| value["is_final"] == true);
    assert_eq!(text_of(&values, &of), expected(), "sherpa-onnx: {values:?}");
    let (values, _) = rest(&mut deepgram).await;
    let of = |value: &Value| value["channel"]["alternatives"][0]["transcript"].as_str().map(str::to_owned);
    assert_eq!(text_of(&values, &of), expected(), "Deepgram: {values:?}");
    let (values, _) = rest(&mut page).await;
    let of = |value: &Value| text(value).filter(|_| value["type"] == "done");
    assert_eq!(text_of(&values, &of), expected(), "the page: {values:?}");
    let (values, _) = rest(&mut offline).await;
    assert_eq!(text_of(&values, &text), expected(), "sherpa-onnx offline: {values:?}");
    let mut answer = String::new();
    wyoming.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains(&expected()), "Wyoming: {answer}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_longer_than_its_deadline() {
    let limits = Limits { shutdown: Duration::from_secs(1), ..Limits::default() };
    let mut server = Running::start(limits).await;
    // A file that never ends.
    let mut offline = socket(server.address, "/sherpa/offline").await;
    let head = [16_000_i32.to_le_bytes(), 64_000_i32.to_le_bytes()].concat();
    offline.send(Message::binary([head, vec![0; 800]].concat())).await.unwrap();
    while metric(server.address, "srf_streams").await < 1.0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.begin_stop();
    // `Running::stop` allows more time than the deadline, and less than a client that sends nothing has.
    server.stop().await;
}

#[tokio::test]
async fn a_message_that_is_too_large_says_so() {
    let server = Running::start(Limits { message_bytes: 1 << 16, ..Limits::default() }).await;
    for path in ["/", "/vosk", "/sherpa", "/sherpa/offline", "/v1/listen", "/v1/realtime", "/live"] {
        let mut client = socket(server.address, path).await;
        client.send(Message::binary(vec![0; (1 << 16) + 1])).await.unwrap();
        let (values, code) = rest(&mut client).await;
        let said = values.iter().map(ToString::to_string).collect::<String>();
        assert_eq!(code, Some(1009), "{path}: {said}");
        assert!(path == "/" || said.contains("too_large"), "{path}: {said}");
    }
    server.stop().await;
}

#[tokio::test]
async fn open_sockets_count_as_connections() {
    let server = Running::start(Limits { connections: 3, ..Limits::default() }).await;
    let open = [socket(server.address, "/vosk").await, socket(server.address, "/sherpa").await];
    assert_eq!(metric(server.address, "srf_connections").await, 3.0);
    let third = socket(server.address, "/vosk").await;
    let mut refused = TcpStream::connect(server.address).await.unwrap();
    let read = timeout(Duration::from_secs(20), refused.read(&mut [0; 16])).await.expect("it is closed at once");
    assert!(!matches!(read, Ok(1..)), "a fourth connection was served");
    drop((open, third));
    while tokio_tungstenite::connect_async(format!("ws://{}/vosk", server.address)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_refuses_new_streams_and_serves_open_ones() {
    let limits = Limits { max_queue: Duration::from_millis(1), ..Limits::default() };
    let server = Running::start_with(ServerConfig { limits, threads: 1, ..ServerConfig::default() }).await;
    let address = server.address;
    // Streams that are open before the load keep the only core busy for seconds: each has a minute to recognise.
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = socket(address, "/sherpa?partials=false").await;
        stream.send(Message::binary(vec![0; 4])).await.unwrap();
        streams.push(stream);
    }
    while metric(address, "srf_streams").await < 4.0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for stream in &mut streams {
        for _ in 0..5 {
            stream.send(Message::binary(f32s().repeat(4))).await.unwrap();
        }
        stream.send(Message::text("Done")).await.unwrap();
    }
    let refused = timeout(Duration::from_mins(1), async {
        loop {
            let (status, body) = http(address, form("/inference", &[])).await;
            if status == 503 {
                return body;
            }
            assert_eq!(status, 200, "{body}");
        }
    });
    let body = refused.await.expect("work waits longer than allowed, so a new stream is refused");
    assert_eq!(json_of(&body)["error"]["code"], "overloaded");
    for stream in &mut streams {
        let (values, code) = rest(stream).await;
        assert!(values.iter().any(|value| value["is_final"] == true), "{values:?}");
        assert_eq!(code, Some(1000));
    }
    // With nothing to do it takes streams again.
    let (status, body) = http(address, form("/inference", &[])).await;
    assert_eq!(status, 200, "{body}");
    server.stop().await;
}
