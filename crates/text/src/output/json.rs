//! Transcripts as JSON: one object a recording, times rounded to milliseconds, nothing written that is not known.

use serde_json::{Map, Value, json};

use super::{Alternative, Delay, Evidence, Segment, TokenResult, Transcript, Word};

/// One object on one line.
pub(super) fn format(transcript: &Transcript) -> String {
    let mut object = heading(transcript);
    object["text"] = transcript.text().into();
    object["segments"] = transcript.segments.iter().map(segment).collect();
    object.to_string() + "\n"
}

/// The end of a stream whose segments were written one by one.
pub(super) fn end_event(transcript: &Transcript) -> Value {
    let mut object = heading(transcript);
    object["type"] = "end".into();
    object
}

/// Everything but the segments.
fn heading(transcript: &Transcript) -> Value {
    let mut object = json!({
        "id": transcript.id,
        "channel": transcript.channel,
        "duration_s": rounded(transcript.duration_s),
    });
    if let Some(path) = &transcript.path {
        object["path"] = path.to_string_lossy().into();
    }
    if let Some(incomplete) = &transcript.incomplete {
        object["incomplete"] = incomplete.as_str().into();
    }
    object
}

/// A result of the stream `id`, as it happens.
pub(super) fn segment_event(of: &Segment, id: &str) -> Value {
    let mut object = segment(of);
    object["type"] = if of.ended_by.is_some() { "final" } else { "partial" }.into();
    object["id"] = id.into();
    object
}

/// A segment by itself, as a stream sends it.
pub(super) fn segment(segment: &Segment) -> Value {
    let Segment { text, start_s, end_s, words, tokens, confidence, alternatives, ended_by, .. } = segment;
    let mut object = timed(text, *start_s, *end_s, *confidence);
    object.insert("words".into(), words.iter().map(word).collect());
    object.insert("tokens".into(), tokens.iter().map(token).collect());
    object.insert("alternatives".into(), alternatives.iter().map(alternative).collect());
    if let Some(reason) = ended_by {
        object.insert("ended_by".into(), reason.name().into());
    }
    Value::Object(object)
}

fn timed(text: &str, start_s: f64, end_s: f64, confidence: Option<f32>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("text".into(), text.into());
    object.insert("start_s".into(), rounded(start_s));
    object.insert("end_s".into(), rounded(end_s));
    if let Some(confidence) = confidence {
        object.insert("confidence".into(), share(confidence));
    }
    object
}

fn word(word: &Word) -> Value {
    Value::Object(timed(&word.text, word.start_s, word.end_s, word.confidence))
}

fn token(token: &TokenResult) -> Value {
    let TokenResult { text, start_s, end_s, confidence, evidence, delay } = token;
    let mut object = timed(text, *start_s, *end_s, *confidence);
    if let Some(Evidence { posterior, coupling_mass, runner_up, agrees }) = evidence {
        let (posterior, coupling_mass) = (share(*posterior), share(*coupling_mass));
        let evidence = json!({
            "posterior": posterior, "coupling_mass": coupling_mass, "runner_up": runner_up, "agrees": agrees,
        });
        object.insert("evidence".into(), evidence);
    }
    if let Some(Delay { algorithmic_ms, buffering_ms, compute_ms }) = delay {
        let [algorithmic_ms, buffering_ms, compute_ms] =
            [algorithmic_ms, buffering_ms, compute_ms].map(|ms| rounded(*ms));
        let delay = json!({
            "algorithmic_ms": algorithmic_ms, "buffering_ms": buffering_ms, "compute_ms": compute_ms,
        });
        object.insert("delay".into(), delay);
    }
    Value::Object(object)
}

fn alternative(alternative: &Alternative) -> Value {
    let Alternative { text, confidence, score } = alternative;
    json!({ "text": text, "confidence": share(*confidence), "score": rounded(*score) })
}

/// To the third digit; null for what is no number.
fn rounded(value: f64) -> Value {
    json!((value * 1000.0).round() / 1000.0)
}

/// To the fourth digit; null for what is no number.
fn share(value: f32) -> Value {
    json!((f64::from(value) * 1e4).round() / 1e4)
}
