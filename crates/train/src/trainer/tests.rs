//! Complete trainings of tiny networks on utterances of tones.

use std::f32::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use srf_text::labels::{LabelSet, Units};

use super::batches::Buckets;
use super::checkpoint::Checkpoint;
use super::data::{Dataset, Keep};
use super::front_end::FrontEnd;
use super::prepared::LoadPreparedError;
use super::training_loop::{Learner, Skipped};
use super::*;
use crate::corpus::{AudioPart, Unwatched, Utterance, manifest};
use crate::events::log::History;
use crate::events::{EndReason, Event};

const SRF: &str = "architecture = 'srf'\nfilters = 4\nlayers = 2\nprimary_height = 8\nhidden_height = 6\n\
                   primary_depth = 4\nhidden_depth = 4\nclass_depth = 4\ndropout = { conv = 0, input = 0, between = 0 }\n";
const DR: &str = "architecture = 'srf'\nfilters = 4\nlayers = 1\nprimary_height = 8\nprimary_depth = 4\nclass_depth = 4\n\
                  routing = 'dr'\niterations = 2\ndropout = { conv = 0, input = 0, between = 0 }\n";
const LSTM: &str = "architecture = 'lstm'\nfront_end = true\nfilters = 2\nlayers = 1\ncells = 12\n\
                    dropout = { conv = 0, input = 0, between = 0 }\n";
const CNN: &str = "architecture = 'cnn'\nfront_end = true\nfilters = 2\nlayers = 3\nnarrow_layers = 1\n\
                   narrow_filters = 4\nwide_filters = 4\ndense_layers = 1\ndense_width = 64\n\
                   dropout = { conv = 0, input = 0, between = 0 }\n";
const TRANSFORMER: &str = "architecture = 'transformer'\nfilters = 2\nlayers = 1\nwidth = 16\nheads = 2\ninner = 16\n\
                           dropout = { conv = 0, input = 0, attention = 0, inner = 0, residual = 0 }\n";

/// Utterances of tones: `a` is low, `b` high, `c` higher.
fn corpus(dir: &Path, texts: &[&str]) -> Prepared {
    let utterances: Vec<Utterance> = texts.iter().enumerate().map(|(n, text)| sing(dir, n, text)).collect();
    manifest::save(&dir.join("train.jsonl"), &utterances).unwrap();
    manifest::save(&dir.join("dev.jsonl"), &utterances).unwrap();
    LabelSet::new(Units::Phones, ["a", "b", "c"]).unwrap().save(&dir.join("labels.txt")).unwrap();
    Prepared::load(dir).unwrap()
}

#[test]
fn several_folders_are_one_corpus_if_their_labels_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two, other] = ["one", "two", "other"].map(|name| dir.path().join(name));
    for path in [&one, &two, &other] {
        fs::create_dir(path).unwrap();
        corpus(path, &["a b", "b a"]);
    }
    let repeated = Prepared::load_all(&[one.clone(), two.clone()]).unwrap_err();
    assert!(matches!(repeated, LoadPreparedError::Repeated { .. }), "{repeated}");
    for name in ["train.jsonl", "dev.jsonl"] {
        let renamed = fs::read_to_string(two.join(name)).unwrap().replace("\"id\":\"", "\"id\":\"two-");
        fs::write(two.join(name), renamed).unwrap();
    }
    let both = Prepared::load_all(&[one.clone(), two.clone()]).unwrap();
    assert_eq!((both.train.len(), both.paths.len()), (4, 2));
    assert!(both.manifests("dev").ends_with("two/dev.jsonl") && both.manifests("dev").contains("one/dev.jsonl + "));
    assert_ne!(both.fingerprint, Prepared::load(&one).unwrap().fingerprint);
    LabelSet::new(Units::Phones, ["a", "b"]).unwrap().save(&other.join("labels.txt")).unwrap();
    let error = Prepared::load_all(&[one, other]).unwrap_err();
    assert!(matches!(error, LoadPreparedError::OtherLabels { .. }), "{error}");
}

fn sing(dir: &Path, n: usize, text: &str) -> Utterance {
    let mut values = vec![0.0; 2400];
    for label in text.split_whitespace() {
        let hz = match label {
            "a" => 400.0,
            "b" => 1500.0,
            _ => 4000.0,
        };
        values.extend((0..3200).map(|i| 3000.0 / 32768.0 * (TAU * hz * i as f32 / 16_000.0).sin()));
        values.extend([0.0; 1600]);
    }
    let path = dir.join(format!("{n}.wav"));
    let duration_s = Some(values.len() as f64 / 16_000.0);
    srf_audio::wav::save(&path, &srf_audio::Samples { rate_hz: 16_000, values }).unwrap();
    let audio = AudioPart { path, duration_s, ..AudioPart::default() };
    Utterance { id: format!("u{n}"), speaker: "s".to_owned(), audio, text: text.to_owned(), ..Utterance::default() }
}

