//! OpenAI's transcription endpoint: a form with a file, results in five formats, or server-sent events.

use std::collections::HashMap;
use std::convert::Infallible;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Multipart, Request, State};
use axum::http::header;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use srf::{Format, Recognizer, Segment, Transcript};
use tokio::sync::mpsc;

use super::{Body, items, joined, recognize_upload, rounded};
use crate::engine::Session;
use crate::http::{ApiError, App, client_address};
use crate::options::{self, Fields, SessionOptions};

/// An upload as a form: the file and the other fields.
pub(crate) struct Form {
    pub(crate) file: Bytes,
    pub(crate) fields: Fields,
    /// Values of fields that may occur several times.
    lists: HashMap<String, Vec<String>>,
    /// Kept for its share of the memory for uploads.
    _body: Body,
}

impl Form {
    /// Reads a multipart form within the limits of size and time.
    pub(crate) async fn read(app: &App, request: Request) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let body = Body::read(app, body).await?;
        let whole = axum::body::Body::from(body.bytes.clone());
        Self::parse(Request::from_parts(parts, whole), body).await
    }

    /// Parses `request`, whose body is all of `body`.
    pub(crate) async fn parse(request: Request, body: Body) -> Result<Self, ApiError> {
        let wrong = |problem: String| ApiError::bad_message(format!("not a form with a file: {problem}"));
        let mut form = Multipart::from_request(request, &()).await.map_err(|error| wrong(error.body_text()))?;
        let mut file = None;
        let mut fields = Fields::new();
        let mut lists: HashMap<String, Vec<String>> = HashMap::new();
        let failed = |error: axum::extract::multipart::MultipartError| wrong(error.body_text());
        while let Some(field) = form.next_field().await.map_err(failed)? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == "file" {
                file = Some(field.bytes().await.map_err(failed)?);
            } else if let Some(list) = name.strip_suffix("[]") {
                lists.entry(list.to_owned()).or_default().push(field.text().await.map_err(failed)?);
            } else {
                fields.insert(name, field.text().await.map_err(failed)?);
            }
        }
        Ok(Self { file: file.ok_or_else(|| ApiError::no_audio("a form field `file`"))?, fields, lists, _body: body })
    }

    fn is_true(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
    }

    /// The options of the request.
    pub(crate) fn options(&self) -> Result<SessionOptions, ApiError> {
        let mut fields = self.fields.clone();
        for (name, value) in self.lists.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)))
        {
            options::add(&mut fields, name.clone(), value.clone());
        }
        let mut options = SessionOptions::default();
        options.set_common(&fields)?;
        Ok(options)
    }
}

pub(crate) async fn models(State(app): State<App>) -> Response {
    // The last two are for the page; OpenAI's clients pass over what they do not know.
    let model = |(name, recognizer): (String, Recognizer)| {
        json!({
            "id": name, "object": "model", "created": 0, "owned_by": "srf",
            "units": recognizer.labels().units().to_string(), "has_words": recognizer.words().is_some(),
        })
    };
    let data: Vec<Value> = app.engine.models().into_iter().map(model).collect();
    Json(json!({"object": "list", "data": data})).into_response()
}

pub(crate) async fn transcriptions(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let client = client_address(request.extensions());
    let form = Form::read(&app, request).await?;
    let shape = form.fields.get("response_format").map_or("json", String::as_str);
    let wants_words = form.lists.get("timestamp_granularities").is_some_and(|list| list.iter().any(|g| g == "word"));
    if !["json", "text", "srt", "vtt", "verbose_json"].contains(&shape) {
        let expected = "json, text, srt, verbose_json or vtt";
        return Err(ApiError::bad_field("response_format", shape, expected));
    }
    if wants_words && shape != "verbose_json" {
        return Err(ApiError::bad_field("response_format", shape, "verbose_json for timestamp_granularities"));
    }
    let mut session = app.engine.session(client, form.options()?).await?;
    if form.is_true("stream") {
        return Ok(events(app, session, form));
    }
    let segments = recognize_upload(&app, &mut session, form.file.clone(), |_| {}).await?;
    Ok(respond(shape, wants_words, session.accepted_s(), segments))
}

/// The result in one of the formats.
pub(crate) fn respond(shape: &str, wants_words: bool, duration_s: f64, segments: Vec<Segment>) -> Response {
    let file = |kind: &'static str, format: Format, segments: Vec<Segment>| {
        let transcript = Transcript { duration_s, segments, ..Transcript::default() };
        ([(header::CONTENT_TYPE, kind)], transcript.format(format)).into_response()
    };
    match shape {
        "text" => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], joined(&segments) + "\n").into_response(),
        "srt" => file("application/x-subrip; charset=utf-8", Format::Srt, segments),
        "vtt" => file("text/vtt; charset=utf-8", Format::Vtt, segments),
        "verbose_json" => Json(verbose(duration_s, &segments, wants_words)).into_response(),
        _ => Json(json!({"text": joined(&segments)})).into_response(),
    }
}

fn verbose(duration_s: f64, segments: &[Segment], wants_words: bool) -> Value {
    let mut result = json!({
        "task": "transcribe", "language": "", "duration": rounded(duration_s), "text": joined(segments),
        "segments": segments.iter().enumerate().map(segment).collect::<Vec<_>>(),
    });
    if wants_words {
        let word = |item: super::Item<'_>| json!({"word": item.text, "start": rounded(item.start_s), "end": rounded(item.end_s)});
        result["words"] = segments.iter().flat_map(items).map(word).collect::<Vec<_>>().into();
    }
    result
}

fn segment((id, segment): (usize, &Segment)) -> Value {
    let confidence = f64::from(segment.confidence.unwrap_or(1.0)).max(1e-30);
    json!({
        "id": id, "seek": 0, "start": rounded(segment.start_s), "end": rounded(segment.end_s), "text": segment.text,
        "tokens": [], "temperature": 0.0, "avg_logprob": confidence.ln(), "compression_ratio": 1.0,
        "no_speech_prob": 0.0,
    })
}

/// Utterances as server-sent events while the upload is recognised.
fn events(app: App, mut session: Session, form: Form) -> Response {
    let (sender, receiver) = mpsc::unbounded_channel::<Result<Event, Infallible>>();
    tokio::spawn(async move {
        let mut is_first = true;
        let each = |segment: &Segment| {
            let delta = if is_first { segment.text.clone() } else { format!(" {}", segment.text) };
            is_first = false;
            let _ = sender.send(Ok(event(&json!({"type": "transcript.text.delta", "delta": delta}))));
        };
        let end = match recognize_upload(&app, &mut session, form.file.clone(), each).await {
            Ok(segments) => json!({"type": "transcript.text.done", "text": joined(&segments)}),
            Err(error) => {
                let mut body = error.body();
                body["type"] = "error".into();
                body
            }
        };
        let _ = sender.send(Ok(event(&end)));
    });
    let stream = futures_util::stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    Sse::new(stream).into_response()
}

fn event(value: &Value) -> Event {
    let name = value["type"].as_str().unwrap_or("error").to_owned();
    Event::default().event(name).data(value.to_string())
}
