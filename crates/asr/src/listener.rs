//! The hearing half of a stream: samples of any rate in, log-probabilities out, with nothing decided yet.
//!
//! Resampling, features, normalisation and network, each the streaming form and none of whose bits depends on how the
//! samples are cut.

use std::sync::Arc;

use srf_audio::features::cmvn::{Cmvn, CmvnMode, CmvnStats, OnlineCmvn};
use srf_model::inference::InferenceStream;
use srf_model::stream::{TapConfig, Taps};

use crate::front::{AcceptError, Front};
use crate::recognizer::Shared;

/// How long an utterance may be for a network that gathers all of it: attention needs memory by its square.
const MAX_WHOLE_S: f64 = 300.0;

/// How the frames of a stream are normalised.
enum Normaliser {
    None,
    Fixed(Cmvn),
    Online(Box<OnlineCmvn>),
}

impl Normaliser {
    fn apply(&mut self, frames: &mut [f32]) {
        match self {
            Self::None => {}
            Self::Fixed(cmvn) => cmvn.apply(frames),
            Self::Online(cmvn) => cmvn.apply(frames),
        }
    }
}

/// One speaker's samples on their way to log-probabilities.
pub struct Listener {
    shared: Arc<Shared>,
    /// The speaker's own statistics, if known.
    statistics: Option<CmvnStats>,
    front: Front,
    normaliser: Normaliser,
    network: InferenceStream<f32>,
    frames: Vec<f32>,
    /// Where the utterance began.
    start_s: f64,
}

impl Listener {
    pub(crate) fn new(shared: Arc<Shared>, statistics: Option<CmvnStats>) -> Self {
        Self {
            front: shared.front(),
            normaliser: normaliser(&shared, statistics.as_ref()),
            network: shared.network.stream(),
            frames: Vec::new(),
            start_s: 0.0,
            statistics,
            shared,
        }
    }

    /// Takes samples on the scale of 16-bit integers, at `rate_hz`, and appends the log-probabilities that they
    /// complete.
    pub fn accept(&mut self, samples: &[f32], rate_hz: u32, log_probs: &mut Vec<f32>) -> Result<(), AcceptError> {
        if self.is_whole() && MAX_WHOLE_S < self.heard_s() - self.start_s {
            return Err(AcceptError::TooLong { limit_s: MAX_WHOLE_S });
        }
        self.front.accept(samples, rate_hz, &mut self.frames)?;
        self.hear(log_probs);
        Ok(())
    }

    /// Appends the log-probabilities that were waiting for what comes after; what follows is a new utterance of the
    /// same speaker.
    pub fn flush(&mut self, log_probs: &mut Vec<f32>) {
        self.front.flush(&mut self.frames);
        self.hear(log_probs);
        self.network.finish(log_probs);
        self.start_s = self.heard_s();
    }

    /// Forgets everything heard, the rate too.
    pub fn reset(&mut self) {
        self.front.reset();
        self.start_s = 0.0;
        self.network.reset();
        self.normaliser = normaliser(&self.shared, self.statistics.as_ref());
    }

    /// Opens or closes a tap on the routing; whether the network has one.
    pub fn tap(&mut self, config: Option<TapConfig>) -> bool {
        self.network.srf().map(|stream| stream.tap(config)).is_some()
    }

    /// What an open tap has gathered; whoever reads it clears it.
    pub fn taps(&mut self) -> Option<&mut Taps<f32>> {
        self.network.srf()?.taps()
    }

    /// How much was heard since the start.
    pub fn heard_s(&self) -> f64 {
        self.front.heard_s()
    }

    /// Whether the network needs the whole utterance.
    fn is_whole(&self) -> bool {
        self.shared.network.look_ahead_frames().is_none()
    }

    /// Takes the frames through normalisation and network.
    fn hear(&mut self, log_probs: &mut Vec<f32>) {
        if !self.frames.is_empty() {
            self.normaliser.apply(&mut self.frames);
            self.network.accept(&self.frames, log_probs);
            self.frames.clear();
        }
    }
}

fn normaliser(shared: &Shared, statistics: Option<&CmvnStats>) -> Normaliser {
    let config = &shared.front_end.cmvn;
    match config.mode {
        CmvnMode::Off => Normaliser::None,
        CmvnMode::Online => {
            let n_dims = shared.front_end.n_dims();
            let cmvn = OnlineCmvn::new(config, n_dims, statistics.cloned(), shared.cmvn.clone());
            Normaliser::Online(Box::new(cmvn))
        }
        CmvnMode::Global => fixed(shared.cmvn.as_ref(), config.norm_vars),
        CmvnMode::Speaker | CmvnMode::Utterance => fixed(statistics.or(shared.cmvn.as_ref()), config.norm_vars),
    }
}

fn fixed(statistics: Option<&CmvnStats>, norm_vars: bool) -> Normaliser {
    statistics.map_or(Normaliser::None, |stats| Normaliser::Fixed(Cmvn::new(stats, norm_vars)))
}
