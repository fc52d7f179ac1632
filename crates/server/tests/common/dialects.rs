//! A client of every dialect: each recognises the sample and gives the text.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::{f32s, join, json_of, s16, socket};

/// Recognises the sample as sherpa-onnx's streaming clients do; `query` begins with `?` or is empty.
pub(crate) async fn sherpa_streaming(address: SocketAddr, query: &str) -> String {
    let mut socket = socket(address, &format!("/{query}")).await;
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

pub(crate) async fn sherpa_offline(address: SocketAddr, query: &str) -> String {
    let mut socket = socket(address, &format!("/{query}")).await;
    let samples = f32s();
    let head = [16_000_i32.to_le_bytes(), (samples.len() as i32).to_le_bytes()].concat();
    for bytes in [head, samples].concat().chunks(10_240) {
        socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }
    let text = socket.next().await.unwrap().unwrap();
    json_of(text.to_text().unwrap())["text"].as_str().unwrap().to_owned()
}

pub(crate) async fn deepgram(address: SocketAddr, query: &str) -> String {
    let query = query.replacen('?', "&", 1);
    let path = format!("/v1/listen?encoding=linear16&sample_rate=16000&interim_results=true{query}");
    let mut socket = socket(address, &path).await;
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

pub(crate) async fn realtime(address: SocketAddr, query: &str) -> String {
    use base64::Engine as _;
    let mut socket = socket(address, &format!("/v1/realtime{query}")).await;
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

/// Recognises the sample as the page does, with more fields in its first message.
pub(crate) async fn page(address: SocketAddr, fields: &Value) -> String {
    let mut socket = socket(address, "/live").await;
    let mut start = json!({"rate": 16000, "routing": true});
    start.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    socket.send(Message::text(start.to_string())).await.unwrap();
    for bytes in f32s().chunks(2560) {
        socket.send(Message::binary(bytes.to_vec())).await.unwrap();
    }
    socket.send(Message::text(r#"{"end": true}"#)).await.unwrap();
    let (mut n_slices, mut n_varied) = (0, 0);
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let message = json_of(text.as_str());
        if message["type"] == "slices" {
            let couplings = message["coupling"].as_array().unwrap();
            assert_eq!(couplings.len(), message["posterior"].as_array().unwrap().len());
            n_slices += couplings.len();
            let is_varied = |slice: &&Value| {
                let values = slice.as_array().unwrap();
                values.iter().skip(1).any(|value| *value != values[1])
            };
            n_varied += couplings.iter().filter(is_varied).count();
        }
        if message["type"] == "done" {
            // Routing prefers some labels: a picture of one colour would show nothing.
            assert!(n_varied > n_slices / 2, "{n_varied} of {n_slices} slices have different couplings");
            assert!(n_slices > 10 && message["formats"]["srt"].as_str().unwrap().contains("-->"));
            return message["text"].as_str().unwrap().to_owned();
        }
    }
    panic!("the server closed the connection before the end");
}

/// Recognises the sample in the Wyoming protocol, with `data` in its first event.
pub(crate) async fn wyoming(address: SocketAddr, data: &Value) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let mut send = async |head: Value, payload: &[u8]| {
        socket.write_all(format!("{head}\n").as_bytes()).await.unwrap();
        socket.write_all(payload).await.unwrap();
    };
    let format = json!({"rate": 16000, "width": 2, "channels": 1});
    send(json!({"type": "transcribe", "data": data}), &[]).await;
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
