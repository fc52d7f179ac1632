//! What happens before the first step: checks, loading the data, and restoring the last checkpoint.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use srf_audio::features::cmvn::CmvnStats;
use srf_model::config::{ModelConfig, Recipe, ScheduleConfig, TrainingConfig};
use srf_model::network::Network;
use srf_model::params::{Layout, Params};
use srf_model::weights;
use srf_text::labels::LabelSet;

use super::batches::Buckets;
use super::checkpoint::{Checkpoint, Head, ReadCheckpointError, State};
use super::data::{Data, Dataset, Keep};
use super::front_end::FrontEnd;
use super::run::{Pace, Run};
use super::run_dir::{Found, RunDir, set_damaged_aside};
use super::training_loop::Learner;
use super::{TrainError, TrainJob, TrainWatcher};
use crate::augment::Augmenter;
use crate::corpus::{TRAIN, Utterance};
use crate::events::log::{FILE_NAME, History, Log};
use crate::events::{DataPart, Event, Record, Resume, RunStart};
use crate::tensorboard::{DIRECTORY_NAME, TensorBoard};

/// Fewer utterances than this are not enough for a model of anything else.
const FEW_UTTERANCES: usize = 100;

/// A job whose run directory this process has locked.
pub(super) struct Start<'a> {
    job: &'a TrainJob,
    training: &'a TrainingConfig,
    dir: RunDir,
    found: Option<Found>,
    /// Damaged checkpoints newer than the one found.
    remarks: Vec<String>,
    head: Head,
    /// The model whose parameters this one starts with.
    from: Option<(ModelConfig, Params<f32>)>,
}

impl<'a> Start<'a> {
    pub(super) fn new(job: &'a TrainJob, watcher: &dyn TrainWatcher) -> Result<Self, TrainError> {
        let no_training = || TrainError::NoTraining { name: job.recipe_name.clone() };
        let training = job.recipe.training.as_ref().ok_or_else(no_training)?;
        let from = job.from.as_ref().map(|from| weights::load(&from.join("weights.safetensors"))).transpose()?;
        let dir = RunDir::open(&job.run)?;
        let (found, damaged) = dir.latest();
        let remarks: Vec<String> = damaged.iter().map(ToString::to_string).collect();
        remarks.iter().for_each(|remark| watcher.remark(remark));
        let mut head = new_head(job);
        head.from_fingerprint = from.as_ref().map(|(_, params)| fingerprint(&params.values));
        match &found {
            Some(found) => check_same(&job.run, &found.checkpoint.head, &head, &job.data.sizes_fingerprint)?,
            None => refuse_damaged(&job.run, &damaged)?,
        }
        set_damaged_aside(&job.run, &damaged);
        dir.tidy();
        Ok(Self { job, training, dir, found, remarks, head, from })
    }

    /// Whether nothing is left to do: the last epoch is over, and the model was written.
    pub(super) fn is_at_end(&self) -> bool {
        let is_over = self.found.as_ref().is_some_and(|found| found.checkpoint.head.state.is_finished);
        // The end is logged after the model is on the disk.
        is_over && History::load(&self.job.run.join(FILE_NAME)).is_ok_and(|history| history.is_finished())
    }

    /// Reads the corpus into memory.
    pub(super) fn load_data(&self, watcher: &dyn TrainWatcher) -> Result<Data, TrainError> {
        let TrainJob { data, recipe, .. } = self.job;
        let augmenter = Augmenter::new(self.training.augment.clone(), self.training.seed)?;
        let front_end = FrontEnd::new(&recipe.features)?;
        let frames_per_slice = Network::<f32>::new(&recipe.model).0.frames_per_slice();
        let keep = self.keep(&augmenter, &front_end);
        let train = Dataset::load(&data.train, &data.labels, front_end.clone(), keep, frames_per_slice, watcher);
        if let (true, Some(first)) = (train.examples.is_empty(), train.skipped.first()) {
            let (id, reason) = (first.id.clone(), first.reason.clone());
            return Err(TrainError::NothingToTrainOn { part: TRAIN, n_utterances: data.train.len(), id, reason });
        }
        let mut dev_front_end = front_end;
        if let Some(global) = train.front_end.global() {
            dev_front_end.set_global(global.clone());
        }
        let dev = Dataset::load(&data.dev, &data.labels, dev_front_end, Keep::Features, frames_per_slice, watcher);
        Ok(Data { train, dev, augmenter, buckets: Buckets::new(self.training.batch_frames) })
    }

