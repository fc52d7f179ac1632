//! `srf bench`: measures speed, always relative to the matrix product (sgemm) in the same run.
//!
//! The work is fixed: a training step is forward pass, CTC, backward pass and Adam on 23 utterances of 300 random frames
//! with 40 labels each, unless other lengths are asked for; decoding is the streaming forward pass of one utterance of 300
//! frames.

mod decode;
mod kernels;
mod machine;
mod serve;
mod streams;
mod train;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use srf_model::config::{ModelConfig, Recipe};
use srf_train::recipes;

use super::models::load_recipe;
use crate::Exit;
use crate::printer::Printer;

/// Short names of the networks in the paper's tables, and their recipes.
const NETWORKS: [(&str, &str); 20] = [
    ("srf1small", "timit/routing-sdr-1"),
    ("srf1", "timit/srf-1l"),
    ("srf2", "timit/srf-2l"),
    ("srf5", "timit/srf-5l"),
    ("srf7", "timit/srf-7l"),
    ("srf7small_wsj", "wsj/srf-7l-small"),
    ("srf7big", "wsj/srf-7l-big"),
    ("srf10small", "wsj/srf-10l-small"),
    ("srf10big", "wsj/srf-10l-big"),
    ("blstm5", "timit/blstm-5l-250h"),
    ("ulstm3", "timit/ulstm-3l-421h"),
    ("cnn10", "timit/cnn-10l-maxout"),
    ("tf5", "timit/tf-5l"),
    ("tf10", "timit/tf-10l"),
    ("tf20", "timit/tf-20l"),
    ("blstm5_wsj", "wsj/blstm-5l"),
    ("ulstm5_wsj", "wsj/ulstm-5l"),
    ("cnn10_wsj", "wsj/cnn-10l"),
    ("cnn15_wsj", "wsj/cnn-15l"),
    ("tf20_wsj", "wsj/tf-20l"),
];

/// Measure speed: kernels, a training step, decoding, complete streams, or a server under load
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf bench train --model srf7 --threads 2
  srf bench decode --model srf7 --threads 1 --json
  srf bench kernels --model srf10big --threads 1
  srf bench train --recipe recipes/family/em.toml
  srf bench train --utterances 5 --frames 1200
  srf bench streams --streams 100 --threads 2
  srf bench soak --hours 10
  srf bench serve --find
  srf bench serve --streams 80 --seconds 1800")]
pub(crate) struct Args {
    /// What to measure
    what: What,

    /// A network of the paper's tables
    #[arg(long, value_name = "NAME", default_value = "srf7")]
    #[arg(value_parser = PossibleValuesParser::new(NETWORKS.map(|(name, _)| name)))]
    model: String,

    /// Measure the network of this recipe instead
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    recipe: Option<PathBuf>,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Number of measurements after a warm-up; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 10)]
    steps: usize,

    /// Utterances in the batch of a training step
    #[arg(long, value_name = "N", default_value_t = train::N_UTTERANCES)]
    utterances: usize,

    /// Frames of each of them
    #[arg(long, value_name = "N", default_value_t = train::N_FRAMES)]
    frames: usize,

    /// Use the lengths of a typical batch of this prepared corpus instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["utterances", "frames"])]
    data: Option<PathBuf>,

    /// Stream through the model in this directory instead of random weights
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Beam width; 0 for greedy decoding
    #[arg(long, value_name = "N", default_value_t = 100)]
    beam: usize,

    /// Number of concurrent streams
    #[arg(long, value_name = "N", default_value_t = 100)]
    streams: usize,

    /// Hours of audio for one stream
    #[arg(long, default_value_t = 10.0)]
    hours: f64,

    /// Seconds that clients of a server speak, in real time
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,

    /// Find the most live streams whose results are no more than 300 ms late in 99 of 100 cases
    #[arg(long)]
    find: bool,

    /// Recording that clients of a server speak again and again [default: bursts of noise]
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// The capsule layers alone, forward and backward
    Kernels,
    /// A training step
    Train,
    /// The forward pass of one utterance
    Decode,
    /// Network and beam search
    Beam,
    /// Concurrent streams, from samples to text
    Streams,
    /// Hours of audio through one stream: speed and memory
    Soak,
    /// Live streams to `srf serve`: how late results are, errors, memory and open files
    Serve,
}

