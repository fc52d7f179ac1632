//! Small corpora of each kind, prepared from end to end, and parsers on damaged input.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use srf_text::labels::timit::PhoneSet;
use srf_text::labels::{LabelSet, Units};

use super::kaldi::Commands;
use super::prepare::{Found, PrepareConfig, PrepareError, prepare};
use super::split::SplitConfig;
use super::targets::{Labels, TargetConfig};
use super::testing::{save_wav, shown};
use super::*;

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn wav(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    save_wav(path, 1.0);
}

fn prepare_to(out: &Path, corpus: Corpus, units: Units) -> (Result<summary::Summary, PrepareError>, Vec<Problem>) {
    let config = PrepareConfig { split: SplitConfig::default(), targets: TargetConfig::new(units), kaldi: false };
    prepare(Found { src: "src".into(), corpus, problems: Vec::new() }, &config, &|_| Vec::new(), out, &Unwatched)
}

#[test]
fn librispeech_has_its_parts_and_speakers() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("LibriSpeech");
    for set in ["train-clean-100", "dev-clean-2", "test-other"] {
        let chapter = root.join(set).join("84/121123");
        write(&chapter.join("84-121123.trans.txt"), format!("{set}-0000 GO DO YOU HEAR\n{set}-0001 GONE\n"));
        wav(&chapter.join(format!("{set}-0000.wav")));
    }
    let (corpus, problems) = librispeech::read(dir.path());
    let counts: Vec<(&str, usize)> = corpus.parts.iter().map(|p| (p.name.as_str(), p.utterances.len())).collect();
    assert_eq!(counts, [(TRAIN, 1), (DEV, 1), ("test-other", 1)]);
    assert_eq!(problems.len(), 3);
    assert!(
        problems[0].to_string().ends_with("trans.txt:2: the recording `dev-clean-2-0001.flac` not found"),
        "{}",
        problems[0]
    );
    assert_eq!(corpus.utterances().next().unwrap().sentence, "GO DO YOU HEAR");
}

#[test]
fn common_voice_is_read_by_its_columns() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("train.tsv"), "sentence\tpath\tclient_id\nHi there.\ta.mp3\tc1\n\tb.mp3\nNo\t\tc1\n");
    write(&dir.path().join("dev.tsv"), "path\tsentence\na.mp3\tHi\n");
    let (corpus, problems) = commonvoice::read(dir.path());
    let utterance = corpus.utterances().next().unwrap();
    assert_eq!((corpus.n_utterances(), utterance.id.as_str(), utterance.speaker.as_str()), (1, "a", "c1"));
    assert_eq!(utterance.audio.path, dir.path().join("clips/a.mp3"));
    assert_eq!(shown(&problems).len(), 3);
    let (corpus, problems) = commonvoice::read(&dir.path().join("nowhere"));
    assert_eq!((corpus.n_utterances(), problems.len()), (0, 1));
    write(&dir.path().join("validated.tsv"), "client_id\tpath\tsentence\nc1\ta.mp3\tHi\nc2\tb.mp3\tNo\n");
    let (corpus, problems) = commonvoice::read_validated(dir.path());
    assert_eq!((corpus.n_utterances(), problems.len()), (2, 0));
    let (corpus, problems) = commonvoice::read_validated(&dir.path().join("nowhere"));
    assert_eq!((corpus.n_utterances(), problems.len()), (0, 1));
}

#[test]
fn harpervalley_has_one_recording_per_side_and_no_tags() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let segment = |index: usize, role: &str, start_ms: usize, words: &str| {
        format!(
            "{{\"index\":{index},\"speaker_role\":\"{role}\",\"start_ms\":{start_ms},\"offset_ms\":9000,\
             \"duration_ms\":400,\"human_transcript\":\"{words}\",\"channel_index\":1}}"
        )
    };
    let segments = [
        segment(1, "agent", 100, "hello [noise] there"),
        segment(2, "caller", 500, "<unk> hi"),
        segment(3, "caller", 600, "[noise]"),
    ];
    write(&data.join("transcript/c1.json"), format!("[{}]", segments.join(",")));
    write(&data.join("metadata/c1.json"), r#"{"agent":{"speaker_id":46},"caller":{"speaker_id":4},"sid":"c1"}"#);
    write(&data.join("transcript/c2.json"), "[{\"index\":1}]");
    wav(&data.join("audio/agent/c1.wav"));
    wav(&data.join("audio/caller/c1.wav"));
    let (corpus, problems) = harpervalley::read(dir.path());
    let all: Vec<_> = corpus.utterances().map(|u| (u.id.as_str(), u.speaker.as_str(), u.sentence.as_str())).collect();
    assert_eq!(all, [("c1-agent-001", "hv046", "hello there"), ("c1-caller-002", "hv004", "hi")]);
    let audio = &corpus.utterances().nth(1).unwrap().audio;
    assert_eq!((audio.offset_s, audio.duration_s), (Some(0.5), Some(0.4)));
    assert!(audio.path.ends_with("audio/caller/c1.wav"));
    assert_eq!(problems.len(), 1);
    assert!(shown(&problems)[0].contains("c2.json: found \"missing field"), "{:?}", shown(&problems));
    let (_, problems) = harpervalley::read(&dir.path().join("nowhere"));
    assert_eq!(problems.len(), 2);
}