    /// What of the training set stays in memory.
    fn keep(&self, augmenter: &Augmenter, front_end: &FrontEnd) -> Keep {
        let seconds: f64 = self.job.data.train.iter().filter_map(|utterance| utterance.audio.duration_s).sum();
        let changes_samples = augmenter.changes_samples();
        let numbers_per_s =
            if changes_samples { f64::from(front_end.rate_hz()) } else { front_end.n_dims() as f64 * 100.0 };
        match (4.0 * seconds * numbers_per_s <= self.job.max_cache_bytes as f64, changes_samples) {
            (false, _) => Keep::Nothing,
            (true, true) => Keep::Samples,
            (true, false) => Keep::Features,
        }
    }

    /// The run at its first step, or where it was.
    pub(super) fn into_run<'r>(
        self,
        data: &'r Data,
        watcher: &'r dyn TrainWatcher,
        stop: &'r AtomicBool,
    ) -> Result<Run<'r>, TrainError>
    where
        'a: 'r,
    {
        let Self { job, training, dir, found, mut remarks, mut head, from } = self;
        if found.is_some() {
            remarks.extend(other_kernels(&job.run, &job.machine.kernels));
            remarks.last().into_iter().for_each(|remark| watcher.remark(remark));
        } else if !job.data.fingerprint.is_empty() {
            // A part of a corpus, taken to time some batches, has no fingerprint.
            doubts(training, data).iter().for_each(|doubt| watcher.remark(doubt));
        }
        let mut learner = Learner::new(&job.recipe.model, training);
        if let Some((config, params)) = &from {
            let path = job.from.as_deref().unwrap_or(Path::new(""));
            copy_weights(&mut learner, path, config, params, job)?;
        }
        head.cmvn =
            data.train.front_end.global().filter(|_| data.train.front_end.needs_global()).map(CmvnStats::to_kaldi);
        head.n_values = learner.params.layout.n_values();
        head.n_trainable = learner.params.layout.n_trainable();
        let log = Log::open(&dir.path().join(FILE_NAME))?;
        let is_new = found.is_none();
        if let Some(found) = &found {
            // A resumed run goes on with the fingerprint it began with.
            head.data_fingerprint.clone_from(&found.checkpoint.head.data_fingerprint);
            check_position(found, data.plan(training, found.checkpoint.head.state.epoch).len(), &job.run)?;
        }
        let resumed = found.map(|Found { path, checkpoint }| (path, restore(checkpoint, &mut learner)));
        let (state, kept, event) = if let Some((path, (state, kept))) = resumed {
            let event = Resume { epoch: state.epoch - 1, checkpoint: path.display().to_string(), remarks };
            (state, kept, Event::Resume(event))
        } else {
            let state = State { epoch: 1, ..State::default() };
            (state, VecDeque::new(), Event::Start(Box::new(run_start(job, training, data, head.n_values))))
        };
        let mut run = Run {
            board: open_board(&dir.path().join(DIRECTORY_NAME), state.n_updates, watcher),
            job,
            training,
            data,
            dir,
            log,
            watcher,
            stop,
            learner,
            state,
            kept,
            head,
            pace: Pace::new(),
            last_save: Instant::now(),
        };
        run.report(event)?;
        if is_new {
            run.begin()?;
        }
        Ok(run)
    }
}

/// The TensorBoard file; training goes on without it.
fn open_board(dir: &Path, n_updates: u64, watcher: &dyn TrainWatcher) -> Option<TensorBoard> {
    let board = TensorBoard::create(dir, Record::now(0, Event::Unknown).time_s, n_updates);
    board.inspect_err(|problem| watcher.remark(&problem.to_string())).ok()
}

