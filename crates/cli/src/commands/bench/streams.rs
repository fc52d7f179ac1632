//! Complete streams, from samples to text: many concurrently, and one for hours.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use rayon::prelude::*;
use serde::Serialize;
use srf::directory::ModelParts;
use srf::{Recognizer, Stream, StreamOptions};
use srf_model::config::{Cmvn, FeaturesConfig};
use srf_text::decode::{DecoderConfig, Search};
use srf_text::labels::{LabelSet, Units};

use super::Subject;
use super::machine::{noise, resident_mb};
use crate::printer::Printer;

/// 100 ms.
const CHUNK_SAMPLES: usize = 1600;
pub(super) const RATE_HZ: u32 = 16_000;
/// Audio per stream.
const CONCURRENT_S: f64 = 20.0;
/// Number of memory samples of a long stream.
const N_MEMORY_SAMPLES: usize = 20;

#[derive(Clone, Copy)]
pub(super) struct Setup<'a> {
    pub(super) subject: &'a Subject,
    pub(super) dir: Option<&'a std::path::Path>,
    pub(super) beam: usize,
}

/// Results of [`concurrent`].
#[derive(Serialize)]
struct Concurrent {
    what: &'static str,
    streams: usize,
    beam: usize,
    threads: usize,
    speech_s: f64,
    elapsed_s: f64,
    /// Seconds of speech per stream and second of work.
    times_real_time: f64,
    /// The longest time to process 100 ms of all streams.
    worst_chunk_ms: f64,
}

/// Results of [`soak`].
#[derive(Serialize)]
struct Soak {
    what: &'static str,
    hours: f64,
    beam: usize,
    elapsed_s: f64,
    real_time_factor: f64,
    labels: usize,
    first_mb: f64,
    last_mb: f64,
    /// Least squares over the last three quarters, when the buffers have reached their size.
    slope_kb_per_hour: f64,
}

impl Setup<'_> {
    /// The given model, or the network with random weights and online normalisation.
    fn recognizer(&self) -> anyhow::Result<Recognizer> {
        if let Some(dir) = self.dir {
            return Ok(Recognizer::open(dir)?);
        }
        let model = self.subject.config.clone();
        let labels = LabelSet::new(Units::Phones, (2..model.n_classes()).map(|class| format!("p{class}")))?;
        let features = FeaturesConfig { cmvn: Cmvn::Online, ..FeaturesConfig::default() };
        Ok(Recognizer::from_parts(ModelParts::untrained(model, features, labels, 0))?)
    }

    fn options(&self) -> StreamOptions {
        let search = if self.beam == 0 { Search::Greedy } else { Search::Beam { width: self.beam } };
        let decoder = Some(DecoderConfig { search, ..DecoderConfig::default() });
        StreamOptions { decoder, ..StreamOptions::default() }
    }
}

/// Feeds `n` streams 100 ms at a time.
pub(super) fn concurrent(setup: Setup<'_>, n: usize, json: bool, out: &Printer) -> anyhow::Result<()> {
    ensure!((1..=100_000).contains(&n), "--streams is {n}, expected 1 to 100000");
    let recognizer = setup.recognizer()?;
    let options = setup.options();
    let mut streams = (0..n).map(|_| recognizer.stream(&options)).collect::<Result<Vec<Stream>, _>>()?;
    let sound = speech(CONCURRENT_S);
    let start = Instant::now();
    let mut worst_s = 0.0_f64;
    for (index, _) in sound.chunks_exact(CHUNK_SAMPLES).enumerate() {
        let chunk_start = Instant::now();
        streams.par_iter_mut().enumerate().try_for_each(|(stream_index, stream)| {
            // Every stream is at another position in the audio.
            let at = (index + 7 * stream_index) * CHUNK_SAMPLES % (sound.len() - CHUNK_SAMPLES);
            stream.accept(&sound[at..at + CHUNK_SAMPLES], RATE_HZ)?;
            stream.partial();
            stream.take_ended();
            Ok::<(), srf::AcceptError>(())
        })?;
        worst_s = worst_s.max(chunk_start.elapsed().as_secs_f64());
    }
    let elapsed_s = start.elapsed().as_secs_f64();
    let speech_s = sound.len() as f64 / f64::from(RATE_HZ);
    let report = Concurrent {
        what: "streams",
        streams: n,
        beam: setup.beam,
        threads: rayon::current_num_threads(),
        speech_s,
        elapsed_s,
        times_real_time: speech_s / elapsed_s,
        worst_chunk_ms: 1000.0 * worst_s,
    };
    if json {
        return Ok(out.line(serde_json::to_string(&report)?)?);
    }
    out.line(format_args!(
        "{n} streams, beam {}, {} threads, 100 ms at a time: {:.2} times real time; at worst {:.1} ms to process 100 ms of all",
        report.beam, report.threads, report.times_real_time, report.worst_chunk_ms
    ))?;
    Ok(())
}

