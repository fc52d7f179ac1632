//! Models and recognition: the pool of threads and the [`Session`] that every dialect translates to.

use std::collections::HashMap;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use srf::{Recognizer, Segment, Slices, Stream};
use tokio::sync::{Semaphore, oneshot};

use crate::config::{Limits, ServeError};
use crate::http::ApiError;
use crate::metrics::Metrics;
use crate::options::SessionOptions;
use crate::pace::{Pace, Slow};

/// Audio handed to a core at once: short, so that a long file delays a live stream by no more than a few milliseconds.
const PIECE: Duration = Duration::from_secs(2);

/// Bytes in which the memory of uploads is counted.
pub(crate) const UPLOAD_UNIT: usize = 1 << 16;

/// What all connections share.
pub(crate) struct Engine {
    models: RwLock<Models>,
    pool: rayon::ThreadPool,
    /// How long the last piece of work waited for a core.
    queue_us: AtomicU64,
    open: Mutex<HashMap<IpAddr, usize>>,
    /// What uploads in memory may still take, in units of [`UPLOAD_UNIT`].
    pub(crate) uploads: Arc<Semaphore>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Metrics,
    pub(crate) log_text: bool,
}

/// The loaded models by name, and where they came from.
struct Models {
    dirs: Vec<(String, PathBuf)>,
    loaded: HashMap<String, Recognizer>,
}

impl Models {
    fn load(dirs: &[(String, PathBuf)]) -> Result<Self, ServeError> {
        let open = |(name, dir): &(String, PathBuf)| Ok((name.clone(), Recognizer::open(dir)?));
        let loaded = dirs.iter().map(open).collect::<Result<_, ServeError>>()?;
        Ok(Self { dirs: dirs.to_vec(), loaded })
    }

    fn names(&self) -> Vec<String> {
        self.dirs.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Each model's name is that of its folder; a run's model is named after the run.
fn named(dirs: &[PathBuf]) -> Result<Vec<(String, PathBuf)>, ServeError> {
    let mut named: Vec<(String, PathBuf)> = Vec::new();
    for dir in dirs {
        let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
        let folder = if absolute.ends_with("model") { absolute.parent().unwrap_or(&absolute) } else { &absolute };
        let name = folder.file_name().map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned());
        if let Some((_, first)) = named.iter().find(|(other, _)| *other == name) {
            return Err(ServeError::SameName { name, first: first.clone(), second: dir.clone() });
        }
        named.push((name, dir.clone()));
    }
    if named.is_empty() { Err(ServeError::NoModel) } else { Ok(named) }
}

impl Engine {
    pub(crate) fn new(config: &crate::ServerConfig) -> Result<Arc<Self>, ServeError> {
        let models = Models::load(&named(&config.models)?)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(config.threads)
            .thread_name(|index| format!("recognize-{index}"))
            .build()
            .map_err(|error| ServeError::Threads { problem: error.to_string() })?;
        Ok(Arc::new(Self {
            models: RwLock::new(models),
            pool,
            queue_us: AtomicU64::new(0),
            open: Mutex::new(HashMap::new()),
            uploads: Arc::new(Semaphore::new(config.limits.uploads_bytes.div_ceil(UPLOAD_UNIT))),
            limits: config.limits.clone(),
            metrics: Metrics::new(),
            log_text: config.log_text,
        }))
    }

    /// Reads all models again. Streams that are open keep the model they started with; on failure the old ones stay.
    pub(crate) async fn reload(self: &Arc<Self>) -> Result<(), ServeError> {
        let dirs = self.models.read().expect("no panic while it is held").dirs.clone();
        let models = tokio::task::spawn_blocking(move || Models::load(&dirs)).await;
        let models = models.map_err(|error| ServeError::Threads { problem: error.to_string() })??;
        *self.models.write().expect("no panic while it is held") = models;
        Ok(())
    }

    /// The names of the models, the default one first.
    pub(crate) fn model_names(&self) -> Vec<String> {
        self.models.read().expect("no panic while it is held").names()
    }

    /// All models, the default one first.
    pub(crate) fn models(&self) -> Vec<(String, Recognizer)> {
        let models = self.models.read().expect("no panic while it is held");
        models.dirs.iter().map(|(name, _)| (name.clone(), models.loaded[name].clone())).collect()
    }