#[test]
fn a_corpus_is_not_written_over_other_files_or_another_corpus() {
    use super::prepare::check_out;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    check_out(&out, false).unwrap();
    write(&out.join("thesis.tex"), "precious");
    let error = check_out(&out, false).unwrap_err();
    assert!(error.to_string().ends_with("out` already holds other files"), "{error}");
    check_out(&out, true).unwrap();
    for name in ["summary.json", "labels.txt", "train.jsonl", "old.jsonl", "kaldi/train/text", "audio/a.wav"] {
        write(&out.join(name), "");
    }
    let error = check_out(&out, false).unwrap_err();
    assert!(error.to_string().ends_with("out` already holds a corpus"), "{error}");
    assert_eq!(error.hint().unwrap(), "`--force` replaces it");
    check_out(&out, true).unwrap();
    let mut left: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["audio", "thesis.tex"]);
}

#[test]
fn a_folder_is_read_with_every_kind_of_label() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for name in ["top.wav", "ann/one.wav", "ann/two.WAV", "bob/three.wav", "bob/four.wav", "bob/none.wav"] {
        wav(&path(name));
    }
    write(&path("top.txt"), "hello  world\n");
    write(&path("ann/one.phn"), "0 8000 h#\n8000 16000 aa\n");
    wav(&path("bob/old.wav"));
    write(&path("bob/old.txt"), b"caf\xe9");
    write(&path("ann/two.lab"), "0 5000000 sil\n5000000 10000000 b\n");
    write(&path("bob/three.lab"), "just words\n");
    let grid = "\"ooTextFile\" \"TextGrid\" 0 1 <exists> 1 \"IntervalTier\" \"Words\" 0 1 1 0 1 \"ça va\"";
    let utf16: Vec<u8> = [0xfeff].into_iter().chain(grid.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    write(&path("bob/four.TextGrid"), utf16);
    let (corpus, problems) = folder::read(dir.path());
    let mut found: Vec<(String, String, String, usize)> =
        corpus.utterances().map(|u| (u.id.clone(), u.speaker.clone(), u.sentence.clone(), u.phones.len())).collect();
    found.sort();
    let expected = [
        ("ann-one", "ann", "", 2),
        ("ann-two", "ann", "", 2),
        ("bob-four", "bob", "ça va", 0),
        ("bob-three", "bob", "just words", 0),
        ("top", "top", "hello world", 0),
    ];
    assert_eq!(found, expected.map(|(id, speaker, text, n)| (id.to_owned(), speaker.to_owned(), text.to_owned(), n)));
    assert_eq!(problems.len(), 2);
    assert!(problems[0].to_string().contains("none.wav: a label file next to it"), "{}", problems[0]);
    assert!(problems[1].to_string().ends_with("old.txt: not UTF-8 from byte 4 on"), "{}", problems[1]);
    let two = corpus.utterances().find(|u| u.id == "ann-two").unwrap();
    assert_eq!(two.phones[1], Timed { start_s: 0.5, end_s: 1.0, name: "b".to_owned() });
}

fn utterance(dir: &Path, id: &str, sentence: &str) -> Utterance {
    let path = dir.join(format!("{id}.wav"));
    Utterance {
        id: id.to_owned(),
        speaker: "s".to_owned(),
        audio: AudioPart { path, ..AudioPart::default() },
        sentence: sentence.to_owned(),
        ..Utterance::default()
    }
}

