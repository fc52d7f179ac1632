//! Self-attention in several heads, and the encoding of positions that it needs.

use rayon::prelude::*;
use srf_kernels::{Buffer, Element, View, product, product_into};

use super::{Mode, PerThread};
use crate::frames::{Frames, split};
use crate::params::Scope;

/// Self-attention: every slice looks at all slices of its utterance.
///
/// With q, k and v the parts of a head, w their width, and δ the distance of two slices:
/// p = softmax over the keys of (q k^T / sqrt(w) - log(1 + δ)), the last term only if wanted; y = drop(p) v.
///
/// # Shapes
/// - in: frames of `[q, k, v][head][w]` without margin, out: frames of `[head][w]`
///
/// Saves the weights p of every utterance.
pub struct Attention<E> {
    n_heads: usize,
    width: usize,
    has_penalty: bool,
    rate: f64,
    /// Distinguishes its dropout from that of other layers.
    number: u32,
    /// Penalties by distance, from the farthest slice before to the farthest after.
    penalties: Vec<E>,
    /// `[head][query][key]` of each utterance.
    weights: Buffer<E>,
    scratch: PerThread<Vec<E>>,
}

/// The parts of one utterance that one head reads or writes.
struct Head {
    n: usize,
    /// Values in a frame of the input and of the output.
    rows: [usize; 2],
    /// Where q, k, v and y of the head start in a frame.
    starts: [usize; 4],
    width: usize,
}

impl<E: Element> Attention<E> {
    /// `n_heads` heads over frames that are `width` wide, dropping `rate` of the weights in training.
    ///
    /// `number` distinguishes its dropout from that of other layers.
    pub fn new(
        scope: &mut Scope<'_>,
        [width, n_heads]: [usize; 2],
        has_penalty: bool,
        (rate, number): (f64, u32),
    ) -> Self {
        assert!(width.is_multiple_of(n_heads), "attention: {width} values among {n_heads} heads");
        scope.reads([None; 2]);
        scope.add_products_per_pair(2 * width);
        let (penalties, weights, scratch) = (Vec::new(), Buffer::new(), PerThread::default());
        Self { n_heads, width, has_penalty, rate, number, penalties, weights, scratch }
    }

    fn head(&self, index: usize, n: usize) -> Head {
        let width = self.width / self.n_heads;
        let starts = [0, 1, 2].map(|part| part * self.width + index * width);
        Head { n, rows: [3 * self.width, self.width], starts: [starts[0], starts[1], starts[2], index * width], width }
    }

    fn dropout(&self, mode: Mode<'_>, utterance: usize) -> Option<srf_kernels::Dropout> {
        mode.dropout?.dropout(self.rate, self.number, utterance)
    }

    fn scale(&self) -> E {
        E::from_f64(1.0 / ((self.width / self.n_heads) as f64).sqrt())
    }

    /// Computes `y` from `x`.
    #[track_caller]
    pub fn forward(&mut self, mode: Mode<'_>, x: &Frames<E>, y: &mut Frames<E>) {
        assert_eq!((x.width(), y.width()), (3 * self.width, self.width), "attention: widths of input and output");
        y.resize_like(x);
        self.prepare(x.lengths());
        let mut weights = std::mem::take(&mut self.weights);
        let sizes: Vec<usize> = x.lengths().iter().map(|n| self.n_heads * n * n).collect();
        let parts = split(&mut weights, sizes);
        y.each_real_mut().into_par_iter().zip(parts).enumerate().for_each(|(utterance, (y, weights))| {
            let n = x.lengths()[utterance];
            for (index, weights) in weights.chunks_exact_mut((n * n).max(1)).enumerate() {
                let head = self.head(index, n);
                head.scores(x.real(utterance), weights);
                self.weigh(weights, n);
                self.with_dropped(mode, utterance, index, weights, |dropped| {
                    head.sum_values(dropped, x.real(utterance), y);
                });
            }
        });
        self.weights = weights;
    }

