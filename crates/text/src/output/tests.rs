//! Every format on a small transcript, letter by letter; and what each one promises on any transcript.

use proptest::prelude::*;

use super::{
    Alternative, Delay, Evidence, Format, Segment, SubtitleOptions, SubtitleStream, TokenResult, Transcript, Word,
};
use srf_score::formats::{Source, TrnOptions, parse_ctm, parse_trn};
use srf_score::{Encoding, Language};

fn word(text: &str, start_s: f64, end_s: f64) -> Word {
    Word { text: text.to_owned(), start_s, end_s, confidence: Some(0.875) }
}

fn small() -> Transcript {
    let evidence = Evidence { posterior: 0.9, coupling_mass: 0.25, runner_up: "b".into(), agrees: true };
    let delay = Delay { algorithmic_ms: 380.0, buffering_ms: 12.5, compute_ms: 0.4 };
    let token = TokenResult {
        text: "a".into(),
        start_s: 0.5,
        end_s: 0.54,
        confidence: Some(0.9),
        evidence: Some(evidence),
        delay: Some(delay),
    };
    let segment = Segment {
        text: "say \"hi\" & <go>".into(),
        start_s: 0.5,
        end_s: 1.5,
        words: vec![word("say", 0.5, 0.75), word("\"hi\"", 0.75, 1.0), word("&", 1.0, 1.2), word("<go>", 1.2, 1.5)],
        tokens: vec![token],
        confidence: None,
        alternatives: vec![Alternative { text: "stay".into(), confidence: 0.25, score: -3.5 }],
        ended_by: Some(super::EndReason::Rule2),
        ..Segment::default()
    };
    let (id, path, channel) = ("a 1".into(), Some("d/a 1.wav".into()), "A".into());
    let segments = vec![segment, Segment::default()];
    Transcript { id, path, channel, duration_s: 2.0, segments, ..Transcript::default() }
}

#[test]
fn lines_are_those_of_the_formats() {
    let transcript = small();
    assert_eq!(transcript.format(Format::Text), "say \"hi\" & <go>\n");
    assert_eq!(transcript.format(Format::Trn), "say \"hi\" & <go> (a%201)\n");
    assert_eq!(transcript.format(Format::Ctm).lines().next(), Some("a%201 A 0.500 0.250 say 0.8750"));
    assert_eq!(transcript.format(Format::Csv).lines().nth(2), Some("a 1,A,0,\"\"\"hi\"\"\",0.750,1.000,0.8750"));
    let srt = "1\n00:00:00,500 --> 00:00:01,500\nsay \"hi\" & <go>\n\n";
    assert_eq!(transcript.format(Format::Srt), srt);
    let vtt = "WEBVTT\n\n00:00:00.500 --> 00:00:01.500\nsay \"hi\" &amp; &lt;go&gt;\n\n";
    assert_eq!(transcript.format(Format::Vtt), vtt);
    let grid = transcript.format(Format::TextGrid);
    assert!(grid.contains("xmin = 0.750\n            xmax = 1.000\n            text = \"\"\"hi\"\"\"\n"), "{grid}");
}

#[test]
fn json_has_everything_that_is_known() {
    let value: serde_json::Value = serde_json::from_str(&small().format(Format::Json)).unwrap();
    assert_eq!(value["text"], "say \"hi\" & <go>");
    let token = &value["segments"][0]["tokens"][0];
    assert_eq!(token["evidence"]["runner_up"], "b");
    assert_eq!(token["evidence"]["agrees"], true);
    assert_eq!(token["delay"]["buffering_ms"], 12.5);
    assert_eq!(value["segments"][0]["alternatives"][0]["score"], -3.5);
    assert!(value["segments"][0].get("confidence").is_none());
    let bad = Transcript { duration_s: f64::NAN, ..small() };
    let value: serde_json::Value = serde_json::from_str(&bad.format(Format::Json)).unwrap();
    assert!(value["duration_s"].is_null());
}

#[test]
fn events_of_a_stream_are_the_segments_and_the_end() {
    let transcript = small();
    let parse = |text: String| -> serde_json::Value { serde_json::from_str(&text).unwrap() };
    let mut ended = parse(transcript.segments[0].to_event("a 1"));
    assert_eq!((&ended["type"], &ended["id"]), (&"final".into(), &"a 1".into()));
    let fields = ended.as_object_mut().unwrap();
    fields.remove("type");
    fields.remove("id");
    assert_eq!(ended, parse(transcript.segments[0].to_json()));
    assert_eq!(parse(transcript.segments[1].to_event("b"))["type"], "partial");
    let end = parse(transcript.end_event());
    assert_eq!((&end["type"], &end["duration_s"], &end["path"]), (&"end".into(), &2.0.into(), &"d/a 1.wav".into()));
}

#[test]
fn subtitles_are_as_short_as_asked_for() {
    let words = (0..40).map(|i| word("word", f64::from(i) * 0.5, f64::from(i) * 0.5 + 0.4)).collect();
    let transcript = Transcript { segments: vec![Segment { words, ..Segment::default() }], ..Transcript::default() };
    let options = super::SubtitleOptions { line_chars: 10, max_lines: 1, max_s: 2.0 };
    let cues = blocks(&transcript.format_with(Format::Srt, &options));
    assert_eq!(cues.len(), 20);
    for (start_ms, end_ms, lines) in cues {
        assert!(end_ms - start_ms <= 2000 && lines.len() == 1 && lines[0].len() <= 10, "{lines:?}");
    }
    assert!(blocks(&transcript.format(Format::Srt)).len() < 10);
}