#[test]
fn what_is_prepared_validates() {
    let dir = tempfile::tempdir().unwrap();
    wav(&dir.path().join("a.wav"));
    wav(&dir.path().join("b.wav"));
    let mut cut = utterance(dir.path(), "b", "ba");
    cut.audio.offset_s = Some(0.5);
    let corpus = Corpus::of_parts([
        (TRAIN, vec![utterance(dir.path(), "a", "ab")]),
        (DEV, vec![cut, utterance(dir.path(), "c", "c")]),
    ]);
    let out = dir.path().join("out");
    let (summary, problems) = prepare_to(&out, corpus, Units::Chars);
    let summary = summary.unwrap();
    assert_eq!(shown(&problems).len(), 1, "c.wav is missing");
    assert_eq!((summary.parts.len(), summary.n_classes), (2, 4));
    assert!((summary.hours() * 3600.0 - 1.5).abs() < 1e-9);
    let labels = LabelSet::load(&out.join("labels.txt")).unwrap();
    for part in ["train.jsonl", "dev.jsonl"] {
        let (_, problems) = validate::validate(&out.join(part), Some(&labels), validate::Depth::Samples, &Unwatched);
        assert_eq!(shown(&problems), Vec::<String>::new());
    }
}

#[test]
fn duplicates_wrong_lengths_and_parts_beyond_the_end_are_told() {
    let dir = tempfile::tempdir().unwrap();
    wav(&dir.path().join("a.wav"));
    let mut wrong = utterance(dir.path(), "a", "x");
    wrong.audio.duration_s = Some(7.0);
    let mut beyond = utterance(dir.path(), "b", "x");
    beyond.audio = AudioPart { offset_s: Some(0.9), duration_s: Some(0.5), ..wrong.audio.clone() };
    let corpus = Corpus::of_one(TRAIN, vec![wrong.clone(), wrong, beyond]);
    let (summary, problems) = prepare_to(&dir.path().join("out"), corpus, Units::Chars);
    assert_eq!(summary.unwrap().parts[0].n_utterances, 1);
    let problems = shown(&problems).join("\n");
    assert!(problems.contains("id `a` was already used by"), "{problems}");
    assert!(problems.contains("utterance `a` is listed as 7 s long, but its audio is 1 s long"), "{problems}");
    assert!(problems.contains("utterance `b` ends at 1.4 s, but its audio is 1 s long"), "{problems}");
}

#[test]
fn nothing_to_prepare_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (summary, _) = prepare_to(dir.path(), Corpus::default(), Units::Chars);
    assert_eq!(summary.unwrap_err().to_string(), "no utterance to prepare was found in `src`");
}

#[test]
fn labels_the_training_part_lacks_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    wav(&dir.path().join("a.wav"));
    wav(&dir.path().join("b.wav"));
    let corpus = Corpus::of_parts([
        (TRAIN, vec![utterance(dir.path(), "a", "ab")]),
        (DEV, vec![utterance(dir.path(), "b", "azz")]),
    ]);
    let (summary, _) = prepare_to(&dir.path().join("out"), corpus, Units::Chars);
    assert_eq!(summary.unwrap().out_of_set, targets::Foreign::from([("z".to_owned(), 2)]));
}

#[test]
fn the_samples_of_the_project_are_prepared_without_a_problem() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/samples.jsonl");
    let (listed, problems) = manifest::load(&path);
    assert_eq!(shown(&problems), Vec::<String>::new());
    let corpus = Corpus::of_one(TRAIN, listed.into_iter().map(|listed| listed.utterance).collect());
    let out = tempfile::tempdir().unwrap();
    let targets = TargetConfig { labels: Labels::Timit(PhoneSet::Score39), ..TargetConfig::new(Units::Phones) };
    let config = PrepareConfig { split: SplitConfig::default(), targets, kaldi: false };
    let found = Found { src: path, corpus, problems };
    let (summary, problems) = prepare(found, &config, &|_| Vec::new(), out.path(), &Unwatched);
    assert_eq!(shown(&problems), Vec::<String>::new());
    let summary = summary.unwrap();
    assert_eq!((summary.parts[0].n_utterances, summary.n_classes), (4, 41));
    assert!(summary.out_of_set.is_empty());
}