    /// Makes room for the weights, and penalties for the longest utterance.
    fn prepare(&mut self, lengths: &[usize]) {
        self.weights.resize(lengths.iter().map(|n| self.n_heads * n * n).sum());
        self.scratch.prepare();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if self.penalties.len() < (2 * longest).saturating_sub(1) {
            let penalty = |distance: usize| if self.has_penalty { -((1 + distance) as f64).ln() } else { 0.0 };
            let distances = (0..2 * longest - 1).map(|k| (k + 1).abs_diff(longest));
            self.penalties = distances.map(|distance| E::from_f64(penalty(distance))).collect();
        }
    }

    /// Replaces scores by weights, query by query.
    fn weigh(&self, weights: &mut [E], n: usize) {
        let (scale, middle) = (self.scale(), self.penalties.len() / 2);
        for (query, row) in weights.chunks_exact_mut(n).enumerate() {
            (E::kernels().attention_forward)(row, scale, &self.penalties[middle - query..][..n]);
        }
    }

    /// Lends the weights after dropout.
    fn with_dropped(&self, mode: Mode<'_>, utterance: usize, head: usize, weights: &[E], run: impl FnOnce(&[E])) {
        let Some(dropout) = self.dropout(mode, utterance) else {
            return run(weights);
        };
        self.scratch.with(|dropped| {
            dropped.clear();
            dropped.extend_from_slice(weights);
            (E::kernels().dropout_apply)(dropout.starting_at(head * weights.len()), dropped);
            run(dropped);
        });
    }

    /// Writes the gradient of the input from that of the output; `mode` and `x` are those of the forward pass.
    pub fn backward(&mut self, mode: Mode<'_>, x: &Frames<E>, d_y: &Frames<E>, d_x: &mut Frames<E>) {
        d_x.resize_like(x);
        let (scale, width_y) = (self.scale(), self.width);
        let starts: Vec<usize> = std::iter::once(0)
            .chain(x.lengths().iter().scan(0, |end, n| {
                *end += self.n_heads * n * n;
                Some(*end)
            }))
            .collect();
        d_x.each_real_mut().into_par_iter().enumerate().for_each(|(utterance, d_x)| {
            let (n, x, d_y) = (x.lengths()[utterance], x.real(utterance), d_y.real(utterance));
            assert_eq!(d_y.len(), n * width_y, "attention: gradient of the output");
            let weights = &self.weights[starts[utterance]..starts[utterance + 1]];
            let mut d = vec![E::ZERO; n * n];
            for (index, weights) in weights.chunks_exact((n * n).max(1)).enumerate() {
                let head = self.head(index, n);
                self.with_dropped(mode, utterance, index, weights, |dropped| {
                    head.values_gradient(dropped, d_y, d_x);
                });
                head.weights_gradient(x, d_y, &mut d);
                if let Some(dropout) = self.dropout(mode, utterance) {
                    (E::kernels().dropout_apply)(dropout.starting_at(index * n * n), &mut d);
                }
                for (weights, d) in weights.chunks_exact(n).zip(d.chunks_exact_mut(n)) {
                    (E::kernels().attention_backward)(weights, scale, d);
                }
                head.queries_gradient(&d, x, d_x);
                head.keys_gradient(&d, x, d_x);
            }
        });
    }
}

