//! What the server counts, in the text format of Prometheus.

use std::sync::atomic::{AtomicI64, AtomicU64};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The reason of an error, as clients see it in `code`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct ErrorLabels {
    pub(crate) code: String,
}

/// Who is slow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct SlowLabels {
    pub(crate) cause: String,
}

/// All counters; cheap to update from any thread.
pub(crate) struct Metrics {
    registry: Registry,
    /// Connections that are open now, whether or not they have a stream.
    pub(crate) connections: Gauge<i64, AtomicI64>,
    /// Streams that are open now.
    pub(crate) streams: Gauge<i64, AtomicI64>,
    /// Pieces of work that wait for a core.
    pub(crate) queued: Gauge<i64, AtomicI64>,
    pub(crate) sessions: Counter,
    pub(crate) audio_seconds: Counter<f64, AtomicU64>,
    pub(crate) compute_seconds: Counter<f64, AtomicU64>,
    /// From audio received to result known.
    pub(crate) delay: Histogram,
    pub(crate) errors: Family<ErrorLabels, Counter>,
    slow: Family<SlowLabels, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("srf");
        let connections = Gauge::default();
        let streams = Gauge::default();
        let queued = Gauge::default();
        let sessions = Counter::default();
        let audio_seconds = Counter::default();
        let compute_seconds = Counter::default();
        let delay = Histogram::new(exponential_buckets(0.001, 2.0, 14));
        let errors = Family::default();
        let slow = Family::default();
        registry.register("connections", "Connections open now", connections.clone());
        registry.register("streams", "Streams open now", streams.clone());
        registry.register("queue_length", "Pieces of work waiting for a core", queued.clone());
        registry.register("sessions", "Streams opened since the start", sessions.clone());
        registry.register("audio_seconds", "Audio received", audio_seconds.clone());
        registry.register(
            "compute_seconds",
            "Time that cores recognised; divided by audio_seconds it is the real-time factor",
            compute_seconds.clone(),
        );
        registry.register("result_delay_seconds", "From audio received to result known", delay.clone());
        registry.register("errors", "Errors sent to clients by code", errors.clone());
        registry.register(
            "slow_streams",
            "Spans of 5 s in which a stream got less audio than time passed, by who was slow: `server` or `client`",
            slow.clone(),
        );
        Self { registry, connections, streams, queued, sessions, audio_seconds, compute_seconds, delay, errors, slow }
    }

    /// The page that Prometheus reads.
    pub(crate) fn page(&self) -> String {
        let mut page = String::new();
        let _ = encode(&mut page, &self.registry);
        page
    }

    pub(crate) fn count_slow(&self, cause: &str) {
        self.slow.get_or_create(&SlowLabels { cause: cause.to_owned() }).inc();
    }

    pub(crate) fn count_error(&self, code: &str) {
        self.errors.get_or_create(&ErrorLabels { code: code.to_owned() }).inc();
    }
}
