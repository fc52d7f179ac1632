//! Deltas: appends the rates of change to each frame, a few frames later.

/// The regression over neighbouring frames, d_t = sum_j j x_(t+j) / sum_j j^2, taken once, twice, ...
///
/// Taking it twice is one weighted sum over twice as many neighbours. Before the first and after the last frame these
/// two are repeated.
#[derive(Clone, Debug)]
pub(super) struct Deltas {
    n_static: usize,
    /// For each order, the weights of the frames from the earliest to the latest it looks at.
    weights: Vec<Vec<f32>>,
    /// Frames to either side that the highest order looks at.
    context: usize,
    /// Static frames from the earliest that is still looked at, those before the utterance included.
    window: Vec<f32>,
    /// Where in `window` the earliest starts.
    start: usize,
}

impl Deltas {
    pub(super) fn new(n_static: usize, order: usize, window_frames: usize) -> Self {
        let norm = (1..=window_frames).map(|j| 2 * j * j).sum::<usize>() as f64;
        let mut weights = vec![vec![1.0]];
        for _ in 0..order {
            let last = weights.last().expect("order 0 is there");
            let mut next = vec![0.0; last.len() + 2 * window_frames];
            for (index, weight) in last.iter().enumerate() {
                for j in 0..=2 * window_frames {
                    next[index + j] += weight * (j as f64 - window_frames as f64) / norm;
                }
            }
            weights.push(next);
        }
        let weights = weights.iter().map(|row| row.iter().map(|&w| w as f32).collect()).collect();
        Self { n_static, weights, context: order * window_frames, window: Vec::new(), start: 0 }
    }

    /// Forgets all frames.
    pub(super) fn reset(&mut self) {
        self.window.clear();
        self.start = 0;
    }

    /// Takes the next static frame, and appends to `out` the frame that is now complete, if there is one.
    pub(super) fn push(&mut self, frame: &[f32], out: &mut Vec<f32>) {
        if self.window.is_empty() {
            for _ in 0..self.context {
                self.window.extend_from_slice(frame);
            }
        }
        self.window.extend_from_slice(frame);
        self.emit(out);
    }

    /// After the last frame: appends the frames that still waited for later ones.
    pub(super) fn finish(&mut self, out: &mut Vec<f32>) {
        if !self.window.is_empty() {
            let last = self.window[self.window.len() - self.n_static..].to_vec();
            for _ in 0..self.context {
                self.window.extend_from_slice(&last);
                self.emit(out);
            }
        }
        self.reset();
    }

    fn emit(&mut self, out: &mut Vec<f32>) {
        let n_looked_at = (2 * self.context + 1) * self.n_static;
        if self.window.len() - self.start < n_looked_at {
            return;
        }
        let frames = &self.window[self.start..][..n_looked_at];
        for weights in &self.weights {
            let skip = self.context - weights.len() / 2;
            let from = out.len();
            out.resize(from + self.n_static, 0.0);
            let out = &mut out[from..];
            for (weight, frame) in weights.iter().zip(frames.chunks_exact(self.n_static).skip(skip)) {
                if *weight != 0.0 {
                    for (sum, value) in out.iter_mut().zip(frame) {
                        *sum += weight * value;
                    }
                }
            }
        }
        self.start += self.n_static;
        // Moving what is left to the front now and then costs less than doing it for every frame.
        if self.start >= 64 * n_looked_at {
            self.window.drain(..self.start);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The regression once, at frame `t`, over clamped neighbours of the static values.
    fn naive(values: &[f32], t: usize, order: usize) -> f64 {
        // Order two is order one of order one on an utterance with its ends repeated without limit.
        fn at(values: &[f32], t: isize, order: usize) -> f64 {
            if order == 0 {
                return f64::from(values[t.clamp(0, values.len() as isize - 1) as usize]);
            }
            (-2..=2).map(|j| j as f64 * at(values, t + j, order - 1)).sum::<f64>() / 10.0
        }
        at(values, t as isize, order)
    }

    proptest! {
        #[test]
        fn deltas_are_the_regression_over_repeated_ends(values in proptest::collection::vec(-50.0f32..50.0, 1..30)) {
            let mut deltas = Deltas::new(1, 2, 2);
            let mut out = Vec::new();
            for value in &values {
                deltas.push(&[*value], &mut out);
            }
            deltas.finish(&mut out);
            prop_assert_eq!(out.len(), 3 * values.len());
            for (t, frame) in out.chunks_exact(3).enumerate() {
                prop_assert_eq!(frame[0], values[t]);
                for (order, found) in frame.iter().enumerate().skip(1) {
                    let error = (f64::from(*found) - naive(&values, t, order)).abs();
                    // Nine products of at most 50, each rounded.
                    prop_assert!(error < 9.0 * 50.0 * f64::from(f32::EPSILON), "frame {}, order {}: {}", t, order, error);
                }
            }
        }
    }
}
