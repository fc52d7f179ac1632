//! Batches ahead of time: a plan in, filled batches out, made on a thread of its own while the network trains.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Scope;
use std::time::{Duration, Instant};

use srf_model::frames::Frames;

use super::data::{Batch, Dataset};
use crate::augment::Augmenter;

/// Batches that wait for the network.
const N_AHEAD: usize = 3;

/// The end of the line where batches come out.
pub(crate) struct Loader {
    batches: Receiver<Batch>,
    used: Sender<Frames<f32>>,
}

/// What to load.
#[derive(Clone, Copy)]
pub(crate) struct Order<'a> {
    pub(crate) data: &'a Dataset,
    pub(crate) plan: &'a [Vec<usize>],
    pub(crate) epoch: usize,
    pub(crate) augmenter: &'a Augmenter,
    pub(crate) margin: [usize; 2],
}

impl Loader {
    /// Starts to load.
    pub(crate) fn start<'scope>(scope: &'scope Scope<'scope, '_>, order: Order<'scope>) -> Self {
        let (send, batches) = sync_channel(N_AHEAD);
        let (used, free) = channel();
        scope.spawn(move || load(order, &send, &free));
        Self { batches, used }
    }

    /// The next batch and how long it was waited for; none after the last.
    pub(crate) fn next(&self) -> Option<(Batch, Duration)> {
        let start = Instant::now();
        let batch = self.batches.recv().ok()?;
        Some((batch, start.elapsed()))
    }

    /// Takes the memory of a batch back, for one to come.
    pub(crate) fn give_back(&self, batch: Batch) {
        // The other end is gone when all batches are made.
        let _ = self.used.send(batch.x);
    }
}

fn load(order: Order<'_>, send: &SyncSender<Batch>, free: &Receiver<Frames<f32>>) {
    let Order { data, plan, epoch, augmenter, margin } = order;
    let mut extractor = data.front_end.extractor();
    for members in plan {
        let x = free.try_recv().unwrap_or_else(|_| Frames::new(data.front_end.n_dims(), margin));
        let batch = data.batch(members, Some((augmenter, epoch)), &mut extractor, x);
        // The network has stopped: nobody waits for the rest.
        if send.send(batch).is_err() {
            return;
        }
    }
}
