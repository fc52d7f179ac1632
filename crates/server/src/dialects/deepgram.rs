//! Deepgram's `/v1/listen`: a WebSocket of raw samples, or the upload of a recording.

use std::net::IpAddr;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use srf::Segment;
use srf_audio::companding::{decode_alaw, decode_ulaw};
use srf_audio::{I16_SCALE, Recording};

use super::{Body, Incoming, Socket, Upgrade, Whole, from_s16, items, joined, recognize_upload, rounded};
use crate::engine::Session;
use crate::http::{ApiError, App, client_address};
use crate::options::{self, Fields, SessionOptions};

/// How the samples of a socket are encoded.
#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Linear16,
    Linear32,
    Mulaw,
    Alaw,
}

/// What the query of a socket asks for.
pub(crate) struct Settings {
    encoding: Encoding,
    rate_hz: u32,
    interim_results: bool,
    utterance_end: bool,
    options: SessionOptions,
}

impl Settings {
    pub(crate) fn parse(fields: &Fields) -> Result<Self, ApiError> {
        let field = |name: &str| fields.get(name).map(String::as_str);
        let encoding = match field("encoding") {
            None | Some("linear16") => Encoding::Linear16,
            Some("linear32") => Encoding::Linear32,
            Some("mulaw") => Encoding::Mulaw,
            Some("alaw") => Encoding::Alaw,
            Some(found) => {
                return Err(ApiError::bad_field("encoding", found, "linear16, linear32, mulaw or alaw"));
            }
        };
        if let Some(channels) = field("channels").filter(|channels| *channels != "1") {
            return Err(ApiError::bad_field("channels", channels, "1: send each channel as its own stream"));
        }
        let rate = field("sample_rate").unwrap_or("16000");
        let rate_hz = rate.parse().ok().filter(|rate| (1000..=384_000).contains(rate));
        let rate_hz = rate_hz.ok_or_else(|| ApiError::bad_field("sample_rate", rate, "1000 to 384000"))?;
        let interim_results = field("interim_results").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let options = common(fields, interim_results)?;
        let interim_results = options.partials;
        Ok(Self { encoding, rate_hz, interim_results, utterance_end: fields.contains_key("utterance_end_ms"), options })
    }

    pub(crate) fn samples(&self, whole: &mut Whole, bytes: &[u8]) -> Vec<f32> {
        match self.encoding {
            Encoding::Linear16 => from_s16(&whole.join(bytes, 2)),
            Encoding::Linear32 => super::from_f32(&whole.join(bytes, 4)),
            Encoding::Mulaw => bytes.iter().map(|byte| f32::from(decode_ulaw(*byte)) / I16_SCALE).collect(),
            Encoding::Alaw => bytes.iter().map(|byte| f32::from(decode_alaw(*byte)) / I16_SCALE).collect(),
        }
    }
}

/// The options that sockets and uploads share.
fn common(fields: &Fields, partials: bool) -> Result<SessionOptions, ApiError> {
    let mut options = SessionOptions { partials, ..SessionOptions::default() };
    options.set_common(fields)?;
    if let Some(n_best) = fields.get("alternatives") {
        options.n_best = n_best.parse().map_err(|_| ApiError::bad_field("alternatives", n_best, "1 to 100"))?;
    }
    for name in ["keywords", "keyterm"] {
        options.hotwords.extend(options::list(fields.get(name)));
    }
    match fields.get("endpointing").map(String::as_str) {
        None | Some("true") => {}
        Some("false") => options.endpoint = None,
        Some(found) => {
            let expected = "`false` or milliseconds from 10 to 60000";
            let wrong = || ApiError::bad_field("endpointing", found, expected);
            let ms: f64 = found.parse().map_err(|_| wrong())?;
            // Shorter pauses than 0.1 s are gaps between sounds, not ends of utterances.
            options.set_trailing_silence((ms / 1000.0).max(0.1)).map_err(|()| wrong())?;
        }
    }
    Ok(options)
}

pub(crate) async fn socket(State(app): State<App>, upgrade: Upgrade, request: Request) -> Result<Response, ApiError> {
    let client = client_address(request.extensions());
    let settings = Settings::parse(&options::query(request.uri())?)?;
    // Opened before the upgrade, so that refusals are HTTP answers that clients understand.
    let session = app.engine.session(client, settings.options.clone()).await?;
    Ok(Socket::upgrade(app, upgrade, move |socket| serve(socket, session, settings)))
}

async fn serve(mut socket: Socket, mut session: Session, settings: Settings) {
    let result = converse(&mut socket, &mut session, &settings).await;
    if let Err(error) = &result {
        let message =
            json!({"type": "Error", "description": error.message, "message": error.code, "variant": error.code});
        socket.send(&message).await;
    }
    drop(session);
    socket.close(result.as_ref().err()).await;
}