/// `seed` with some bytes changed, cut out, doubled or invented.
fn mutated(seed: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=bytes.len());
        let end = (at + rng.usize(..20)).min(bytes.len());
        match rng.usize(..4) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.splice(at..at, (0..rng.usize(..8)).map(|_| rng.u8(..)).collect::<Vec<_>>()).for_each(drop),
            _ => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
        }
    }
    bytes
}

const N_MUTATIONS: usize = 2000;
const N_ROUNDS: usize = 150;

#[test]
fn no_parser_panics_on_damaged_input() {
    let manifest = r#"{"id":"u","audio_filepath":"/x.flac","speaker":"s","duration":2.5,"offset":1,"text":"a","phones":[[0,0.5,"aa"],[0.5,1,"b"]]}"#;
    let grid = "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\nxmin = 0\nxmax = 2.3\ntiers? <exists>\nsize = 1\nitem []:\nitem [1]:\nclass = \"IntervalTier\"\nname = \"phones\"\nxmin = 0\nxmax = 2.3\nintervals: size = 1\nintervals [1]:\nxmin = 0\nxmax = 1.5\ntext = \"say \"\"3\"\"\"\n";
    let path = Path::new("x");
    let mut rng = Rng::with_seed(11);
    for _ in 0..N_MUTATIONS {
        drop(manifest::read(mutated(manifest.as_bytes(), &mut rng).as_slice(), path));
        drop(phn::read(mutated(b"0 3050 h#\n3050 4559 sh\r\n4559 5723 ix\n", &mut rng).as_slice(), path, 16_000.0));
        drop(textgrid::parse(&String::from_utf8_lossy(&mutated(grid.as_bytes(), &mut rng))));
        drop(wsj::read_list(mutated(b"; list\n11_1_1:wsj0/si_tr_s/01i/01ic0201.wv1\n", &mut rng).as_slice(), path));
        let (transcripts, _) =
            wsj::read_transcripts(mutated("THE [<RATE] É ~ROSE. (01IC0201)\n".as_bytes(), &mut rng).as_slice(), path);
        for (_, words) in &transcripts {
            drop(srf_text::labels::wsj::normalise(words));
        }
        drop(LabelSet::parse(&String::from_utf8_lossy(&mutated(
            b"# units: chars\n<pad>\na\n<space>\n<blank>\n",
            &mut rng,
        ))));
    }
    println!("{} damaged inputs tried", 6 * N_MUTATIONS);
}

#[test]
fn no_damaged_directory_panics_its_reader() {
    let dir = tempfile::tempdir().unwrap();
    let files: [(&str, &str); 9] = [
        ("k/wav.scp", "r1 /a.wav\nr2 sph2pipe -f wav /b.sph |\n"),
        ("k/segments", "u1 r1 0.5 1.5\nu2 r2 0 2\n"),
        ("k/text", "u1 A B\nu2 C\n"),
        ("k/utt2spk", "u1 s\nu2 s\n"),
        ("k/reco2file_and_channel", "r1 a A\nr2 b B\n"),
        ("cv/train.tsv", "client_id\tpath\tsentence\nc\ta.mp3\tHi\n"),
        ("ls/train-x/1/1-2.trans.txt", "1-2-3 HELLO\n"),
        ("f/s/a.lab", "0 100 a\n"),
        ("f/s/a.wav", "RIFF"),
    ];
    let mut rng = Rng::with_seed(12);
    for _ in 0..N_ROUNDS {
        for (name, text) in files {
            write(&dir.path().join(name), mutated(text.as_bytes(), &mut rng));
        }
        drop(kaldi::read(&dir.path().join("k"), &Commands::Refused));
        drop(commonvoice::read(&dir.path().join("cv")));
        drop(librispeech::read(&dir.path().join("ls")));
        drop(folder::read(&dir.path().join("f")));
    }
    println!("{} damaged files tried", files.len() * N_ROUNDS);
}

#[test]
fn an_utterance_is_the_whole_recording_unless_it_has_an_offset() {
    use srf_audio::{Channel, Selection};

    let part =
        |offset_s, duration_s| AudioPart { offset_s, duration_s, channel: Some(1), ..AudioPart::default() }.selection();
    let channel = Channel::Only(1);
    assert_eq!(part(None, Some(2.5)), Selection { channel, ..Selection::default() });
    assert_eq!(part(Some(1.25), Some(2.5)), Selection { channel, start_s: 1.25, end_s: Some(3.75) });
    assert_eq!(part(Some(1.25), None), Selection { channel, start_s: 1.25, end_s: None });
}
