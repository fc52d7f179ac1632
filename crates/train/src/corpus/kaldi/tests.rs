//! Data directories as others write them, and our own read back.

use proptest::prelude::*;

use super::super::testing::{save_wav, shown};
use super::*;

#[test]
fn values_of_wav_scp_are_files_or_commands() {
    let file = |path: &str| Source::File(PathBuf::from(path));
    assert_eq!(parse_source("/a/b.wav"), file("/a/b.wav"));
    assert_eq!(parse_source("sph2pipe -f wav /a/b.wv1 |"), file("/a/b.wv1"));
    assert_eq!(parse_source("/opt/bin/sph2pipe -f wav -p '/a/b.sph' |"), file("/a/b.sph"));
    for command in [
        "flac -c -d -s a.flac",
        "sph2pipe -f wav a.sph | sox - b",
        "sph2pipe -f wav $(rm -rf x)",
        "sph2pipe -c 2 a.sph",
    ] {
        assert_eq!(parse_source(&format!("{command} |")), Source::Command(command.to_owned()), "{command}");
    }
}

fn write(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

#[test]
fn segments_cut_recordings_and_every_bad_line_is_told() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "wav.scp", "r1 /a.wav\nr2 cat x |\nr1 /b.wav\n");
    write(dir.path(), "segments", "s-1 r1 0.5 1.5\ns-2 r1 2 1\ns-3 r9 0 1\ns-4 r1 0\ns-5 r1 2 3\n");
    write(dir.path(), "text", "s-1 HELLO THERE\n");
    write(dir.path(), "utt2spk", "s-1 s\ns-5 s\n");
    write(dir.path(), "reco2file_and_channel", "r1 a B\nr2 a C\n");
    let (corpus, problems) = read(dir.path(), &Commands::Refused);
    let utterance = corpus.utterances().next().unwrap();
    let audio = AudioPart { path: "/a.wav".into(), offset_s: Some(0.5), duration_s: Some(1.0), channel: Some(1) };
    assert_eq!((corpus.n_utterances(), &utterance.audio), (1, &audio));
    assert_eq!((utterance.speaker.as_str(), utterance.sentence.as_str()), ("s", "HELLO THERE"));
    let lines: Vec<String> = shown(&problems).iter().map(|p| p.rsplit('/').next().unwrap().to_owned()).collect();
    let expected = [
        "reco2file_and_channel:2: found \"a C\", expected `file channel`, the channel A or B",
        "wav.scp:3: id `r1` was already used by an earlier line",
        "wav.scp:2: `cat x` is a command, which only `srf prepare kaldi --allow-commands` runs",
        "segments:2: a segment of `r1` from 2 to 1, expected an end after its start, in order",
        "segments:3: the recording `r9` in wav.scp not found",
        "segments:4: found \"r1 0\", expected `utterance recording begin end`, the times in seconds",
        "segments:5: the text of `s-5` not found",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn commands_run_only_when_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let wav = dir.path().join("x.wav");
    save_wav(&wav, 0.5);
    write(dir.path(), "wav.scp", &format!("a cat {} |\nb false |\n", wav.display()));
    write(dir.path(), "text", "a ONE\nb TWO\n");
    let kept = dir.path().join("kept");
    let (corpus, problems) = read(dir.path(), &Commands::KeptIn(kept.clone()));
    assert_eq!(corpus.utterances().map(|u| u.audio.path.clone()).collect::<Vec<_>>(), [kept.join("a.wav")]);
    assert_eq!(fs::read(kept.join("a.wav")).unwrap(), fs::read(&wav).unwrap());
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("`false` failed: exit status: 1"), "{}", problems[0]);
    let (corpus, problems) = read(dir.path(), &Commands::Refused);
    assert_eq!((corpus.n_utterances(), problems.len()), (0, 2));
}

#[test]
fn a_folder_of_directories_is_a_corpus_of_parts() {
    let dir = tempfile::tempdir().unwrap();
    for part in ["train", "dev"] {
        fs::create_dir(dir.path().join(part)).unwrap();
        write(&dir.path().join(part), "wav.scp", &format!("{part}-1 /a.wav\n"));
        write(&dir.path().join(part), "text", &format!("{part}-1 ONE\n"));
    }
    let (corpus, problems) = read(dir.path(), &Commands::Refused);
    assert_eq!(corpus.parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["dev", "train"]);
    assert_eq!(problems.len(), 0);
}

fn rows(dir: &Path, name: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(dir.join(name)).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| line.split_once(' ').map(|(k, v)| (k.to_owned(), v.to_owned())).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn directories_are_sorted_by_utterance_and_by_speaker(
        names in prop::collection::hash_set(("[a-cA-C+_ -]{1,4}", "[a-c0-9_-]{1,4}"), 1..12), is_cut in any::<bool>(),
    ) {
        let utterances: Vec<Utterance> = names.into_iter().map(|(speaker, id)| Utterance {
            audio: AudioPart { path: format!("/{id}.wav").into(), offset_s: is_cut.then_some(1.0), duration_s: Some(2.0), channel: None },
            id: format!("{speaker}_{id}"), speaker, text: "A B".to_owned(), ..Utterance::default()
        }).collect();
        let dir = tempfile::tempdir().unwrap();
        save(dir.path(), &utterances).unwrap();
        let utt2spk = rows(dir.path(), "utt2spk");
        prop_assert_eq!(utt2spk.len(), utterances.len());
        prop_assert!(utt2spk.is_sorted_by(|a, b| a.0 < b.0));
        prop_assert!(utt2spk.is_sorted_by(|a, b| a.1 <= b.1), "{:?}", utt2spk);
        let keys = |name: &str| rows(dir.path(), name).into_iter().map(|row| row.0).collect::<Vec<_>>();
        prop_assert_eq!(keys("text"), keys("utt2spk"));
        prop_assert_eq!(keys("text"), keys("utt2dur"));
        prop_assert_eq!(keys(if is_cut { "segments" } else { "wav.scp" }), keys("text"));
        prop_assert!(keys("wav.scp").is_sorted() && keys("spk2utt").is_sorted_by(|a, b| a < b));
        let (read, problems) = read(dir.path(), &Commands::Refused);
        prop_assert_eq!(shown(&problems), Vec::<String>::new());
        prop_assert_eq!(read.n_utterances(), utt2spk.len());
    }
}
