//! The HTTP side that all dialects share: routes, keys, errors with a code, health and metrics.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::json;
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::config::{ServeError, ServerConfig};
use crate::dialects::{deepgram, live, openai, realtime, sherpa, vosk, whisper_cpp};
use crate::engine::Engine;
use crate::page;

/// What every handler gets.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    keys: Arc<[Vec<u8>]>,
    /// Web origins that may use the server apart from its own; `*` for all.
    origins: Arc<[String]>,
    /// Becomes true when the server shuts down.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl App {
    pub(crate) fn new(
        engine: Arc<Engine>,
        config: &ServerConfig,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, ServeError> {
        let keys = match &config.token_file {
            Some(path) => read_keys(path)?,
            None => Vec::new(),
        };
        Ok(Self { engine, keys: keys.into(), origins: config.cors_origins.clone().into(), stopping })
    }

    /// Whether `token` is one of the keys. Every key is compared in constant time.
    pub(crate) fn is_allowed(&self, token: Option<&[u8]>) -> bool {
        let token = token.unwrap_or_default();
        let matches = |key: &Vec<u8>| bool::from(key.as_slice().ct_eq(token));
        self.keys.is_empty() || self.keys.iter().fold(false, |found, key| matches(key) | found)
    }
}

fn read_keys(path: &std::path::Path) -> Result<Vec<Vec<u8>>, ServeError> {
    let text = srf_base::files::read_text_at_most(path, 1 << 20)
        .and_then(|text| text.ok_or_else(|| std::io::Error::other("more than 1 MiB, expected one key per line")))
        .map_err(|source| ServeError::File { path: path.to_owned(), source })?;
    let keys: Vec<Vec<u8>> =
        text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).map(Into::into).collect();
    if keys.is_empty() { Err(ServeError::NoKeys { path: path.to_owned() }) } else { Ok(keys) }
}

/// The whole server as a service, without a socket.
pub(crate) fn router(app: App, config: &ServerConfig) -> Result<Router, ServeError> {
    let protected = Router::new()
        .route("/", get(root))
        .route("/vosk", any(vosk::socket))
        .route("/sherpa", any(sherpa::streaming))
        .route("/sherpa/offline", any(sherpa::offline))
        .route("/v1/listen", get(deepgram::socket).post(deepgram::upload))
        .route("/v1/audio/transcriptions", post(openai::transcriptions))
        .route("/v1/models", get(openai::models))
        .route("/v1/realtime", any(realtime::socket))
        .route("/inference", post(whisper_cpp::inference))
        .route("/admin/reload", post(reload))
        // Bodies are limited where they are read, so that the answer says what the limit is.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(app.clone(), check_key))
        .layer(middleware::from_fn_with_state(app.clone(), check_origin));
    let open = Router::new()
        .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .route("/docs", get(page::docs))
        .route("/openapi.json", get(page::openapi))
        .route("/page/{file}", get(page::file))
        // Checks its key itself: browsers cannot send one in a header.
        .route("/live", any(live::socket).layer(middleware::from_fn_with_state(app.clone(), check_origin)));
    let mut router = protected.merge(open).fallback(|| async { ApiError::not_found() });
    router = router.method_not_allowed_fallback(|| async { ApiError::wrong_method() });
    if !config.cors_origins.is_empty() {
        router = router.layer(cors(&config.cors_origins)?);
    }
    Ok(router.layer(middleware::from_fn_with_state(app.clone(), count_errors)).with_state(app))
}

fn cors(origins: &[String]) -> Result<CorsLayer, ServeError> {
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        let value = |origin: &String| {
            HeaderValue::from_str(origin)
                .ok()
                .filter(|_| origin.contains("://"))
                .ok_or_else(|| ServeError::Origin { origin: origin.clone() })
        };
        AllowOrigin::list(origins.iter().map(value).collect::<Result<Vec<_>, _>>()?)
    };
    Ok(CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([header::AUTHORIZATION, header::CONTENT_TYPE]))
}

/// `/` is the page for browsers and the Vosk and sherpa-onnx sockets for programs.
async fn root(State(app): State<App>, request: Request) -> Response {
    use axum::extract::FromRequestParts as _;
    let (mut parts, _) = request.into_parts();
    let is_socket = parts.headers.get(header::UPGRADE).is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !is_socket {
        return page::index();
    }
    let client = client_address(&parts.extensions);
    let fields = match crate::options::query(&parts.uri) {
        Ok(fields) => fields,
        Err(error) => return error.into_response(),
    };
    match crate::dialects::Upgrade::from_request_parts(&mut parts, &app).await {
        Ok(upgrade) => crate::dialects::by_first_message(app, client, fields, upgrade).into_response(),
        Err(error) => error.into_response(),
    }
}

/// Completes when the server begins to shut down.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

pub(crate) fn client_address(extensions: &axum::http::Extensions) -> IpAddr {
    extensions.get::<ConnectInfo<SocketAddr>>().map_or(IpAddr::from([127, 0, 0, 1]), |info| info.0.ip())
}

async fn check_key(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_page = request.uri().path() == "/" && request.headers().get(header::UPGRADE).is_none();
    let is_allowed = is_page || app.is_allowed(key(request.headers()));
    if is_allowed { next.run(request).await } else { ApiError::unauthorized().into_response() }
}