fn job(dir: &Path, texts: &[&str], model: &str, training: &str) -> TrainJob {
    let recipe = format!("[model]\nclasses = 5\n{model}\n[features]\ncmvn = 'global'\n[training]\n{training}\n");
    TrainJob {
        recipe: Recipe::parse(&recipe, Path::new("recipe")).unwrap(),
        recipe_name: "tones".to_owned(),
        data: Arc::new(corpus(dir, texts)),
        run: dir.join("run"),
        from: None,
        command: Vec::new(),
        machine: Machine::default(),
        save_every: Duration::from_hours(1),
        max_cache_bytes: 1 << 30,
    }
}

const TEXTS: &[&str] = &["a b", "b a c", "c", "c b a", "a c c", "b b"];

fn rate(epochs: usize, rate: f64) -> String {
    format!("epochs = {epochs}\nbatch_frames = 1500\nschedule = {{ constant = {{ rate = {rate:e} }} }}")
}

/// Gathers what happens, and stops the run after so many steps.
#[derive(Default)]
struct Notes {
    events: Mutex<Vec<Event>>,
    remarks: Mutex<Vec<String>>,
    stop: AtomicBool,
    n_steps_left: Mutex<Option<usize>>,
    /// Removed at the first step.
    doomed: Vec<PathBuf>,
}

impl Watcher for Notes {
    fn begin(&self, _what: &'static str, _n_steps: usize) {}
    fn advance(&self) {}
}

impl TrainWatcher for Notes {
    fn record(&self, record: &Record) {
        self.events.lock().unwrap().push(record.event.clone());
    }

    fn remark(&self, text: &str) {
        self.remarks.lock().unwrap().push(text.to_owned());
    }

    fn step(&self, _figures: &Figures) {
        self.doomed.iter().for_each(|path| drop(fs::remove_file(path)));
        if let Some(left) = &mut *self.n_steps_left.lock().unwrap() {
            *left -= 1;
            self.stop.store(*left == 0, Ordering::Relaxed);
        }
    }
}

fn go(job: &TrainJob) -> (Result<Outcome, TrainError>, Notes) {
    let notes = Notes::default();
    (train(job, &notes, &notes.stop), notes)
}

fn error_rate(outcome: &Outcome) -> f64 {
    let Outcome::Finished { dev: Some(dev), .. } = outcome else { panic!("{outcome:?}") };
    dev.errors.as_ref().unwrap().rate().unwrap()
}

#[test]
fn every_architecture_learns_a_few_utterances_by_heart() {
    // The moving statistics of batch norms take some hundred steps to arrive.
    let texts = TEXTS.repeat(8);
    for model in [SRF, DR, LSTM, CNN, TRANSFORMER] {
        let dir = tempfile::tempdir().unwrap();
        let training = rate(25, 5e-3).replace("1500", "500") + "\nvalidation_utterances = 6\nclip_norm = 5";
        let (outcome, notes) = go(&job(dir.path(), &texts, model, &training));
        let outcome = outcome.unwrap();
        assert_eq!(error_rate(&outcome), 0.0, "{model}: {outcome:?}, {:?}", notes.events.lock().unwrap().last());
    }
}

#[test]
fn utterances_that_cannot_be_trained_on_are_named_and_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(dir.path(), &["a b", "b", "a x", "c"], SRF, &rate(1, 1e-3));
    let data = Arc::get_mut(&mut job.data).expect("nobody else has it");
    data.train[1].text = ["a"; 200].join(" ");
    fs::remove_file(dir.path().join("3.wav")).unwrap();
    let (outcome, notes) = go(&job);
    let Ok(Outcome::Finished { n_left_out, .. }) = outcome else { panic!("{outcome:?}") };
    // Two of them are in `dev` too.
    assert_eq!(n_left_out, 5);
    let events = notes.events.into_inner().unwrap();
    let told: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::SkippedUtterance(skipped) => Some(format!("{}: {}", skipped.id, skipped.reason)),
            _ => None,
        })
        .collect();
    assert!(told[0].starts_with("u1: its 200 labels need 399 slices of time, its "), "{told:?}");
    assert!(told[1].contains("u2: ") && told[1].contains("`x`"), "{told:?}");
    assert!(told[2].contains("3.wav"), "{told:?}");
}