impl Head {
    /// Part `part` (q, k, v) of the head, as `[slice][w]`.
    fn of<'a, E>(&self, part: usize, x: &'a [E]) -> View<'a, E> {
        View { data: &x[self.starts[part]..], row: self.rows[0], col: 1 }
    }

    /// The same, as `[w][slice]`.
    fn transposed<'a, E>(&self, part: usize, x: &'a [E]) -> View<'a, E> {
        View { data: &x[self.starts[part]..], row: 1, col: self.rows[0] }
    }

    fn output<'a, E>(&self, y: &'a [E]) -> View<'a, E> {
        View { data: &y[self.starts[3]..], row: self.rows[1], col: 1 }
    }

    /// s = q k^T.
    fn scores<E: Element>(&self, x: &[E], scores: &mut [E]) {
        product([self.n, self.n, self.width], self.of(0, x), self.transposed(1, x), false, scores);
    }

    /// y = p v.
    fn sum_values<E: Element>(&self, weights: &[E], x: &[E], y: &mut [E]) {
        let weights = View { data: weights, row: self.n, col: 1 };
        let y = &mut y[self.starts[3]..];
        product_into([self.n, self.width, self.n], weights, self.of(2, x), false, y, self.rows[1]);
    }

    /// dv = p^T dy.
    fn values_gradient<E: Element>(&self, weights: &[E], d_y: &[E], d_x: &mut [E]) {
        let weights = View { data: weights, row: 1, col: self.n };
        let d_v = &mut d_x[self.starts[2]..];
        product_into([self.n, self.width, self.n], weights, self.output(d_y), false, d_v, self.rows[0]);
    }

    /// dp = dy v^T.
    fn weights_gradient<E: Element>(&self, x: &[E], d_y: &[E], d: &mut [E]) {
        product([self.n, self.n, self.width], self.output(d_y), self.transposed(2, x), false, d);
    }

    /// dq = ds k.
    fn queries_gradient<E: Element>(&self, d: &[E], x: &[E], d_x: &mut [E]) {
        let d = View { data: d, row: self.n, col: 1 };
        let d_q = &mut d_x[self.starts[0]..];
        product_into([self.n, self.width, self.n], d, self.of(1, x), false, d_q, self.rows[0]);
    }

    /// dk = ds^T q.
    fn keys_gradient<E: Element>(&self, d: &[E], x: &[E], d_x: &mut [E]) {
        let d = View { data: d, row: 1, col: self.n };
        let d_k = &mut d_x[self.starts[1]..];
        product_into([self.n, self.width, self.n], d, self.of(0, x), false, d_k, self.rows[0]);
    }
}

/// Positions added to slices in place: `y[t] = sqrt(d) x[t] + e[t]`, with `e[t][k] = sin(t 10000^(-k / (d/2 - 1)))` for
/// the first half of the channels and the cosine of the same for the second.
///
/// Keeps the encoding of the positions met so far.
pub struct Positions<E> {
    width: usize,
    encoding: Vec<E>,
}

impl<E: Element> Positions<E> {
    /// A layer for frames of `width` values: an even number, at least 4.
    pub fn new(width: usize) -> Self {
        assert!(width >= 4 && width.is_multiple_of(2), "positions: frames of {width} values");
        Self { width, encoding: Vec::new() }
    }

    fn scale(&self) -> E {
        E::from_f64((self.width as f64).sqrt())
    }

    /// Replaces x by y.
    pub fn forward(&mut self, frames: &mut Frames<E>) {
        let longest = frames.lengths().iter().copied().max().unwrap_or(0);
        for position in self.encoding.len() / self.width..longest {
            self.encode(position);
        }
        let (scale, encoding) = (self.scale(), &self.encoding);
        let width = self.width;
        frames.each_block(|span, values| {
            let encoding = &encoding[span.first * width..];
            values.iter_mut().zip(encoding).for_each(|(value, &encoded)| *value = *value * scale + encoded);
        });
    }

    fn encode(&mut self, position: usize) {
        let half = self.width / 2;
        let angle = |k: usize| position as f64 * 10000f64.powf(-(k as f64) / (half - 1) as f64);
        self.encoding.extend((0..half).map(|k| E::from_f64(angle(k).sin())));
        self.encoding.extend((0..half).map(|k| E::from_f64(angle(k).cos())));
    }

    /// Replaces dy by dx.
    pub fn backward(&self, d: &mut Frames<E>) {
        let scale = self.scale();
        d.each_block(|_, d| d.iter_mut().for_each(|d| *d *= scale));
    }
}

#[cfg(test)]
mod tests {
    use srf_kernels::check::{dot, gradient_error};

    use super::*;
    use crate::layers::DropoutSeed;
    use crate::params::Plan;
    use crate::random::Random;

    const LENGTHS: [usize; 3] = [4, 0, 2];
    const WIDTH: usize = 4;