/// Measurements of a whole network.
#[derive(Serialize)]
struct Report {
    what: &'static str,
    model: String,
    parameters: u64,
    threads: usize,
    row: &'static str,
    frames: usize,
    /// Of the fastest step.
    frames_per_s: f64,
    step_s: f64,
    step_median_s: f64,
    /// Seconds of work per second of speech.
    xrt: f64,
    peak_mb: Option<f64>,
    /// All threads together, in the same run.
    sgemm_gflops: f64,
    /// The multiplications and additions that the step needs at least.
    gflops: f64,
    /// `gflops` over `sgemm_gflops`.
    share: f64,
}

/// The network to measure, and its name in reports.
struct Subject {
    name: String,
    config: ModelConfig,
}

impl Subject {
    /// The network of `recipe` if given, otherwise the one with this short name.
    fn new(name: &str, recipe: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = recipe {
            return Ok(Self { name: path.display().to_string(), config: load_recipe(path)?.model });
        }
        let (_, recipe) = NETWORKS.iter().find(|(known, _)| *known == name).context("no such network")?;
        let text = recipes::text(recipe).context("no such recipe")?;
        Ok(Self { name: name.to_owned(), config: Recipe::parse(text, Path::new(recipe))?.model })
    }
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args {
        what,
        model,
        recipe,
        threads,
        steps,
        utterances,
        frames,
        data,
        dir,
        beam,
        streams,
        hours,
        seconds,
        find,
        recording,
        json,
    } = args;
    if let What::Serve = what {
        return serve::run(&serve::Load { dir, recording, threads, streams, seconds }, find, json, out);
    }
    let subject = &Subject::new(&model, recipe.as_deref())?;
    let setup = streams::Setup { subject, dir: dir.as_deref(), beam };
    let pool = super::thread_pool(threads)?;
    pool.install(|| match what {
        What::Kernels => kernels::run(subject, steps, json, out),
        What::Train => {
            let lengths = train::lengths(utterances, frames, data.as_deref())?;
            show(&train::measure(subject, &lengths, steps), json, out)
        }
        What::Decode => show(&decode::measure(subject, steps), json, out),
        What::Beam => decode::beam(subject, steps, beam, json, out),
        What::Streams => streams::concurrent(setup, streams, json, out),
        What::Soak => streams::soak(setup, hours, json, out),
        What::Serve => Ok(()),
    })?;
    Ok(Exit::Done)
}

fn show(report: &Report, json: bool, out: &Printer) -> anyhow::Result<()> {
    if json {
        return Ok(out.line(serde_json::to_string(report)?)?);
    }
    let Report { what, model, parameters, threads, row, frames, .. } = report;
    out.line(format_args!("{what} {model}: {parameters} parameters, {threads} threads, {row}"))?;
    out.line(format_args!("  {:>10.0} frames per second ({frames} in {:.4} s)", report.frames_per_s, report.step_s))?;
    out.line(format_args!("  {:>10.5} real-time factor", report.xrt))?;
    out.line(format_args!("  {:>10.4} s median of the steps", report.step_median_s))?;
    if let Some(peak_mb) = report.peak_mb {
        out.line(format_args!("  {peak_mb:>10.0} MB peak memory"))?;
    }
    out.line(format_args!("  {:>10.1} GFLOP/s of sgemm in this run", report.sgemm_gflops))?;
    Ok(out.line(format_args!("  {:>10.1} GFLOP/s here: {:.0} % of it", report.gflops, 100.0 * report.share))?)
}

impl Report {
    fn new(what: &'static str, subject: &Subject, frames: usize, flops: f64, mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let step_s = seconds[0];
        let sgemm_gflops = machine::sgemm_gflops();
        let gflops = flops / step_s / 1e9;
        Self {
            what,
            model: subject.name.clone(),
            parameters: subject.config.parameters().total,
            threads: rayon::current_num_threads(),
            row: machine::row(),
            frames,
            frames_per_s: frames as f64 / step_s,
            step_s,
            step_median_s: seconds[seconds.len() / 2],
            xrt: step_s / (frames as f64 * 0.01),
            peak_mb: machine::peak_mb(),
            sgemm_gflops,
            gflops,
            share: gflops / sgemm_gflops,
        }
    }
}
