//! Reproducible random numbers and pools of threads for the tests of this crate.

use srf_base::random::SplitMix64;

use crate::Element;

/// The same seed gives the same numbers everywhere.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A whole number in `low..=high`.
    pub(crate) fn within(&mut self, low: usize, high: usize) -> usize {
        low + (self.0.next_u64() % (high - low + 1) as u64) as usize
    }

    /// `n` numbers between -`scale` and `scale`.
    pub(crate) fn numbers<E: Element>(&mut self, n: usize, scale: f64) -> Vec<E> {
        let mut number = || (self.0.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
        (0..n).map(|_| E::from_f64(number() * scale)).collect()
    }
}

/// Runs `run` on `n_threads` threads, on WebAssembly on the only one there is.
pub(crate) fn with_threads<R: Send>(n_threads: usize, run: impl FnOnce() -> R + Send) -> R {
    if cfg!(target_family = "wasm") {
        return run();
    }
    rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap().install(run)
}