async fn converse(socket: &mut Socket, session: &mut Session, settings: &Settings) -> Result<(), ApiError> {
    let mut whole = Whole::default();
    loop {
        match socket.receive().await? {
            Incoming::Closed => return Ok(()),
            // An empty message is how older clients end a stream.
            Incoming::Binary(bytes) if bytes.is_empty() => return finish(socket, session).await,
            Incoming::Stopping => return finish(socket, session).await,
            Incoming::Binary(bytes) => {
                let update = session.accept(settings.samples(&mut whole, &bytes), settings.rate_hz).await?;
                for segment in &update.finals {
                    socket.send(&results(segment, true, false)).await;
                    if settings.utterance_end {
                        let end =
                            json!({"type": "UtteranceEnd", "channel": [0, 1], "last_word_end": rounded(segment.end_s)});
                        socket.send(&end).await;
                    }
                }
                if let Some(partial) = update.partial.filter(|_| settings.interim_results)
                    && !socket.send(&results(&partial, false, false)).await
                {
                    return Ok(());
                }
            }
            Incoming::Text(text) => match kind(&text)?.as_str() {
                "KeepAlive" => {}
                "Finalize" => {
                    let finals = session.flush().await?;
                    for segment in &finals {
                        socket.send(&results(segment, true, true)).await;
                    }
                    if finals.is_empty() {
                        socket.send(&results(&Segment::default(), true, true)).await;
                    }
                }
                "CloseStream" => return finish(socket, session).await,
                other => {
                    let other: String = other.chars().take(40).collect();
                    let expected = "expected KeepAlive, Finalize or CloseStream";
                    return Err(ApiError::bad_message(format!("a message of type `{other}`, {expected}")));
                }
            },
        }
    }
}

pub(crate) fn kind(text: &str) -> Result<String, ApiError> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| ApiError::bad_message(format!("not JSON: {error}")))?;
    let kind = value["type"].as_str();
    kind.map(str::to_owned).ok_or_else(|| ApiError::bad_message("a message without `type`"))
}

async fn finish(socket: &mut Socket, session: &mut Session) -> Result<(), ApiError> {
    for segment in &session.flush().await? {
        socket.send(&results(segment, true, false)).await;
    }
    let metadata = json!({
        "type": "Metadata", "transaction_key": "deprecated", "request_id": "", "sha256": "", "created": "",
        "duration": rounded(session.accepted_s()), "channels": 1, "models": [], "model_info": {},
    });
    socket.send(&metadata).await;
    Ok(())
}

fn results(segment: &Segment, is_final: bool, from_finalize: bool) -> Value {
    json!({
        "type": "Results", "channel_index": [0, 1], "start": rounded(segment.start_s),
        "duration": rounded(segment.end_s - segment.start_s), "is_final": is_final, "speech_final": is_final,
        "from_finalize": from_finalize, "channel": {"alternatives": alternatives(std::slice::from_ref(segment))},
        "metadata": {
            "request_id": "", "model_uuid": "", "model_info": {"name": "srf", "version": "", "arch": "srf"},
        },
    })
}

fn alternatives(segments: &[Segment]) -> Vec<Value> {
    let word = |item: super::Item<'_>| {
        json!({
            "word": item.text, "start": rounded(item.start_s), "end": rounded(item.end_s),
            "confidence": item.confidence, "punctuated_word": item.text,
        })
    };
    let words: Vec<Value> = segments.iter().flat_map(items).map(word).collect();
    let confidence = segments.iter().filter_map(|segment| segment.confidence).fold(1.0, f32::min);
    let confidence = if words.is_empty() { 0.0 } else { confidence };
    let mut all = vec![json!({"transcript": joined(segments), "confidence": confidence, "words": words})];
    if let [only] = segments {
        let other = |a: &srf::Alternative| json!({"transcript": a.text, "confidence": a.confidence, "words": []});
        all.extend(only.alternatives.iter().map(other));
    }
    all
}

/// Whether an upload is nothing but samples: its encoding is named, and it is no recording.
async fn is_raw(app: &App, fields: &Fields, bytes: Bytes) -> Result<bool, ApiError> {
    if !fields.contains_key("encoding") {
        return Ok(false);
    }
    app.engine.run(move || Recording::from_bytes("upload", bytes.to_vec()).is_err()).await
}

async fn recognize_raw(session: &mut Session, settings: &Settings, bytes: &[u8]) -> Result<Vec<Segment>, ApiError> {
    let mut whole = Whole::default();
    let mut segments = Vec::new();
    for piece in bytes.chunks(1 << 20) {
        let samples = settings.samples(&mut whole, piece);
        segments.extend(session.accept(samples, settings.rate_hz).await?.finals);
    }
    segments.extend(session.flush().await?);
    Ok(segments)
}

pub(crate) async fn upload(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let client: IpAddr = client_address(request.extensions());
    let fields = options::query(request.uri())?;
    let body = Body::read(&app, request.into_body()).await?;
    if body.bytes.is_empty() {
        return Err(ApiError::no_audio("a recording as the body"));
    }
    let mut session = app.engine.session(client, common(&fields, false)?).await?;
    let segments = if is_raw(&app, &fields, body.bytes.clone()).await? {
        recognize_raw(&mut session, &Settings::parse(&fields)?, &body.bytes).await?
    } else {
        recognize_upload(&app, &mut session, body.bytes.clone(), |_| {}).await?
    };
    let utterance = |segment: &Segment| {
        json!({
            "start": rounded(segment.start_s), "end": rounded(segment.end_s), "channel": 0, "id": "",
            "transcript": segment.text, "confidence": segment.confidence.unwrap_or(1.0), "words": [],
        })
    };
    let mut results = json!({"channels": [{"alternatives": alternatives(&segments)}]});
    if fields.get("utterances").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        results["utterances"] = segments.iter().map(utterance).collect::<Vec<_>>().into();
    }
    let metadata = json!({
        "transaction_key": "deprecated", "request_id": "", "sha256": "", "created": "",
        "duration": rounded(session.accepted_s()), "channels": 1, "models": [], "model_info": {},
    });
    Ok(Json(json!({"metadata": metadata, "results": results})).into_response())
}