/// What to say where the run began on another instruction set, whose sums are rounded otherwise.
fn other_kernels(run: &Path, now: &str) -> Option<String> {
    let history = History::load(&run.join(FILE_NAME)).ok()?;
    let was = &history.start()?.machine.kernels;
    (!was.is_empty() && was != now).then(|| {
        format!(
            "the run began with the instruction set `{was}`, this machine uses `{now}`: the bytes will differ from \
             those of a run that never changed (`SRF_ISA={was}` pins it where the machine has it)"
        )
    })
}

/// Reasons to doubt that training can work, one line each.
fn doubts(training: &TrainingConfig, data: &Data) -> Vec<String> {
    let n_updates = data.plan(training, 1).len() * training.epochs;
    let n_train = data.train.examples.len();
    let mut doubts = Vec::new();
    if let ScheduleConfig::Warmup { steps, .. } = training.schedule
        && (n_updates as u64) < steps
    {
        doubts.push(format!(
            "{n_updates} updates are fewer than the {steps} of the warm-up, so the learning rate never reaches its \
             height: train longer (`--epochs`), with smaller batches (`training.batch_frames`) or a shorter warm-up \
             (`training.schedule.warmup.steps`)"
        ));
    }
    if data.dev.examples.is_empty() {
        doubts.push(
            "there is no dev part: nothing will say how good the model is (`srf prepare ... --split`)".to_owned(),
        );
    }
    if n_train < FEW_UTTERANCES {
        doubts.push(format!("{n_train} utterances are few: expect a model that knows these and no others"));
    }
    doubts
}

fn new_head(job: &TrainJob) -> Head {
    Head {
        recipe: job.recipe.format(),
        labels: job.data.labels.format(),
        data_fingerprint: job.data.fingerprint.clone(),
        from_fingerprint: None,
        cmvn: None,
        state: State::default(),
        n_values: 0,
        n_trainable: 0,
        n_kept: 0,
    }
}

fn fingerprint(values: &[f32]) -> String {
    let mut sum = crc32fast::Hasher::new();
    values.iter().for_each(|value| sum.update(&value.to_le_bytes()));
    format!("{:08x}", sum.finalize())
}

/// Refuses to resume with another recipe, other labels or other data.
fn check_same(run: &Path, was: &Head, now: &Head, sizes_fingerprint: &str) -> Result<(), TrainError> {
    let changed = |what: &str, was: &str, now: &str| {
        let [what, was, now] = [what, was, now].map(str::to_owned);
        Err(TrainError::Changed { run: run.to_owned(), what, was, now })
    };
    let or_none = |fingerprint: &Option<String>| fingerprint.clone().unwrap_or_else(|| "none".to_owned());
    // Names of keys may have changed since.
    let recipe = Recipe::parse(&was.recipe, run).map_or_else(|_| was.recipe.clone(), |recipe| recipe.format());
    if let Some((key, was, now)) = Recipe::first_difference(&recipe, &now.recipe) {
        return changed(&format!("`{key}`"), &was, &now);
    }
    if was.labels != now.labels {
        return changed("labels", "of another set", "those of the data");
    }
    // Runs of earlier versions know the sizes of recordings only.
    if was.data_fingerprint != now.data_fingerprint && was.data_fingerprint != sizes_fingerprint {
        return changed("data of fingerprint", &was.data_fingerprint, &now.data_fingerprint);
    }
    if was.from_fingerprint != now.from_fingerprint {
        return changed(
            "a first model of fingerprint",
            &or_none(&was.from_fingerprint),
            &or_none(&now.from_fingerprint),
        );
    }
    Ok(())
}

