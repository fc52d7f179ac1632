//! What a server is started with, and why it may not start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use srf::directory::ReadModelError;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Model directories; the first is the default. Each is addressed by the name of its folder.
    pub models: Vec<PathBuf>,
    /// Address of the HTTP and WebSocket dialects.
    pub listen: SocketAddr,
    /// Port of the Wyoming protocol, on the same host; `None` turns it off.
    pub wyoming_port: Option<u16>,
    /// File of bearer keys, one per line; without it every client is served.
    pub token_file: Option<PathBuf>,
    /// Certificate and key; without them connections are not encrypted.
    pub tls: Option<TlsFiles>,
    /// Web origins that may call the server from a browser, `*` for all; empty turns CORS off.
    pub cors_origins: Vec<String>,
    /// Threads that recognise; 0 means one per core.
    pub threads: usize,
    /// Bounds on what one client, and all of them, may use.
    pub limits: Limits,
    /// Whether recognised text may appear in logs.
    pub log_text: bool,
}

/// PEM files of a TLS server.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// Bounds on what clients may use.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Bytes of all request bodies in memory at the same time.
    pub uploads_bytes: usize,
    /// Bytes of a WebSocket or Wyoming message.
    pub message_bytes: usize,
    /// Audio of one request or stream.
    pub audio: Duration,
    /// A stream that receives nothing for this long is closed.
    pub idle: Duration,
    /// Time to send the head of a request.
    pub header_timeout: Duration,
    /// Time to send the body of a request.
    pub body_timeout: Duration,
    /// Streams and requests recognised at the same time.
    pub streams: usize,
    /// The same for one client address.
    pub streams_per_client: usize,
    /// Open connections.
    pub connections: usize,
    /// New streams are refused while work waits longer than this for a core.
    pub max_queue: Duration,
    /// Time for streams to finish after a stop signal.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 100 << 20,
            uploads_bytes: 1 << 30,
            message_bytes: 1 << 20,
            audio: Duration::from_hours(4),
            idle: Duration::from_secs(30),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_mins(1),
            streams: 200,
            streams_per_client: 100,
            connections: 2000,
            max_queue: Duration::from_millis(500),
            shutdown: Duration::from_secs(10),
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            models: Vec::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 2700)),
            wyoming_port: None,
            token_file: None,
            tls: None,
            cors_origins: Vec::new(),
            threads: 0,
            limits: Limits::default(),
            log_text: false,
        }
    }
}

/// Why a server could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ServeError {
    #[error("no model to serve, expected at least one model directory")]
    NoModel,
    #[error("two models are called `{name}`: `{first}` and `{second}`, expected folders with different names")]
    SameName { name: String, first: PathBuf, second: PathBuf },
    #[error(transparent)]
    Model(#[from] ReadModelError),
    #[error("could not listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("`{path}`: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("`{path}` has no key, expected one per line")]
    NoKeys { path: PathBuf },
    #[error("`{path}`: {problem}")]
    Tls { path: PathBuf, problem: String },
    #[error("`{origin}` is not a web origin, expected for instance `https://example.org` or `*`")]
    Origin { origin: String },
    #[error("could not start the threads that recognise: {problem}")]
    Threads { problem: String },
}

impl ServeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Model(error) => error.hint(),
            Self::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
                Some("another program uses this port; choose one with `--listen 127.0.0.1:PORT`".to_owned())
            }
            _ => None,
        }
    }
}