    /// The model called `name`; the default one for `None` and for names that clients send by habit.
    pub(crate) fn recognizer(&self, name: Option<&str>) -> Result<(String, Recognizer), ApiError> {
        let models = self.models.read().expect("no panic while it is held");
        let first = &models.dirs[0].0;
        let found = match name.filter(|name| !name.is_empty()) {
            Some(name) if models.loaded.contains_key(name) => name,
            None => first,
            Some(name) if is_habit(name) => first,
            Some(name) => return Err(ApiError::unknown_model(name, &models.names())),
        };
        Ok((found.to_owned(), models.loaded[found].clone()))
    }

    /// Runs `work` on the pool and waits for it without blocking the thread that serves sockets.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (sender, receiver) = oneshot::channel();
        let queued = Instant::now();
        let engine = Arc::clone(self);
        self.metrics.queued.inc();
        self.pool.spawn_fifo(move || {
            engine.metrics.queued.dec();
            engine.queue_us.store(queued.elapsed().as_micros() as u64, Ordering::Relaxed);
            // A panic ends this session only.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)).ok());
        });
        receiver.await.ok().flatten().ok_or_else(ApiError::internal)
    }

    /// Whether work waits so long for a core that new streams would slow all others down.
    fn is_overloaded(&self) -> bool {
        let waited = Duration::from_micros(self.queue_us.load(Ordering::Relaxed));
        self.metrics.queued.get() > 0 && waited > self.limits.max_queue
    }

    /// Opens a session for the client at `address`, within the limits.
    pub(crate) async fn session(
        self: &Arc<Self>,
        address: IpAddr,
        options: SessionOptions,
    ) -> Result<Session, ApiError> {
        let place = Place::take(self, address)?;
        let (model, recognizer) = self.recognizer(options.model.as_deref())?;
        let partials = options.partials;
        let built = self.run(move || options.build(&recognizer)).await??;
        self.metrics.sessions.inc();
        tracing::info!(client = %address, model, "stream opened");
        Ok(Session {
            engine: Arc::clone(self),
            stream: Some(Box::new(built)),
            partials,
            accepted: Duration::ZERO,
            opened: Instant::now(),
            busy: Duration::ZERO,
            pace: Pace::new(Instant::now()),
            _place: place,
        })
    }
}

/// Names of hosted models that clients send unless told otherwise.
fn is_habit(name: &str) -> bool {
    ["whisper-1", "nova", "gpt-", "general", "default", "base"].iter().any(|habit| name.starts_with(habit))
}

/// A place among the streams that are served at the same time; given back when it is dropped.
struct Place {
    engine: Arc<Engine>,
    address: IpAddr,
}