/// Feeds one stream hours of audio and samples the memory in use.
pub(super) fn soak(setup: Setup<'_>, hours: f64, json: bool, out: &Printer) -> anyhow::Result<()> {
    ensure!((0.01..=1000.0).contains(&hours), "--hours is {hours}, expected 0.01 to 1000");
    let recognizer = setup.recognizer()?;
    let mut stream = recognizer.stream(&setup.options())?;
    let sound = speech(600.0);
    let n_chunks = (hours * 3600.0 * f64::from(RATE_HZ) / CHUNK_SAMPLES as f64) as usize;
    let progress = out.progress("soak", n_chunks as u64);
    let (mut labels, mut memory) = (0, Vec::new());
    let start = Instant::now();
    for (index, chunk) in sound.chunks_exact(CHUNK_SAMPLES).cycle().take(n_chunks).enumerate() {
        stream.accept(chunk, RATE_HZ)?;
        stream.partial();
        labels += stream.take_ended().iter().map(|segment| segment.tokens.len()).sum::<usize>();
        progress.inc(1);
        if index % (n_chunks / N_MEMORY_SAMPLES).max(1) == 0 {
            memory.push((
                stream.accepted_s() / 3600.0,
                resident_mb().context("this system does not report memory in use")?,
            ));
        }
    }
    progress.finish_and_clear();
    let elapsed_s = start.elapsed().as_secs_f64();
    let settled = &memory[memory.len() / 4..];
    let report = Soak {
        what: "soak",
        hours,
        beam: setup.beam,
        elapsed_s,
        real_time_factor: elapsed_s / (hours * 3600.0),
        labels,
        first_mb: memory[0].1,
        last_mb: memory[memory.len() - 1].1,
        slope_kb_per_hour: 1024.0 * slope(settled),
    };
    if json {
        return Ok(out.line(serde_json::to_string(&report)?)?);
    }
    out.line(format_args!(
        "{hours} hours through one stream, beam {}: {:.0} s (real-time factor {:.5}), {labels} labels",
        report.beam, report.elapsed_s, report.real_time_factor
    ))?;
    Ok(out.line(format_args!(
        "memory {:.1} MB at the start, {:.1} MB at the end, slope {:.1} kB per hour",
        report.first_mb, report.last_mb, report.slope_kb_per_hour
    ))?)
}

/// Bursts of noise with pauses, so that utterances end.
pub(super) fn speech(seconds: f64) -> Vec<f32> {
    let mut values = noise("speech", (seconds * f64::from(RATE_HZ)) as usize);
    for (index, value) in values.iter_mut().enumerate() {
        let second = index as f64 / f64::from(RATE_HZ);
        let is_pause = second % 7.0 > 5.0;
        let swell = (second * 9.0).sin().abs() + (second * 2.3).sin().abs();
        *value *= if is_pause { 1e-4 } else { (0.025 * swell) as f32 };
    }
    values
}

/// The slope of the least-squares line through points (x, y).
pub(super) fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (mean_x, mean_y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    covariance / variance.max(f64::MIN_POSITIVE)
}
