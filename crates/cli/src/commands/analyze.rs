//! `srf analyze`: figures and pages of the routing, and how far it is from the softmax.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use srf::Recognizer;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_base::files::write_atomically;
use srf_text::labels::Units;
use srf_train::analyze::distance::{ClassMass, Distance, Masses};
use srf_train::analyze::{
    Analysis, Detail, N_TIMES, Named, Routes, folder_name, reference_labels, unused_in_training, windows,
};
use srf_train::corpus::{self, Problem, Timed, folder, manifest};

use super::inputs::{self, Inputs};
use super::models::{default_directory, model_directory};
use crate::Exit;
use crate::printer::{Printer, human_duration, table};

/// Longer pieces make pages that browsers cannot show.
const MAX_SECONDS: f64 = 120.0;
const MAX_TIMES: usize = 12;

/// Show what the routing does
///
/// For each utterance: heat maps of the coupling coefficients (PNG and SVG), the softmax where it starts and ends, and
/// a page with a time slider over spectrogram, softmax and every capsule layer. Prints how often the class with the
/// largest sum of couplings is not the most probable one, also without the classes that never are.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf analyze --model model hello.wav --ref hello.TextGrid
  srf analyze --model runs/sdr-1/model --model runs/dr-2/model test.jsonl --pictures 2 --out routing
  srf analyze --model model talk.flac --times 0.5,1.25,3
  srf analyze --table windows.csv          # error by window, from `left,right,set,error,eos`")]
pub(crate) struct Args {
    /// Recordings, directories of them, JSONL manifests, Kaldi data directories or `wav.scp` files
    #[arg(required_unless_present = "table", value_name = "FILE")]
    inputs: Vec<PathBuf>,

    /// A model directory, or the run it is in; give several to compare them [default: $SRF_MODEL, ./model, ./models/en, or the one next to the program]
    #[arg(long, short, value_name = "DIR")]
    model: Vec<PathBuf>,

    /// Reference labels with times: a JSONL manifest, or for one recording a `.phn`, `.wrd`, `.lab` or `.TextGrid`
    #[arg(long = "ref", value_name = "LABELS")]
    reference: Option<PathBuf>,

    /// Directory to write to
    #[arg(long, short, value_name = "DIR", default_value = "analysis")]
    out: PathBuf,

    /// Times to show, in seconds, separated by commas [default: both ends and some labels between]
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    times: Vec<f64>,

    /// Write figures and pages for the first N utterances; the others are only counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    pictures: usize,

    /// How much of each utterance to analyse
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    seconds: f64,

    /// Leave sound out of the pages
    #[arg(long)]
    no_sound: bool,

    /// Draw a table of systems with different windows, from CSV or JSON
    #[arg(long, value_name = "TABLE")]
    table: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { inputs, model, reference, out: dir, times, pictures, seconds, no_sound, table, json } = args;
    ensure!(0.0 < seconds && seconds <= MAX_SECONDS, "--seconds is {seconds}, expected up to {MAX_SECONDS}");
    ensure!(times.len() <= MAX_TIMES, "{} times were given, expected at most {MAX_TIMES}", times.len());
    ensure!(times.iter().all(|time_s| 0.0 <= *time_s), "--times are counted from 0, in seconds");
    if let Some(table) = table {
        draw_table(&table, &dir, out)?;
    }
    if inputs.is_empty() {
        return Ok(Exit::Done);
    }
    let models = open_models(model)?;
    let sources = Sources::gather(&inputs, reference.as_deref(), seconds, out)?;
    // Before any work, so that a directory that cannot be written to is noticed at once.
    std::fs::create_dir_all(&dir).with_context(|| format!("could not create `{}`", dir.display()))?;
    let views = Views { dir, times, n_pictures: pictures, has_sound: !no_sound };
    let measured = analyze_all(&models, &sources, &views, out);
    let path = views.dir.join("distance.json");
    write_atomically(&path, (measured.json() + "\n").as_bytes())
        .with_context(|| format!("could not write `{}`", path.display()))?;
    out.line(if json { measured.json() } else { measured.text() })?;
    Ok(if sources.n_problems + measured.n_problems == 0 { Exit::Done } else { Exit::Problems })
}

