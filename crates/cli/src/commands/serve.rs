//! `srf serve`: the recogniser as a server.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use srf_server::{Limits, Reloader, Server, ServerConfig, TlsFiles};

use super::models::{default_directory, model_directory};
use crate::Exit;
use crate::printer::Printer;

/// Serve speech recognition over the network
///
/// One port speaks the protocols of Vosk, sherpa-onnx, Deepgram, OpenAI (files and realtime) and whisper.cpp;
/// `--wyoming` adds Home Assistant's. A browser finds a page at `/` and the interfaces at `/docs`. A stream gives the
/// same text as `srf transcribe` of the same audio. `--model` may be given several times; the first is the default.
/// SIGHUP reads the models again, SIGTERM finishes streams and stops.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf serve
  srf serve --model models/en --model models/en-digits --listen 127.0.0.1:8080
  curl -F file=@samples/woman-1.wav http://127.0.0.1:2700/v1/audio/transcriptions")]
pub(crate) struct Args {
    /// Model directory, run that contains one, or name (see `srf models`) [default: $SRF_MODEL, ./model or en]
    #[arg(long, short, value_name = "MODEL")]
    model: Vec<PathBuf>,

    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:2700")]
    listen: SocketAddr,

    /// Serve Home Assistant's Wyoming protocol on this port too; it has no keys and no encryption
    #[arg(long, value_name = "PORT")]
    wyoming: Option<u16>,

    /// Serve only clients that send one of the keys in this file, one per line
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Certificate chain (PEM) for encrypted connections
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Let pages of this web origin call the server; `*` for all; may be given several times
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,

    /// Threads [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,

    /// Streams served at the same time
    #[arg(long, value_name = "N", default_value_t = 200)]
    max_streams: usize,

    /// Streams of one client address at the same time
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_streams_per_client: usize,

    /// Largest upload in MiB
    #[arg(long, value_name = "MIB", default_value_t = 100)]
    max_body: usize,

    /// Longest audio of a request or stream, in seconds
    #[arg(long, value_name = "S", default_value_t = 14_400)]
    max_audio: u64,

    /// Close streams that receive nothing for this many seconds
    #[arg(long, value_name = "S", default_value_t = 30)]
    idle: u64,

    /// Seconds that streams get to finish after SIGTERM
    #[arg(long, value_name = "S", default_value_t = 10)]
    shutdown: u64,

    /// Write logs as JSON
    #[arg(long)]
    log_json: bool,

    /// Write recognised text to the logs; by default neither text nor audio is logged
    #[arg(long)]
    log_text: bool,
}

impl Args {
    fn config(self) -> anyhow::Result<ServerConfig> {
        for (name, value) in [
            ("--max-streams", self.max_streams),
            ("--max-streams-per-client", self.max_streams_per_client),
            ("--max-body", self.max_body),
        ] {
            ensure!((1..=1 << 20).contains(&value), "{name} is {value}, expected 1 to {}", 1 << 20);
        }
        let models = match self.model {
            none if none.is_empty() => vec![default_directory()?],
            named => named.into_iter().map(model_directory).collect::<anyhow::Result<_>>()?,
        };
        let tls = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            _ => None,
        };
        let limits = Limits {
            body_bytes: self.max_body << 20,
            audio: Duration::from_secs(self.max_audio),
            idle: Duration::from_secs(self.idle.max(1)),
            streams: self.max_streams,
            streams_per_client: self.max_streams_per_client,
            shutdown: Duration::from_secs(self.shutdown),
            ..Limits::default()
        };
        Ok(ServerConfig {
            models,
            listen: self.listen,
            wyoming_port: self.wyoming,
            token_file: self.token_file,
            tls,
            cors_origins: self.cors,
            threads: self.threads,
            limits,
            log_text: self.log_text,
        })
    }
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    start_logs(args.log_json);
    let config = args.config()?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("could not start the threads that serve sockets")?;
    runtime.block_on(async {
        let server = Server::bind(config).await?;
        out.note(format_args!("listening on {scheme}://{}", server.address()));
        if let Some(address) = server.wyoming_address() {
            out.note(format_args!("Wyoming on tcp://{address}"));
        }
        let reloading = tokio::spawn(reload_on_hangup(server.reloader()));
        server.run(stop_signal()).await?;
        reloading.abort();
        Ok(Exit::Done)
    })
}

fn start_logs(as_json: bool) {
    let logs = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(tracing::Level::INFO);
    if as_json {
        logs.json().init();
    } else {
        logs.init();
    }
}

/// Completes at SIGINT or SIGTERM.
async fn stop_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => return,
                _ = tokio::signal::ctrl_c() => return,
            }
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

#[cfg(unix)]
async fn reload_on_hangup(reloader: Reloader) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        match reloader.reload().await {
            Ok(()) => tracing::info!("models read again"),
            Err(error) => tracing::error!("the models in use stay: {error}"),
        }
    }
}

#[cfg(not(unix))]
async fn reload_on_hangup(_reloader: Reloader) {}