    fn frames(width: usize, name: &str) -> Frames<f64> {
        let mut random = Random::new(1, name);
        let mut frames = Frames::new(width, [0, 0]);
        frames.resize_for(LENGTHS);
        frames.each_real_mut().into_iter().for_each(|frames| frames.fill_with(|| random.normal()));
        frames
    }

    fn attention(has_penalty: bool, dropout: (f64, u32)) -> Attention<f64> {
        Attention::new(&mut Plan::new(1).layer("a", &[]), [WIDTH, 2], has_penalty, dropout)
    }

    /// One value of the output, by the equation.
    fn by_definition(x: &[f64], n: usize, query: usize, channel: usize) -> f64 {
        let (row, head) = (3 * WIDTH, channel / 2);
        let score = |key: usize| {
            let product: f64 =
                (0..2).map(|c| x[query * row + 2 * head + c] * x[key * row + WIDTH + 2 * head + c]).sum();
            product / 2f64.sqrt() - (1.0 + query.abs_diff(key) as f64).ln()
        };
        let total: f64 = (0..n).map(|key| score(key).exp()).sum();
        (0..n).map(|key| score(key).exp() / total * x[key * row + 2 * WIDTH + channel]).sum()
    }

    #[test]
    fn outputs_are_those_of_the_equation() {
        let x = frames(3 * WIDTH, "x");
        let mut y = Frames::new(WIDTH, [0, 0]);
        attention(true, (0.5, 0)).forward(Mode::default(), &x, &mut y);
        for (utterance, n) in LENGTHS.into_iter().enumerate() {
            for (index, value) in y.real(utterance).iter().enumerate() {
                let expected = by_definition(x.real(utterance), n, index / WIDTH, index % WIDTH);
                assert!((value - expected).abs() < 1e-14, "{value} {expected}");
            }
        }
    }

    #[test]
    fn gradients_equal_finite_differences() {
        let dropout = Some(DropoutSeed { seed: 3, utterances: &[5, 6, 7] });
        for (has_penalty, dropout) in [(true, None), (false, dropout)] {
            let mode = Mode { dropout, ..Mode::default() };
            let mut layer = attention(has_penalty, (0.3, 4));
            let (x, d_y) = (frames(3 * WIDTH, "x"), frames(WIDTH, "dy"));
            let (mut y, mut d_x) = (Frames::new(WIDTH, [0, 0]), Frames::new(3 * WIDTH, [0, 0]));
            layer.forward(mode, &x, &mut y);
            layer.backward(mode, &x, &d_y, &mut d_x);
            let error = gradient_error(x.all(), d_x.all(), |moved| {
                let mut x = x.clone();
                let (first, second) = moved.split_at(LENGTHS[0] * 3 * WIDTH);
                x.real_mut(0).copy_from_slice(first);
                x.real_mut(2).copy_from_slice(second);
                layer.forward(mode, &x, &mut y);
                dot(y.all(), d_y.all())
            });
            // Differences of a loss near 10 are good to 1e-10 of gradients near 1.
            assert!(error < 1e-9, "{error}");
        }
    }

    #[test]
    fn positions_are_encoded_by_sines_and_cosines_from_fast_to_slow() {
        let mut layer = Positions::<f64>::new(6);
        let mut frames = Frames::new(6, [0, 0]);
        frames.resize_for([1, 3]);
        frames.each_real_mut().into_iter().for_each(|values| values.fill(2.0));
        layer.forward(&mut frames);
        let start = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0].map(|encoded: f64| 2.0 * 6f64.sqrt() + encoded);
        assert_eq!(frames.real(0), start);
        let angles = [2.0, 2.0 / 100.0, 2.0 / 10000.0];
        for (k, angle) in angles.into_iter().enumerate() {
            let [sine, cosine] = [k, 3 + k].map(|at| frames.real(1)[2 * 6 + at] - 2.0 * 6f64.sqrt());
            assert!((sine - f64::sin(angle)).abs() < 1e-14 && (cosine - f64::cos(angle)).abs() < 1e-14);
        }
        layer.backward(&mut frames);
        assert!((frames.real(0)[0] - 2.0 * 6.0).abs() < 1e-13, "the slope is the scale");
    }
}
