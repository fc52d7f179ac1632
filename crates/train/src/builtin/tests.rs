//! The built-in corpus: the same on any number of threads, and readable by the readers of what it imitates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use srf_text::labels::Units;
use srf_text::labels::timit::PhoneSet;
use tempfile::TempDir;

use super::layout::{PlainConfig, timit, write_plain, wsj};
use super::*;
use crate::corpus::prepare::{Found, PrepareConfig, prepare};
use crate::corpus::split::SplitConfig;
use crate::corpus::targets::{Labels, TargetConfig};
use crate::corpus::{self, Corpus, DEV, Problem, TEST, TRAIN, Unwatched, manifest};

fn config(seed: u64) -> PlainConfig {
    PlainConfig { seed, n_speakers: 4, hours: 0.01, voices: Voices::Flite }
}

/// Every file below `root` with its bytes.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn on_threads<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(work)
}

#[test]
fn any_number_of_threads_makes_the_same_files() {
    let made = [1, 3].map(|n_threads| {
        let dir = tempfile::tempdir().unwrap();
        on_threads(n_threads, || write_plain(&config(5), dir.path(), &Unwatched).unwrap());
        contents(dir.path())
    });
    assert!(5 < made[0].len());
    assert!(made[0] == made[1]);
}

#[test]
fn another_seed_says_other_things() {
    let made = [5, 6].map(|seed| {
        let dir = tempfile::tempdir().unwrap();
        write_plain(&config(seed), dir.path(), &Unwatched).unwrap()
    });
    let sentences = |corpus: &Corpus| corpus.utterances().map(|u| u.sentence.clone()).collect::<Vec<_>>();
    assert_ne!(sentences(&made[0]), sentences(&made[1]));
}

#[test]
fn it_is_as_long_as_asked_and_labelled_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = write_plain(&config(5), dir.path(), &Unwatched).unwrap();
    let seconds: f64 = corpus.utterances().map(|u| u.audio.duration_s.unwrap()).sum();
    let last_s = corpus.utterances().last().unwrap().audio.duration_s.unwrap();
    assert!(36.0 <= seconds && seconds - last_s < 36.0, "{seconds}");
    for utterance in corpus.utterances() {
        assert_eq!(utterance.phones.first().unwrap().start_s, 0.0);
        assert_eq!(utterance.phones.last().unwrap().end_s, utterance.audio.duration_s.unwrap());
        assert!(utterance.phones.windows(2).all(|pair| pair[0].end_s == pair[1].start_s));
        assert_eq!(utterance.words.iter().map(|w| w.name.clone()).collect::<Vec<_>>().join(" "), utterance.sentence);
    }
}

#[test]
fn nothing_is_silent_and_nothing_clips() {
    let speakers = Speakers::new(9, [Sex::Female, Sex::Male, Sex::Female, Sex::Male], Voices::Flite);
    let mut voice = Voice::new();
    for speaker in 0..4 {
        let samples = speakers.record(&mut voice, speaker, 0, None).unwrap().speech.samples;
        let peak = samples.iter().fold(0.0f32, |peak, v| peak.max(v.abs()));
        assert!((500.0..32_768.0).contains(&peak), "{peak}");
    }
}

/// Writes a tree shaped like TIMIT's with 6 speakers.
fn timit_tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(timit::write(3, 6, dir.path(), &Unwatched).unwrap(), 60);
    dir
}

fn counts(corpus: &Corpus) -> Vec<(&str, usize)> {
    corpus.parts.iter().map(|part| (part.name.as_str(), part.utterances.len())).collect()
}

fn shown(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_timit_shaped_tree_has_the_right_counts() {
    let dir = timit_tree();
    let (corpus, problems) = corpus::timit::read(dir.path());
    assert_eq!(shown(&problems), Vec::<String>::new());
    // 6 of 630 speakers: 1 core, 1 dev, 1 other of the test set (left out), 3 in training; 8 of 10 sentences each.
    assert_eq!(counts(&corpus), [(TRAIN, 24), (DEV, 8), (TEST, 8)]);
    assert!(corpus.utterances().all(|u| !u.id.contains("_SA") && u.sentence.ends_with(['.', '?'])));
    let checks = corpus::timit::checks(&corpus);
    assert_eq!((checks[0].found, checks[0].expected), (24, 3696));
}

fn lower_case(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let lower = path.with_file_name(path.file_name().unwrap().to_str().unwrap().to_lowercase());
        fs::rename(&path, &lower).unwrap();
        if lower.is_dir() {
            lower_case(&lower);
        }
    }
}

#[test]
fn the_tree_may_be_in_lower_case_and_its_recordings_riff() {
    let dir = timit_tree();
    let (upper, _) = corpus::timit::read(dir.path());
    lower_case(dir.path());
    let (lower, problems) = corpus::timit::read(dir.path());
    assert_eq!(shown(&problems), Vec::<String>::new());
    assert_eq!(
        upper.utterances().map(|u| (&u.id, &u.phones)).collect::<Vec<_>>(),
        lower.utterances().map(|u| (&u.id, &u.phones)).collect::<Vec<_>>()
    );
    let recording = &lower.utterances().next().unwrap().audio.path;
    let samples = srf_audio::Recording::open(recording).unwrap().read(srf_audio::Selection::default()).unwrap();
    srf_audio::wav::save(recording, &samples).unwrap();
    let (riff, problems) = corpus::timit::read(dir.path());
    assert_eq!((riff, problems.len()), (lower, 0));
}

