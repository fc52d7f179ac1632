//! One file per command: its arguments, and `run`, which turns them into library calls.

pub(crate) mod align;
pub(crate) mod analyze;
pub(crate) mod average;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod features;
pub(crate) mod fit_timing;
pub(crate) mod info;
pub(crate) mod lm;
pub(crate) mod models;
pub(crate) mod prepare;
pub(crate) mod reproduce;
pub(crate) mod runs;
pub(crate) mod sclite;
pub(crate) mod score;
pub(crate) mod serve;
pub(crate) mod train;
pub(crate) mod transcribe;
pub(crate) mod validate;
pub(crate) mod verify_stream;
pub(crate) mod words;

mod inputs;
pub(crate) mod recognition;
mod recordings;

use anyhow::{Context as _, ensure};

/// A pool of `n_threads` threads, or of one per core.
pub(crate) fn thread_pool(n_threads: Option<usize>) -> anyhow::Result<rayon::ThreadPool> {
    const MAX_THREADS: usize = 1024;
    if let Some(n) = n_threads {
        ensure!((1..=MAX_THREADS).contains(&n), "--threads is {n}, expected 1 to {MAX_THREADS}");
    }
    rayon::ThreadPoolBuilder::new().num_threads(n_threads.unwrap_or(0)).build().context("could not start the threads")
}