impl Place {
    fn take(engine: &Arc<Engine>, address: IpAddr) -> Result<Self, ApiError> {
        if engine.is_overloaded() {
            return Err(ApiError::overloaded());
        }
        let limits = &engine.limits;
        let mut open = engine.open.lock().expect("no panic while it is held");
        if open.values().sum::<usize>() >= limits.streams {
            return Err(ApiError::too_many_streams(limits.streams));
        }
        let mine = open.entry(address).or_insert(0);
        if *mine >= limits.streams_per_client {
            return Err(ApiError::too_many_streams_of_client(limits.streams_per_client));
        }
        *mine += 1;
        engine.metrics.streams.inc();
        Ok(Self { engine: Arc::clone(engine), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.engine.metrics.streams.dec();
        let mut open = self.engine.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(mine) = open.get_mut(&self.address) {
            *mine -= 1;
            if *mine == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// One client's stream, as every dialect sees it.
pub(crate) struct Session {
    engine: Arc<Engine>,
    /// Absent only while a core works on it.
    stream: Option<Box<Stream>>,
    partials: bool,
    /// Audio taken so far.
    accepted: Duration,
    opened: Instant,
    /// Time that cores worked on it.
    busy: Duration,
    pace: Pace,
    _place: Place,
}

/// What a piece of audio led to.
#[derive(Default)]
pub(crate) struct Update {
    /// Utterances that ended.
    pub(crate) finals: Vec<Segment>,
    /// The utterance that goes on, if partial results were asked for and there is anything.
    pub(crate) partial: Option<Segment>,
    /// Softmax and couplings of the slices since the last update, if they were asked for.
    pub(crate) slices: Option<Slices>,
}

impl Session {
    /// Takes samples in -1..1 at `rate_hz`.
    pub(crate) async fn accept(&mut self, samples: Vec<f32>, rate_hz: u32) -> Result<Update, ApiError> {
        let length = seconds(samples.len(), rate_hz);
        if self.accepted + length > self.engine.limits.audio {
            return Err(ApiError::audio_too_long(self.engine.limits.audio));
        }
        self.accepted += length;
        self.engine.metrics.audio_seconds.inc_by(length.as_secs_f64());
        let piece = (PIECE.as_secs() as usize * rate_hz as usize).max(1);
        let mut all = Update::default();
        let mut rest = samples;
        loop {
            let next = if rest.len() > piece { rest.split_off(piece) } else { Vec::new() };
            let (length, received) = (seconds(rest.len(), rate_hz), Instant::now());
            let update = self.on_core(move |stream| stream.accept(&rest, rate_hz)).await?;
            self.judge(length, received);
            all.finals.extend(update.finals);
            all.partial = update.partial;
            match (&mut all.slices, update.slices) {
                (Some(slices), Some(more)) => slices.append(more),
                (slices, more) => *slices = more,
            }
            if next.is_empty() {
                return Ok(all);
            }
            rest = next;
        }
    }

    /// Ends the utterance now; the stream goes on.
    pub(crate) async fn flush(&mut self) -> Result<Vec<Segment>, ApiError> {
        Ok(self.finish().await?.finals)
    }

    /// Like [`Self::flush`], with all that the end led to.
    pub(crate) async fn finish(&mut self) -> Result<Update, ApiError> {
        self.on_core(|stream| {
            stream.flush();
            Ok(())
        })
        .await
    }

    /// Forgets the utterance so far and everything before it.
    pub(crate) async fn reset(&mut self) -> Result<(), ApiError> {
        self.on_core(|stream| {
            stream.reset();
            Ok(())
        })
        .await
        .map(|_| ())
    }

    /// Audio taken so far, in seconds.
    pub(crate) fn accepted_s(&self) -> f64 {
        self.accepted.as_secs_f64()
    }

    /// Counts and logs a stream that falls behind real time.
    fn judge(&mut self, audio: Duration, received: Instant) {
        let now = Instant::now();
        let Some(slow) = self.pace.add(audio, now.duration_since(received), now) else { return };
        self.engine.metrics.count_slow(slow.name());
        if slow == Slow::Server {
            tracing::warn!("the server does not keep up with a stream");
        }
    }

    async fn on_core(
        &mut self,
        work: impl FnOnce(&mut Stream) -> Result<(), srf::AcceptError> + Send + 'static,
    ) -> Result<Update, ApiError> {
        let mut stream = self.stream.take().ok_or_else(ApiError::internal)?;
        let partials = self.partials;
        let queued = Instant::now();
        let (stream, result, took) = self
            .engine
            .run(move || {
                let start = Instant::now();
                let result = work(&mut stream).map(|()| Update {
                    finals: stream.take_ended(),
                    partial: if partials { stream.partial() } else { None },
                    slices: stream.take_slices(),
                });
                (stream, result, start.elapsed())
            })
            .await?;
        self.stream = Some(stream);
        self.busy += took;
        self.engine.metrics.compute_seconds.inc_by(took.as_secs_f64());
        self.engine.metrics.delay.observe(queued.elapsed().as_secs_f64());
        let update = result.map_err(|error| ApiError::bad_audio(&error))?;
        if self.engine.log_text {
            update.finals.iter().for_each(|segment| tracing::info!(text = segment.text, "utterance ended"));
        }
        Ok(update)
    }
}

fn seconds(n_samples: usize, rate_hz: u32) -> Duration {
    Duration::from_secs_f64(n_samples as f64 / f64::from(rate_hz.max(1)))
}

impl Drop for Session {
    fn drop(&mut self) {
        let audio_s = self.accepted.as_secs_f64();
        let open_s = self.opened.elapsed().as_secs_f64();
        tracing::info!(audio_s, open_s, compute_s = self.busy.as_secs_f64(), "stream closed");
    }
}
