//! `srf bench`: how fast this machine runs the network, beside how fast it multiplies matrices in the same run.
//!
//! The work is fixed: a training step is forward, CTC, backward and Adam on 23 utterances of 300 random frames with 40
//! labels each; decoding is the forward pass of one utterance of 300 frames through the stream.

mod decode;
mod kernels;
mod machine;
mod presets;
mod streams;
mod train;

use std::path::PathBuf;

use serde::Serialize;

use crate::Exit;
use crate::printer::Printer;

use self::presets::{Preset, Subject};

/// Measure speed: the kernels of a network, a training step, decoding, or whole streams
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf bench train --model srf7 --threads 2
  srf bench decode --model srf7 --threads 1 --json
  srf bench kernels --model srf10big --threads 1
  srf bench train --recipe recipes/family/em.toml
  srf bench streams --streams 100 --threads 2
  srf bench soak --hours 10")]
pub(crate) struct Args {
    /// What to measure
    what: What,

    /// A network of the paper's tables
    #[arg(long, value_name = "NAME", default_value = "srf7")]
    model: Preset,

    /// The network of a recipe, instead of one by name
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    recipe: Option<PathBuf>,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Times to measure, after a warm-up; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 10)]
    steps: usize,

    /// A model directory to stream through, instead of random weights
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Width of the beam; 0 for greedy
    #[arg(long, value_name = "N", default_value_t = 100)]
    beam: usize,

    /// How many streams at once
    #[arg(long, value_name = "N", default_value_t = 100)]
    streams: usize,

    /// How many hours through one stream
    #[arg(long, default_value_t = 10.0)]
    hours: f64,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// The capsule layers by themselves, forward and backward
    Kernels,
    /// A training step
    Train,
    /// The forward pass of one utterance
    Decode,
    /// The beam search beside the network
    Beam,
    /// Many streams at once, from samples to text
    Streams,
    /// Hours through one stream: speed and memory
    Soak,
}

/// What was measured of a whole network.
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
    /// Seconds of work a second of speech.
    xrt: f64,
    peak_mb: Option<f64>,
    /// Of all threads together, in the same run.
    sgemm_gflops: f64,
    /// Products of the step, at their least, in the same unit.
    gflops: f64,
    /// `gflops` over `sgemm_gflops`.
    share: f64,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { what, model, recipe, threads, steps, dir, beam, streams, hours, json } = args;
    let subject = &Subject::new(model, recipe.as_deref())?;
    let setup = streams::Setup { subject, dir: dir.as_deref(), beam };
    let pool = super::thread_pool(threads)?;
    pool.install(|| match what {
        What::Kernels => kernels::run(subject, steps, json, out),
        What::Train => show(&train::measure(subject, steps), json, out),
        What::Decode => show(&decode::measure(subject, steps), json, out),
        What::Beam => decode::beam(subject, steps, beam, json, out),
        What::Streams => streams::many(setup, streams, json, out),
        What::Soak => streams::long(setup, hours, json, out),
    })?;
    Ok(Exit::Done)
}

fn show(report: &Report, json: bool, out: &Printer) -> anyhow::Result<()> {
    if json {
        return Ok(out.line(serde_json::to_string(report)?)?);
    }
    let Report { what, model, parameters, threads, row, frames, .. } = report;
    out.line(format_args!("{what} {model}: {parameters} parameters, {threads} threads, {row}"))?;
    out.line(format_args!("  {:>10.0} frames a second ({frames} in {:.4} s)", report.frames_per_s, report.step_s))?;
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