#[test]
fn a_damaged_tree_is_read_to_the_end() {
    let dir = timit_tree();
    let (corpus, _) = corpus::timit::read(dir.path());
    let labels: Vec<PathBuf> = corpus.utterances().map(|u| u.audio.path.with_extension("PHN")).collect();
    fs::write(&labels[0], "0 100 h#\nbroken\n").unwrap();
    fs::write(&labels[1], "").unwrap();
    fs::remove_file(labels[2].with_extension("WAV")).unwrap();
    fs::write(labels[3].with_extension("WAV"), "no audio").unwrap();
    let (found, problems) = corpus::timit::read(dir.path());
    assert_eq!(found.n_utterances(), 40 - 2);
    assert_eq!(problems.len(), 3, "{:?}", shown(&problems));
    let out = tempfile::tempdir().unwrap();
    let found = Found { src: dir.path().to_owned(), corpus: found, problems };
    let targets = TargetConfig { labels: Labels::Timit(PhoneSet::All61), ..TargetConfig::new(Units::Phones) };
    let config = PrepareConfig { split: SplitConfig::default(), targets, kaldi: true };
    let (summary, problems) = prepare(found, &config, &corpus::timit::checks, out.path(), &Unwatched);
    assert_eq!((summary.unwrap().n_classes, problems.len()), (63, 4));
    let (listed, _) = manifest::load(&out.path().join("train.jsonl"));
    assert_eq!(listed.len(), 24 - 3);
    assert!(out.path().join("kaldi/dev/wav.scp").exists());
}

/// Writes trees shaped like WSJ's discs with 6 speakers of 3 utterances.
fn wsj_discs() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(wsj::write(3, 6, 3, dir.path(), &Unwatched).unwrap(), 18);
    dir
}

#[test]
fn wsj_shaped_discs_have_the_right_counts() {
    let dir = wsj_discs();
    let (corpus, problems) = corpus::wsj::read(dir.path(), corpus::wsj::TrainingSet::Si284);
    assert_eq!(shown(&problems), Vec::<String>::new());
    assert_eq!(counts(&corpus), [(TRAIN, 9), (DEV, 3), (TEST, 3), (corpus::wsj::EVAL93, 3)]);
    let (corpus, _) = corpus::wsj::read(dir.path(), corpus::wsj::TrainingSet::Si84);
    assert_eq!(counts(&corpus)[0], (TRAIN, 3));
    let utterance = corpus.utterances().next().unwrap();
    assert_eq!((utterance.id.as_str(), utterance.speaker.as_str()), ("000c0101", "000"));
    assert!(utterance.sentence.chars().all(|c| c.is_ascii_uppercase() || c == ' ' || c == '\''));
}

#[test]
fn flattened_discs_are_the_same_corpus() {
    let dir = wsj_discs();
    let ids = |root: &Path| -> Vec<(String, String)> {
        let (corpus, problems) = corpus::wsj::read(root, corpus::wsj::TrainingSet::Si284);
        assert_eq!(shown(&problems), Vec::<String>::new());
        corpus.utterances().map(|u| (u.id.clone(), u.sentence.clone())).collect()
    };
    let on_discs = ids(dir.path());
    let flat = tempfile::tempdir().unwrap();
    for (path, bytes) in contents(dir.path()) {
        let below: PathBuf = path.components().skip(1).collect();
        let upper = flat.path().join(below.to_str().unwrap().to_uppercase());
        fs::create_dir_all(upper.parent().unwrap()).unwrap();
        fs::write(upper, bytes).unwrap();
    }
    assert_eq!(ids(flat.path()), on_discs);
}

#[test]
fn missing_lists_and_recordings_are_told_with_the_line() {
    let dir = wsj_discs();
    fs::remove_file(dir.path().join("13-34.1/wsj1/doc/indices/h1_p0.ndx")).unwrap();
    fs::remove_file(dir.path().join("11-1.1/wsj0/si_tr_s/000/000c0102.wv1")).unwrap();
    let (corpus, problems) = corpus::wsj::read(dir.path(), corpus::wsj::TrainingSet::Si84);
    assert_eq!(counts(&corpus), [(TRAIN, 2), (TEST, 3), (corpus::wsj::EVAL93, 3)]);
    let problems = shown(&problems).join("\n");
    assert!(
        problems.contains("tr_s_wv1.ndx:3: the recording `wsj0/si_tr_s/000/000c0102.wv1` of disc 11_1_1 not found"),
        "{problems}"
    );
    assert!(problems.contains("the list `wsj1/doc/indices/h1_p0.ndx` not found"), "{problems}");
}
