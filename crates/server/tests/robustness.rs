//! Clients that send nothing, too slowly, garbage, or vanish: others are unharmed, and everything is freed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use srf_server::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use common::{Running, expected, form, http, metric, s16, socket, vosk};

/// Short times, so that the test sees them pass.
fn limits() -> Limits {
    Limits {
        idle: Duration::from_secs(2),
        header_timeout: Duration::from_secs(2),
        body_timeout: Duration::from_secs(2),
        ..Limits::default()
    }
}

/// Files that the process has open; `None` where the system does not say.
fn open_files() -> Option<usize> {
    std::fs::read_dir("/proc/self/fd").ok().map(Iterator::count)
}

/// Waits until no stream and no connection but that of the question is left.
async fn wait_until_free(address: SocketAddr) {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let (streams, connections) = (metric(address, "srf_streams").await, metric(address, "srf_connections").await);
        if (streams, connections) == (0.0, 1.0) {
            return;
        }
        assert!(Instant::now() < deadline, "{streams} streams and {connections} connections are not freed");
        sleep(Duration::from_millis(200)).await;
    }
}

/// One test at a time: the files of the process are counted.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Runs `attack` on a server while another client works, and looks at what is left.
async fn survives<F: Future<Output = ()>>(limits: Limits, attack: impl FnOnce(Addresses) -> F) {
    let _alone = ALONE.lock().await;
    let server = Running::start(limits).await;
    let expected = expected();
    assert_eq!(vosk(server.address, "/vosk", 6400).await, expected);
    let files = open_files();
    let both = Addresses { http: server.address, wyoming: server.wyoming };
    let ((), text) = tokio::join!(attack(both), vosk(server.address, "/vosk", 6400));
    assert_eq!(text, expected);
    let (status, _) = http(server.address, form("/inference", &[])).await;
    assert_eq!(status, 200);
    wait_until_free(server.address).await;
    if let (Some(before), Some(after)) = (files, open_files()) {
        assert!(after <= before + 8, "{before} files were open before, {after} are after");
    }
    server.stop().await;
}

/// The addresses of a server.
#[derive(Clone, Copy)]
struct Addresses {
    http: SocketAddr,
    wyoming: SocketAddr,
}

/// Reads until the server closes; whatever comes is dropped.
async fn drain(socket: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let read = timeout(Duration::from_mins(1), socket.read_to_end(&mut all)).await;
    assert!(read.is_ok(), "the server did not close the connection");
    all
}

