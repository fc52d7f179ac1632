//! One suite for every row: finite differences for the definition, the definition for the rows, and the invariances.

use super::{GradientPaths, Packed, Routing, Saved, Tap, Utterance, UtteranceBack, Workspace};
use crate::tests::{Random, with_threads};
use crate::{Element, Kernels};

/// A layer, its weights, and utterances with the gradients of their outputs.
struct Case<E> {
    routing: Routing,
    weights: Vec<E>,
    biases: Vec<E>,
    packed: Packed<E>,
    lengths: Vec<usize>,
    inputs: Vec<Vec<E>>,
    states: Vec<Vec<E>>,
    d_outputs: Vec<Vec<E>>,
}

struct Forward<E> {
    outputs: Vec<Vec<E>>,
    saved: Vec<Vec<E>>,
    couplings: Vec<Vec<E>>,
    agreements: Vec<Vec<E>>,
}

/// Gradients.
struct Backward<E> {
    weights: Vec<E>,
    biases: Vec<E>,
    inputs: Vec<Vec<E>>,
}

impl<E: Element> Case<E> {
    fn new(random: &mut Random, routing: Routing, lengths: &[usize]) -> Self {
        let Routing { n_in, n_out, depth_in, depth_out, .. } = routing;
        let mut case = Self {
            routing,
            weights: random.numbers(n_in * n_out * depth_out * depth_in, 1.0),
            biases: random.numbers(n_in * n_out * depth_out, 0.5),
            packed: Packed::new(&routing),
            lengths: lengths.to_vec(),
            inputs: lengths.iter().map(|&n| random.numbers(routing.inputs_len(n), 1.0)).collect(),
            states: lengths.iter().map(|_| random.numbers(routing.output_len(), 0.5)).collect(),
            d_outputs: lengths.iter().map(|&n| random.numbers(n * routing.output_len(), 1.0)).collect(),
        };
        case.pack();
        case
    }

    fn pack(&mut self) {
        self.packed.pack(&self.routing, &self.weights, &self.biases);
    }

    /// The same case with some of its utterances only.
    fn only(&self, members: &[usize]) -> Self {
        let pick = |from: &[Vec<E>]| members.iter().map(|&m| from[m].clone()).collect();
        Self {
            routing: self.routing,
            weights: self.weights.clone(),
            biases: self.biases.clone(),
            packed: self.packed.clone(),
            lengths: members.iter().map(|&m| self.lengths[m]).collect(),
            inputs: pick(&self.inputs),
            states: pick(&self.states),
            d_outputs: pick(&self.d_outputs),
        }
    }

    fn forward(&self, row: &Kernels<E>) -> Forward<E> {
        let nan = |n: usize| vec![E::from_f64(f64::NAN); n];
        let each = |per_slice: usize| self.lengths.iter().map(|n| nan(n * per_slice)).collect::<Vec<_>>();
        let n_pairs = self.routing.n_in * self.routing.n_out;
        let mut result = Forward {
            outputs: each(self.routing.output_len()),
            saved: each(Saved::len(&self.routing, 1)),
            couplings: each(n_pairs),
            agreements: each(n_pairs),
        };
        let taps = result.couplings.iter_mut().zip(&mut result.agreements);
        let taps = taps.map(|(couplings, agreements)| Tap { couplings, agreements });
        let mut utterances: Vec<_> = result
            .outputs
            .iter_mut()
            .zip(&mut result.saved)
            .zip(taps)
            .enumerate()
            .map(|(n, ((outputs, saved), tap))| Utterance {
                n_slices: self.lengths[n],
                inputs: &self.inputs[n],
                state: &self.states[n],
                outputs,
                saved,
                tap: Some(tap),
            })
            .collect();
        (row.routing_forward)(&self.routing, &self.packed, &mut utterances, &mut Workspace::new());
        result
    }

