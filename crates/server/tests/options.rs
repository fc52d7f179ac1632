//! Options of a request have the same names and the same effect in every dialect.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use srf::Recognizer;
use srf::text::fusion::Lexicon;
use srf::text::lm::{Limits as LmLimits, NgramModel};
use srf::text::word_model::WordModel;
use srf_server::{Limits, ServerConfig};
use tokio_tungstenite::tungstenite::Message;

use common::dialects::{deepgram, page, realtime, sherpa_offline, sherpa_streaming, wyoming};
use common::{Running, expected, f32s, form, http, join, json_of, model, post, s16, sample, socket, vosk};

/// The bundled model with a word for each of its phones.
fn model_with_words(dir: &Path) -> Recognizer {
    for entry in fs::read_dir(model()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.join(entry.file_name())).unwrap();
    }
    let plain = Recognizer::open(dir).unwrap();
    let labels = plain.labels();
    let phones: Vec<&String> = labels.symbols().iter().filter(|symbol| !symbol.starts_with('<')).collect();
    let lexicon: String = phones.iter().map(|phone| format!("word-{phone} {phone}\n")).collect();
    let lexicon = Lexicon::parse(&lexicon, labels).unwrap();
    let grams: String = phones.iter().map(|phone| format!("-1.5 word-{phone}\n")).collect();
    let arpa = format!("\\data\\\nngram 1={}\n\\1-grams:\n-2 <unk>\n{grams}\\end\\\n", phones.len() + 1);
    let language = NgramModel::read(arpa.as_bytes(), LmLimits::default()).unwrap();
    srf::words::write(dir, &WordModel::format(&lexicon, &language, labels)).unwrap();
    Recognizer::open(dir).unwrap()
}

#[tokio::test]
async fn words_or_phones_can_be_asked_for_in_every_dialect() {
    let dir = tempfile::tempdir().unwrap();
    let recognizer = model_with_words(dir.path());
    let words = recognizer.transcribe(sample()).unwrap().text();
    let phones = expected();
    assert!(words.contains("word-") && !phones.contains("word-"), "{words}");
    let models = vec![dir.path().to_owned()];
    let server = Running::start_with(ServerConfig { models, ..ServerConfig::default() }).await;
    let address = server.address;
    for (query, expected) in [("", &words), ("?output=words", &words), ("?output=phones", &phones)] {
        assert_eq!(&vosk(address, &format!("/{query}"), 6400).await, expected);
        assert_eq!(&sherpa_streaming(address, query).await, expected);
        assert_eq!(&sherpa_offline(address, query).await, expected);
        assert_eq!(&deepgram(address, query).await, expected);
        assert_eq!(&realtime(address, query).await, expected);
        let output = query.strip_prefix("?output=").unwrap_or_default();
        assert_eq!(&page(address, &json!({"output": output})).await, expected);
        assert_eq!(&wyoming(server.wyoming, &json!({"output": output})).await, expected);
        let (_, body) = http(address, form("/v1/audio/transcriptions", &[("output", output)])).await;
        assert_eq!(json_of(&body)["text"].as_str().unwrap(), expected);
        let upload = post(&format!("/v1/listen{query}"), "audio/wav", &fs::read(sample()).unwrap());
        let (_, body) = http(address, upload).await;
        assert_eq!(
            json_of(&body)["results"]["channels"][0]["alternatives"][0]["transcript"].as_str().unwrap(),
            expected
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn words_of_a_model_without_them_are_refused() {
    let server = Running::start(Limits::default()).await;
    let (status, body) = http(server.address, form("/inference", &[("output", "words")])).await;
    assert_eq!(status, 400);
    assert!(body.contains("this model has no words"), "{body}");
    let (status, body) = http(server.address, form("/inference", &[("rule2_min_trailing_silence", "long")])).await;
    assert_eq!(status, 400);
    assert!(body.contains("`rule2_min_trailing_silence` is `long`, expected seconds from 0 to 3600"), "{body}");
    server.stop().await;
}

#[tokio::test]
async fn alternatives_phrases_and_hotwords_change_the_result() {
    let server = Running::start(Limits::default()).await;
    let text = async |fields: &[(&str, &str)]| {
        let (status, body) = http(server.address, form("/inference", fields)).await;
        assert_eq!(status, 200, "{body}");
        json_of(&body)["text"].as_str().unwrap().trim_end().to_owned()
    };
    assert_eq!(text(&[]).await, expected());
    let restricted = text(&[("phrases", "aa,iy")]).await;
    assert!(!restricted.is_empty() && restricted.split(' ').all(|phone| ["aa", "iy"].contains(&phone)), "{restricted}");
    assert_ne!(text(&[("hotwords", "aw:20\noy:20")]).await, expected());
    let upload = post("/v1/listen?alternatives=3", "audio/wav", &fs::read(sample()).unwrap());
    let (_, body) = http(server.address, upload).await;
    let alternatives = json_of(&body)["results"]["channels"][0]["alternatives"].as_array().unwrap().len();
    assert_eq!(alternatives, 3, "{body}");
    server.stop().await;
}

#[tokio::test]
async fn endpoint_rules_and_partials_are_those_of_the_request() {
    let server = Running::start(Limits::default()).await;
    let segments = async |fields: &[(&str, &str)]| {
        let fields = [&[("response_format", "verbose_json")], fields].concat();
        let (_, body) = http(server.address, form("/v1/audio/transcriptions", &fields)).await;
        json_of(&body)["segments"].as_array().unwrap().len()
    };
    assert_eq!(segments(&[("endpoint", "off")]).await, 1);
    let short = [("rule3_min_utterance_length", "0.5"), ("rule3_min_trailing_silence", "0")];
    assert!(segments(&short).await > 1);
    assert_eq!(segments(&[short[0], short[1], ("endpoint", "off")]).await, 1);

    for (query, has_partials) in [("", true), ("?partials=false", false)] {
        let mut client = socket(server.address, &format!("/sherpa{query}")).await;
        for bytes in f32s().chunks(12_800) {
            client.send(Message::binary(bytes.to_vec())).await.unwrap();
        }
        client.send(Message::text("Done")).await.unwrap();
        let (mut n_partials, mut texts) = (0, Vec::new());
        while let Some(Ok(Message::Text(message))) = client.next().await {
            if message.as_str() == "Done!" {
                break;
            }
            let result = json_of(message.as_str());
            if result["is_final"].as_bool().unwrap() {
                texts.push(result["text"].as_str().unwrap().to_owned());
            } else {
                n_partials += 1;
            }
        }
        assert_eq!((n_partials > 0, join(&texts)), (has_partials, expected()));
    }
    // Vosk's clients wait for a reply to every message, so that one without partials is empty.
    let mut client = socket(server.address, "/vosk").await;
    let config = json!({"config": {"sample_rate": 16000, "partials": false}}).to_string();
    client.send(Message::text(config)).await.unwrap();
    client.send(Message::binary(s16()[..64_000].to_vec())).await.unwrap();
    let reply = json_of(client.next().await.unwrap().unwrap().to_text().unwrap());
    assert_eq!(reply["partial"], "");
    drop(client);
    server.stop().await;
}
