//! Sockets: accepting connections, TLS, and stopping without dropping streams.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{ServeError, ServerConfig, TlsFiles};
use crate::dialects::wyoming;
use crate::engine::Engine;
use crate::http::{self, App};

/// A server that is bound to its port and has read its models.
pub struct Server {
    listener: TcpListener,
    wyoming: Option<TcpListener>,
    address: SocketAddr,
    router: Router,
    app: App,
    stop: watch::Sender<bool>,
    tls: Option<TlsAcceptor>,
}

/// Reads the models of a running server again; made by [`Server::reloader`].
#[derive(Clone)]
pub struct Reloader(Arc<Engine>);

impl Reloader {
    /// Reads all models again. Open streams keep theirs; on failure the models in use stay.
    pub async fn reload(&self) -> Result<(), ServeError> {
        self.0.reload().await
    }
}

impl Server {
    /// Reads the models and binds the ports.
    pub async fn bind(config: ServerConfig) -> Result<Self, ServeError> {
        let engine = Engine::new(&config)?;
        let (stop, stopping) = watch::channel(false);
        let app = App::new(engine, &config, stopping)?;
        let router = http::router(app.clone(), &config)?;
        let tls = config.tls.as_ref().map(acceptor).transpose()?;
        let listener = bind(config.listen).await?;
        let wyoming = match config.wyoming_port {
            Some(port) => Some(bind(SocketAddr::new(config.listen.ip(), port)).await?),
            None => None,
        };
        let address = listener.local_addr().map_err(|source| ServeError::Listen { address: config.listen, source })?;
        Ok(Self { listener, wyoming, address, router, app, stop, tls })
    }

    /// The address that the HTTP and WebSocket dialects are served at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the Wyoming protocol, if it is served.
    pub fn wyoming_address(&self) -> Option<SocketAddr> {
        self.wyoming.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// A handle that reads the models again while the server runs.
    pub fn reloader(&self) -> Reloader {
        Reloader(Arc::clone(&self.app.engine))
    }

    /// Serves until `stop` completes, then lets open streams finish within the deadline of the limits.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { listener, wyoming, router, app, stop: stopping, tls, .. } = self;
        let limits = app.engine.limits.clone();
        let places = Arc::new(Semaphore::new(limits.connections));
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&listener) => (accepted, false),
                accepted = accept_optional(wyoming.as_ref()) => (accepted, true),
            };
            // Finished connections are forgotten here, so that the set does not grow.
            while connections.try_join_next().is_some() {}
            let ((socket, client), is_wyoming) = accepted;
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tracing::warn!(%client, "connection refused: {} are open", limits.connections);
                continue;
            };
            let (app, router, tls) = (app.clone(), router.clone(), tls.clone());
            let connection = Connection(Arc::new(OpenConnection::new(Arc::clone(&app.engine), place)));
            connections.spawn(async move {
                let router = router.layer(axum::Extension(connection.clone()));
                if is_wyoming {
                    wyoming::serve(app, socket, client).await;
                } else if let Err(error) = serve(app, router, tls, socket, client).await {
                    tracing::debug!(%client, "connection ended: {error}");
                }
            });
        }
        drop((listener, wyoming));
        let _ = stopping.send(true);
        let n_open = || limits.connections - places.available_permits();
        tracing::info!("stopping: {} connections are open", n_open());
        // A WebSocket has left the task of its connection, but not the place.
        let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
        if tokio::time::timeout(limits.shutdown, places.acquire_many(all)).await.is_err() {
            tracing::warn!("{} connections did not finish in time and are dropped", n_open());
        }
        Ok(())
    }
}

/// A connection's place among all; free when the last copy is dropped.
#[derive(Clone)]
pub(crate) struct Connection(#[allow(dead_code, reason = "it is held, not read")] Arc<OpenConnection>);

/// Counts a connection while it is open.
struct OpenConnection {
    engine: Arc<Engine>,
    _place: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn new(engine: Arc<Engine>, place: OwnedSemaphorePermit) -> Self {
        engine.metrics.connections.inc();
        Self { engine, _place: place }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.engine.metrics.connections.dec();
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

/// The next connection. Running out of file descriptors is waited out: connections that end give some back.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!("could not accept a connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn accept_optional(listener: Option<&TcpListener>) -> (TcpStream, SocketAddr) {
    match listener {
        Some(listener) => accept(listener).await,
        None => std::future::pending().await,
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn serve(
    app: App,
    router: Router,
    tls: Option<TlsAcceptor>,
    socket: TcpStream,
    client: SocketAddr,
) -> Result<(), AnyError> {
    let _ = socket.set_nodelay(true);
    match tls {
        None => serve_http(app, router, socket, client).await,
        Some(tls) => {
            let limit = app.engine.limits.header_timeout;
            let socket = tokio::time::timeout(limit, tls.accept(socket)).await??;
            serve_http(app, router, socket, client).await
        }
    }
}

async fn serve_http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    app: App,
    router: Router,
    socket: S,
    client: SocketAddr,
) -> Result<(), AnyError> {
    let service = TowerToHyperService::new(router.layer(axum::Extension(ConnectInfo(client))));
    // The time for a head begins with the connection, so that silent ones are closed, too.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.engine.limits.header_timeout)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    tokio::pin!(connection);
    let mut stopping = app.stopping.clone();
    tokio::select! {
        result = &mut connection => Ok(result?),
        () = http::stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            Ok(connection.await?)
        }
    }
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let TlsFiles { certificate, key } = files;
    let wrong = |path: &std::path::Path, problem: &dyn std::fmt::Display| ServeError::Tls {
        path: path.to_owned(),
        problem: problem.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"no certificate was found, expected PEM"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        pem::Error::NoItemsFound => wrong(key, &"no private key was found, expected PEM"),
        error => wrong(key, &error),
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificate, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