#[test]
fn without_anything_to_train_on_it_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let error = go(&job(dir.path(), &["x", "y"], SRF, &rate(1, 1e-3))).0.unwrap_err().to_string();
    assert!(error.starts_with("none of the 2 utterances of `train` can be trained on; the first, `u0`: "), "{error}");
}

#[test]
fn it_stops_when_the_loss_on_dev_no_longer_falls() {
    let dir = tempfile::tempdir().unwrap();
    let patience = rate(50, 1e-30) + "\npatience = 2";
    // Without batch norms nothing changes at such a rate.
    let model = LSTM.replace("front_end = true\nfilters = 2\n", "");
    let (outcome, notes) = go(&job(dir.path(), TEXTS, &model, &patience));
    outcome.unwrap();
    let events = notes.events.into_inner().unwrap();
    let n_epochs = events.iter().filter(|event| matches!(event, Event::Epoch(_))).count();
    assert_eq!(n_epochs, 3);
    assert!(matches!(events.last(), Some(Event::End(end)) if end.reason == EndReason::StoppedEarly));
}

fn checkpoint_of(run: &Path) -> Vec<u8> {
    let paths = fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    fs::read(paths.max().unwrap()).unwrap()
}

#[test]
fn what_is_kept_in_memory_changes_no_bit_and_nor_does_stopping_after_any_step() {
    let augment = rate(3, 1e-3).replace("1500", "400")
        + "\naugment = { masks = { n_bands = 1, max_bins = 9, \
                   n_stretches = 1, max_frames = 9, max_percent = 20 } }";
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(dir.path(), TEXTS, SRF, &augment);
    go(&job).0.unwrap();
    let whole = checkpoint_of(&job.run);
    job.max_cache_bytes = 0;
    job.run = dir.path().join("uncached");
    go(&job).0.unwrap();
    assert!(checkpoint_of(&job.run) == whole, "features computed again are not those that were kept");
    for n_steps in 1..=7 {
        job.run = dir.path().join(format!("stopped-{n_steps}"));
        let notes = Notes { n_steps_left: Mutex::new(Some(n_steps)), ..Notes::default() };
        let stopped = train(&job, &notes, &notes.stop).unwrap();
        assert!(matches!(stopped, Outcome::Interrupted { .. }));
        go(&job).0.unwrap();
        assert!(checkpoint_of(&job.run) == whole, "stopped after step {n_steps}");
        let history = History::load(&job.run.join("log.jsonl")).unwrap();
        assert_eq!(history.epochs().map(|epoch| epoch.epoch).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(history.n_resumptions(), 1);
    }
}

#[test]
fn the_rate_of_a_step_is_that_of_the_schedule() {
    let dir = tempfile::tempdir().unwrap();
    let kappa = "kappa = [{ from_epoch = 1, value = 0.01 }, { from_epoch = 3, value = 0.005 }]";
    let training = format!("epochs = 4\nbatch_frames = 1500\nschedule = {{ warmup = {{ steps = 6, {kappa} }} }}");
    let (outcome, notes) = go(&job(dir.path(), TEXTS, SRF, &training));
    outcome.unwrap();
    let events = notes.events.into_inner().unwrap();
    let mut n_updates = 0.0_f64;
    for event in events {
        match event {
            Event::Steps(steps) => n_updates += steps.n_steps as f64,
            Event::Epoch(epoch) => {
                let kappa = if epoch.epoch < 3 { 0.01 } else { 0.005 };
                let expected = kappa * f64::min(n_updates.powf(-0.5), n_updates * 6.0_f64.powf(-1.5));
                // A few roundings of a double.
                assert!((epoch.learning_rate / expected - 1.0).abs() < 1e-14, "{epoch:?}, {expected}");
            }
            _ => {}
        }
    }
    assert!(n_updates >= 4.0);
}

#[test]
fn a_batch_that_is_not_finite_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), TEXTS, SRF, &rate(1, 1e-3));
    let training = job.recipe.training.clone().unwrap();
    let mut learner = Learner::new(&job.recipe.model, &training);
    let front_end = FrontEnd::new(&job.recipe.features).unwrap();
    let data = Dataset::load(&job.data.train, &job.data.labels, front_end, Keep::Features, 4, &Unwatched);
    let plan = Buckets::new(1500).in_order(&data.lengths());
    let x = srf_model::frames::Frames::new(123, learner.net.margin());
    let mut batch = data.batch(&plan[0], None, &mut data.front_end.extractor(), x).unwrap();
    learner.step(&data, &batch, 1, 1e-3).unwrap();
    let (values, adam) = (learner.params.values.clone(), learner.adam.clone());
    batch.x.real_mut(0)[700] = f32::NAN;
    let outcome = learner.step(&data, &batch, 2, 1e-3);
    assert!(matches!(outcome, Err(Skipped::NotFinite { what: "loss", .. })), "{outcome:?}");
    assert_eq!(learner.params.values, values);
    assert_eq!(learner.adam, adam);
    // Nor does a rehearsal.
    batch.x.real_mut(0)[700] = 0.0;
    learner.rehearse(&data, &batch);
    assert_eq!((learner.params.values, learner.adam), (values, adam));
}

