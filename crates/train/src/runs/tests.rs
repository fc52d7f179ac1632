//! Runs made by hand, side by side.

use super::*;
use crate::evaluate::summary::RateSummary;
use crate::events::log::Log;
use crate::events::{ErrorCounts, Event, Record, RunEnd, Speed};

fn at(step: u64, event: Event) -> Record {
    Record { time_s: 0.0, step, event }
}

fn epoch(epoch: usize, substitutions: usize) -> Event {
    let errors = ErrorCounts { measure: "PER".to_owned(), n_reference: 100, substitutions, ..ErrorCounts::default() };
    let (n_utterances, n_recognized) = (9, 4);
    let errors = Some(errors);
    let validation = Some(Measured { n_utterances, n_recognized, loss: 1.0, errors, ..Measured::default() });
    let speed = Speed { n_frames: 1000 * epoch as u64, duration_s: 2.0, wait_s: 0.0 };
    Event::Epoch(Box::new(EpochEnd { epoch, validation, speed, validation_s: 0.5, ..EpochEnd::default() }))
}

fn save(dir: &Path, recipe: &str, seed: u64) {
    let start = RunStart {
        recipe_name: "small".to_owned(),
        recipe: recipe.to_owned(),
        seed,
        n_parameters: 1234,
        n_epochs: 3,
        ..RunStart::default()
    };
    fs::create_dir_all(dir).unwrap();
    let mut log = Log::open(&dir.join(log::FILE_NAME)).unwrap();
    let end = Event::End(RunEnd::default());
    for (step, event) in
        [(0, Event::Start(Box::new(start))), (10, epoch(1, 40)), (20, epoch(2, 20)), (30, epoch(3, 25)), (30, end)]
    {
        log.append(&at(step, event)).unwrap();
    }
}

#[test]
fn a_run_is_what_its_log_says() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), "[model]\nlayers = 2\n", 5);
    let run = Run::load(dir.path()).unwrap();
    let expected = Run {
        path: dir.path().to_owned(),
        recipe_name: "small".to_owned(),
        state: "completed",
        seed: 5,
        n_parameters: 1234,
        n_epochs: 3,
        n_epochs_planned: 3,
        measure: Some("PER".to_owned()),
        best_rate: Some(0.2),
        best_epoch: Some(2),
        best_part: Some([4, 9]),
        last_rate: Some(0.25),
        last_part: Some([4, 9]),
        time_s: 7.5,
        frames_per_s: 1000.0,
        n_skipped_batches: 0,
        evaluations: Vec::new(),
        recipe: BTreeMap::from([("model.layers".to_owned(), "2".to_owned())]),
    };
    assert_eq!(run, expected);
}

#[test]
fn evaluations_below_a_run_belong_to_it() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path(), "", 5);
    let rate =
        RateSummary { measure: "PER".to_owned(), rate: Some(0.3), low: 0.2, high: 0.4, ..RateSummary::default() };
    let summary = Summary { manifest: "t.jsonl".to_owned(), rates: vec![rate], ..Summary::default() };
    for name in ["test", "dev"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        let path = dir.path().join(name).join(summary::FILE_NAME);
        fs::write(path, serde_json::to_string(&summary).unwrap()).unwrap();
    }
    let evaluations = Run::load(dir.path()).unwrap().evaluations;
    let names: Vec<&str> = evaluations.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["dev", "test"]);
    assert_eq!((evaluations[0].rate, evaluations[0].interval), (Some(0.3), [0.2, 0.4]));
}

#[test]
fn only_what_differs_between_recipes_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let recipes = [
        "[model]\nlayers = 2\nrouting = \"sdr\"\n[training.adam]\nbeta1 = 0.9\n",
        "[model]\nlayers = 3\nrouting = \"sdr\"\nwindow_left = [1, 2]\n[training.adam]\nbeta1 = 0.9\n",
    ];
    let runs: Vec<Run> = recipes
        .iter()
        .enumerate()
        .map(|(at, recipe)| {
            let dir = dir.path().join(at.to_string());
            save(&dir, recipe, 1);
            Run::load(&dir).unwrap()
        })
        .collect();
    let expected = [("model.layers", Some("2"), "3"), ("model.window_left", None, "[1, 2]")]
        .map(|(key, a, b)| Difference { key: key.to_owned(), values: vec![a.map(str::to_owned), Some(b.to_owned())] });
    assert_eq!(differences(&runs), expected);
    assert_eq!(differences(&runs[..1]), []);
}

#[test]
fn a_directory_of_runs_is_no_run_and_the_hint_names_one() {
    let dir = tempfile::tempdir().unwrap();
    save(&dir.path().join("first"), "", 1);
    let error = Run::load(dir.path()).unwrap_err();
    assert!(error.to_string().ends_with("is not a run: it has no log.jsonl"), "{error}");
    assert!(error.hint().unwrap().ends_with("/first`"));
}