/// Whether the process may open files for both ends of a thousand connections. If not, the test runs again in a process
/// that may.
fn may_open_files(test: &str) -> bool {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap_or_default();
    let soft = line.split_whitespace().nth(3).and_then(|number| number.parse().ok()).unwrap_or(u64::MAX);
    if soft >= 4096 {
        return true;
    }
    let again = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 4096 && exec \"$0\" --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .status()
        .unwrap();
    assert!(again.success(), "the test failed in a process with more files, or the system does not allow 4096");
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_silent_connections_are_closed() {
    if !may_open_files("a_thousand_silent_connections_are_closed") {
        return;
    }
    survives(limits(), async |server| {
        let mut silent = Vec::new();
        for index in 0..1000 {
            let address = if index % 10 == 0 { server.wyoming } else { server.http };
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(metric(server.http, "srf_connections").await > 900.0);
        for socket in &mut silent {
            drain(socket).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_streams_are_closed_and_give_their_places_back() {
    survives(limits(), async |server| {
        let mut silent = Vec::new();
        for path in ["/", "/vosk", "/sherpa", "/sherpa/offline", "/v1/listen", "/v1/realtime", "/live"] {
            for _ in 0..5 {
                silent.push(socket(server.http, path).await);
            }
        }
        for socket in &mut silent {
            while let Some(Ok(_)) = timeout(Duration::from_mins(1), socket.next()).await.unwrap() {}
        }
    })
    .await;
}

/// Sends a byte of `text` now and then until the server has enough of it; its answer.
async fn drip(address: SocketAddr, start: &str, text: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(start.as_bytes()).await.unwrap();
    let (mut reader, mut writer) = socket.split();
    let mut answer = Vec::new();
    let slowly = async {
        for byte in text.iter().cycle() {
            if writer.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = slowly => {}
        read = timeout(Duration::from_mins(1), reader.read_to_end(&mut answer)) => drop(read.unwrap()),
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_and_bodies_time_out() {
    let upload = "POST /v1/listen HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n";
    let body = "POST /inference HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=b\r\n\
                transfer-encoding: chunked\r\n\r\n";
    survives(limits(), async |server| {
        let heads = (0..20).map(|_| drip(server.http, "GET / HTTP/1.1\r\nx: ", b"y"));
        let uploads = (0..20).map(|_| drip(server.http, upload, b"RIFF"));
        let bodies = (0..20).map(|_| drip(server.http, body, b"1\r\nx\r\n"));
        let (heads, uploads, bodies) = tokio::join!(join_all(heads), join_all(uploads), join_all(bodies));
        assert!(heads.iter().all(|answer| !answer.contains(" 200 ")), "{heads:?}");
        for answer in uploads.iter().chain(&bodies) {
            assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_vanish_or_do_not_read_are_forgotten() {
    survives(limits(), async |server| {
        for index in 0..20 {
            let mut gone = socket(server.http, "/vosk").await;
            gone.send(Message::text(r#"{"config": {"sample_rate": 16000}}"#)).await.unwrap();
            gone.send(Message::binary(s16()[..32_000].to_vec())).await.unwrap();
            if let (tokio_tungstenite::MaybeTlsStream::Plain(socket), true) = (gone.get_ref(), index % 2 == 0) {
                // As a killed process or a machine that restarts: no farewell.
                socket.set_zero_linger().unwrap();
            }
            drop(gone);
        }
        // Half-open: the client has said that it sends no more, and waits without effect.
        for address in [server.http, server.wyoming] {
            let mut half = TcpStream::connect(address).await.unwrap();
            half.write_all(b"POST /inference HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nabc").await.unwrap();
            half.shutdown().await.unwrap();
            drain(&mut half).await;
        }
        does_not_read(server.http).await;
    })
    .await;
}

/// Sends audio as long as the server takes it and never reads a reply.
async fn does_not_read(address: SocketAddr) {
    let mut deaf = socket(address, "/vosk").await;
    deaf.send(Message::text(r#"{"config": {"sample_rate": 384000}}"#)).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        // Replies to many tiny messages fill the buffers of the connection.
        let sent = timeout(Duration::from_secs(4), deaf.send(Message::binary(vec![0; 2]))).await;
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

/// A WebSocket whose frames are written by hand.
async fn raw_socket(address: SocketAddr, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(socket.read_u8().await.unwrap());
    }
    assert!(answer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&answer));
    socket
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_frames_end_their_connection_only() {
    let huge = [&[0x82, 0xff][..], &u64::MAX.to_be_bytes(), &[1, 2, 3, 4]].concat();
    let frames: [&[u8]; 8] = [
        // Reserved bits and codes, no mask, a control frame in parts or too long, a text that is not UTF-8, a piece of
        // nothing, a length of 2^64 - 1, noise.
        &[0xf2, 0x80, 0, 0, 0, 0],
        &[0x8b, 0x80, 0, 0, 0, 0],
        &[0x82, 0x02, 1, 2],
        &[0x09, 0x80, 0, 0, 0, 0],
        &[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xfe],
        &[0x80, 0x80, 0, 0, 0, 0],
        &huge,
        &[0x5a; 300],
    ];
    survives(limits(), async |server| {
        for path in ["/", "/vosk", "/sherpa", "/v1/listen", "/v1/realtime", "/live"] {
            for frame in frames {
                let mut socket = raw_socket(server.http, path).await;
                let _ = socket.write_all(frame).await;
                let _ = socket.shutdown().await;
                drain_any(&mut socket).await;
            }
        }
        let mut wyoming = TcpStream::connect(server.wyoming).await.unwrap();
        wyoming.write_all(&vec![0xff; 70_000]).await.unwrap();
        drain_any(&mut wyoming).await;
    })
    .await;
}

/// Reads until the server closes or resets the connection.
async fn drain_any(socket: &mut TcpStream) {
    let mut all = Vec::new();
    let _ = timeout(Duration::from_mins(1), socket.read_to_end(&mut all)).await.expect("the server did not close it");
}

#[tokio::test]
async fn uploads_together_take_no_more_memory_than_allowed() {
    let _alone = ALONE.lock().await;
    let server = Running::start(Limits { uploads_bytes: 1 << 17, ..Limits::default() }).await;
    // The first upload holds all of it and does not end; others are refused, and served once the first is gone.
    let mut first = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /v1/listen HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n";
    first.write_all(head.as_bytes()).await.unwrap();
    first.write_all(&vec![0; 100_000]).await.unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let (status, body) = http(server.address, form("/inference", &[])).await;
        if status == 503 {
            assert!(body.contains("overloaded"), "{body}");
            break;
        }
        assert!(Instant::now() < deadline, "the server takes more than it may hold");
    }
    drop(first);
    wait_until_free(server.address).await;
    let (status, body) = http(server.address, form("/inference", &[])).await;
    assert_eq!(status, 200, "{body}");
    server.stop().await;
}
