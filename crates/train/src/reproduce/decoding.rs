//! How long recognition takes: a model and utterances in, seconds for each utterance on one thread out.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use srf::{Recognizer, StreamOptions};
use srf_audio::features::cmvn::CmvnStats;
use srf_text::decode::DecoderConfig;

use super::place::read_json;
use crate::corpus::{Utterance, Watcher};

/// Each utterance is recognised so often, and the fastest counts: others on the machine only ever slow it down.
const N_PASSES: usize = 2;

/// Times of a whole part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decoding {
    /// How hypotheses were searched for.
    pub search: String,
    /// Every utterance that could be recognised, in the order of the list.
    pub utterances: Vec<Decoded>,
}

/// The time of one utterance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decoded {
    /// Which.
    pub id: String,
    /// How long it is.
    pub duration_s: f64,
    /// How long its recognition took, from the file to the labels.
    pub decoding_s: f64,
}

impl Decoding {
    /// Recognises one utterance after the other.
    ///
    /// Where the model normalises by speaker, the statistics are taken beforehand and are not in the times.
    pub fn measure(
        recognizer: &Recognizer,
        utterances: &[Utterance],
        (decoder, search): (&DecoderConfig, String),
        watcher: &dyn Watcher,
    ) -> Self {
        let list: Vec<_> = utterances.iter().map(Utterance::to_be_heard).collect();
        let by_speaker = statistics(recognizer, &list);
        watcher.begin("timing", list.len());
        let decoded = list.iter().filter_map(|utterance| {
            let statistics = by_speaker.get(utterance.speaker.as_str()).cloned();
            let options =
                StreamOptions { decoder: decoder.clone(), endpoint: None, statistics, ..StreamOptions::default() };
            let timed = (0..N_PASSES).filter_map(|_| {
                let start = Instant::now();
                let transcript = recognizer.transcribe_with(utterance, &options).ok()?;
                Some((start.elapsed().as_secs_f64(), transcript.duration_s))
            });
            let fastest = timed.min_by(|a, b| a.0.total_cmp(&b.0));
            watcher.advance();
            fastest.map(|(decoding_s, duration_s)| Decoded { id: utterance.id.clone(), duration_s, decoding_s })
        });
        Self { search, utterances: decoded.collect() }
    }

    /// Reads times that were written.
    pub fn load(path: &Path) -> Option<Self> {
        read_json(path)
    }

    /// All of it, in seconds.
    pub fn total_s(&self) -> f64 {
        self.utterances.iter().map(|decoded| decoded.decoding_s).sum()
    }

    /// Time for each second of audio; none without audio.
    pub fn real_time_factor(&self) -> Option<f64> {
        let audio_s: f64 = self.utterances.iter().map(|decoded| decoded.duration_s).sum();
        (0.0 < audio_s).then(|| self.total_s() / audio_s)
    }

    /// The times of the utterances that both have.
    pub fn pairs(&self, other: &Self) -> Vec<(f64, f64)> {
        let time_of = |id: &str| other.utterances.iter().find(|decoded| decoded.id == id).map(|d| d.decoding_s);
        self.utterances.iter().filter_map(|decoded| Some((decoded.decoding_s, time_of(&decoded.id)?))).collect()
    }
}

/// The statistics of each speaker, where the model wants them.
pub(super) fn statistics<'a>(
    recognizer: &Recognizer,
    list: &'a [srf_audio::bulk::Utterance],
) -> HashMap<&'a str, CmvnStats> {
    if recognizer.is_by_speaker() { recognizer.speaker_statistics(list) } else { HashMap::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoding(times: &[(&str, f64)]) -> Decoding {
        let decoded =
            |(id, decoding_s): &(&str, f64)| Decoded { id: (*id).to_owned(), duration_s: 2.0, decoding_s: *decoding_s };
        Decoding { search: "greedy".to_owned(), utterances: times.iter().map(decoded).collect() }
    }

    #[test]
    fn times_are_summed_and_paired_by_utterance() {
        let (a, b) = (decoding(&[("x", 0.5), ("y", 1.5)]), decoding(&[("y", 3.0), ("z", 4.0), ("x", 1.0)]));
        assert_eq!((a.total_s(), a.real_time_factor()), (2.0, Some(0.5)));
        assert_eq!(a.pairs(&b), [(0.5, 1.0), (1.5, 3.0)]);
        assert_eq!(Decoding::default().real_time_factor(), None);
    }
}