    fn backward(&self, row: &Kernels<E>, forward: &Forward<E>, paths: GradientPaths) -> Backward<E> {
        let mut d_packed = Packed::new(&self.routing);
        let mut d_inputs: Vec<Vec<E>> = self.inputs.iter().map(|x| vec![E::from_f64(f64::NAN); x.len()]).collect();
        let mut utterances: Vec<_> = d_inputs
            .iter_mut()
            .enumerate()
            .map(|(n, d_inputs)| UtteranceBack {
                n_slices: self.lengths[n],
                inputs: &self.inputs[n],
                state: &self.states[n],
                outputs: &forward.outputs[n],
                saved: &forward.saved[n],
                d_outputs: &self.d_outputs[n],
                d_inputs,
            })
            .collect();
        let mut workspace = Workspace::new();
        (row.routing_backward)(&self.routing, &self.packed, paths, &mut utterances, &mut d_packed, &mut workspace);
        let mut result = Backward {
            weights: vec![E::ZERO; self.weights.len()],
            biases: vec![E::ZERO; self.biases.len()],
            inputs: d_inputs,
        };
        d_packed.add_to(&self.routing, &mut result.weights, &mut result.biases);
        result
    }

    /// The sum of outputs times their gradients: what `backward` differentiates.
    fn loss(&self) -> f64 {
        let forward = self.forward(&E::rows()[0]);
        let outputs = forward.outputs.iter().flatten().zip(self.d_outputs.iter().flatten());
        outputs.map(|(v, d)| v.to_f64() * d.to_f64()).sum()
    }
}

fn random_routing(random: &mut Random, is_sequential: bool, n_iterations: usize) -> Routing {
    let (height, window, depth_in) = (random.within(1, 7), random.within(1, 4), random.within(1, 9));
    Routing {
        n_in: height * window,
        n_out: random.within(2, 67),
        depth_in,
        depth_out: random.within(1, 9),
        stride: height * depth_in,
        n_iterations,
        is_sequential,
        has_padding_class: random.within(0, 1) == 1,
    }
}

/// Every combination worth a test, each with a shape and lengths of its own.
fn cases<E: Element>(seed: u64) -> Vec<Case<E>> {
    let mut random = Random::new(seed);
    let mut cases = Vec::new();
    for is_sequential in [true, false] {
        for n_iterations in [1, 2, 3] {
            for n_utterances in [1, 2, 6] {
                let routing = random_routing(&mut random, is_sequential, n_iterations);
                let lengths: Vec<usize> = (0..n_utterances).map(|_| random.within(0, 9)).collect();
                cases.push(Case::new(&mut random, routing, &lengths));
            }
        }
    }
    cases
}

/// The largest difference, relative to the largest value.
pub(super) fn error<A: Element, B: Element>(a: &[A], b: &[B]) -> f64 {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().map(|b| b.to_f64().abs()).fold(1e-6, f64::max);
    let worst = a.iter().zip(b).map(|(a, b)| (a.to_f64() - b.to_f64()).abs());
    // Not `f64::max`, which would pass over NaN.
    worst.fold(0.0, |worst: f64, e| if e > worst || e.is_nan() { e } else { worst }) / scale
}

