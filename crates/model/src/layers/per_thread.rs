//! Scratch memory of which every thread has its own.

use std::sync::{Mutex, PoisonError};

/// One `T` for each thread of the pool.
#[derive(Debug, Default)]
pub(crate) struct PerThread<T> {
    slots: Vec<Mutex<T>>,
}

impl<T: Default> PerThread<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new() }
    }

    /// Makes sure that every thread of the current pool has its own; call it before going parallel.
    pub(crate) fn prepare(&mut self) {
        let n_threads = rayon::current_num_threads();
        self.slots.resize_with(self.slots.len().max(n_threads), Mutex::default);
    }

    /// Lends the current thread its own.
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        let index = rayon::current_thread_index().unwrap_or(0);
        // What a panicking thread left behind is overwritten before it is read.
        run(&mut self.slots[index].lock().unwrap_or_else(PoisonError::into_inner))
    }
}
