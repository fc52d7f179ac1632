//! Every problem of a manifest is found, with its line.

use std::fs;

use proptest::prelude::*;
use srf_text::labels::Units;

use super::super::Unwatched;
use super::super::testing::{save_wav, shown};
use super::*;

#[test]
fn every_problem_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    save_wav(&dir.path().join("a.wav"), 1.0);
    fs::write(dir.path().join("bad.wav"), "RIFF").unwrap();
    let lines = [
        r#"{"id":"ok","audio_filepath":"a.wav","duration":1.0,"text":"a b"}"#,
        r#"{"id":"gone","audio_filepath":"gone.wav","duration":1.0,"text":"a"}"#,
        r#"{"id":"bad","audio_filepath":"bad.wav","duration":1.0,"text":"a"}"#,
        r#"{"id":"long","audio_filepath":"a.wav","duration":1.5,"text":"a"}"#,
        r#"{"id":"late","audio_filepath":"a.wav","offset":0.5,"duration":0.8,"text":"a"}"#,
        r#"{"id":"ok","audio_filepath":"a.wav","duration":1.0,"text":"a"}"#,
        r#"{"id":"empty","audio_filepath":"a.wav","duration":1.0,"text":"  "}"#,
        r#"{"id":"label","audio_filepath":"a.wav","duration":1.0,"text":"a x"}"#,
        r#"{"id":"many","audio_filepath":"a.wav","offset":0.0,"duration":0.1,"text":"a a b"}"#,
        r#"{"id":"cut","audio_filep"#,
        r#"{"id":"none","audio_filepath":"a.wav","text":"a"}"#,
    ];
    let manifest = dir.path().join("m.jsonl");
    fs::write(&manifest, lines.join("\n")).unwrap();
    let labels = LabelSet::new(Units::Phones, ["a", "b"]).unwrap();
    let (validated, problems) = validate(&manifest, Some(&labels), Depth::Headers, &Unwatched);
    assert_eq!(validated.n_utterances, 10);
    let shown: Vec<String> = shown(&problems).iter().map(|p| p.split_once("m.jsonl:").unwrap().1.to_owned()).collect();
    assert_eq!(shown.len(), 10, "{shown:#?}");
    assert!(shown[0].starts_with("2: utterance `gone`: could not read `"), "{}", shown[0]);
    assert!(shown[1].starts_with("3: utterance `bad`: `"), "{}", shown[1]);
    assert_eq!(shown[2], "4: utterance `long` is listed as 1.5 s long, but its audio is 1 s long");
    assert_eq!(shown[3], "5: utterance `late` ends at 1.3 s, but its audio is 1 s long");
    assert_eq!(shown[4], "6: id `ok` was already used by line 1");
    assert_eq!(shown[5], "7: utterance `empty` has no text");
    assert_eq!(shown[6], "8: utterance `label`: label 2 is `x`, which is not in the label set");
    assert_eq!(shown[7], "9: utterance `many`: 3 labels need 4 output frames, its 0.1 s give 2");
    assert!(shown[8].starts_with("10: not a manifest entry: "), "{}", shown[8]);
    assert_eq!(shown[9], "11: utterance `none` has no duration, but its audio is 1 s long");
}

#[test]
fn damage_inside_a_recording_shows_when_samples_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let wav = dir.path().join("a.wav");
    save_wav(&wav, 1.0);
    let mut bytes = fs::read(&wav).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(&wav, bytes).unwrap();
    let manifest = dir.path().join("m.jsonl");
    fs::write(&manifest, r#"{"audio_filepath":"a.wav","duration":1.0,"text":"a"}"#).unwrap();
    let (_, problems) = validate(&manifest, None, Depth::Samples, &Unwatched);
    assert_eq!(problems.len(), 1, "{:?}", shown(&problems));
}

#[test]
fn output_frames_are_a_quarter_of_the_windows_that_fit_rounded_up() {
    assert_eq!(n_output_frames(0.024), 0);
    assert_eq!(n_output_frames(0.025), 1);
    assert_eq!(n_output_frames(0.055), 1);
    assert_eq!(n_output_frames(0.065), 2);
    assert_eq!(n_output_frames(1.0), 25);
    assert_eq!(n_output_frames(f64::NAN), 0);
}

/// Whether some path of `n_frames` classes collapses to `labels`: by trying them all.
fn is_reachable(labels: &[usize], n_frames: usize) -> bool {
    const BLANK: usize = 3;
    let n_paths = (BLANK + 1).pow(n_frames as u32);
    (0..n_paths).any(|mut path| {
        let mut collapsed = Vec::new();
        let mut previous = BLANK;
        for _ in 0..n_frames {
            let class = path % (BLANK + 1);
            path /= BLANK + 1;
            if class != previous && class != BLANK {
                collapsed.push(class);
            }
            previous = class;
        }
        collapsed == labels
    })
}

proptest! {
    #[test]
    fn frames_needed_are_those_of_the_shortest_path(labels in prop::collection::vec(0usize..3, 0..4)) {
        let n_needed = n_frames_needed(&labels);
        prop_assert!(is_reachable(&labels, n_needed));
        prop_assert!(n_needed == 0 || !is_reachable(&labels, n_needed - 1));
    }
}

#[test]
fn the_checksum_covers_every_byte_of_every_recording() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = dir.path().join("m.jsonl");
    std::fs::write(&manifest, "{\"audio_filepath\": \"a.raw\", \"text\": \"a\"}\n").unwrap();
    let mut bytes = vec![7; 100_000];
    std::fs::write(dir.path().join("a.raw"), &bytes).unwrap();
    let before = checksum(&manifest).unwrap();
    assert_eq!(before, checksum(&manifest).unwrap());
    bytes[50_000] = 8;
    std::fs::write(dir.path().join("a.raw"), &bytes).unwrap();
    assert_ne!(checksum(&manifest).unwrap(), before);
    std::fs::remove_file(dir.path().join("a.raw")).unwrap();
    assert!(checksum(&manifest).unwrap_err().to_string().contains("a.raw`: "));
}