/// The key of a request.
fn key(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        // `Token` is what Deepgram's clients say, `Bearer` everybody else.
        let schemes = [&b"Bearer "[..], b"bearer ", b"Token ", b"token "];
        return schemes.iter().find_map(|scheme| value.as_bytes().strip_prefix(*scheme));
    }
    // Browsers cannot set the header of a WebSocket: Deepgram's clients send `token, KEY` and OpenAI's a prefix.
    let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    let mut protocols = protocols.split(',').map(str::trim);
    while let Some(protocol) = protocols.next() {
        if let Some(key) = protocol.strip_prefix("openai-insecure-api-key.") {
            return Some(key.as_bytes());
        }
        if protocol == "token" {
            return protocols.next().map(str::as_bytes);
        }
    }
    None
}

/// Refuses what pages of other web origins send, unless they may use the server: browsers send uploads and open
/// WebSockets without asking, and keep only the answers from such pages.
async fn check_origin(State(app): State<App>, request: Request, next: Next) -> Response {
    let refused = foreign_origin(&app, request.headers());
    match refused {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

/// The refusal of a request that a page of another origin sent.
fn foreign_origin(app: &App, headers: &HeaderMap) -> Option<ApiError> {
    let header = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let origin = header(header::ORIGIN)?;
    let is_own = origin.split_once("://").is_some_and(|(_, host)| header(header::HOST) == Some(host));
    let is_allowed = is_own || app.origins.iter().any(|allowed| allowed == "*" || allowed == origin);
    (!is_allowed).then(|| ApiError::foreign_origin(origin))
}

async fn count_errors(State(app): State<App>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if let Some(code) = response.extensions().get::<ErrorCode>() {
        app.engine.metrics.count_error(code.0);
    }
    response
}

async fn ready(State(app): State<App>) -> Response {
    if *app.stopping.borrow() {
        return ApiError::stopping().into_response();
    }
    Json(json!({"status": "ready", "models": app.engine.model_names()})).into_response()
}

async fn metrics(State(app): State<App>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.engine.metrics.page()).into_response()
}

async fn reload(State(app): State<App>) -> Result<Response, ApiError> {
    app.engine.reload().await.map_err(|error| ApiError {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        code: "reload_failed",
        message: format!("the models in use stay: {error}"),
        retry_after: None,
    })?;
    Ok(Json(json!({"status": "reloaded", "models": app.engine.model_names()})).into_response())
}

/// What went wrong, for a client: a status, a code for programs and one line for people.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    retry_after: Option<Duration>,
}

#[derive(Clone, Copy)]
struct ErrorCode(&'static str);

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None }
    }

    fn retry(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    pub(crate) fn bad_request(name: &str, message: &str) -> Self {
        let code = if name == "invalid_options" { "invalid_options" } else { "invalid_field" };
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    pub(crate) fn bad_field(name: &str, found: &str, expected: &str) -> Self {
        let found: String = found.chars().take(80).collect();
        Self::new(StatusCode::BAD_REQUEST, "invalid_field", format!("`{name}` is `{found}`, expected {expected}"))
    }

    pub(crate) fn bad_message(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_message", message)
    }

    pub(crate) fn bad_audio(error: &dyn std::error::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_audio", error.to_string())
    }

    /// `expected` says where audio was looked for.
    pub(crate) fn no_audio(expected: &str) -> Self {
        let message = format!("the request has no audio, expected {expected}");
        Self::new(StatusCode::BAD_REQUEST, "no_audio", message)
    }

    fn foreign_origin(origin: &str) -> Self {
        let origin: String = origin.chars().take(80).collect();
        let message =
            format!("pages of `{origin}` may not use this server, which was not started with `--cors {origin}`");
        Self::new(StatusCode::FORBIDDEN, "origin_not_allowed", message)
    }

    pub(crate) fn unknown_model(name: &str, known: &[String]) -> Self {
        let name: String = name.chars().take(80).collect();
        let message = format!("no model is called `{name}`, expected one of {}", known.join(", "));
        Self::new(StatusCode::NOT_FOUND, "model_not_found", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "no valid key was sent, expected the header `Authorization: Bearer KEY`",
        )
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "nothing is served at this path; `/docs` lists what is")
    }

    fn wrong_method() -> Self {
        let message = "this path does not take this method; `/docs` lists what is served";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    pub(crate) fn timed_out(what: &str, limit: Duration) -> Self {
        let message = format!("{what} for {} s, so the connection is closed", limit.as_secs());
        Self::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
    }

    pub(crate) fn audio_too_long(limit: Duration) -> Self {
        let message = format!("the audio is longer than {} s, the limit of this server", limit.as_secs());
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "audio_too_long", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("more than {limit} bytes were sent, the limit of this server");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub(crate) fn too_many_streams(limit: usize) -> Self {
        let message = format!("{limit} streams are open, the limit of this server");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message).retry(Duration::from_secs(5))
    }

    pub(crate) fn too_many_streams_of_client(limit: usize) -> Self {
        let message = format!("this address has {limit} streams open, the limit for one client");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_streams_of_client", message).retry(Duration::from_secs(5))
    }

    pub(crate) fn overloaded() -> Self {
        let message = "the server is busy with the streams it has and takes no new one now";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message).retry(Duration::from_secs(2))
    }

    pub(crate) fn stopping() -> Self {
        let message = "the server is shutting down";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message).retry(Duration::from_secs(10))
    }

    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed on this stream; others go on")
    }

    /// The body of an error response, in the shape of OpenAI's.
    pub(crate) fn body(&self) -> serde_json::Value {
        json!({"error": {"message": self.message, "type": error_type(self.status), "param": null, "code": self.code}})
    }
}

fn error_type(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
        }
        response.extensions_mut().insert(ErrorCode(self.code));
        response
    }
}