/// Refuses to start anew over checkpoints of which none can be used: somebody may still want to look at them.
fn refuse_damaged(run: &Path, problems: &[ReadCheckpointError]) -> Result<(), TrainError> {
    let unreadable = problems.iter().find(|problem| matches!(problem, ReadCheckpointError::Io { .. }));
    let run = run.to_owned();
    match (unreadable, problems.first()) {
        (Some(problem), _) => Err(TrainError::Unreadable { run, problem: problem.to_string() }),
        (None, Some(problem)) => Err(TrainError::AllDamaged { run, problem: problem.to_string() }),
        (None, None) => Ok(()),
    }
}

/// A checkpoint cannot be further in an epoch than the epoch is long.
fn check_position(found: &Found, n_batches: usize, run: &Path) -> Result<(), TrainError> {
    let done = found.checkpoint.head.state.n_batches;
    if done <= n_batches {
        return Ok(());
    }
    let problem = format!("`{}` is damaged: {done} batches are done of {n_batches}", found.path.display());
    Err(TrainError::AllDamaged { run: run.to_owned(), problem })
}

/// Puts the numbers of a checkpoint back into the learner.
fn restore(checkpoint: Checkpoint, learner: &mut Learner) -> (State, VecDeque<Vec<f32>>) {
    let Checkpoint { head, values, means, squares, kept } = checkpoint;
    learner.params.values = values;
    learner.adam.means = means;
    learner.adam.squares = squares;
    learner.adam.n_updates = head.state.n_updates;
    (head.state, kept)
}

/// Copies the tensors of another model; with other labels, those that belong to classes stay new.
fn copy_weights(
    learner: &mut Learner,
    path: &Path,
    config: &ModelConfig,
    params: &Params<f32>,
    job: &TrainJob,
) -> Result<(), TrainError> {
    let labels = LabelSet::load(&path.join("labels.txt"));
    let has_same_labels = labels.is_ok_and(|labels| labels == job.data.labels);
    let other = |problem| TrainError::OtherModel { from: path.to_owned(), problem };
    let wider = Layout::new(&job.recipe.model.with_classes(job.recipe.model.n_classes() + 1));
    if config.architecture() != job.recipe.model.architecture() {
        return Err(other(format!(
            "it is `{}`, the recipe says `{}`",
            config.architecture(),
            job.recipe.model.architecture()
        )));
    }
    let layout = learner.params.layout.clone();
    for tensor in layout.tensors() {
        let is_of_classes = wider.find(&tensor.name).is_none_or(|wide| wide.shape != tensor.shape);
        if is_of_classes && !has_same_labels {
            continue;
        }
        match params.layout.find(&tensor.name) {
            Some(theirs) if theirs.shape == tensor.shape => {
                tensor.slot.of_mut(&mut learner.params.values).copy_from_slice(theirs.slot.of(&params.values));
            }
            Some(theirs) => {
                return Err(other(format!("its `{}` is {:?}, here {:?}", tensor.name, theirs.shape, tensor.shape)));
            }
            None => return Err(other(format!("it has no `{}`", tensor.name))),
        }
    }
    Ok(())
}

fn run_start(job: &TrainJob, training: &TrainingConfig, data: &Data, n_values: usize) -> RunStart {
    let part = |name: &str, set: &Dataset, utterances: &[Utterance]| DataPart {
        name: name.to_owned(),
        path: job.data.manifests(name),
        n_utterances: set.examples.len(),
        n_frames: set.n_frames(),
        duration_s: utterances.iter().filter_map(|utterance| utterance.audio.duration_s).sum(),
    };
    RunStart {
        recipe_name: job.recipe_name.clone(),
        recipe: job.recipe.format(),
        command: job.command.clone(),
        seed: training.seed,
        architecture: job.recipe.model.architecture().to_owned(),
        n_parameters: n_values as u64,
        n_classes: job.data.labels.n_classes(),
        units: job.data.labels.units().to_string(),
        from: job.from.as_ref().map(|from| from.display().to_string()),
        data: vec![part("train", &data.train, &job.data.train), part("dev", &data.dev, &job.data.dev)],
        data_fingerprint: job.data.fingerprint.clone(),
        n_epochs: training.epochs,
        n_steps_per_epoch: data.plan(training, 1).len(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: job.machine.clone(),
    }
}
