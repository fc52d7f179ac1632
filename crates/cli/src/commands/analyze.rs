//! `srf analyze`: models and recordings in, pictures and pages of their routing and a table of its distance from the
//! softmax out.

mod sources;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use srf::{Recognizer, default_model};
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_train::analyze::{Analysis, AnalyzeError, Detail, Named, Routes, files, times, windows};

use self::sources::Sources;
use self::table::{Counts, Measured};
use crate::Exit;
use crate::printer::Printer;

/// Longer pieces make pages that no browser likes.
const MAX_SECONDS: f64 = 120.0;
const MAX_TIMES: usize = 12;

/// Show what the routing does
///
/// For each utterance: heat maps of the coupling coefficients (PNG and SVG), the softmax where it starts and ends, and
/// a page with a time slider over spectrogram, softmax and every capsule layer. Printed is how often the class that
/// most capsules are routed to is not the likeliest one, also without the classes that nowhere are.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf analyze --model model hello.wav --ref hello.TextGrid
  srf analyze --model runs/sdr-1/model --model runs/dr-2/model test.jsonl --pictures 2 --out routing
  srf analyze --model model talk.flac --times 0.5,1.25,3
  srf analyze --table windows.csv          error against window, from `left,right,set,error,eos`")]
pub(crate) struct Args {
    /// Recordings, directories of them, JSONL manifests, Kaldi data directories or `wav.scp` files
    #[arg(required_unless_present = "table", value_name = "FILE")]
    inputs: Vec<PathBuf>,

    /// A model directory; give several to compare them [default: $SRF_MODEL, ./model, ./models/en-phones, or the one beside the program]
    #[arg(long, short, value_name = "DIR")]
    model: Vec<PathBuf>,

    /// What was said and when: a JSONL manifest, or for one recording a `.phn`, `.wrd`, `.lab` or `.TextGrid`
    #[arg(long = "ref", value_name = "LABELS")]
    reference: Option<PathBuf>,

    /// The directory to write
    #[arg(long, short, value_name = "DIR", default_value = "analysis")]
    out: PathBuf,

    /// Times to look at, in seconds, separated by commas [default: the ends and some labels between]
    #[arg(long, value_name = "SECONDS", value_delimiter = ',')]
    times: Vec<f64>,

    /// Pictures and pages of the first N utterances; the others are only counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    pictures: usize,

    /// How much of each utterance to look at
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    seconds: f64,

    /// Leave the sound out of the pages
    #[arg(long)]
    no_sound: bool,

    /// A table of systems with different windows to draw, as CSV or JSON
    #[arg(long, value_name = "TABLE")]
    table: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { inputs, model, reference, out: dir, times, pictures, seconds, no_sound, table, json } = args;
    ensure!(0.0 < seconds && seconds <= MAX_SECONDS, "--seconds is {seconds}, expected up to {MAX_SECONDS}");
    ensure!(times.len() <= MAX_TIMES, "{} times were asked for, expected at most {MAX_TIMES}", times.len());
    ensure!(times.iter().all(|time_s| 0.0 <= *time_s), "--times are counted from 0, in seconds");
    if let Some(table) = table {
        draw_table(&table, &dir, out)?;
    }
    if inputs.is_empty() {
        return Ok(Exit::Done);
    }
    let models = open_models(model)?;
    let sources = Sources::gather(&inputs, reference.as_deref(), seconds, out)?;
    let looks = Looks { dir, times, n_pictures: pictures, has_sound: !no_sound };
    let measured = analyse_all(&models, &sources, &looks, out);
    let text = if json { measured.json() } else { measured.text() };
    std::fs::create_dir_all(&looks.dir).with_context(|| format!("could not make `{}`", looks.dir.display()))?;
    std::fs::write(looks.dir.join("distance.json"), measured.json() + "\n")
        .with_context(|| format!("could not write `{}`", looks.dir.join("distance.json").display()))?;
    out.line(text)?;
    Ok(if sources.n_problems + measured.n_problems == 0 { Exit::Done } else { Exit::Problems })
}

