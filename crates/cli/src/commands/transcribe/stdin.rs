//! Something to listen to: a recording, samples, a pipe or the microphone.

use std::io;

use srf_audio::{Channel, Pipe, RawFormat, Recording, Selection};

/// Something to listen to.
pub(super) enum Sound {
    Recording(Recording, Selection),
    Samples(Vec<f32>, u32),
    Pipe(Pipe),
    #[cfg(feature = "mic")]
    Microphone(std::sync::mpsc::Receiver<Vec<f32>>, u32),
}

impl Sound {
    /// Standard input: a recording, or samples without a header if `raw` says so.
    pub(super) fn stdin(raw: Option<RawFormat>, channel: Channel) -> anyhow::Result<Self> {
        Ok(Self::Pipe(Pipe::open("stdin", Box::new(io::stdin()), raw, channel)?))
    }

    /// Calls `take` with all samples, a block at a time, and their rate; returns what is missing of a recording that
    /// was cut off.
    pub(super) fn each(
        self,
        take: &mut dyn FnMut(&[f32], u32) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<String>> {
        match self {
            Self::Samples(samples, rate_hz) => take(&samples, rate_hz).map(|()| None),
            Self::Recording(recording, selection) => {
                let mut blocks = recording.blocks(selection)?;
                let rate_hz = blocks.rate_hz();
                while let Some(block) = blocks.next_block()? {
                    take(block, rate_hz)?;
                }
                Ok(blocks.incomplete().map(|error| error.to_string()))
            }
            Self::Pipe(mut pipe) => {
                let rate_hz = pipe.rate_hz();
                while let Some(block) = pipe.next_block()? {
                    take(block, rate_hz)?;
                }
                Ok(pipe.incomplete().map(|error| error.to_string()))
            }
            #[cfg(feature = "mic")]
            Self::Microphone(receiver, rate_hz) => super::microphone::each(&receiver, rate_hz, take).map(|()| None),
        }
    }
}