/// What is drawn, and where.
struct Views {
    dir: PathBuf,
    times: Vec<f64>,
    n_pictures: usize,
    has_sound: bool,
}

fn draw_table(table: &Path, dir: &Path, out: &Printer) -> anyhow::Result<()> {
    let rows = windows::load(table)?;
    std::fs::create_dir_all(dir).with_context(|| format!("could not create `{}`", dir.display()))?;
    windows::picture(&rows).save(dir, "windows").with_context(|| format!("could not write to `{}`", dir.display()))?;
    out.note(format_args!("{} rows drawn in `{}`", rows.len(), dir.join("windows.png").display()));
    Ok(())
}

fn open_models(dirs: Vec<PathBuf>) -> anyhow::Result<Vec<Named>> {
    let dirs = if dirs.is_empty() { vec![default_directory()?] } else { dirs };
    let open = |dir: &PathBuf| {
        let (name, dir) = (model_name(dir), model_directory(dir.clone())?);
        let recognizer = Recognizer::open(&dir)?;
        let unused = unused_in_training(&dir, recognizer.labels());
        let model = Named { name, recognizer, unused };
        model.check()?;
        anyhow::Ok(model)
    };
    let mut models: Vec<Named> = dirs.iter().map(open).collect::<Result<_, _>>()?;
    for (index, dir) in dirs.iter().enumerate() {
        let is_twice = models.iter().filter(|other| other.name == models[index].name).count() > 1;
        if is_twice {
            models[index].name = dir.display().to_string();
        }
    }
    Ok(models)
}

/// The name of the directory; of the run for `RUN/model`.
fn model_name(dir: &Path) -> String {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    match name(&dir) {
        Some(plain) if plain == "model" => dir.parent().and_then(name).unwrap_or(plain),
        plain => plain.unwrap_or_else(|| "model".to_owned()),
    }
}

