//! The convolution against finite differences, every row against the definition, and splits against the whole.

use proptest::prelude::*;

use super::*;
use crate::check::{dot, gradient_error};
use crate::tests::Random;
use crate::{Dropout, Kernels};

/// A convolution with its parameters and the frames of one utterance.
struct Case<E> {
    conv: Conv,
    n_frames: usize,
    kernels: [Vec<E>; 2],
    biases: [Vec<E>; 2],
    x: Vec<E>,
    dropout: Option<Dropout>,
}

impl<E: Element> Case<E> {
    fn new(conv: Conv, n_frames: usize, rate: f64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let n_kernel = conv.n_taps() * conv.n_filters;
        Self {
            conv,
            n_frames,
            kernels: [0, 1].map(|_| random.numbers(n_kernel, 1.0)),
            biases: [0, 1].map(|_| random.numbers(conv.n_filters, 1.0)),
            x: random.numbers(conv.n_frames_read(n_frames) * conv.width_in(), 1.0),
            dropout: Dropout::new(rate, seed, 1, 2),
        }
    }

    fn weights(&self) -> ConvWeights<E> {
        let branches = [0, 1].map(|i| Branch { kernel: &self.kernels[i], bias: Some(&self.biases[i]) });
        let mut weights = ConvWeights::new(self.conv);
        weights.pack(branches);
        weights.pack_backward(branches);
        weights
    }

    fn forward(&self, row: &Kernels<E>) -> (Vec<E>, Vec<u8>) {
        let mut out = vec![E::ZERO; self.n_frames * self.conv.width_out()];
        let mut choices = vec![9; out.len()];
        (row.conv_forward)(&self.weights(), &self.x, self.dropout, &mut out, &mut choices);
        (out, choices)
    }

    /// The gradients of the input and of the weights.
    fn backward(&self, row: &Kernels<E>, choices: &[u8], d_out: &[E]) -> (Vec<E>, Vec<E>) {
        let nan = E::from_f64(f64::NAN);
        let mut spread = vec![nan; self.conv.n_spread(self.n_frames)];
        (row.conv_spread)(&self.conv, self.dropout, d_out, choices, &mut spread);
        let mut grad = vec![E::ZERO; self.conv.n_gradient()];
        (row.conv_weight_gradient)(&self.conv, &self.x, &spread, self.n_frames, &mut grad);
        let mut d_x = vec![nan; self.x.len()];
        (row.conv_input_gradient)(&self.weights(), &mut spread, self.n_frames, 0, &mut d_x);
        (d_x, grad)
    }
}

fn front_end(n_channels: usize, n_filters: usize) -> Conv {
    Conv { kernel: [3, 3], stride: [2, 2], n_freq: 9, pad_freq: [1, 1], n_channels, n_filters }
}

/// The gradients of kernel and bias of `branch`, without the lanes that fill blocks.
fn of_branch(conv: &Conv, grad: &[f64], branch: usize) -> (Vec<f64>, Vec<f64>) {
    let rows = grad[branch * grad.len() / 2..][..grad.len() / 2].chunks(conv.n_lanes());
    let mut kernel: Vec<f64> = rows.flat_map(|row| row[..conv.n_filters].to_vec()).collect();
    let bias = kernel.split_off(conv.n_taps() * conv.n_filters);
    (kernel, bias)
}

#[test]
fn gradients_equal_finite_differences() {
    for (conv, rate) in [
        (front_end(2, 3), 0.2),
        (Conv { pad_freq: [0, 1], n_freq: 8, ..front_end(1, 5) }, 0.0),
        (Conv { kernel: [5, 3], stride: [1, 1], n_freq: 4, pad_freq: [1, 1], n_channels: 2, n_filters: 2 }, 0.3),
    ] {
        let case = Case::<f64>::new(conv, 3, rate, 7);
        let row = f64::kernels();
        let (out, choices) = case.forward(row);
        let d_out: Vec<f64> = Random::new(8).numbers(out.len(), 1.0);
        let (d_x, grad) = case.backward(row, &choices, &d_out);
        let loss = |case: &Case<f64>| dot(&case.forward(row).0, &d_out);
        let error = gradient_error(&case.x, &d_x, |x| loss(&Case { x: x.to_vec(), ..copy(&case) }));
        assert!(error < 1e-8, "input: {error}");
        for branch in 0..2 {
            let (kernel, bias) = of_branch(&conv, &grad, branch);
            let error = gradient_error(&case.kernels[branch], &kernel, |kernel| {
                let mut moved = copy(&case);
                moved.kernels[branch] = kernel.to_vec();
                loss(&moved)
            });
            assert!(error < 1e-8, "kernel: {error}");
            let error = gradient_error(&case.biases[branch], &bias, |bias| {
                let mut moved = copy(&case);
                moved.biases[branch] = bias.to_vec();
                loss(&moved)
            });
            assert!(error < 1e-8, "bias: {error}");
        }
    }
}

fn copy<E: Element>(case: &Case<E>) -> Case<E> {
    Case { kernels: case.kernels.clone(), biases: case.biases.clone(), x: case.x.clone(), ..*case }
}

/// Sums of n products of values below 1 differ by at most n roundings of at most n in whatever order they are taken;
/// random signs leave far less, of which ten times the root is a generous bound.
fn bound(n_terms: usize) -> f32 {
    10.0 * (n_terms as f32).sqrt() * f32::EPSILON
}

