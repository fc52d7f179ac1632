//! How well the capsules route: a model and recordings in, a summary of each capsule layer out.
//!
//! A layer that shares evenly (entropy near 1) has not learned to route; one with many dead capsules wastes them; a
//! last layer whose largest coupling often disagrees with the softmax decides by length alone.

use std::collections::HashMap;

use rayon::prelude::*;
use srf_audio::Recording;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_model::stream::{LayerHealth, TapConfig, Taps};

use crate::bulk::{RecogniseError, feed};
use crate::recognizer::Recognizer;

impl Recognizer {
    /// A summary of each capsule layer over the recordings that can be read; empty for networks without capsules.
    ///
    /// Where the model normalises by speaker, the statistics are those of the recordings given.
    pub fn health(&self, utterances: &[Utterance]) -> Vec<LayerHealth> {
        let by_speaker = if self.is_by_speaker() { self.speaker_statistics(utterances) } else { HashMap::new() };
        let tapped = |utterance: &Utterance| {
            let statistics = by_speaker.get(utterance.speaker.as_str()).cloned();
            self.tapped(utterance, statistics).ok().flatten()
        };
        let each: Vec<Taps<f32>> = utterances.par_iter().filter_map(tapped).collect();
        let mut each = each.into_iter();
        let Some(mut all) = each.next() else { return Vec::new() };
        each.for_each(|taps| all.merge(&taps));
        all.health()
    }

    fn tapped(
        &self,
        utterance: &Utterance,
        statistics: Option<CmvnStats>,
    ) -> Result<Option<Taps<f32>>, RecogniseError> {
        let mut blocks = Recording::open(&utterance.path)?.blocks(utterance.selection)?;
        let mut listener = self.listener(statistics)?;
        listener.tap(Some(TapConfig { has_hidden: true, has_health: true, full_layer: None }));
        let mut log_probs = Vec::new();
        feed(&mut blocks, utterance, |block, rate_hz| {
            log_probs.clear();
            if let Some(taps) = listener.taps() {
                taps.clear();
            }
            listener.accept(block, rate_hz, &mut log_probs)
        })?;
        listener.flush(&mut log_probs);
        Ok(listener.taps().map(|taps| taps.clone()))
    }
}
