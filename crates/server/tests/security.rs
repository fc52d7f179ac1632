//! Encrypted connections, web origins, and options of requests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use srf_server::{Limits, Server, ServerConfig, TlsFiles};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, RootCertStore};

use common::{Running, expected, form, get, http, json_of};

/// A certificate for localhost that signs itself and its key, made for this test and used nowhere else.
fn files() -> TlsFiles {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    TlsFiles { certificate: data.join("localhost.pem"), key: data.join("localhost-key.pem") }
}

/// A client that trusts only the certificate above.
fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files().certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn encrypted_connections_are_served_and_plain_ones_refused() {
    let server = Running::start_with(ServerConfig { tls: Some(files()), ..ServerConfig::default() }).await;
    let socket = TcpStream::connect(server.address).await.unwrap();
    let mut encrypted = connector().connect(ServerName::try_from("localhost").unwrap(), socket).await.unwrap();
    encrypted.write_all(&form("/inference", &[])).await.unwrap();
    let mut answer = Vec::new();
    // The server closes the connection as HTTP says; rustls wants to be told by TLS, too.
    let _ = encrypted.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    assert_eq!(json_of(body)["text"].as_str().unwrap().trim_end(), expected());

    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(&get("/health")).await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1"), "plain HTTP got an answer");
    server.stop().await;
}

#[tokio::test]
async fn bad_certificates_and_origins_stop_the_start() {
    let bind = async |config: ServerConfig| {
        let listen = "127.0.0.1:0".parse().unwrap();
        let config = ServerConfig { models: vec![common::model()], listen, ..config };
        Server::bind(config).await.err().unwrap().to_string()
    };
    let missing = TlsFiles { key: PathBuf::from("missing.pem"), ..files() };
    let message = bind(ServerConfig { tls: Some(missing), ..ServerConfig::default() }).await;
    assert!(message.contains("missing.pem"), "{message}");
    let swapped = TlsFiles { certificate: files().key, key: files().certificate };
    let message = bind(ServerConfig { tls: Some(swapped), ..ServerConfig::default() }).await;
    assert!(message.contains("localhost"), "{message}");
    let message = bind(ServerConfig { cors_origins: vec!["example.org".into()], ..ServerConfig::default() }).await;
    assert!(message.contains("`example.org` is not a web origin"), "{message}");
}

/// The heads of the answer to a request with an origin.
async fn heads(address: SocketAddr, method: &str, origin: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} /v1/models HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\naccess-control-request-method: POST\r\n\
         access-control-request-headers: authorization\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).split("\r\n\r\n").next().unwrap().to_ascii_lowercase()
}

/// The answer to a request for a WebSocket with one more header.
async fn upgrade(address: SocketAddr, path: &str, header: &str) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{header}\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 2000];
    let n = socket.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..n]).into_owned()
}

#[tokio::test]
async fn browsers_can_send_keys_with_a_socket() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    std::fs::write(&keys, "secret\n").unwrap();
    let server = Running::start_with(ServerConfig { token_file: Some(keys), ..ServerConfig::default() }).await;
    let cases = [
        ("/v1/listen", "x: y", 401),
        ("/v1/listen", "sec-websocket-protocol: token, secret", 101),
        ("/v1/listen", "sec-websocket-protocol: token, other", 401),
        ("/v1/listen", "sec-websocket-protocol: secret", 401),
        ("/v1/listen", "authorization: Token secret", 101),
        ("/v1/realtime", "sec-websocket-protocol: realtime, openai-insecure-api-key.secret", 101),
        ("/v1/realtime", "sec-websocket-protocol: realtime, openai-insecure-api-key.other", 401),
        ("/vosk", "authorization: Bearer secret", 101),
        ("/vosk", "authorization: secret", 401),
    ];
    for (path, header, status) in cases {
        let answer = upgrade(server.address, path, header).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}, {header}: {answer}");
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_of_other_origins_are_allowed_only_if_named() {
    let allow = "access-control-allow-origin";
    let closed = Running::start(Limits::default()).await;
    let refused = heads(closed.address, "GET", "https://a.example").await;
    assert!(refused.starts_with("http/1.1 403") && !refused.contains(allow), "{refused}");
    // The page of the server itself.
    assert!(heads(closed.address, "GET", "http://localhost").await.starts_with("http/1.1 200"));
    for path in ["/", "/vosk", "/v1/listen", "/live"] {
        let refused = upgrade(closed.address, path, "origin: https://a.example").await;
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("origin_not_allowed"), "{path}: {refused}");
        let served = upgrade(closed.address, path, "origin: http://localhost").await;
        assert!(served.starts_with("HTTP/1.1 101"), "{path}: {served}");
    }
    closed.stop().await;

    let cors_origins = vec!["https://a.example".to_owned()];
    let some = Running::start_with(ServerConfig { cors_origins, ..ServerConfig::default() }).await;
    assert!(heads(some.address, "GET", "https://a.example").await.contains("allow-origin: https://a.example"));
    let preflight = heads(some.address, "OPTIONS", "https://a.example").await;
    assert!(preflight.contains("allow-headers: authorization") && preflight.contains("post"), "{preflight}");
    assert!(!heads(some.address, "GET", "https://b.example").await.contains(allow));
    assert!(upgrade(some.address, "/vosk", "origin: https://a.example").await.starts_with("HTTP/1.1 101"));
    some.stop().await;

    let all = Running::start_with(ServerConfig { cors_origins: vec!["*".into()], ..ServerConfig::default() }).await;
    assert!(heads(all.address, "GET", "https://b.example").await.contains("allow-origin: *"));
    let (status, _) = http(all.address, get("/health")).await;
    assert_eq!(status, 200);
    all.stop().await;
}
