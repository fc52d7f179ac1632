//! A speech recognition server that existing clients already speak to.
//!
//! One port serves every dialect: `dialects` has a file for each, which translates between a wire protocol and the one
//! internal `Session`. Recognition runs on a pool of threads, one per core, never on the threads that serve sockets;
//! a stream on the server gives the same bits as the same audio recognised from a file.
//!
//! ```no_run
//! use srf_server::{Server, ServerConfig};
//!
//! # async fn run() -> Result<(), srf_server::ServeError> {
//! let server = Server::bind(ServerConfig { models: vec!["models/en".into()], ..ServerConfig::default() }).await?;
//! println!("listening on {}", server.address());
//! server.run(std::future::pending()).await
//! # }
//! ```

mod config;
mod dialects;
mod engine;
mod http;
mod listen;
mod metrics;
mod options;
mod pace;
mod page;
#[doc(hidden)]
pub mod wire;

pub use config::{Limits, ServeError, ServerConfig, TlsFiles};
pub use listen::{Reloader, Server};