#[test]
fn the_model_is_the_mean_of_the_last_epochs_with_their_moving_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), TEXTS, SRF, &(rate(4, 1e-3) + "\naverage_epochs = 3"));
    go(&job).0.unwrap();
    let paths = fs::read_dir(job.run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    let checkpoint = Checkpoint::load(&paths.max().unwrap()).unwrap();
    assert_eq!(checkpoint.kept.len(), 3);
    assert_eq!(checkpoint.kept[2], checkpoint.values);
    let parts = srf::directory::read(&job.run.join("model")).unwrap();
    assert!(parts.cmvn.is_some());
    for (at, value) in parts.values.iter().enumerate() {
        let sum: f64 = checkpoint.kept.iter().map(|values| f64::from(values[at])).sum();
        assert_eq!(*value, (sum / 3.0) as f32);
    }
    assert_ne!(parts.values, checkpoint.values);
}

#[test]
fn recordings_that_vanish_stop_the_training_with_their_reason() {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(dir.path(), &TEXTS.repeat(4), SRF, &rate(3, 1e-3).replace("1500", "300"));
    job.max_cache_bytes = 0;
    let doomed = job.data.train.iter().map(|utterance| utterance.audio.path.clone()).collect();
    let notes = Notes { doomed, ..Notes::default() };
    let error = train(&job, &notes, &notes.stop).unwrap_err();
    assert!(matches!(error, TrainError::Recording(_)), "{error}");
    assert!(error.to_string().contains(".wav` can no longer be read: "), "{error}");
    let events = notes.events.into_inner().unwrap();
    assert!(matches!(events.last(), Some(Event::End(end)) if end.reason == EndReason::Failed));
    assert!(!events.iter().any(|event| matches!(event, Event::Epoch(_))), "no epoch ended");
}

#[test]
fn batches_without_a_loss_count_as_skipped() {
    let dir = tempfile::tempdir().unwrap();
    // Played twice as fast, no utterance has enough slices for its labels.
    let training = rate(1, 1e-3) + "\nmax_skipped = 0\naugment = { speeds = [2.0] }";
    let texts: Vec<&str> = vec!["a b a b a b a b a b a b"; 4];
    let mut job = job(dir.path(), &texts, SRF, &training);
    let data = Arc::get_mut(&mut job.data).expect("nobody else has it");
    for utterance in &mut data.train {
        utterance.text = ["a b"; 30].join(" ");
    }
    let error = go(&job).0.unwrap_err();
    assert!(matches!(error, TrainError::TooManySkipped { n_skipped: 1, .. }), "{error}");
}

#[test]
fn with_all_checkpoints_damaged_it_stops_and_a_restart_keeps_them() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), TEXTS, SRF, &rate(1, 1e-3));
    go(&job).0.unwrap();
    let first = checkpoint_of(&job.run);
    let checkpoints = || fs::read_dir(job.run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path());
    let n_checkpoints = checkpoints().count();
    checkpoints().for_each(|path| fs::write(path, b"SRFCKPT1 and then nothing").unwrap());
    let error = go(&job).0.unwrap_err();
    assert!(matches!(error, TrainError::AllDamaged { .. }), "{error}");
    assert!(error.hint().unwrap().contains("--restart"));
    assert_eq!(checkpoints().count(), n_checkpoints, "nothing is deleted");
    let old = set_run_aside(&job.run).unwrap().unwrap();
    assert_eq!(fs::read_dir(old.join("checkpoints")).unwrap().count(), n_checkpoints);
    go(&job).0.unwrap();
    assert!(checkpoint_of(&job.run) == first, "a restart ends in the same bytes");
    assert!(is_run_or_empty(&job.run) && !is_run_or_empty(dir.path()));
}

