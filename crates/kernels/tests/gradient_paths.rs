//! Gradients that may not pass everywhere, against full gradients of shorter problems: what must not be passed through
//! is a constant there.
//!
//! Full gradients are held against finite differences, so these are too.

use srf_kernels::routing::{self, GradientPaths, Packed, Routing, Saved, Utterance, UtteranceBack, Workspace};

const ROUTING: Routing = Routing {
    n_in: 6,
    n_out: 5,
    depth_in: 3,
    depth_out: 2,
    stride: 9,
    n_iterations: 1,
    is_sequential: true,
    has_padding_class: true,
};
const N_SLICES: usize = 4;

/// A layer's weights, one utterance and the gradient of its outputs.
struct Case {
    weights: Vec<f64>,
    biases: Vec<f64>,
    inputs: Vec<f64>,
    d_outputs: Vec<f64>,
}

/// Gradients of weights, biases and inputs.
#[derive(Clone)]
struct Gradient([Vec<f64>; 3]);

fn wave(n: usize, pace: f64) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * pace).sin()).collect()
}

impl Case {
    fn new() -> Self {
        let n_biases = ROUTING.n_in * ROUTING.n_out * ROUTING.depth_out;
        Self {
            weights: wave(n_biases * ROUTING.depth_in, 0.71),
            biases: wave(n_biases, 1.3),
            inputs: wave(ROUTING.inputs_len(N_SLICES), 2.1),
            d_outputs: wave(N_SLICES * ROUTING.output_len(), 1.7),
        }
    }

    /// Outputs and gradients of slices `from..to`, the first of which starts from `state`.
    fn run(
        &self,
        routing: Routing,
        paths: GradientPaths,
        from: usize,
        to: usize,
        state: &[f64],
    ) -> (Vec<f64>, Gradient) {
        let n_slices = to - from;
        let mut packed = Packed::new(&routing);
        packed.pack(&routing, &self.weights, &self.biases);
        let inputs = &self.inputs[from * routing.stride..][..routing.inputs_len(n_slices)];
        let mut outputs = vec![0.0; n_slices * routing.output_len()];
        let mut saved = vec![0.0; Saved::len(&routing, n_slices)];
        let mut workspace = Workspace::new();
        let forward = Utterance { n_slices, inputs, state, outputs: &mut outputs, saved: &mut saved, tap: None };
        routing::forward(&routing, &packed, &mut [forward], &mut workspace);
        let mut gradient = self.zeros();
        let [d_weights, d_biases, all_d_inputs] = &mut gradient.0;
        let d_inputs = &mut all_d_inputs[from * routing.stride..][..inputs.len()];
        let d_outputs = &self.d_outputs[from * routing.output_len()..to * routing.output_len()];
        let (outputs_seen, saved) = (&outputs, &saved);
        let back = UtteranceBack { n_slices, inputs, state, outputs: outputs_seen, saved, d_outputs, d_inputs };
        let mut d_packed = Packed::new(&routing);
        routing::backward(&routing, &packed, paths, &mut [back], &mut d_packed, &mut workspace);
        d_packed.add_to(&routing, d_weights, d_biases);
        (outputs, gradient)
    }

    fn zeros(&self) -> Gradient {
        Gradient([&self.weights, &self.biases, &self.inputs].map(|values| vec![0.0; values.len()]))
    }

    /// The sum of the full gradients of single slices, slice t starting from `states[t]`.
    fn by_slices(&self, routing: Routing, states: &[Vec<f64>]) -> Gradient {
        let mut total = self.zeros();
        for (t, state) in states.iter().enumerate() {
            let (_, Gradient(parts)) = self.run(routing, GradientPaths::FULL, t, t + 1, state);
            for (total, part) in total.0.iter_mut().zip(parts) {
                total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
        }
        total
    }
}

/// Sums of some hundred terms near 1, in another order.
fn assert_same(Gradient(found): &Gradient, Gradient(expected): &Gradient) {
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

fn differ(Gradient(a): &Gradient, Gradient(b): &Gradient) -> bool {
    a.iter().flatten().zip(b.iter().flatten()).any(|(a, b)| (a - b).abs() > 1e-3)
}

#[test]
fn not_through_time_the_slice_before_is_a_constant() {
    let case = Case::new();
    for n_iterations in [1, 2, 3] {
        let routing = Routing { n_iterations, ..ROUTING };
        let paths = GradientPaths { through_iterations: true, through_time: false };
        let (outputs, found) = case.run(routing, paths, 0, N_SLICES, &[]);
        let zero = vec![0.0; routing.output_len()];
        let states: Vec<Vec<f64>> = std::iter::once(zero)
            .chain(outputs.chunks(routing.output_len()).map(<[f64]>::to_vec))
            .take(N_SLICES)
            .collect();
        assert_same(&found, &case.by_slices(routing, &states));
        let (_, full) = case.run(routing, GradientPaths::FULL, 0, N_SLICES, &[]);
        assert!(differ(&found, &full), "{n_iterations} iterations: time carries a gradient worth leaving out");
    }
}

/// The second of two iterations of DR is one iteration from the outputs of the first.
#[test]
fn not_through_iterations_the_outputs_before_the_last_are_constants() {
    let case = Case::new();
    let twice = Routing { n_iterations: 2, is_sequential: false, ..ROUTING };
    let paths = GradientPaths { through_iterations: false, through_time: true };
    let (_, found) = case.run(twice, paths, 0, N_SLICES, &[]);
    let once = Routing { is_sequential: false, ..ROUTING };
    let (first_outputs, _) = case.run(once, GradientPaths::FULL, 0, N_SLICES, &[]);
    let states: Vec<Vec<f64>> = first_outputs.chunks(once.output_len()).map(<[f64]>::to_vec).collect();
    assert_same(&found, &case.by_slices(ROUTING, &states));
    let (_, full) = case.run(twice, GradientPaths::FULL, 0, N_SLICES, &[]);
    assert!(differ(&found, &full), "the first iteration carries a gradient worth leaving out");
}
