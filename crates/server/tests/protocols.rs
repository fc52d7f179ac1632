//! Every dialect gives the text of the recogniser itself, and bad input gets an answer and harms nobody.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use srf_server::{Limits, ServerConfig};
use tokio_tungstenite::tungstenite::Message;

use common::dialects::{deepgram, page, realtime, sherpa_offline, sherpa_streaming, wyoming};
use common::{Running, expected, form, get, http, json_of, post, sample, socket, vosk};

#[tokio::test]
async fn files_give_the_text_of_the_recogniser() {
    let server = Running::start(Limits::default()).await;
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
    let server = Running::start(Limits::default()).await;
    for (path, piece) in [("/", 6400), ("/vosk", 999)] {
        assert_eq!(vosk(server.address, path, piece).await, expected());
    }
    server.stop().await;
}

#[tokio::test]
async fn sherpa_deepgram_realtime_and_the_page_give_the_text_of_the_recogniser() {
    let server = Running::start(Limits::default()).await;
    let expected = expected();
    assert_eq!(sherpa_streaming(server.address, "").await, expected);
    assert_eq!(sherpa_offline(server.address, "").await, expected);
    assert_eq!(deepgram(server.address, "").await, expected);
    assert_eq!(realtime(server.address, "").await, expected);
    assert_eq!(page(server.address, &json!({})).await, expected);
    assert_eq!(wyoming(server.wyoming, &json!({})).await, expected);
    server.stop().await;
}

#[tokio::test]
async fn bad_requests_get_a_code_and_one_line() {
    let server = Running::start(Limits { body_bytes: 1 << 20, ..Limits::default() }).await;
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
    let server = Running::start(Limits::default()).await;
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
    let server = Running::start_with(ServerConfig { limits, token_file: Some(keys), ..ServerConfig::default() }).await;
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