#[test]
fn checkpoints_that_contradict_their_recipe_are_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), TEXTS, SRF, &(rate(3, 1e-3) + "\naverage_epochs = 2"));
    go(&job).0.unwrap();
    let path = fs::read_dir(job.run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let good = Checkpoint::load(&path).unwrap();
    good.check().unwrap();
    let broken = |change: &dyn Fn(&mut Checkpoint)| {
        let mut checkpoint = good.clone();
        change(&mut checkpoint);
        checkpoint.check().unwrap_err()
    };
    broken(&|c| c.head.state.epoch = 0);
    broken(&|c| c.head.state.epoch = 5);
    broken(&|c| c.head.state.n_batches = 1_000_000_000_000);
    broken(&|c| c.head.state.n_updates = u64::MAX);
    broken(&|c| c.head.recipe = "[model]".to_owned());
    broken(&|c| drop(c.kept.pop_back()));
    let fewer = broken(&|c| c.head.n_values -= 1);
    assert!(fewer.contains(" values, the network of its recipe "), "{fewer}");
    broken(&|c| c.head.n_trainable -= 1);
    let statistics = broken(&|c| c.head.cmvn = Some(vec![1.0]));
    assert!(statistics.starts_with("its 1 statistics of features"), "{statistics}");
}

#[test]
fn weights_that_are_not_finite_are_not_averaged() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), TEXTS, SRF, &rate(1, 1e-3));
    go(&job).0.unwrap();
    let path = fs::read_dir(job.run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let mut checkpoint = Checkpoint::load(&path).unwrap();
    checkpoint.values[7] = f32::NAN;
    checkpoint.kept[0][7] = f32::INFINITY;
    checkpoint.save(&path).unwrap();
    let error = average::average(std::slice::from_ref(&path)).map(|_| ()).unwrap_err();
    assert!(error.to_string().ends_with("has 1 weights that are not finite"), "{error}");
    assert!(average::average_epochs(&path, 1).is_err());
    // The finished run is finished again, and its model is checked again.
    fs::remove_dir_all(job.run.join("model")).unwrap();
    let error = go(&job).0.unwrap_err();
    assert!(matches!(error, TrainError::NotFinite { n: 1, .. }), "{error}");
    assert!(!job.run.join("model").exists());
}

#[test]
fn the_fingerprint_covers_the_contents_of_recordings() {
    let dir = tempfile::tempdir().unwrap();
    let before = corpus(dir.path(), &["a b", "b"]);
    let path = dir.path().join("1.wav");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&path, bytes).unwrap();
    let after = Prepared::load(dir.path()).unwrap();
    assert_ne!(after.fingerprint, before.fingerprint);
    assert_eq!(after.sizes_fingerprint, before.sizes_fingerprint);
}

#[test]
fn doubtful_trainings_and_other_machines_are_remarked_on() {
    let dir = tempfile::tempdir().unwrap();
    let schedule = "schedule = { warmup = { steps = 500, kappa = [{ from_epoch = 1, value = 0.01 }] } }";
    let training = format!("epochs = 2\nbatch_frames = 1500\n{schedule}");
    let mut job = job(dir.path(), TEXTS, SRF, &training);
    job.machine.kernels = "avx512".to_owned();
    let notes = Notes { n_steps_left: Mutex::new(Some(1)), ..Notes::default() };
    train(&job, &notes, &notes.stop).unwrap();
    let remarks = notes.remarks.into_inner().unwrap();
    assert!(remarks[0].contains("fewer than the 500 of the warm-up"), "{remarks:?}");
    assert!(remarks[1].starts_with("6 utterances are few"), "{remarks:?}");
    job.machine.kernels = "scalar".to_owned();
    let (outcome, notes) = go(&job);
    outcome.unwrap();
    let remarks = notes.remarks.into_inner().unwrap();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].contains("began with the instruction set `avx512`, this machine uses `scalar`"), "{remarks:?}");
}

#[test]
fn the_figure_of_a_model_is_on_all_of_dev() {
    let dir = tempfile::tempdir().unwrap();
    let job = job(dir.path(), TEXTS, SRF, &(rate(1, 1e-3) + "\nvalidation_utterances = 2"));
    let (outcome, notes) = go(&job);
    let Ok(Outcome::Finished { dev: Some(dev), model, .. }) = outcome else { panic!("{outcome:?}") };
    let n_labels: usize = TEXTS.iter().map(|text| text.split(' ').count()).sum();
    assert_eq!(dev.errors.as_ref().unwrap().n_reference, n_labels);
    let card = fs::read_to_string(model.join("card.md")).unwrap();
    assert!(card.contains(&format!(" of {n_labels})")), "{card}");
    let events = notes.events.into_inner().unwrap();
    assert!(matches!(events.last(), Some(Event::End(end)) if end.dev.as_ref() == Some(&dev)));
}