#[test]
fn gradients_equal_finite_differences() {
    for mut case in cases::<f64>(1) {
        let row = &f64::rows()[0];
        let exact = case.backward(row, &case.forward(row), GradientPaths::FULL);
        let step = 1e-5;
        let mut check = |pick: &mut dyn FnMut(&mut Case<f64>) -> Option<&mut f64>, expected: f64| {
            let mut at = |by: f64| {
                *pick(&mut case).unwrap() += by;
                case.pack();
                case.loss()
            };
            let difference = (at(step) - at(-2.0 * step)) / (2.0 * step);
            at(step);
            // Central differences of a loss of size 10: the step squared, and rounding over the step.
            assert!((difference - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{difference} {expected}");
        };
        for n in (0..exact.weights.len()).step_by(1 + exact.weights.len() / 7) {
            check(&mut |case| case.weights.get_mut(n), exact.weights[n]);
        }
        for n in (0..exact.biases.len()).step_by(1 + exact.biases.len() / 5) {
            check(&mut |case| case.biases.get_mut(n), exact.biases[n]);
        }
        for (u, d_inputs) in exact.inputs.iter().enumerate() {
            for n in (0..d_inputs.len()).step_by(1 + d_inputs.len() / 5) {
                check(&mut |case| case.inputs[u].get_mut(n), d_inputs[n]);
            }
        }
    }
}

#[test]
fn every_row_equals_the_definition() {
    let all_paths = [
        GradientPaths::FULL,
        GradientPaths { through_iterations: false, through_time: true },
        GradientPaths { through_iterations: true, through_time: false },
    ];
    for seed in 0..8 {
        for case in cases::<f32>(100 + seed) {
            let exact = as_f64(&case);
            let definition = exact.forward(&f64::rows()[0]);
            for row in f32::rows() {
                let forward = case.forward(row);
                // Sums of some hundred products, each rounded at 6e-8, fed through some ten slices.
                for n in 0..case.lengths.len() {
                    let what = format!("{} {:?} utterance {n}", row.name, case.routing);
                    assert!(error(&forward.outputs[n], &definition.outputs[n]) < 2e-5, "outputs, {what}");
                    assert!(error(&forward.couplings[n], &definition.couplings[n]) < 2e-5, "couplings, {what}");
                    assert!(error(&forward.agreements[n], &definition.agreements[n]) < 2e-5, "agreements, {what}");
                }
                for paths in all_paths {
                    let expected = exact.backward(&f64::rows()[0], &definition, paths);
                    let found = case.backward(row, &forward, paths);
                    let what = format!("{} {paths:?} {:?}", row.name, case.routing);
                    assert!(error(&found.weights, &expected.weights) < 1e-4, "weights, {what}");
                    assert!(error(&found.biases, &expected.biases) < 1e-4, "biases, {what}");
                    for (found, expected) in found.inputs.iter().zip(&expected.inputs) {
                        assert!(error(found, expected) < 1e-4, "inputs, {what}");
                    }
                }
            }
        }
    }
}

fn as_f64(case: &Case<f32>) -> Case<f64> {
    let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let each = |v: &[Vec<f32>]| v.iter().map(|v| wide(v)).collect();
    let mut exact = Case {
        routing: case.routing,
        weights: wide(&case.weights),
        biases: wide(&case.biases),
        packed: Packed::new(&case.routing),
        lengths: case.lengths.clone(),
        inputs: each(&case.inputs),
        states: each(&case.states),
        d_outputs: each(&case.d_outputs),
    };
    exact.pack();
    exact
}

#[test]
fn an_utterance_alone_equals_itself_in_a_batch_bit_for_bit() {
    for case in cases::<f32>(7).into_iter().filter(|case| case.lengths.len() > 1) {
        for row in f32::rows() {
            let together = case.forward(row);
            let back = case.backward(row, &together, GradientPaths::FULL);
            for n in 0..case.lengths.len() {
                let single = case.only(&[n]);
                let alone = single.forward(row);
                assert_eq!(alone.outputs[0], together.outputs[n], "{} {:?}", row.name, case.routing);
                assert_eq!(alone.couplings[0], together.couplings[n], "{} {:?}", row.name, case.routing);
                let alone = single.backward(row, &alone, GradientPaths::FULL);
                assert_eq!(alone.inputs[0], back.inputs[n], "{} {:?}", row.name, case.routing);
            }
        }
    }
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "there is one thread only")]
fn one_thread_and_many_give_the_same_bits() {
    let with_threads = |n: usize, case: &Case<f32>, row: &Kernels<f32>| {
        with_threads(n, || {
            let forward = case.forward(row);
            let backward = case.backward(row, &forward, GradientPaths::FULL);
            (forward.outputs, backward.weights, backward.biases, backward.inputs)
        })
    };
    for case in cases::<f32>(9) {
        for row in f32::rows() {
            let one = with_threads(1, &case, row);
            for n in [2, 5] {
                assert!(one == with_threads(n, &case, row), "{} with {n} threads, {:?}", row.name, case.routing);
            }
        }
    }
}

#[test]
fn a_sequence_cut_anywhere_gives_the_same_bits() {
    for case in cases::<f32>(11).into_iter().filter(|case| case.lengths.len() == 1 && case.lengths[0] > 1) {
        for row in f32::rows() {
            let whole = case.forward(row).outputs.remove(0);
            for cut in 1..case.lengths[0] {
                let (stride, width) = (case.routing.stride, case.routing.output_len());
                let mut first = case.only(&[0]);
                first.lengths[0] = cut;
                first.inputs[0].truncate(case.routing.inputs_len(cut));
                let mut pieces = first.forward(row).outputs.remove(0);
                let mut second = case.only(&[0]);
                second.lengths[0] -= cut;
                second.inputs[0].drain(..cut * stride);
                second.states[0] = pieces[(cut - 1) * width..].to_vec();
                pieces.extend(second.forward(row).outputs.remove(0));
                assert_eq!(whole, pieces, "{} cut at {cut}, {:?}", row.name, case.routing);
            }
        }
    }
}

#[test]
fn couplings_of_an_input_sum_to_one_and_the_padding_class_gets_none() {
    for case in cases::<f32>(13) {
        for row in f32::rows() {
            for couplings in case.forward(row).couplings.iter().flat_map(|c| c.chunks(case.routing.n_out)) {
                // A sum of up to 67 numbers, each rounded at 6e-8.
                assert!((couplings.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{}", row.name);
                assert!(!case.routing.has_padding_class || couplings[0] == 0.0, "{}", row.name);
            }
        }
    }
}

#[test]
fn very_large_votes_give_finite_results() {
    for mut case in cases::<f32>(17) {
        case.weights.iter_mut().for_each(|w| *w *= 1e4);
        case.pack();
        for row in f32::rows() {
            let forward = case.forward(row);
            let backward = case.backward(row, &forward, GradientPaths::FULL);
            assert!(forward.outputs.iter().flatten().all(|v| v.is_finite()), "{}", row.name);
            assert!(backward.weights.iter().all(|v| v.is_finite()), "{}", row.name);
        }
    }
}

/// Its kernels write through pointers, so another size must be refused before they run, on every row.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "a panic ends the program")]
fn weights_and_gradients_of_another_layer_are_refused() {
    let case = cases::<f32>(19).into_iter().find(|case| case.lengths.iter().any(|&n| n > 0)).unwrap();
    let smaller = Packed::new(&Routing { n_in: case.routing.n_in - case.routing.n_in / 2, n_out: 1, ..case.routing });
    let zeros = |values: &[Vec<f32>]| values.iter().map(|values| vec![0.0; values.len()]).collect::<Vec<_>>();
    for row in f32::rows() {
        let forward = case.forward(row);
        let mut d_inputs = zeros(&case.inputs);
        let backward = |packed: &Packed<f32>, mut d_packed: Packed<f32>, d_inputs: &mut [Vec<f32>]| {
            let utterances = d_inputs.iter_mut().enumerate().map(|(n, d_inputs)| UtteranceBack {
                n_slices: case.lengths[n],
                inputs: &case.inputs[n],
                state: &case.states[n],
                outputs: &forward.outputs[n],
                saved: &forward.saved[n],
                d_outputs: &case.d_outputs[n],
                d_inputs,
            });
            let mut utterances: Vec<_> = utterances.collect();
            let (paths, mut workspace) = (GradientPaths::FULL, Workspace::new());
            (row.routing_backward)(&case.routing, packed, paths, &mut utterances, &mut d_packed, &mut workspace);
        };
        let fails = |run: &mut dyn FnMut()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
        assert!(!fails(&mut || backward(&case.packed, Packed::new(&case.routing), &mut d_inputs)), "{}", row.name);
        assert!(fails(&mut || backward(&case.packed, smaller.clone(), &mut d_inputs)), "{}", row.name);
        assert!(fails(&mut || backward(&smaller, Packed::new(&case.routing), &mut d_inputs)), "{}", row.name);
    }
}
