//! The slices of tokens on the best alignment of each prefix.
//!
//! Alignments of many prefixes share their beginnings, so finished tokens are kept as lists that share their tails.

use super::Token;
use super::prefixes::NONE;

/// The run of one token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    class: u32,
    start_slice: u32,
    end_slice: u32,
    peak_slice: u32,
    peak_log_prob: f32,
}

impl Run {
    pub(super) fn new(class: u32, at: usize, log_prob: f32) -> Self {
        let at = at as u32;
        Self { class, start_slice: at, end_slice: at + 1, peak_slice: at, peak_log_prob: log_prob }
    }

    /// The run goes on by one slice.
    pub(super) fn extended(mut self, at: usize, log_prob: f32) -> Self {
        self.end_slice = at as u32 + 1;
        if self.peak_log_prob < log_prob {
            (self.peak_log_prob, self.peak_slice) = (log_prob, at as u32);
        }
        self
    }

    fn token(&self) -> Token {
        Token {
            class: self.class as usize,
            start_slice: self.start_slice as usize,
            end_slice: self.end_slice as usize,
            peak_slice: self.peak_slice as usize,
            confidence: self.peak_log_prob.exp().min(1.0),
        }
    }
}

/// The best alignment of a prefix that ends in a certain way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Logarithm of its probability.
    pub(super) score: f64,
    /// The finished tokens.
    before: u32,
    /// The last token; none for the empty prefix.
    last: Option<Run>,
}

impl Path {
    /// No alignment ends this way.
    pub(super) const IMPOSSIBLE: Self = Self { score: f64::NEG_INFINITY, before: NONE, last: None };
    /// The alignment of nothing.
    pub(super) const EMPTY: Self = Self { score: 0.0, before: NONE, last: None };

    /// The last token so far.
    pub(super) fn last_token(&self) -> Option<Token> {
        self.last.as_ref().map(Run::token)
    }
}

struct Finished {
    run: Run,
    before: u32,
    n_refs: u32,
}

/// The finished tokens of all paths.
#[derive(Default)]
pub(super) struct Timings {
    finished: Vec<Finished>,
    free: Vec<u32>,
}

impl Timings {
    /// `path` and one more slice that starts no token: a blank, or the last token again where `run` is given.
    pub(super) fn hold(&mut self, path: &Path, log_prob: f64, last: Option<Run>) -> Path {
        self.retain(path.before);
        Path { score: path.score + log_prob, before: path.before, last }
    }

    /// `path` and one more slice that starts the token of `run`.
    pub(super) fn start(&mut self, path: &Path, log_prob: f64, run: Run) -> Path {
        let before = path.last.map_or(NONE, |last| self.finish(last, path.before));
        Path { score: path.score + log_prob, before, last: Some(run) }
    }

    /// `path` and one more slice of its last token.
    pub(super) fn extend(&mut self, path: &Path, at: usize, log_prob: f32) -> Path {
        self.hold(path, f64::from(log_prob), path.last.map(|run| run.extended(at, log_prob)))
    }

    /// `path` and one more blank.
    pub(super) fn pause(&mut self, path: &Path, log_prob: f64) -> Path {
        self.hold(path, log_prob, path.last)
    }

    /// Gives a path back.
    pub(super) fn release(&mut self, path: &Path) {
        self.release_list(path.before);
    }

    /// The tokens of a path, in order.
    pub(super) fn tokens(&self, path: &Path) -> Vec<Token> {
        let mut tokens: Vec<Token> = path.last.iter().map(Run::token).collect();
        let mut at = path.before;
        while at != NONE {
            let finished = &self.finished[at as usize];
            tokens.push(finished.run.token());
            at = finished.before;
        }
        tokens.reverse();
        tokens
    }

    /// Forgets all but the last `n_kept` finished tokens of a path that ends in `path`.
    pub(super) fn cut(&mut self, path: &mut Path, n_kept: usize) {
        if n_kept == 0 {
            self.release_list(std::mem::replace(&mut path.before, NONE));
            return;
        }
        let mut at = path.before;
        for _ in 1..n_kept {
            if at == NONE {
                return;
            }
            at = self.finished[at as usize].before;
        }
        if at != NONE {
            let rest = std::mem::replace(&mut self.finished[at as usize].before, NONE);
            self.release_list(rest);
        }
    }

    /// How many finished tokens are kept.
    #[cfg(test)]
    pub(super) fn n_living(&self) -> usize {
        self.finished.len() - self.free.len()
    }

    fn retain(&mut self, list: u32) {
        if list != NONE {
            self.finished[list as usize].n_refs += 1;
        }
    }

    fn finish(&mut self, run: Run, before: u32) -> u32 {
        self.retain(before);
        let finished = Finished { run, before, n_refs: 1 };
        if let Some(at) = self.free.pop() {
            self.finished[at as usize] = finished;
            return at;
        }
        self.finished.push(finished);
        self.finished.len() as u32 - 1
    }

    fn release_list(&mut self, mut list: u32) {
        while list != NONE {
            let finished = &mut self.finished[list as usize];
            finished.n_refs -= 1;
            if 0 < finished.n_refs {
                return;
            }
            self.free.push(list);
            list = finished.before;
        }
    }
}
