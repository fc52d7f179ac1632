//! What the routing does: recordings and models in, pictures, a page with a time slider and figures out.
//!
//! Everything comes from the recogniser that users run, with taps on its capsule layers ([`Routes`]).
//! The pictures are those of the paper's analysis: [`couplings`] at a time, a [`grid`] of them over times and models,
//! [`trajectories`] of the softmax where an utterance starts and ends, error against [`windows`]; [`distance`] counts
//! how often the class that most capsules are routed to is not the likeliest one, and
//! [`masses`] tells why; [`page`] lets a reader move in time.

pub mod couplings;
pub mod distance;
pub mod files;
pub mod grid;
pub mod masses;
pub mod page;
pub mod reference;
pub mod routes;
pub mod sheet;
pub mod spectrogram;
pub mod times;
pub mod trajectories;
pub mod windows;

mod ramp;
mod scale;

#[cfg(test)]
pub(crate) mod testing;

pub use self::routes::{AnalyzeError, Detail, Layer, Routes};
pub use self::sheet::Picture;

use srf::Recognizer;
use srf_audio::Samples;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;

use self::spectrogram::Spectrogram;
use crate::corpus::Timed;

/// An utterance with what several models do with it.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Its name.
    pub id: String,
    /// How much of it was heard, in seconds.
    pub duration_s: f64,
    /// Its samples, for pages that can be listened to; may be left out.
    pub sound: Option<Samples>,
    /// What it looks like.
    pub spectrogram: Spectrogram,
    /// What was said and when; empty if nobody knows.
    pub reference: Vec<Timed>,
    /// What each model does; at least one.
    pub models: Vec<Routes>,
}

/// A model and what it is called in pictures.
pub struct Named {
    /// The name.
    pub name: String,
    /// The model.
    pub recognizer: Recognizer,
}

impl Named {
    /// Whether there is a routing to look at.
    pub fn check(&self) -> Result<(), AnalyzeError> {
        routes::capsules(&self.name, self.recognizer.model()).map(|_| ())
    }
}

impl Analysis {
    /// Hears an utterance with all models; each speaker's `statistics` are those of the model with the same number.
    ///
    /// Memory grows with the length of the utterance: whoever calls limits its selection.
    #[track_caller]
    pub fn hear(
        models: &[Named],
        utterance: &Utterance,
        statistics: &[Option<CmvnStats>],
        reference: Vec<Timed>,
    ) -> Result<Self, AnalyzeError> {
        let first = &models.first().expect("an analysis is of at least one model").recognizer;
        assert_eq!(models.len(), statistics.len(), "analysis: statistics, or none, for each model");
        let routes = models.iter().zip(statistics).map(|(Named { name, recognizer }, statistics)| {
            Routes::hear(recognizer, name, utterance, statistics.as_ref(), Detail::Layers)
        });
        let routes: Vec<Routes> = routes.collect::<Result<_, _>>()?;
        let samples = spectrogram::samples(first, utterance)?;
        Ok(Self {
            id: utterance.id.clone(),
            duration_s: samples.duration_s(),
            spectrogram: Spectrogram::of(first, &samples),
            sound: Some(samples),
            reference,
            models: routes,
        })
    }

    /// What was said at a time, if anybody knows.
    pub fn said_at(&self, time_s: f64) -> Option<&str> {
        let label = self.reference.iter().find(|label| label.start_s <= time_s && time_s < label.end_s);
        // The last label holds to the end of the recording.
        let last = || self.reference.last().filter(|last| last.end_s <= time_s);
        label.or_else(last).map(|label| label.name.as_str())
    }
}
