//! A server under load: live streams over loopback, how late their results are, and what a long run leaves.
//!
//! Clients speak Vosk's protocol in real time, 100 ms per message, and wait for the reply to each. A result is late by
//! the time from the moment when the last of these samples was spoken to the reply: what the network's look-ahead
//! takes is not in it, because it delays what the reply is about, not the reply. Clients and server share the cores.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Serialize;
use srf_audio::{Recording, Samples, Selection};
use srf_server::{Limits, Server, ServerConfig};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use super::machine::resident_mb;
use super::streams::{RATE_HZ, slope, speech};
use crate::Exit;
use crate::commands::models::{default_directory, model_directory};
use crate::printer::Printer;

/// Time of the samples in a message.
const CHUNK: Duration = Duration::from_millis(100);
/// Messages per second.
const CHUNKS_PER_S: usize = 10;
/// Quiet after each repetition of a recording, so that utterances end.
const PAUSE_S: f64 = 1.5;
/// Results may be this late in 99 of 100 cases.
const MOST_MS: f64 = 300.0;
/// A search ends here, whatever the machine holds.
const MOST_STREAMS: usize = 4000;
/// A reply that takes longer is an error.
const PATIENCE: Duration = Duration::from_secs(30);
/// Streams begin within this time and are not measured before.
const WARM_UP: Duration = Duration::from_secs(2);

/// What to do to a server.
pub(super) struct Load {
    pub(super) dir: Option<PathBuf>,
    pub(super) recording: Option<PathBuf>,
    pub(super) threads: Option<usize>,
    pub(super) streams: usize,
    pub(super) seconds: f64,
}

#[derive(Clone, Serialize)]
struct Report {
    what: &'static str,
    streams: usize,
    seconds: f64,
    results: usize,
    errors: usize,
    /// The first of the errors.
    error: Option<String>,
    late_median_ms: f64,
    late_99_ms: f64,
    late_worst_ms: f64,
    /// Of clients and server together.
    first_mb: Option<f64>,
    last_mb: Option<f64>,
    /// Least squares over the last three quarters, when the buffers have reached their size.
    slope_kb_per_minute: Option<f64>,
    first_files: Option<usize>,
    last_files: Option<usize>,
}

impl Report {
    fn is_in_time(&self) -> bool {
        self.errors == 0 && self.late_99_ms <= MOST_MS
    }
}

/// Runs the load and prints what it did.
pub(super) fn run(load: &Load, find: bool, json: bool, out: &Printer) -> anyhow::Result<Exit> {
    let Load { streams, seconds, .. } = load;
    ensure!((1..=MOST_STREAMS).contains(streams), "--streams is {streams}, expected 1 to {MOST_STREAMS}");
    ensure!((1.0..=1e6).contains(seconds), "--seconds is {seconds}, expected 1 to 1000000");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("could not start the threads of the clients")?;
    let report = runtime.block_on(async {
        let server = Background::start(load).await?;
        let sound = Arc::new(Sound::new(load.recording.as_deref())?);
        let report = if find {
            search(&server.url, &sound, load, json, out).await?
        } else {
            let report = measure(&server.url, &sound, *streams, *seconds).await;
            show(&report, json, out)?;
            report
        };
        server.stop().await?;
        anyhow::Ok(report)
    })?;
    Ok(if report.errors == 0 { Exit::Done } else { Exit::Problems })
}

/// A server in this process.
struct Background {
    url: String,
    stop: oneshot::Sender<()>,
    finished: tokio::task::JoinHandle<Result<(), srf_server::ServeError>>,
}

impl Background {
    async fn start(load: &Load) -> anyhow::Result<Self> {
        let model = load.dir.clone().map_or_else(default_directory, model_directory)?;
        let limits = Limits {
            streams: MOST_STREAMS,
            streams_per_client: MOST_STREAMS,
            connections: MOST_STREAMS + 10,
            ..Limits::default()
        };
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let threads = load.threads.unwrap_or(0);
        let config = ServerConfig { models: vec![model], listen, threads, limits, ..ServerConfig::default() };
        let server = Server::bind(config).await?;
        let url = format!("ws://{}/vosk", server.address());
        let (stop, stopped) = oneshot::channel();
        let finished = tokio::spawn(server.run(async { drop(stopped.await) }));
        Ok(Self { url, stop, finished })
    }

    async fn stop(self) -> anyhow::Result<()> {
        let _ = self.stop.send(());
        Ok(self.finished.await??)
    }
}

