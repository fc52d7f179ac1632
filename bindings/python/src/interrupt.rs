//! Work that Ctrl-C can stop: it runs in a thread while the caller's thread looks for signals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::catch;

/// From one look for signals to the next.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` without the GIL until it ends. The first signal handler that raises, as that of Ctrl-C does, sets
/// `stop`, and its exception is returned next to what `work` made of that.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> (anyhow::Result<T>, Option<PyErr>) {
    let is_done = AtomicBool::new(false);
    let caller = thread::current();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let result = catch(work);
            is_done.store(true, Ordering::Release);
            caller.unpark();
            result
        });
        let mut interrupt = None;
        while !is_done.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(POLL));
            if interrupt.is_none() {
                interrupt = py.check_signals().err();
                stop.fetch_or(interrupt.is_some(), Ordering::Relaxed);
            }
        }
        let result = py.detach(|| worker.join()).unwrap_or_else(|_| catch(|| panic!("a worker panicked")));
        (result, interrupt)
    })
}