fn largest_distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    // NaN must not pass.
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |m, d| if d <= m { m } else { d })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_row_equals_the_definition(
        kernel in [1usize..6, 1usize..4], stride in [1usize..4, 1usize..4], n_freq in 3usize..12,
        pads in [0usize..3, 0usize..3], n_channels in prop_oneof![1usize..19, Just(32), 60usize..68], n_filters in 1usize..50, n_frames in 0usize..9,
        rate in prop_oneof![Just(0.0), Just(0.2)], seed in 0u64..1000,
    ) {
        let pad_freq = pads.map(|pad| pad.min(kernel[1] - 1));
        let conv = Conv { kernel, stride, n_freq, pad_freq, n_channels, n_filters };
        let mut case = Case::<f32>::new(conv, n_frames, rate, seed);
        // One frame more than is read: whoever reads it spoils everything. Its own gradient is zero.
        case.x.extend(vec![f32::NAN; conv.width_in()]);
        let rows = f32::rows();
        let (expected, choices) = case.forward(&rows[0]);
        let d_out: Vec<f32> = Random::new(seed).numbers(expected.len(), 1.0);
        let (expected_x, expected_w) = case.backward(&rows[0], &choices, &d_out);
        for row in &rows[1..] {
            let (out, own_choices) = case.forward(row);
            let n_taps = conv.n_taps();
            prop_assert!(largest_distance(&out, &expected) <= 1.25 * bound(n_taps + 1), "{} forward", row.name);
            prop_assert!(own_choices.iter().all(|&c| c <= choice::B), "{} choices", row.name);
            let (d_x, grad) = case.backward(row, &choices, &d_out);
            let n_outputs = kernel[0] * kernel[1] * 2 * n_filters;
            prop_assert!(largest_distance(&d_x, &expected_x) <= 1.25 * bound(n_outputs), "{} dX", row.name);
            let n_positions = n_frames * conv.n_freq_out() + 1;
            prop_assert!(largest_distance(&grad, &expected_w) <= 1.25 * bound(n_positions), "{} dW", row.name);
        }
    }

    #[test]
    fn any_split_of_the_time_axis_gives_the_same_bits(
        n_channels in 1usize..20, n_filters in 1usize..40, cut in 0usize..12, seed in 0u64..1000,
    ) {
        let conv = front_end(n_channels, n_filters);
        let case = Case::<f32>::new(conv, 11, 0.2, seed);
        let weights = case.weights();
        let cut = cut.min(case.n_frames);
        for row in f32::rows() {
            let (whole, whole_choices) = case.forward(row);
            let mut out = vec![0.0; whole.len()];
            let mut choices = vec![0; whole.len()];
            for frames in [0..cut, cut..case.n_frames] {
                let from = frames.start * conv.stride[0] * conv.width_in();
                let x = &case.x[from..from + conv.n_frames_read(frames.len()) * conv.width_in()];
                let at = frames.start * conv.width_out()..frames.end * conv.width_out();
                let dropout = case.dropout.map(|dropout| dropout.starting_at(at.start));
                (row.conv_forward)(&weights, x, dropout, &mut out[at.clone()], &mut choices[at]);
            }
            prop_assert_eq!(&out, &whole, "{}", row.name);
            prop_assert_eq!(&choices, &whole_choices, "{}", row.name);
        }
    }
}

#[test]
fn ties_go_to_the_first_branch_and_dropped_winners_to_neither() {
    assert_eq!(pick([true, true], 1.25, 0.5, 0.5), (0.625, choice::A));
    assert_eq!(pick([true, true], 1.25, 0.5, 0.75), (0.9375, choice::B));
    assert_eq!(pick([false, true], 1.25, 0.5, -0.5), (0.0, choice::NONE));
    assert_eq!(pick([false, true], 1.25, 0.75, 0.5), (0.625, choice::B));
    assert_eq!(pick([false, false], 1.25, 0.75, 0.5), (0.0, choice::NONE));
}

#[test]
fn gradients_of_some_input_frames_are_those_of_all() {
    let case = Case::<f32>::new(front_end(3, 20), 5, 0.2, 3);
    for row in f32::rows() {
        let (out, choices) = case.forward(row);
        let mut spread = vec![0.0; case.conv.n_spread(5)];
        (row.conv_spread)(&case.conv, case.dropout, &out, &choices, &mut spread);
        let mut all = vec![f32::NAN; case.x.len()];
        (row.conv_input_gradient)(&case.weights(), &mut spread.clone(), 5, 0, &mut all);
        // From the second frame on, and one frame that no output reads.
        let width = case.conv.width_in();
        let mut some = vec![f32::NAN; case.x.len()];
        (row.conv_input_gradient)(&case.weights(), &mut spread.clone(), 5, 1, &mut some);
        assert_eq!(some[..all.len() - width], all[width..], "{}", row.name);
        assert!(some[all.len() - width..].iter().all(|&g| g == 0.0), "{}", row.name);
    }
}

#[test]
fn frequencies_and_frames_count_as_in_the_front_end() {
    let first = Conv { n_freq: 123, ..front_end(1, 64) };
    assert_eq!((first.n_freq_out(), first.width_out()), (62, 62 * 64));
    let second = Conv { n_freq: 62, pad_freq: [0, 1], ..front_end(64, 64) };
    assert_eq!((second.n_freq_out(), second.n_frames_read(75)), (31, 151));
    let spans: Vec<Span> = first.spans().collect();
    let expected = [(0..1, 1..3), (1..61, 0..3), (61..62, 0..2)];
    assert_eq!(spans, expected.map(|(freqs, taps)| Span { freqs, taps }));
}