/// The most streams in time: doubles or halves the number until one is in time and its double is not, then bisects.
async fn search(url: &str, sound: &Arc<Sound>, load: &Load, json: bool, out: &Printer) -> anyhow::Result<Report> {
    let (mut good, mut bad): (Option<Report>, Option<usize>) = (None, None);
    let mut n = load.streams;
    loop {
        let report = measure(url, sound, n, load.seconds).await;
        show(&report, json, out)?;
        if report.is_in_time() {
            good = Some(report);
        } else {
            bad = Some(n);
        }
        n = match (good.as_ref().map(|report| report.streams), bad) {
            (None, Some(1)) => bail!("not even one stream is in time"),
            (None, Some(bad)) => bad / 2,
            (Some(good), None) if good == MOST_STREAMS => break,
            (Some(good), None) => (2 * good).min(MOST_STREAMS),
            // Nearer than a twentieth is within what differs from run to run.
            (Some(good), Some(bad)) if bad - good <= 1 + good / 20 => break,
            (Some(good), Some(bad)) => usize::midpoint(good, bad),
            (None, None) => break,
        };
    }
    let best = good.context("nothing was measured")?;
    out.note(format_args!("{} live streams are served with 99 % of results at most {MOST_MS} ms late", best.streams));
    Ok(best)
}

/// What clients say, as messages of [`CHUNK`].
struct Sound {
    rate_hz: u32,
    messages: Vec<Vec<u8>>,
}

impl Sound {
    /// The recording at `path`, or bursts of noise.
    fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let samples = match path {
            Some(path) => Recording::open(path)?.read(Selection::default())?,
            None => Samples { rate_hz: RATE_HZ, values: speech(60.0) },
        };
        let mut values = samples.to_i16();
        // Not digital silence, which no microphone gives.
        let n_pause = (PAUSE_S * f64::from(samples.rate_hz)) as usize;
        values.extend((0..n_pause).map(|at| (at % 3) as i16 - 1));
        let n_samples = samples.rate_hz as usize / CHUNKS_PER_S;
        let message = |values: &[i16]| values.iter().copied().flat_map(i16::to_le_bytes).collect();
        Ok(Self { rate_hz: samples.rate_hz, messages: values.chunks_exact(n_samples).map(message).collect() })
    }
}

/// How many results were how late. Its size does not depend on their number, so that a long run shows only what grows
/// in the server.
struct Lateness {
    /// By tenths of a millisecond; the last one has all that were later.
    counts: Vec<AtomicU32>,
}

impl Lateness {
    const PER_MS: f64 = 10.0;

    fn new() -> Self {
        let most = (PATIENCE.as_secs_f64() * 1000.0 * Self::PER_MS) as usize;
        Self { counts: (0..=most).map(|_| AtomicU32::new(0)).collect() }
    }

    fn add(&self, late: Duration) {
        let at = (late.as_secs_f64() * 1000.0 * Self::PER_MS) as usize;
        self.counts[at.min(self.counts.len() - 1)].fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self) -> usize {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed) as usize).sum()
    }

    /// The lateness in ms that `part` of all results stay within; not a number if there are none.
    fn within_ms(&self, part: f64) -> f64 {
        let wanted = (self.total() as f64 * part).ceil().max(1.0) as usize;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count.load(Ordering::Relaxed) as usize;
            seen >= wanted
        });
        found.map_or(f64::NAN, |at| (at + 1) as f64 / Self::PER_MS)
    }
}

