//! Something to listen to: a recording, samples, a pipe or the microphone.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
    /// Standard input until `stop` is set: a recording, or samples without a header if `raw` says so.
    pub(super) fn stdin(
        raw: Option<RawFormat>,
        channel: Channel,
        stop: Option<Arc<AtomicBool>>,
    ) -> anyhow::Result<Self> {
        let reader: Box<dyn Read + Send + Sync> = match stop {
            Some(stop) => Box::new(UntilStopped::new(io::stdin(), stop)),
            None => Box::new(io::stdin()),
        };
        Ok(Self::Pipe(Pipe::open("stdin", reader, raw, channel)?))
    }

    /// Calls `take` with all samples, a block at a time, and their rate, until it returns `false`; returns what is
    /// missing of a recording that was cut off.
    pub(super) fn each(
        self,
        take: &mut dyn FnMut(&[f32], u32) -> anyhow::Result<bool>,
    ) -> anyhow::Result<Option<String>> {
        match self {
            Self::Samples(samples, rate_hz) => take(&samples, rate_hz).map(|_| None),
            Self::Recording(recording, selection) => {
                let mut blocks = recording.blocks(selection)?;
                let rate_hz = blocks.rate_hz();
                while let Some(block) = blocks.next_block()? {
                    if !take(block, rate_hz)? {
                        return Ok(None);
                    }
                }
                Ok(blocks.incomplete().map(|error| error.to_string()))
            }
            Self::Pipe(mut pipe) => {
                let rate_hz = pipe.rate_hz();
                while let Some(block) = pipe.next_block()? {
                    // A pipe ends by itself after a signal, when what had been written to it is read.
                    take(block, rate_hz)?;
                }
                Ok(pipe.incomplete().map(|error| error.to_string()))
            }
            #[cfg(feature = "mic")]
            Self::Microphone(receiver, rate_hz) => super::microphone::each(&receiver, rate_hz, take).map(|()| None),
        }
    }
}

/// How long a signal waits at most while nothing is read.
const LOOK: Duration = Duration::from_millis(50);

/// Chunks that are still taken after a signal: those that had been written before it.
const N_LAST: usize = 8;

/// A reader that ends when `stop` is set, even while it waits for bytes: they are read on a thread of their own.
struct UntilStopped {
    /// In a mutex only because a reader of pipes has to be `Sync`.
    chunks: Mutex<Receiver<io::Result<Vec<u8>>>>,
    current: io::Cursor<Vec<u8>>,
    stop: Arc<AtomicBool>,
    n_after_stop: usize,
}

impl UntilStopped {
    fn new(mut source: impl Read + Send + 'static, stop: Arc<AtomicBool>) -> Self {
        // Few chunks wait, so that a fast writer is slowed down.
        let (sender, receiver) = mpsc::sync_channel(4);
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let chunk = match source.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(n) => Ok(buffer[..n].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_error = chunk.is_err();
                if sender.send(chunk).is_err() || is_error {
                    return;
                }
            }
        });
        Self { chunks: Mutex::new(receiver), current: io::Cursor::default(), stop, n_after_stop: 0 }
    }
}

impl Read for UntilStopped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let chunks = self.chunks.get_mut().map_err(|_| io::Error::other("a thread that read stdin panicked"))?;
        loop {
            let n = self.current.read(buffer)?;
            if n > 0 || buffer.is_empty() {
                return Ok(n);
            }
            let is_stopped = self.stop.load(Ordering::Relaxed);
            if is_stopped {
                self.n_after_stop += 1;
            }
            if self.n_after_stop > N_LAST {
                return Ok(0);
            }
            match chunks.recv_timeout(LOOK) {
                Ok(chunk) => self.current = io::Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) if is_stopped => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}
