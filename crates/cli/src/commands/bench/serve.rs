//! A server under load: live streams over loopback, how late their results are, and what a long run leaves.
//!
//! Clients speak Vosk's protocol in real time, 100 ms per message, and wait for the reply to each. A result is late by
//! the time from the moment when the last of these samples was spoken to the reply: what the network's look-ahead
//! takes is not in it, because it delays what the reply is about, not the reply. Clients and server share the cores.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Serialize;
use srf_server::{Limits, Server, ServerConfig};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use super::machine::resident_mb;
use super::streams::{CHUNK_SAMPLES, RATE_HZ, slope, speech};
use crate::Exit;
use crate::commands::models::{default_directory, model_directory};
use crate::printer::Printer;

/// Time of the samples in a message.
const CHUNK: Duration = Duration::from_millis(100);
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
    /// Least squares over the time of measurement.
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
        let sound = Arc::new(bytes_of(&speech(60.0)));
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
async fn search(url: &str, sound: &Arc<Vec<u8>>, load: &Load, json: bool, out: &Printer) -> anyhow::Result<Report> {
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

/// Samples as clients send them.
fn bytes_of(samples: &[f32]) -> Vec<u8> {
    samples.iter().flat_map(|value| ((value * 32_767.0) as i16).to_le_bytes()).collect()
}

/// `n` streams for `seconds` after they have all begun.
async fn measure(url: &str, sound: &Arc<Vec<u8>>, n: usize, seconds: f64) -> Report {
    let begin = Instant::now() + Duration::from_millis(200);
    let end = begin + WARM_UP + Duration::from_secs_f64(seconds);
    let mut clients = JoinSet::new();
    for index in 0..n {
        let (url, sound) = (url.to_owned(), Arc::clone(sound));
        // Streams begin one after the other, at other places of the sound, and send at other times.
        let first = begin + WARM_UP.mul_f64(index as f64 / n as f64);
        clients.spawn(async move { speak(&url, &sound, 7919 * index, first, begin + WARM_UP, end).await });
    }
    let watching = tokio::spawn(watch(begin + WARM_UP, end));
    let (mut late_ms, mut errors) = (Vec::new(), Vec::new());
    while let Some(client) = clients.join_next().await {
        match client {
            Ok(Ok(mut late)) => late_ms.append(&mut late),
            Ok(Err(error)) => errors.push(format!("{error:#}")),
            Err(error) => errors.push(error.to_string()),
        }
    }
    let samples = watching.await.unwrap_or_default();
    late_ms.sort_by(f32::total_cmp);
    let share = |part: f64| late_ms.get((late_ms.len() as f64 * part) as usize).map_or(f64::NAN, |ms| f64::from(*ms));
    let memory: Vec<(f64, f64)> = samples.iter().filter_map(|s| Some((s.minute, s.mb?))).collect();
    Report {
        what: "serve",
        streams: n,
        seconds,
        results: late_ms.len(),
        errors: errors.len(),
        error: errors.into_iter().next(),
        late_median_ms: share(0.5),
        late_99_ms: share(0.99),
        late_worst_ms: late_ms.last().map_or(f64::NAN, |ms| f64::from(*ms)),
        first_mb: samples.first().and_then(|sample| sample.mb),
        last_mb: samples.last().and_then(|sample| sample.mb),
        slope_kb_per_minute: (memory.len() > 2).then(|| 1024.0 * slope(&memory)),
        first_files: samples.first().and_then(|sample| sample.files),
        last_files: samples.last().and_then(|sample| sample.files),
    }
}

/// One client; how late each result was that was due between `measured` and `end`.
async fn speak(
    url: &str,
    sound: &[u8],
    offset: usize,
    first: Instant,
    measured: Instant,
    end: Instant,
) -> anyhow::Result<Vec<f32>> {
    sleep_until(first).await;
    let (mut socket, _) = timeout(PATIENCE, connect_async(url)).await.context("no connection in time")??;
    let config = format!(r#"{{"config": {{"sample_rate": {RATE_HZ}}}}}"#);
    socket.send(Message::text(config)).await?;
    let (mut due, mut late_ms) = (first + CHUNK, Vec::new());
    let chunks: Vec<&[u8]> = sound.chunks_exact(2 * CHUNK_SAMPLES).collect();
    for chunk in chunks.iter().cycle().skip(offset % chunks.len()) {
        if due > end {
            break;
        }
        sleep_until(due).await;
        socket.send(Message::binary(chunk.to_vec())).await?;
        let reply =
            timeout(PATIENCE, socket.next()).await.context("no reply in time")?.context("the server closed")??;
        let text = reply.to_text().unwrap_or_default();
        ensure!(text.contains("\"partial\"") || text.contains("\"text\""), "the server says: {text}");
        if due >= measured {
            late_ms.push(due.elapsed().as_secs_f32() * 1000.0);
        }
        due += CHUNK;
    }
    socket.send(Message::text(r#"{"eof" : 1}"#)).await?;
    timeout(PATIENCE, socket.next()).await.context("no last reply in time")?.context("the server closed")??;
    Ok(late_ms)
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