/// `n` streams for `seconds` after they have all begun.
async fn measure(url: &str, sound: &Arc<Sound>, n: usize, seconds: f64) -> Report {
    let lateness = Arc::new(Lateness::new());
    let begin = Instant::now() + Duration::from_millis(200);
    let end = begin + WARM_UP + Duration::from_secs_f64(seconds);
    let mut clients = JoinSet::new();
    for index in 0..n {
        let (url, sound, lateness) = (url.to_owned(), Arc::clone(sound), Arc::clone(&lateness));
        // Streams begin one after the other, at other places of the sound, and send at other times.
        let first = begin + WARM_UP.mul_f64(index as f64 / n as f64);
        let times = Times { first, measured: begin + WARM_UP, end };
        clients.spawn(async move { speak(&url, &sound, 7919 * index, &times, &lateness).await });
    }
    let watching = tokio::spawn(watch(begin + WARM_UP, end));
    let mut errors = Vec::new();
    while let Some(client) = clients.join_next().await {
        match client {
            Ok(Ok(())) => {}
            Ok(Err(error)) => errors.push(format!("{error:#}")),
            Err(error) => errors.push(error.to_string()),
        }
    }
    let samples = watching.await.unwrap_or_default();
    let later = samples.iter().skip(samples.len() / 4);
    let memory: Vec<(f64, f64)> = later.filter_map(|s| Some((s.minute, s.mb?))).collect();
    Report {
        what: "serve",
        streams: n,
        seconds,
        results: lateness.total(),
        errors: errors.len(),
        error: errors.into_iter().next(),
        late_median_ms: lateness.within_ms(0.5),
        late_99_ms: lateness.within_ms(0.99),
        late_worst_ms: lateness.within_ms(1.0),
        first_mb: samples.first().and_then(|sample| sample.mb),
        last_mb: samples.last().and_then(|sample| sample.mb),
        slope_kb_per_minute: (memory.len() > 2).then(|| 1024.0 * slope(&memory)),
        first_files: samples.first().and_then(|sample| sample.files),
        last_files: samples.last().and_then(|sample| sample.files),
    }
}

/// When a client begins, from when on its results count, and when it ends.
struct Times {
    first: Instant,
    measured: Instant,
    end: Instant,
}

/// One client; adds how late each result was that was due while it is measured.
async fn speak(url: &str, sound: &Sound, offset: usize, times: &Times, lateness: &Lateness) -> anyhow::Result<()> {
    sleep_until(times.first).await;
    let (mut socket, _) = timeout(PATIENCE, connect_async(url)).await.context("no connection in time")??;
    let config = format!(r#"{{"config": {{"sample_rate": {}}}}}"#, sound.rate_hz);
    socket.send(Message::text(config)).await?;
    let mut due = times.first + CHUNK;
    for message in sound.messages.iter().cycle().skip(offset % sound.messages.len()) {
        if due > times.end {
            break;
        }
        sleep_until(due).await;
        socket.send(Message::binary(message.clone())).await?;
        let reply =
            timeout(PATIENCE, socket.next()).await.context("no reply in time")?.context("the server closed")??;
        let text = reply.to_text().unwrap_or_default();
        ensure!(text.contains("\"partial\"") || text.contains("\"text\""), "the server says: {text}");
        if due >= times.measured {
            lateness.add(due.elapsed());
        }
        due += CHUNK;
    }
    socket.send(Message::text(r#"{"eof" : 1}"#)).await?;
    timeout(PATIENCE, socket.next()).await.context("no last reply in time")?.context("the server closed")??;
    Ok(())
}

/// Memory and open files of the process at one moment.
struct Sample {
    minute: f64,
    mb: Option<f64>,
    files: Option<usize>,
}

/// Looks at the process about 200 times.
async fn watch(begin: Instant, end: Instant) -> Vec<Sample> {
    let step = ((end - begin) / 200).max(Duration::from_millis(100));
    let mut samples = Vec::new();
    let mut next = begin;
    while next < end {
        sleep_until(next).await;
        let files = std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
        samples.push(Sample { minute: (next - begin).as_secs_f64() / 60.0, mb: resident_mb(), files });
        next += step;
    }
    samples
}

fn show(report: &Report, json: bool, out: &Printer) -> anyhow::Result<()> {
    if json {
        return Ok(out.line(serde_json::to_string(report)?)?);
    }
    let Report { streams, seconds, results, errors, late_median_ms, late_99_ms, late_worst_ms, .. } = report;
    out.line(format_args!(
        "{streams} live streams for {seconds} s: results late by {late_median_ms:.1} ms (median), {late_99_ms:.1} ms (99 %), {late_worst_ms:.1} ms (worst); {results} results, {errors} errors"
    ))?;
    if let Some(error) = &report.error {
        out.problem(error);
    }
    if let (Some(first), Some(last), Some(slope)) = (report.first_mb, report.last_mb, report.slope_kb_per_minute) {
        out.line(format_args!(
            "  memory of clients and server {first:.1} MB at the start, {last:.1} MB at the end, slope {slope:.1} kB per minute"
        ))?;
    }
    if let (Some(first), Some(last)) = (report.first_files, report.last_files) {
        out.line(format_args!("  open files {first} at the start, {last} at the end"))?;
    }
    Ok(())
}
