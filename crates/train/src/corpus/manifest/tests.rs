//! Manifests of others, broken ones, and our own read back.

use proptest::prelude::*;

use super::*;

fn read_str(text: &str) -> (Vec<Listed>, Vec<String>) {
    let (listed, problems) = read(text.as_bytes(), Path::new("dir/m.jsonl"));
    (listed, problems.iter().map(ToString::to_string).collect())
}

#[test]
fn nemo_lines_are_read_with_paths_beside_the_manifest() {
    let (listed, problems) = read_str(r#"{"audio_filepath": "a/x.wav", "duration": 1.5, "text": "hi", "lang": "en"}"#);
    assert_eq!(problems, Vec::<String>::new());
    let utterance = &listed[0].utterance;
    assert_eq!(utterance.audio.path, Path::new("dir/a/x.wav"));
    assert_eq!((utterance.id.as_str(), utterance.speaker.as_str()), ("x", "x"));
    assert_eq!((utterance.text.as_str(), utterance.sentence.as_str()), ("hi", "hi"));
    assert_eq!((utterance.audio.duration_s, utterance.audio.offset_s), (Some(1.5), None));
}

#[test]
fn ids_have_folders_where_names_of_recordings_collide() {
    let lines = ["a/x/1.wav", "b/x/1.wav", "b/y/1.wav", "b/y/2.wav", "3.wav"]
        .map(|path| format!("{{\"audio_filepath\": \"{path}\", \"text\": \"a\"}}"));
    let (listed, problems) = read_str(&lines.join("\n"));
    assert_eq!(problems, Vec::<String>::new());
    let ids: Vec<&str> = listed.iter().map(|listed| listed.utterance.id.as_str()).collect();
    assert_eq!(ids, ["a-x-1", "b-x-1", "y-1", "2", "3"]);
    assert_eq!(listed[0].utterance.speaker, "a-x-1");
    // One recording listed twice stays one id, which is a problem that `prepare` reports.
    let (listed, _) = read_str(&[lines[0].as_str(), &lines[0]].join("\n"));
    assert_eq!([&listed[0], &listed[1]].map(|listed| listed.utterance.id.as_str()), ["1", "1"]);
}

#[test]
fn short_keys_and_phones_are_read_too() {
    let line = r#"{"id":"u","audio":"/x.flac","speaker":"s","dur":2,"phones":[[0,0.5,"aa"],[0.5,1,"b"]],"phone_seq":["AA","B"]}"#;
    let (listed, problems) = read_str(line);
    assert_eq!(problems, Vec::<String>::new());
    let utterance = &listed[0].utterance;
    assert_eq!(utterance.phones[1], Timed { start_s: 0.5, end_s: 1.0, name: "b".to_owned() });
    assert_eq!(utterance.phone_seq, ["AA", "B"]);
    assert_eq!(utterance.audio.path, Path::new("/x.flac"));
}

#[test]
fn a_line_broken_in_the_middle_is_told_and_the_rest_goes_on() {
    let good = r#"{"audio_filepath": "x.wav", "text": "a"}"#;
    let (listed, problems) = read_str(&format!("{good}\n{}\n\n{good}\n{{\"text\": 3}}\n", &good[..20]));
    assert_eq!(listed.iter().map(|listed| listed.line).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(problems.len(), 2);
    assert_eq!(problems[0], "dir/m.jsonl:2: not a manifest entry: EOF while parsing a string at column 20");
    assert!(problems[1].starts_with("dir/m.jsonl:5: not a manifest entry: invalid type"), "{}", problems[1]);
}

#[test]
fn times_out_of_order_are_told() {
    let (listed, problems) = read_str(r#"{"audio":"x.wav","text":"a","words":[[1,2,"a"],[0.5,3,"b"]]}"#);
    assert_eq!(listed.len(), 1);
    let expected = "utterance `x`: word `b` from 0.5 to 3, expected an end after its start, in order";
    assert_eq!(problems, [format!("dir/m.jsonl:1: {expected}")]);
}

#[test]
fn a_missing_manifest_is_a_problem() {
    let (listed, problems) = load(Path::new("/nowhere/m.jsonl"));
    assert_eq!((listed.len(), problems.len()), (0, 1));
}

fn any_timed() -> impl Strategy<Value = Vec<Timed>> {
    let pieces = prop::collection::vec((1u32..1000, "\\PC{0,5}"), 0..4);
    pieces.prop_map(|pieces| {
        let mut at = 0.0;
        let mut next = |n_ms: u32| {
            let start = at;
            at += f64::from(n_ms) / 1000.0;
            (start, at)
        };
        let timed = pieces.into_iter().map(|(n_ms, name)| {
            let (start_s, end_s) = next(n_ms);
            Timed { start_s, end_s, name }
        });
        timed.collect()
    })
}

prop_compose! {
    fn any_utterance()(
        id in "\\PC{1,8}", speaker in "\\PC{1,8}", name in "[a-zé ]{1,8}", text in "\\PC{0,20}", sentence in "\\PC{1,20}",
        offset_s in prop::option::of(0.0..1e4), duration_s in prop::option::of(0.0..1e4), channel in prop::option::of(0usize..4),
        phones in any_timed(), words in any_timed(), phone_seq in prop::collection::vec("\\PC{0,3}", 0..4),
    ) -> Utterance {
        let audio = AudioPart { path: Path::new("/audio").join(name), offset_s, duration_s, channel };
        Utterance { id, speaker, audio, text, sentence, phone_seq, phones, words }
    }
}

proptest! {
    #[test]
    fn what_is_saved_is_loaded(utterances in prop::collection::vec(any_utterance(), 0..4)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        save(&path, &utterances).unwrap();
        let (listed, problems) = load(&path);
        prop_assert_eq!(problems.len(), 0);
        let loaded: Vec<Utterance> = listed.into_iter().map(|listed| listed.utterance).collect();
        prop_assert_eq!(loaded, utterances);
    }
}