/// What is drawn, and where.
struct Looks {
    dir: PathBuf,
    times: Vec<f64>,
    n_pictures: usize,
    has_sound: bool,
}

fn draw_table(table: &Path, dir: &Path, out: &Printer) -> anyhow::Result<()> {
    let rows = windows::load(table)?;
    std::fs::create_dir_all(dir).with_context(|| format!("could not make `{}`", dir.display()))?;
    windows::picture(&rows).save(dir, "windows").with_context(|| format!("could not write to `{}`", dir.display()))?;
    out.note(format_args!("{} rows drawn in `{}`", rows.len(), dir.join("windows.png").display()));
    Ok(())
}

fn open_models(dirs: Vec<PathBuf>) -> anyhow::Result<Vec<Named>> {
    let dirs = if dirs.is_empty() { vec![default_model()?] } else { dirs };
    let open = |dir: &PathBuf| {
        let model = Named { name: model_name(dir), recognizer: Recognizer::open(dir)? };
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

/// The name of the directory, or of the one around it where that says more.
fn model_name(dir: &Path) -> String {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    match name(&dir) {
        Some(plain) if plain == "model" => dir.parent().and_then(name).unwrap_or(plain),
        plain => plain.unwrap_or_else(|| "model".to_owned()),
    }
}

fn analyse_all(models: &[Named], sources: &Sources, looks: &Looks, out: &Printer) -> Measured {
    let utterances = &sources.utterances;
    let progress = out.progress("analyze", utterances.len() as u64);
    let by_speaker: Vec<_> = models
        .iter()
        .map(|model| model.recognizer.is_by_speaker().then(|| model.recognizer.speaker_statistics(utterances)))
        .collect();
    let mut measured = Measured::new(models);
    for (index, utterance) in utterances.iter().enumerate() {
        let statistics: Vec<Option<CmvnStats>> = by_speaker
            .iter()
            .map(|speakers| speakers.as_ref().and_then(|speakers| speakers.get(utterance.speaker.as_str()).cloned()))
            .collect();
        let counts = if index < looks.n_pictures {
            draw(models, utterance, &statistics, sources, looks)
        } else {
            count(models, utterance, &statistics).map_err(anyhow::Error::from)
        };
        match counts {
            Ok(counts) => measured.add(&utterance.id, counts),
            Err(error) => {
                measured.n_problems += 1;
                progress.suspend(|| out.problem(format_args!("{error:#}")));
            }
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    let n_drawn = looks.n_pictures.min(utterances.len());
    if 0 < n_drawn {
        out.note(format_args!("pictures and pages of {n_drawn} utterances in `{}`", looks.dir.display()));
    }
    measured
}

/// Pictures and page of an utterance; what is counted of it, for each model.
fn draw(
    models: &[Named],
    utterance: &Utterance,
    statistics: &[Option<CmvnStats>],
    sources: &Sources,
    looks: &Looks,
) -> anyhow::Result<Vec<Counts>> {
    let reference = sources.reference(&utterance.id, models[0].recognizer.labels().units());
    let mut analysis = Analysis::hear(models, utterance, statistics, reference)?;
    if !looks.has_sound {
        analysis.sound = None;
    }
    let times_s = if looks.times.is_empty() { times::choose(&analysis, times::N_TIMES) } else { looks.times.clone() };
    let dir = looks.dir.join(files::file_name(&utterance.id));
    files::save(&analysis, &times_s, &dir).with_context(|| format!("could not write to `{}`", dir.display()))?;
    Ok(analysis.models.iter().map(Counts::of).collect())
}

fn count(
    models: &[Named],
    utterance: &Utterance,
    statistics: &[Option<CmvnStats>],
) -> Result<Vec<Counts>, AnalyzeError> {
    let of = |(Named { name, recognizer }, statistics): (&Named, &Option<CmvnStats>)| {
        Routes::hear(recognizer, name, utterance, statistics.as_ref(), Detail::Classes)
    };
    models.iter().zip(statistics).map(of).map(|routes| routes.map(|routes| Counts::of(&routes))).collect()
}
