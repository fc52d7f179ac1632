//! Reads HarperValley: calls to a bank, one recording per side, the words of each segment in `human_transcript`.
//!
//! The tree is `data/{transcript,metadata}/<call>.json` and `data/audio/{agent,caller}/<call>.wav`. The start of a
//! segment is its `start_ms`; `offset_ms` counts from elsewhere and does not fit the recordings. Tags such as
//! `[noise]` and `<unk>` are not words. Speakers take both roles and call each other, so a split by speakers is the
//! user's choice (`--split`).

use std::path::Path;

use serde::Deserialize;

use super::files;
use super::problem::{Fault, Problem, Problems};
use super::{AudioPart, Corpus, TRAIN, Utterance};

const MAX_JSON_BYTES: u64 = 16 << 20;

/// A segment of a call.
#[derive(Deserialize)]
struct Segment {
    index: u64,
    speaker_role: String,
    start_ms: f64,
    duration_ms: f64,
    human_transcript: String,
}

/// The two sides of a call.
#[derive(Deserialize)]
struct Metadata {
    agent: Side,
    caller: Side,
}

#[derive(Deserialize)]
struct Side {
    speaker_id: u64,
}

/// Reads every call below `root`.
pub fn read(root: &Path) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let files = files::files(root, &mut problems);
    let is_transcript =
        |path: &&Path| files::extension(path) == "json" && files::ancestor_name(path, 1) == "transcript";
    let transcripts = files.iter().map(std::path::PathBuf::as_path).filter(is_transcript);
    let utterances: Vec<Utterance> = transcripts.flat_map(|transcript| read_call(transcript, &mut problems)).collect();
    if utterances.is_empty() {
        let what = "a call like `data/transcript/0002f70f7386445b.json` with its recordings".to_owned();
        problems.add(root, None, Fault::Missing { what });
    }
    (Corpus::of_one(TRAIN, utterances), problems.0)
}

fn read_call(transcript: &Path, problems: &mut Problems) -> Vec<Utterance> {
    let call = files::stem(transcript);
    let data = transcript.ancestors().nth(2).unwrap_or(Path::new(""));
    let metadata = data.join("metadata").join(format!("{call}.json"));
    let Some(segments) = read_json::<Vec<Segment>>(transcript, problems) else { return Vec::new() };
    let Some(Metadata { agent, caller }) = read_json(&metadata, problems) else { return Vec::new() };
    let mut utterances = Vec::new();
    for segment in segments {
        let side = if segment.speaker_role == "agent" { &agent } else { &caller };
        let path = data.join("audio").join(&segment.speaker_role).join(format!("{call}.wav"));
        let sentence = without_tags(&segment.human_transcript);
        // Where only a noise was tagged nothing was said.
        if sentence.is_empty() {
            continue;
        }
        let (offset_s, duration_s) = (segment.start_ms / 1000.0, segment.duration_ms / 1000.0);
        if !(0.0 <= offset_s && 0.0 < duration_s && duration_s.is_finite()) {
            let what = format!("segment {}", segment.index);
            problems.add(transcript, None, Fault::Times { what, start: offset_s, end: offset_s + duration_s });
            continue;
        }
        utterances.push(Utterance {
            id: format!("{call}-{}-{:03}", segment.speaker_role, segment.index),
            speaker: format!("hv{:03}", side.speaker_id),
            audio: AudioPart { path, offset_s: Some(offset_s), duration_s: Some(duration_s), channel: None },
            sentence,
            ..Utterance::default()
        });
    }
    utterances
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path, problems: &mut Problems) -> Option<T> {
    let parsed = files::read_text(path, MAX_JSON_BYTES).and_then(|text| {
        serde_json::from_str(&text)
            .map_err(|error| Fault::Shape { found: error.to_string(), expected: "the JSON of a call" })
    });
    parsed.map_err(|fault| problems.add(path, None, fault)).ok()
}

/// The words of a transcript without `[noise]`, `<unk>` and the like.
fn without_tags(text: &str) -> String {
    let mut words = String::new();
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '[' | '<' => depth += 1,
            ']' | '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => words.push(c),
            _ => {}
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}
