//! Which channels of recordings are transcribed, and notes on recordings that were not made for the model.

use rayon::prelude::*;
use srf::{Channel, Recognizer, Utterance, channel_name};

use crate::commands::recordings;
use crate::printer::Printer;

/// What is done with recordings of more than one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Channels {
    /// The mean of all.
    #[default]
    Mix,
    /// Each one by itself, as a speaker of its own.
    Split,
    /// This one, counted from 0.
    Only(usize),
}

impl Channels {
    /// The channel of a pipe; `None` if it would have to be split.
    pub(super) fn of_pipe(self) -> Option<Channel> {
        match self {
            Self::Mix => Some(Channel::Mix),
            Self::Only(channel) => Some(Channel::Only(channel)),
            Self::Split => None,
        }
    }

    /// The utterances to transcribe, where the list does not name channels itself.
    ///
    /// Notes say once that channels are mixed, and that recordings are below the rate of the model.
    pub(super) fn apply(self, utterances: Vec<Utterance>, recognizer: &Recognizer, out: &Printer) -> Vec<Utterance> {
        // Recordings that cannot be read are reported when they are transcribed.
        let infos: Vec<_> = utterances.par_iter().map(|utterance| srf_audio::probe(&utterance.path).ok()).collect();
        let n_by_ffmpeg = infos.iter().flatten().filter(|info| info.is_by_ffmpeg).count();
        let (mut n_mixed, mut n_low) = (0, 0);
        let model_hz = recognizer.features().sample_rate_hz;
        let mut chosen = Vec::with_capacity(utterances.len());
        for (utterance, info) in utterances.into_iter().zip(infos) {
            let (n_channels, rate_hz) = info.map_or((1, model_hz), |info| (info.n_channels, info.rate_hz));
            n_low += usize::from(rate_hz < model_hz);
            let is_open = utterance.selection.channel == Channel::Mix;
            match self {
                Self::Split if is_open && 1 < n_channels => {
                    chosen.extend((0..n_channels).map(|channel| only(&utterance, channel)));
                }
                Self::Only(channel) if is_open => {
                    let mut utterance = utterance;
                    utterance.selection.channel = Channel::Only(channel);
                    chosen.push(utterance);
                }
                _ => {
                    n_mixed += usize::from(is_open && 1 < n_channels);
                    chosen.push(utterance);
                }
            }
        }
        if 0 < n_mixed {
            out.note(format_args!(
                "{n_mixed} recordings have several channels, which are mixed; `--channels split` transcribes each one \
                 as a speaker of its own, `--channel N` only one"
            ));
        }
        if 0 < n_by_ffmpeg {
            out.note(format_args!("{n_by_ffmpeg} recordings are decoded by the program `ffmpeg`"));
        }
        recordings::note_low_rate(n_low, model_hz, out);
        chosen
    }
}

/// One channel of an utterance, by a speaker of its own.
fn only(utterance: &Utterance, channel: usize) -> Utterance {
    let mut utterance = utterance.clone();
    utterance.selection.channel = Channel::Only(channel);
    let name = channel_name(utterance.selection.channel);
    utterance.id = format!("{}-{name}", utterance.id);
    utterance.speaker = format!("{}-{name}", utterance.speaker);
    utterance
}
