//! `srf transcribe`, `align`, `gop` and `verify-stream`, as typed, with a tiny model of random weights.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../asr/tests/tiny/mod.rs"]
mod tiny;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use srf::directory::write;
use srf_model::config::Cmvn;
use srf_model::random::Random;
use srf_text::labels::Units;
use tempfile::TempDir;

const PHONES: &[&str] = &["sil", "aa", "b", "iy", "k", "s"];

/// A directory with `model` and, of random weights too, `by-speaker`; and a second of sound in `a.wav` and `b.wav`.
fn workplace() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("model"), &tiny::parts(Cmvn::Online, Units::Phones, PHONES)).unwrap();
    write(&dir.path().join("by-speaker"), &tiny::parts(Cmvn::Speaker, Units::Phones, PHONES)).unwrap();
    for (seed, name) in [(1, "a.wav"), (2, "b.wav")] {
        tiny::save(&dir.path().join(name), &tiny::sound(seed, 32_000), 16_000);
    }
    dir
}

fn srf(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srf")).args(args).current_dir(dir).env_remove("SRF_MODEL").output().unwrap()
}

/// The same with bytes on stdin.
fn piped(dir: &Path, args: &[&str], bytes: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_srf"))
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The command may have seen enough and gone.
    let _ = stdin.write_all(bytes);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command that must succeed prints.
fn printed(dir: &Path, args: &[&str]) -> String {
    let output = srf(dir, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn a_model_here_is_found_and_files_streams_and_pipes_give_the_same_text() {
    let dir = workplace();
    let text = printed(dir.path(), &["transcribe", "a.wav"]);
    assert!(text.split_whitespace().count() > 1, "{text}");
    assert_eq!(printed(dir.path(), &["transcribe", "a.wav", "--stream", "--chunk-ms", "37"]), text);
    let bytes = fs::read(dir.path().join("a.wav")).unwrap();
    assert_eq!(stdout(&piped(dir.path(), &["transcribe", "-"], &bytes)), text);
    assert_eq!(stdout(&piped(dir.path(), &["transcribe", "-", "--stream"], &bytes)), text);
    // Raw samples, the header left out.
    assert_eq!(stdout(&piped(dir.path(), &["transcribe", "-", "--raw"], &bytes[44..])), text);
    assert_eq!(stdout(&piped(dir.path(), &["transcribe", "-", "--rate", "16000"], &bytes[44..])), text);
}

#[test]
fn stdin_that_is_no_recording_is_refused_unless_it_is_said_to_be_raw() {
    let dir = workplace();
    for bytes in [b"# A text\nin plain English, not a recording".as_slice(), &[0; 400]] {
        let output = piped(dir.path(), &["transcribe", "-"], bytes);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
        let message = stderr(&output);
        assert!(message.contains("`stdin` begins with") && message.contains("--raw"), "{message}");
    }
}

#[test]
fn recordings_that_were_cut_off_are_transcribed_and_reported() {
    let dir = workplace();
    let bytes = fs::read(dir.path().join("a.wav")).unwrap();
    let half = &bytes[..44 + (bytes.len() - 44) / 2];
    fs::write(dir.path().join("half.wav"), half).unwrap();
    let mut whole = half.to_vec();
    whole[40..44].copy_from_slice(&(half.len() as u32 - 44).to_le_bytes());
    fs::write(dir.path().join("whole.wav"), &whole).unwrap();
    let expected = printed(dir.path(), &["transcribe", "whole.wav"]);
    for output in [
        srf(dir.path(), &["transcribe", "half.wav"]),
        srf(dir.path(), &["transcribe", "half.wav", "--stream"]),
        piped(dir.path(), &["transcribe", "-"], half),
        piped(dir.path(), &["transcribe", "-", "--stream"], half),
    ] {
        assert_eq!((output.status.code(), stdout(&output)), (Some(1), expected.clone()));
        assert!(
            stderr(&output).contains("ends after 16000 samples, but its header claims 32000"),
            "{}",
            stderr(&output)
        );
    }
    let json = stdout(&srf(dir.path(), &["transcribe", "half.wav", "--format", "json"]));
    assert!(json.contains("\"incomplete\":\""), "{json}");
}

/// The same Ogg data as if more pages followed the last one.
fn without_end_mark(bytes: &[u8]) -> Vec<u8> {
    const END: u8 = 4;
    let mut bytes = bytes.to_vec();
    let page = bytes.windows(4).rposition(|four| four == b"OggS").unwrap();
    bytes[page + 5] &= !END;
    bytes[page + 22..page + 26].fill(0);
    let add = |crc: u32, byte: &u8| {
        let shift = |crc: u32, _| if crc >> 31 == 1 { crc << 1 ^ 0x04c1_1db7 } else { crc << 1 };
        (0..8).fold(crc ^ u32::from(*byte) << 24, shift)
    };
    let crc = bytes[page..].iter().fold(0, add);
    bytes[page + 22..page + 26].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// An Ogg file has no count of samples: only the mark on its last page says that it is whole.
#[test]
fn an_ogg_file_without_its_end_is_reported() {
    let dir = workplace();
    let bytes = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../audio/tests/data/tone.ogg")).unwrap();
    let cut = &without_end_mark(&bytes);
    fs::write(dir.path().join("whole.ogg"), &bytes).unwrap();
    fs::write(dir.path().join("cut.ogg"), cut).unwrap();
    printed(dir.path(), &["transcribe", "whole.ogg"]);
    for output in [srf(dir.path(), &["transcribe", "cut.ogg"]), piped(dir.path(), &["transcribe", "-"], cut)] {
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("before the end of its Ogg data; what is there was"), "{}", stderr(&output));
    }
}

/// `srf` with only this directory on the path of programs.
#[cfg(unix)]
fn srf_with_programs(dir: &Path, programs: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srf"));
    command.args(args).current_dir(dir).env_remove("SRF_MODEL").env("PATH", programs).output().unwrap()
}

/// The script stands for `ffmpeg`: it writes down its arguments and writes a recording that we know.
#[test]
#[cfg(unix)]
fn other_codecs_are_decoded_by_ffmpeg_if_it_is_installed() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = workplace();
    let opus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audio/tests/data/tone.webm");
    fs::copy(opus, dir.path().join("talk.webm")).unwrap();
    let programs = dir.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let install = |script: &str| {
        let program = programs.join("ffmpeg");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let transcribe = || srf_with_programs(dir.path(), &programs, &["transcribe", "talk.webm"]);

    let without = transcribe();
    assert_eq!(without.status.code(), Some(1));
    assert!(stderr(&without).contains("install `ffmpeg`, or pipe: `ffmpeg -i talk.webm -f wav - |"));

    install("echo \"$@\" > arguments; exec /bin/cat a.wav");
    let with = transcribe();
    assert_eq!((with.status.code(), stdout(&with)), (Some(0), printed(dir.path(), &["transcribe", "a.wav"])));
    assert!(stderr(&with).contains("1 recordings are decoded by the program `ffmpeg`"), "{}", stderr(&with));
    let arguments = fs::read_to_string(dir.path().join("arguments")).unwrap();
    assert_eq!(arguments, "-v error -nostdin -i file:talk.webm -vn -c:a pcm_s16le -f wav -\n");

    install("/bin/cat a.wav; exit 1");
    let failed = transcribe();
    assert_eq!((failed.status.code(), stdout(&failed)), (Some(1), String::new()));
    assert!(stderr(&failed).contains("Matroska header"), "{}", stderr(&failed));
}

#[test]
fn files_of_equal_names_keep_their_places_and_none_is_lost() {
    let dir = workplace();
    let text = |name| printed(dir.path(), &["transcribe", name]).trim().to_owned();
    let (a, b) = (text("a.wav"), text("b.wav"));
    for (source, target) in [("a.wav", "tree/one/x.wav"), ("b.wav", "tree/two/x.wav"), ("b.wav", "tree/two/y.wav")] {
        let target = dir.path().join(target);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(dir.path().join(source), target).unwrap();
    }
    let expected = format!("one/x {a}\ntwo/x {b}\ny {b}\n");
    assert_eq!(printed(dir.path(), &["transcribe", "tree"]), expected);
    assert_eq!(printed(dir.path(), &["transcribe", "tree", "--stream"]), expected);
    printed(dir.path(), &["transcribe", "tree", "--out", "texts"]);
    for (file, text) in [("one/x.txt", &a), ("two/x.txt", &b), ("two/y.txt", &b)] {
        assert_eq!(fs::read_to_string(dir.path().join("texts").join(file)).unwrap().trim(), text, "{file}");
    }
    printed(dir.path(), &["transcribe", "tree/one/x.wav", "tree/two/x.wav", "--out", "named"]);
    assert!(dir.path().join("named/tree/one/x.txt").is_file() && dir.path().join("named/tree/two/x.txt").is_file());
    let json = printed(dir.path(), &["transcribe", "tree", "--format", "json"]);
    assert!(json.contains("\"id\":\"two/x\"") && json.contains("\"path\":\"tree/two/x.wav\""), "{json}");
}

#[test]
fn an_id_is_one_field_and_cannot_lead_out_of_the_directory() {
    let dir = workplace();
    let line = r#"{"id":"../up\u001b[31m\nx y","audio_filepath":"a.wav","text":""}"#;
    fs::write(dir.path().join("list.jsonl"), line).unwrap();
    let text = printed(dir.path(), &["transcribe", "list.jsonl"]);
    assert!(text.starts_with("../up%1B[31m%0Ax%20y ") && text.lines().count() == 1, "{text}");
    printed(dir.path(), &["transcribe", "list.jsonl", "--out", "out"]);
    assert!(dir.path().join("out/%2E./up%1B[31m%0Ax y.txt").is_file());
}

#[test]
fn commands_in_a_list_are_refused_and_counted() {
    let dir = workplace();
    let lines: String = (1..=6).map(|n| format!("u{n} sox x{n}.wav -t wav - |\n")).collect();
    fs::write(dir.path().join("wav.scp"), format!("{lines}a a.wav\n")).unwrap();
    let output = srf(dir.path(), &["transcribe", "wav.scp"]);
    assert_eq!((output.status.code(), stdout(&output).lines().count()), (Some(1), 1));
    let message = stderr(&output);
    assert!(
        message.contains("`srf prepare kaldi --allow-commands` runs") && message.contains("3 more like"),
        "{message}"
    );
}

#[test]
fn channels_are_mixed_with_a_note_split_or_chosen() {
    let dir = workplace();
    let [a, b] = ["a.wav", "b.wav"].map(|name| fs::read(dir.path().join(name)).unwrap()[44..].to_vec());
    let mut stereo = fs::read(dir.path().join("a.wav")).unwrap()[..44].to_vec();
    stereo[22] = 2;
    stereo[32] = 4;
    stereo[40..44].copy_from_slice(&(2 * a.len() as u32).to_le_bytes());
    stereo.extend(a.chunks(2).zip(b.chunks(2)).flat_map(|(a, b)| [a, b].concat()));
    fs::write(dir.path().join("call.wav"), &stereo).unwrap();
    let alone = ["a.wav", "b.wav"].map(|name| printed(dir.path(), &["transcribe", name]));
    let mixed = srf(dir.path(), &["transcribe", "call.wav"]);
    assert!(stderr(&mixed).contains("1 recordings have several channels, which are mixed"), "{}", stderr(&mixed));
    let split = printed(dir.path(), &["transcribe", "call.wav", "--channels", "split"]);
    assert_eq!(split, format!("call-A {}\ncall-B {}\n", alone[0].trim(), alone[1].trim()));
    assert_eq!(printed(dir.path(), &["transcribe", "call.wav", "--channel", "1"]), alone[1]);
    assert_eq!(stdout(&piped(dir.path(), &["transcribe", "-", "--channel", "1"], &stereo)), alone[1]);
    let ctm = printed(dir.path(), &["transcribe", "call.wav", "--channels", "split", "--format", "ctm"]);
    assert!(ctm.lines().any(|line| line.starts_with("call-B B ")), "{ctm}");
    assert_eq!(srf(dir.path(), &["transcribe", "call.wav", "--channel", "2"]).status.code(), Some(1));
    assert!(!stderr(&srf(dir.path(), &["transcribe", "a.wav"])).contains("channels"));
}

#[test]
#[cfg(unix)]
fn a_fifo_is_refused_instead_of_waited_for() {
    let dir = workplace();
    assert!(Command::new("mkfifo").arg(dir.path().join("pipe.wav")).status().unwrap().success());
    let output = srf(dir.path(), &["transcribe", "pipe.wav"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not a regular file"), "{}", stderr(&output));
}

#[test]
fn many_recordings_are_told_by_name_on_any_number_of_threads() {
    let dir = workplace();
    let one = printed(dir.path(), &["transcribe", "a.wav", "b.wav", "--threads", "1"]);
    assert_eq!(printed(dir.path(), &["transcribe", "a.wav", "b.wav", "--threads", "3"]), one);
    let alone = printed(dir.path(), &["transcribe", "b.wav"]);
    assert_eq!(one.lines().nth(1).unwrap(), format!("b {}", alone.trim()));
    let by_speaker = printed(dir.path(), &["transcribe", "-m", "by-speaker", "a.wav"]);
    assert!(!by_speaker.trim().is_empty());
}

#[test]
fn voice_activity_detection_ends_utterances_at_silence_in_files_and_streams() {
    let dir = workplace();
    let silence = vec![0.0; 32_000];
    let long = [tiny::sound(1, 32_000), silence.clone(), tiny::sound(2, 32_000), silence].concat();
    tiny::save(&dir.path().join("long.wav"), &long, 16_000);
    let json = |more: &[&str]| printed(dir.path(), &[&["transcribe", "long.wav", "-f", "json"], more].concat());
    assert!(json(&["--vad"]).contains("\"ended_by\":\"vad\"") && !json(&[]).contains("\"vad\""));
    let text = |more: &[&str]| printed(dir.path(), &[&["transcribe", "long.wav", "--vad"], more].concat());
    assert_eq!(text(&["--stream"]), text(&[]));
    assert_eq!(text(&["--vad-threshold", "90"]).trim(), "", "nothing is 90 dB above silence");
    printed(dir.path(), &["verify-stream", "-m", "model", "long.wav", "--vad", "--random", "3"]);
    let without = srf(dir.path(), &["transcribe", "long.wav", "--vad-pad", "1"]);
    assert_eq!(without.status.code(), Some(2));
    let negative = srf(dir.path(), &["transcribe", "long.wav", "--vad", "--vad-pad=-1"]);
    assert!(stderr(&negative).contains("the padding is -1, expected 0 to 3600 s"), "{}", stderr(&negative));
}

#[test]
fn every_format_is_written_to_stdout_or_to_files() {
    let dir = workplace();
    for format in ["text", "json", "ctm", "trn", "srt", "vtt", "textgrid", "csv"] {
        let text = printed(dir.path(), &["transcribe", "a.wav", "--format", format]);
        assert!(!text.trim().is_empty(), "{format}");
        printed(dir.path(), &["transcribe", "a.wav", "b.wav", "--format", format, "--out", "out"]);
    }
    assert_eq!(fs::read_dir(dir.path().join("out")).unwrap().count(), 16);
    let both = srf(dir.path(), &["transcribe", "a.wav", "b.wav", "--format", "srt"]);
    assert_eq!(both.status.code(), Some(2));
    assert!(stderr(&both).contains("add `--out DIR`"), "{}", stderr(&both));
}

#[test]
fn json_tells_evidence_and_in_a_stream_the_delay_of_every_token() {
    let dir = workplace();
    let text = printed(dir.path(), &["transcribe", "a.wav", "--format", "json", "--nbest", "3"]);
    assert!(text.contains("coupling_mass") && !text.contains("algorithmic_ms"), "{text}");
    let stream = printed(dir.path(), &["transcribe", "a.wav", "--format", "json", "--stream"]);
    // 19 frames of look-ahead and half a window, as `srf info` says.
    assert!(stream.contains("\"algorithmic_ms\":202.5"), "{stream}");
    assert!(printed(dir.path(), &["info", "model"]).contains("delay            202.5 ms"));
}

#[test]
fn garbage_silence_and_nothing_on_stdin_are_taken_as_what_they_are() {
    let dir = workplace();
    let mut random = Random::new(3, "garbage");
    let garbage: Vec<u8> = (0..40_001).map(|_| (256.0 * random.uniform()) as u8).collect();
    for args in [&["transcribe", "-", "--raw"][..], &["transcribe", "-", "--stream", "--rate", "44100"]] {
        assert_eq!(piped(dir.path(), args, &garbage).status.code(), Some(0));
        assert_eq!(piped(dir.path(), args, &vec![0; 100_000]).status.code(), Some(0));
        assert_eq!(stdout(&piped(dir.path(), args, &[1])), stdout(&piped(dir.path(), args, &[1, 2])));
        let empty = piped(dir.path(), args, &[]);
        assert_eq!(empty.status.code(), Some(2));
        assert!(stderr(&empty).contains("`stdin` is empty"));
    }
    for mark in ["RIFF....WAVE", "RIFF....WAVEdata\u{1}\u{1}\u{1}\u{1}", "fLaC", "OggS", "ID3", "NIST_1A\n"] {
        let cut = piped(dir.path(), &["transcribe", "-"], mark.as_bytes());
        assert_eq!(cut.status.code(), Some(2), "{mark}: {}", stderr(&cut));
        let told = stderr(&cut);
        let first = told.lines().find(|line| !line.starts_with("the output is phones"));
        assert_eq!(first.map(|line| line.starts_with("error: ")), Some(true), "{mark}: {told}");
    }
    let absurd = piped(dir.path(), &["transcribe", "-", "--rate", "7"], &garbage);
    assert_eq!(absurd.status.code(), Some(2));
    assert!(stderr(&absurd).contains("a sample rate of 7 Hz cannot be resampled"), "{}", stderr(&absurd));
}

#[test]
fn a_bad_recording_among_good_ones_is_a_problem_and_a_bad_model_stops_all() {
    let dir = workplace();
    fs::write(dir.path().join("bad.wav"), b"RIFF\0\0\0\0WAVE").unwrap();
    tiny::save(&dir.path().join("one.wav"), &[5.0], 16_000);
    let output = srf(dir.path(), &["transcribe", "bad.wav", "a.wav", "missing.wav", "one.wav"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("bad.wav") && told.contains("missing.wav") && !told.contains("one.wav"), "{told}");
    assert_eq!(stdout(&output).lines().count(), 2);
    let output = srf(dir.path(), &["transcribe", "-m", "nothing", "a.wav"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    let live = piped(dir.path(), &["transcribe", "-m", "by-speaker", "-", "--raw", "--stream"], &[0; 1000]);
    assert!(stderr(&live).contains("no statistics of this speaker are known") && stderr(&live).contains("hint: "));
    let twice = piped(dir.path(), &["transcribe", "-m", "by-speaker", "-", "--raw"], &[0; 10_000]);
    assert_eq!(twice.status.code(), Some(0), "{}", stderr(&twice));
}

#[test]
fn hotwords_phrases_and_a_lexicon_change_what_is_written() {
    let dir = workplace();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    put("words.txt", "key k iy\nbee b iy\nspa s b aa\nah aa\n");
    let words = printed(dir.path(), &["transcribe", "a.wav", "--lexicon", "words.txt"]);
    assert!(words.split_whitespace().all(|word| ["key", "bee", "spa", "ah"].contains(&word)), "{words}");
    put("phrases.txt", "k iy\nb iy\n");
    let phrase = printed(dir.path(), &["transcribe", "a.wav", "--phrases", "phrases.txt"]);
    assert!(["k iy", "b iy", ""].contains(&phrase.replace("sil", "").trim()), "{phrase}");
    put("hot.txt", "k s k s:40\n");
    let plain = printed(dir.path(), &["transcribe", "a.wav"]);
    let hot = printed(dir.path(), &["transcribe", "a.wav", "--hotwords", "hot.txt"]);
    assert!(hot.contains("k s k s") && hot != plain, "{hot}");
    put("bad.txt", "k zz:40\n");
    let output = srf(dir.path(), &["transcribe", "a.wav", "--hotwords", "bad.txt"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn endpoint_rules_cut_where_they_say() {
    let dir = workplace();
    let n_lines = |args: &[&str]| printed(dir.path(), &[&["transcribe", "a.wav"], args].concat()).lines().count();
    assert_eq!(n_lines(&["--no-endpoint"]), 1);
    assert!(1 < n_lines(&["--rule3-min-utterance-length", "0.4"]));
    let output = srf(dir.path(), &["transcribe", "a.wav", "--rule1-min-trailing-silence", "-1"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn verify_stream_tells_what_it_compared() {
    let dir = workplace();
    let text = printed(dir.path(), &["verify-stream", "a.wav", "--random", "3"]);
    assert_eq!(text.lines().count(), 7);
    assert!(text.starts_with("a.wav: 32000 samples at 16000 Hz, "), "{text}");
    assert!(text.lines().skip(1).all(|line| line.ends_with("identical")), "{text}");
    assert!(text.lines().nth(1).unwrap().contains("32000 pieces of 1 sample"));
    assert!(printed(dir.path(), &["verify-stream", "-m", "by-speaker", "b.wav"]).contains("identical"));
    assert_eq!(srf(dir.path(), &["verify-stream", "missing.wav"]).status.code(), Some(1));
}

#[test]
fn align_and_gop_take_a_text_a_transcript_a_lexicon_or_a_manifest() {
    let dir = workplace();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    let grid = printed(dir.path(), &["align", "a.wav", "--text", "sil k iy s"]);
    assert!(grid.contains("TextGrid") && grid.contains("\"iy\""), "{grid}");
    put("words.txt", "key k iy\nspa s b aa\n");
    put("said.txt", "key spa\n");
    let ctm =
        printed(dir.path(), &["align", "a.wav", "--transcript", "said.txt", "--lexicon", "words.txt", "-f", "ctm"]);
    let words: Vec<&str> = ctm.lines().filter_map(|line| line.split_whitespace().nth(4)).collect();
    assert_eq!(words, ["key", "spa"], "{ctm}");
    let ctm = printed(dir.path(), &["align", "a.wav", "--text", "Key key", "--lexicon", "cmudict", "-f", "ctm"]);
    assert_eq!(ctm.lines().count(), 2, "{ctm}");
    put(
        "list.jsonl",
        "{\"audio_filepath\": \"a.wav\", \"text\": \"k iy\"}\n{\"audio_filepath\": \"b.wav\", \"text\": \"k zz\"}\n",
    );
    let output = srf(dir.path(), &["gop", "list.jsonl", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("label 2 is `zz`"), "{}", stderr(&output));
    let scored: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let labels = scored["labels"].as_array().unwrap();
    assert_eq!(labels.len(), 2);
    assert!(labels.iter().all(|label| (0.0..=100.0).contains(&label["score"].as_f64().unwrap())));
    assert!(printed(dir.path(), &["gop", "a.wav", "--text", "s aa"]).starts_with("a: "));
    let measured = printed(dir.path(), &["gop", "a.wav", "--text", "s aa k iy s aa k iy", "--replace", "2", "--json"]);
    let measured: serde_json::Value = serde_json::from_str(&measured).unwrap();
    assert_eq!(measured["labels"], 8);
    assert!((1..8).contains(&measured["replaced"].as_u64().unwrap()), "{measured}");
    assert!((0.0..=1.0).contains(&measured["auc"].as_f64().unwrap()), "{measured}");
    assert_eq!(srf(dir.path(), &["align", "a.wav"]).status.code(), Some(2));
    assert_eq!(srf(dir.path(), &["gop", "a.wav", "--text", " "]).status.code(), Some(1));
    let long = "aa b ".repeat(500);
    let output = srf(dir.path(), &["gop", "a.wav", "--text", &long]);
    assert!(stderr(&output).contains("1000 labels need at least 1000 slices"), "{}", stderr(&output));
}