fn analyze_all(models: &[Named], sources: &Sources, views: &Views, out: &Printer) -> Measured {
    let utterances = &sources.utterances;
    let progress = out.progress("analyze", utterances.len() as u64);
    let by_speaker: Vec<_> = models
        .iter()
        .map(|model| model.recognizer.is_by_speaker().then(|| model.recognizer.speaker_statistics(utterances)))
        .collect();
    let mut measured = Measured::new(models);
    let mut n_drawn = 0;
    for (index, utterance) in utterances.iter().enumerate() {
        let statistics: Vec<Option<CmvnStats>> = by_speaker
            .iter()
            .map(|speakers| speakers.as_ref().and_then(|speakers| speakers.get(utterance.speaker.as_str()).cloned()))
            .collect();
        let is_drawn = index < views.n_pictures;
        let counts = if is_drawn {
            draw(models, utterance, &statistics, sources, views)
        } else {
            count(models, utterance, &statistics)
        };
        match counts {
            Ok(counts) => {
                n_drawn += usize::from(is_drawn);
                measured.add(&utterance.id, counts);
            }
            Err(error) => {
                measured.n_problems += 1;
                progress.suspend(|| out.problem(format_args!("{error:#}")));
            }
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    if 0 < n_drawn {
        out.note(format_args!("figures and pages of {n_drawn} utterances in `{}`", views.dir.display()));
    }
    measured
}

/// Writes the figures and the page of an utterance. Returns the counts for each model.
fn draw(
    models: &[Named],
    utterance: &Utterance,
    statistics: &[Option<CmvnStats>],
    sources: &Sources,
    views: &Views,
) -> anyhow::Result<Vec<Counts>> {
    let reference = sources.reference(&utterance.id, models[0].recognizer.labels().units());
    let mut analysis = Analysis::compute(models, utterance, statistics, reference)?;
    if !views.has_sound {
        analysis.sound = None;
    }
    let times_s = if views.times.is_empty() { analysis.choose_times(N_TIMES) } else { views.times.clone() };
    let dir = views.dir.join(folder_name(&utterance.id));
    analysis.save(&times_s, &dir).with_context(|| format!("could not write to `{}`", dir.display()))?;
    Ok(analysis.models.iter().map(Counts::of).collect())
}

fn count(models: &[Named], utterance: &Utterance, statistics: &[Option<CmvnStats>]) -> anyhow::Result<Vec<Counts>> {
    let counts = |(Named { name, recognizer, unused }, statistics): (&Named, &Option<CmvnStats>)| {
        let routes = Routes::compute(recognizer, name, utterance, statistics.as_ref(), Detail::Classes)?;
        Ok(Counts::of(&routes.without(unused)))
    };
    models.iter().zip(statistics).map(counts).collect()
}

/// The utterances to analyse, and their references.
struct Sources {
    utterances: Vec<Utterance>,
    n_problems: usize,
    references: HashMap<String, corpus::Utterance>,
}

impl Sources {
    fn gather(paths: &[PathBuf], labels: Option<&Path>, limit_s: f64, out: &Printer) -> anyhow::Result<Self> {
        let Inputs { mut utterances, mut n_problems, .. } = inputs::gather(paths, out);
        if utterances.is_empty() {
            bail!("found no recording in the given paths");
        }
        let mut references = HashMap::new();
        for path in paths.iter().map(PathBuf::as_path).chain(labels).filter(|path| is_manifest(path)) {
            let (listed, problems) = manifest::load(path);
            // Problems of the inputs were reported when they were gathered.
            if Some(path) == labels {
                n_problems += report_problems(&problems, out);
            }
            references.extend(listed.into_iter().map(|line| (line.utterance.id.clone(), line.utterance)));
        }
        if let Some(labels) = labels.filter(|path| !is_manifest(path)) {
            ensure!(
                utterances.len() == 1,
                "`{}` is for one recording, but there are {}: give a manifest as --ref",
                labels.display(),
                utterances.len()
            );
            let (known, problems) = folder::labels_of(labels, &utterances[0].path);
            n_problems += report_problems(&problems, out);
            let has_times = !known.phones.is_empty() || !known.words.is_empty();
            ensure!(
                has_times || !problems.is_empty(),
                "`{}` has no labels with times, expected a .phn, .wrd, .lab, .TextGrid or .jsonl file",
                labels.display()
            );
            references.insert(utterances[0].id.clone(), known);
        }
        for utterance in &mut utterances {
            limit(utterance, limit_s, out);
        }
        Ok(Self { utterances, n_problems, references })
    }

    /// The reference of an utterance in a model's units; empty if unknown.
    fn reference(&self, id: &str, units: Units) -> Vec<Timed> {
        self.references.get(id).map(|known| reference_labels(known, units)).unwrap_or_default()
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jsonl"))
}

fn report_problems(problems: &[Problem], out: &Printer) -> usize {
    problems.iter().for_each(|problem| out.problem(problem));
    problems.len()
}

/// Cuts an utterance that is longer than `limit_s`, with a note.
fn limit(utterance: &mut Utterance, limit_s: f64, out: &Printer) {
    let start_s = utterance.selection.start_s;
    let measured_s = || srf_audio::probe(&utterance.path).ok().and_then(|info| info.duration_s());
    let end_s = utterance.selection.end_s.or_else(measured_s);
    if end_s.is_some_and(|end_s| end_s <= start_s + limit_s) {
        return;
    }
    if let Some(end_s) = end_s {
        out.note(format_args!(
            "`{}` is {} long, its first {} are analysed; see --seconds",
            utterance.id,
            human_duration(end_s - start_s),
            human_duration(limit_s)
        ));
    }
    utterance.selection.end_s = Some(start_s + limit_s);
}

/// What is counted for one model and utterance.
struct Counts {
    distance: Distance,
    masses: Masses,
}

impl Counts {
    fn of(routes: &Routes) -> Self {
        Self { distance: Distance::of(routes), masses: Masses::of(routes) }
    }
}

/// Counts of all utterances, for each model.
struct Measured {
    n_problems: usize,
    models: Vec<String>,
    rows: Vec<(String, Vec<Distance>)>,
    /// Of all utterances together; empty before the first.
    masses: Vec<Masses>,
}

#[derive(Serialize)]
struct DistanceLine<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    utterance: Option<&'a str>,
    #[serde(flatten)]
    distance: Distance,
    rate: Option<f64>,
}

#[derive(Serialize)]
struct ClassLine<'a> {
    model: &'a str,
    #[serde(flatten)]
    mass: ClassMass,
}

/// All utterances, without the classes that are never the most probable.
const PREDICTED: &str = "all, without unused classes";

/// More utterances than this are not listed one by one.
const MAX_ROWS: usize = 40;

impl Measured {
    fn new(models: &[Named]) -> Self {
        let models = models.iter().map(|model| model.name.clone()).collect();
        Self { n_problems: 0, models, rows: Vec::new(), masses: Vec::new() }
    }

    fn add(&mut self, id: &str, counts: Vec<Counts>) {
        self.rows.push((id.to_owned(), counts.iter().map(|counts| counts.distance).collect()));
        if self.masses.is_empty() {
            self.masses = counts.into_iter().map(|counts| counts.masses).collect();
        } else {
            self.masses.iter_mut().zip(&counts).for_each(|(masses, counts)| masses.add(&counts.masses));
        }
    }

    fn total(&self, model: usize) -> Distance {
        self.rows.iter().map(|(_, distances)| distances[model]).sum()
    }

    /// The edit distance rate of each utterance and of all.
    fn text(&self) -> String {
        let head = ["utterance", "model", "slices", "different", "rate"].map(str::to_owned).to_vec();
        let row = |id: &str, model: usize, distance: Distance| {
            let rate = distance.rate().map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate));
            let model = self.models[model].clone();
            vec![id.to_owned(), model, distance.n_slices.to_string(), distance.n_different.to_string(), rate]
        };
        let of_all = (0..self.models.len()).map(|model| row("all", model, self.total(model)));
        let of_predicted =
            self.masses.iter().enumerate().map(|(model, masses)| row(PREDICTED, model, masses.distance_of_predicted()));
        let shown = if self.rows.len() <= MAX_ROWS { &self.rows[..] } else { &[] };
        let each = shown.iter().flat_map(|(id, distances)| {
            let row = &row;
            distances.iter().enumerate().map(move |(model, distance)| row(id, model, *distance))
        });
        let lines: Vec<Vec<String>> = [head].into_iter().chain(each).chain(of_all).chain(of_predicted).collect();
        table(&lines, 2)
    }

    /// The same for programs, with every utterance.
    fn json(&self) -> String {
        let line = |utterance, model: usize, distance: Distance| DistanceLine {
            model: &self.models[model],
            utterance,
            distance,
            rate: distance.rate(),
        };
        let total: Vec<DistanceLine> =
            (0..self.models.len()).map(|model| line(None, model, self.total(model))).collect();
        let each: Vec<DistanceLine> = self
            .rows
            .iter()
            .flat_map(|(id, distances)| {
                let line = &line;
                distances.iter().enumerate().map(move |(model, distance)| line(Some(id), model, *distance))
            })
            .collect();
        let of_predicted = |(model, masses): (usize, &Masses)| line(None, model, masses.distance_of_predicted());
        let predicted: Vec<DistanceLine> = self.masses.iter().enumerate().map(of_predicted).collect();
        let masses = self.models.iter().zip(&self.masses);
        let classes: Vec<ClassLine> = masses
            .flat_map(|(model, masses)| masses.each().into_iter().map(move |mass| ClassLine { model, mass }))
            .collect();
        serde_json::json!({ "total": total, "said": predicted, "classes": classes, "utterances": each }).to_string()
    }
}