#[test]
fn formats_are_found_by_name_and_ending() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
        assert_eq!(format.extension().to_uppercase().parse(), Ok(format));
    }
    let error = "doc".parse::<Format>().unwrap_err().to_string();
    assert_eq!(error, "unknown format `doc`, expected one of text, json, ctm, trn, srt, vtt, TextGrid, csv");
}

#[test]
fn a_transcript_of_phones_shows_them_as_words() {
    let mut transcript = small();
    transcript.segments[0].words.clear();
    assert_eq!(transcript.format(Format::Ctm), "a%201 A 0.500 0.040 a 0.9000\n");
}

fn any_transcript() -> impl Strategy<Value = Transcript> {
    let word = ("\\PC{0,12}|[a-z]{1,100}", 0.0f64..3.0, 0.0f64..9.0);
    proptest::collection::vec(word, 0..40).prop_map(|words| {
        let mut now_s = 0.0;
        let timed = words.into_iter().map(|(text, pause_s, length_s)| {
            let start_s = now_s + pause_s * f64::from(u8::from(pause_s > 2.0));
            now_s = start_s + length_s / 9.0;
            Word { text, start_s, end_s: now_s, confidence: None }
        });
        let words: Vec<Word> = timed.collect();
        let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        let segment = Segment { text, words, ..Segment::default() };
        Transcript { id: "x(1)\n;".into(), duration_s: now_s, segments: vec![segment], ..Transcript::default() }
    })
}

/// The blocks of a SubRip file: times in milliseconds and lines.
fn blocks(srt: &str) -> Vec<(u64, u64, Vec<String>)> {
    let ms = |stamp: &str| -> u64 {
        let numbers: Vec<u64> = stamp.split([':', ',']).map(|n| n.parse().unwrap()).collect();
        ((numbers[0] * 60 + numbers[1]) * 60 + numbers[2]) * 1000 + numbers[3]
    };
    let block = |block: &str| {
        let lines: Vec<&str> = block.split('\n').collect();
        let (start, end) = lines[1].split_once(" --> ").unwrap();
        (ms(start), ms(end), lines[2..].iter().map(|line| (*line).to_owned()).collect())
    };
    srt.split_terminator("\n\n").map(block).collect()
}

/// The words of a transcript in segments, each of which ends where the next one begins or before.
fn in_segments(transcript: &Transcript, lengths: &[usize]) -> Transcript {
    let mut words = transcript.segments[0].words.clone();
    let mut segments = Vec::new();
    for length in lengths {
        let rest = words.split_off((*length).min(words.len()));
        let next_s = rest.first().map_or(transcript.duration_s, |word: &Word| word.start_s);
        segments.push(Segment { end_s: next_s, words: std::mem::replace(&mut words, rest), ..Segment::default() });
    }
    segments.push(Segment { end_s: transcript.duration_s, words, ..Segment::default() });
    Transcript { segments, ..transcript.clone() }
}

proptest! {
    #[test]
    fn cues_of_a_stream_are_those_of_the_file(
        transcript in any_transcript(),
        lengths in proptest::collection::vec(0usize..6, 0..8),
    ) {
        let transcript = in_segments(&transcript, &lengths);
        for format in [Format::Srt, Format::Vtt] {
            let mut stream = SubtitleStream::new(format, SubtitleOptions::default()).unwrap();
            let mut text: String = transcript.segments.iter().map(|segment| stream.push(segment)).collect();
            text += &stream.finish();
            prop_assert_eq!(text, transcript.format(format));
        }
    }

    #[test]
    fn subtitles_can_be_read_in_their_time(transcript in any_transcript()) {
        let mut end_before = 0;
        for (start, end, lines) in blocks(&transcript.format(Format::Srt)) {
            prop_assert!(end_before <= start + 1 && start < end && end - start <= 7001, "{start} {end}");
            prop_assert!(lines.len() <= 2 && lines.iter().all(|line| line.chars().count() <= 42));
            end_before = end;
        }
    }

    #[test]
    fn what_is_written_is_read_back_by_the_scorer(transcript in any_transcript()) {
        let source = |text: String| Source { path: "x".into(), bytes: text.into_bytes() };
        let utf8 = Encoding::Utf8(Language::Generic);
        let words = parse_ctm(&source(transcript.format(Format::Ctm)), utf8, true).unwrap();
        prop_assert_eq!(words.words.len(), transcript.segments[0].words.len());
        let options = TrnOptions { encoding: utf8, is_case_sensitive: true, ..TrnOptions::default() };
        let lines = parse_trn(&source(transcript.format(Format::Trn)), options).unwrap();
        prop_assert!(lines.iter().all(|line| srf_score::formats::id_name(&line.id) == transcript.id));
        prop_assert!(words.words.iter().all(|word| *word.file == *srf_base::ids::encode(&transcript.id).as_bytes()));
    }

    #[test]
    fn intervals_of_a_text_grid_have_no_gaps(transcript in any_transcript()) {
        let grid = transcript.format(Format::TextGrid);
        let times = |name: &str| -> Vec<String> {
            grid.lines().filter_map(|line| line.strip_prefix(&format!("            {name} = ")).map(String::from)).collect()
        };
        let (starts, ends) = (times("xmin"), times("xmax"));
        for (end, start) in ends.iter().zip(starts.iter().skip(1)) {
            prop_assert!(end == start || start == "0.000");
        }
        prop_assert!(starts.iter().zip(&ends).all(|(s, e)| s.parse::<f64>().unwrap() < e.parse::<f64>().unwrap()));
    }
}
