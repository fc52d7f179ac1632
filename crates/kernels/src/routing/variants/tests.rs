//! One suite for every variant and every row: plain loops, finite differences, and the invariances.

mod oracle;

use super::*;
use crate::Kernels;
use crate::check::{dot, gradient_error};
use crate::routing::Tap;
use crate::routing::tests::error;
use crate::tests::{Random, with_threads};

/// A layer with its parameters, and utterances with the gradients of their outputs.
#[derive(Clone)]
struct Case<E> {
    routing: Routing,
    variant: RoutingVariant,
    weights: Vec<E>,
    biases: Vec<E>,
    extra: Vec<E>,
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
    extra: Vec<E>,
    inputs: Vec<Vec<E>>,
}

impl<E: Element> Case<E> {
    fn new(random: &mut Random, routing: Routing, variant: RoutingVariant, lengths: &[usize]) -> Self {
        let Routing { n_in, n_out, depth_in, depth_out, .. } = routing;
        Self {
            routing,
            variant,
            weights: random.numbers(n_in * n_out * depth_out * depth_in, 1.0),
            biases: random.numbers(n_in * n_out * depth_out, 0.5),
            extra: random.numbers(variant.n_extra_rows(&routing) * n_out, 0.8),
            lengths: lengths.to_vec(),
            inputs: lengths.iter().map(|&n| random.numbers(routing.inputs_len(n), 1.0)).collect(),
            states: vec![Vec::new(); lengths.len()],
            d_outputs: lengths.iter().map(|&n| random.numbers(n * routing.output_len(), 1.0)).collect(),
        }
    }

    /// The same case with some of its utterances only.
    fn only(&self, members: &[usize]) -> Self {
        let pick = |from: &[Vec<E>]| members.iter().map(|&m| from[m].clone()).collect();
        Self {
            lengths: members.iter().map(|&m| self.lengths[m]).collect(),
            inputs: pick(&self.inputs),
            states: pick(&self.states),
            d_outputs: pick(&self.d_outputs),
            ..self.clone()
        }
    }

    fn packed(&self) -> (Packed<E>, Buffer<E>) {
        let (mut packed, mut extra) = (Packed::new(&self.routing), Buffer::new());
        packed.pack(&self.routing, &self.weights, &self.biases);
        pack_extra(&self.routing, &self.extra, &mut extra);
        (packed, extra)
    }

    fn lanes(&self) -> Workspace<E> {
        let mut workspace = Workspace::new();
        workspace.prepare_lanes(&self.routing);
        workspace
    }

    /// By one row of the table, utterance after utterance.
    fn forward(&self, row: &Kernels<E>) -> Forward<E> {
        let nan = |n: usize| vec![E::from_f64(f64::NAN); n];
        let each = |per_slice: usize| self.lengths.iter().map(|n| nan(n * per_slice)).collect::<Vec<_>>();
        let n_pairs = self.routing.n_in * self.routing.n_out;
        let mut result = Forward {
            outputs: each(self.routing.output_len()),
            saved: each(self.variant.state_len(&self.routing)),
            couplings: each(n_pairs),
            agreements: each(n_pairs),
        };
        let ((packed, extra), lanes) = (self.packed(), self.lanes());
        let layer = Layer::new(&self.routing, self.variant, &packed, &extra, [&lanes.start, &lanes.valid]);
        let mut scratch = Scratch::default();
        for n in 0..self.lengths.len() {
            let tap = Tap { couplings: &mut result.couplings[n], agreements: &mut result.agreements[n] };
            let mut utterance = Utterance {
                n_slices: self.lengths[n],
                inputs: &self.inputs[n],
                state: &self.states[n],
                outputs: &mut result.outputs[n],
                saved: &mut result.saved[n],
                tap: Some(tap),
            };
            (row.variant_forward)(&layer, &mut utterance, &mut scratch);
        }
        result
    }

    /// By the fastest row, as users call it.
    fn backward(&self, forward: &Forward<E>, paths: GradientPaths) -> Backward<E> {
        let (packed, extra) = self.packed();
        let (mut d_packed, mut d_extra) = (Packed::new(&self.routing), Buffer::new());
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
        let workspace = &mut Workspace::new();
        let (routing, variant) = (&self.routing, self.variant);
        backward(routing, variant, &packed, &extra, paths, &mut utterances, (&mut d_packed, &mut d_extra), workspace);
        let zeros = |like: &[E]| vec![E::ZERO; like.len()];
        let [mut weights, mut biases, mut extra] = [&self.weights, &self.biases, &self.extra].map(|like| zeros(like));
        d_packed.add_to(routing, &mut weights, &mut biases);
        add_extra(routing, &d_extra, &mut extra);
        Backward { weights, biases, extra, inputs: d_inputs }
    }
}

impl Case<f64> {
    /// All that gradients are checked of, one after another.
    fn values(&self) -> Vec<f64> {
        [&self.weights, &self.biases, &self.extra].into_iter().chain(&self.inputs).flatten().copied().collect()
    }

    fn set(&mut self, mut values: &[f64]) {
        for part in [&mut self.weights, &mut self.biases, &mut self.extra].into_iter().chain(&mut self.inputs) {
            let (some, rest) = values.split_at(part.len());
            part.copy_from_slice(some);
            values = rest;
        }
    }

    /// The sum of outputs times their gradients: what `backward` differentiates.
    fn loss(&self) -> f64 {
        let outputs = self.forward(&f64::rows()[0]).outputs;
        outputs.iter().zip(&self.d_outputs).map(|(v, d)| dot(v, d)).sum()
    }
}

const PLAIN: Dynamic = Dynamic::PLAIN;

/// Every variant in every form, and whether it repeats.
fn variants() -> Vec<(RoutingVariant, bool)> {
    let min_max = Dynamic { normalizer: Normalizer::MinMax, ..PLAIN };
    let entropy = Dynamic { entropy: Some(0.7), ..PLAIN };
    let learned = Dynamic { learns_start: true, ..PLAIN };
    let dynamic = [
        PLAIN,
        min_max,
        entropy,
        learned,
        Dynamic { learns_start: true, ..min_max },
        Dynamic { learns_start: true, ..entropy },
    ];
    let mut members: Vec<(RoutingVariant, bool)> =
        dynamic.map(|options| (RoutingVariant::Dynamic(options), true)).to_vec();
    members.extend([(RoutingVariant::SelfRouting, false), (RoutingVariant::Em, true)]);
    members.extend([true, false].map(|keeps_lengths| (RoutingVariant::Inverted { keeps_lengths }, true)));
    members
}

/// Every variant at shapes of its own, with one iteration and with three.
fn cases<E: Element>(seed: u64, most_out: usize, lengths: &[usize]) -> Vec<Case<E>> {
    let mut random = Random::new(seed);
    let mut cases = Vec::new();
    for (variant, repeats) in variants() {
        for n_iterations in if repeats { vec![1, 3] } else { vec![1] } {
            let (height, window, depth_in) = (random.within(1, 4), random.within(1, 3), random.within(1, 5));
            let routing = Routing {
                n_in: height * window,
                n_out: random.within(3, most_out),
                depth_in,
                depth_out: random.within(2, 6),
                stride: height * depth_in,
                n_iterations,
                is_sequential: !matches!(variant, RoutingVariant::Dynamic(_)) || random.within(0, 2) > 0,
                has_padding_class: random.within(0, 1) == 1,
            };
            cases.push(Case::new(&mut random, routing, variant, lengths));
        }
    }
    cases
}

fn as_f64(case: &Case<f32>) -> Case<f64> {
    let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let each = |v: &[Vec<f32>]| v.iter().map(|v| wide(v)).collect();
    Case {
        routing: case.routing,
        variant: case.variant,
        weights: wide(&case.weights),
        biases: wide(&case.biases),
        extra: wide(&case.extra),
        lengths: case.lengths.clone(),
        inputs: each(&case.inputs),
        states: each(&case.states),
        d_outputs: each(&case.d_outputs),
    }
}

#[test]
fn every_member_is_what_its_equations_say() {
    for case in cases::<f64>(3, 20, &[6, 0, 1]) {
        let found = case.forward(&f64::rows()[0]);
        for n in 0..case.lengths.len() {
            let (outputs, couplings) = oracle::route(&case, n);
            let what = format!("{:?} {:?}", case.variant, case.routing);
            // Some hundred products of numbers near 1, in another order.
            assert!(error(&found.outputs[n], &outputs) < 1e-11, "outputs of {what}");
            assert!(error(&found.couplings[n], &couplings) < 1e-11, "couplings of {what}");
        }
    }
}

#[test]
fn plain_dynamic_routing_equals_the_fused_kernels() {
    let plain = |case: &Case<f64>| case.variant == RoutingVariant::Dynamic(PLAIN);
    for case in cases::<f64>(5, 20, &[5]).into_iter().filter(plain) {
        let mut outputs = vec![0.0; 5 * case.routing.output_len()];
        let utterance = Utterance {
            n_slices: 5,
            inputs: &case.inputs[0],
            state: &[],
            outputs: &mut outputs,
            saved: &mut [],
            tap: None,
        };
        crate::routing::forward(&case.routing, &case.packed().0, &mut [utterance], &mut Workspace::new());
        assert!(error(&case.forward(&f64::rows()[0]).outputs[0], &outputs) < 1e-12, "{:?}", case.routing);
    }
}

#[test]
fn gradients_equal_finite_differences() {
    for case in cases::<f64>(7, 5, &[3, 0, 2]) {
        let exact = case.backward(&case.forward(&f64::rows()[0]), GradientPaths::FULL);
        let slopes: Vec<f64> =
            [&exact.weights, &exact.biases, &exact.extra].into_iter().chain(&exact.inputs).flatten().copied().collect();
        let mut moved = case.clone();
        let error = gradient_error(&case.values(), &slopes, |values| {
            moved.set(values);
            moved.loss()
        });
        assert!(error < 1e-8, "{error:e}: {:?} {:?}", case.variant, case.routing);
    }
}

#[test]
fn every_row_equals_the_definition() {
    for seed in 0..3 {
        for case in cases::<f32>(100 + seed, 37, &[7, 2]) {
            let definition = as_f64(&case).forward(&f64::rows()[0]);
            for row in f32::rows() {
                let forward = case.forward(row);
                for n in 0..case.lengths.len() {
                    let what = format!("{} {:?} {:?}", row.name, case.variant, case.routing);
                    // Sums of some hundred products, each rounded at 6e-8, fed through some ten slices; min-max has
                    // steep slopes.
                    assert!(error(&forward.outputs[n], &definition.outputs[n]) < 2e-4, "outputs, {what}");
                    assert!(error(&forward.couplings[n], &definition.couplings[n]) < 2e-4, "couplings, {what}");
                }
            }
            let expected = as_f64(&case).backward(&definition, GradientPaths::FULL);
            let found = case.backward(&case.forward(f32::kernels()), GradientPaths::FULL);
            let what = format!("{:?} {:?}", case.variant, case.routing);
            assert!(error(&found.weights, &expected.weights) < 1e-3, "weights, {what}");
            assert!(error(&found.biases, &expected.biases) < 1e-3, "biases, {what}");
            assert!(case.extra.is_empty() || error(&found.extra, &expected.extra) < 1e-3, "own rows, {what}");
        }
    }
}

#[test]
fn an_utterance_alone_equals_itself_in_a_batch_bit_for_bit_with_any_number_of_threads() {
    let with_threads = |n: usize, case: &Case<f32>| {
        with_threads(n, || case.backward(&case.forward(f32::kernels()), GradientPaths::FULL))
    };
    let lengths: Vec<usize> = (0..19).map(|n| n % 6).collect();
    for case in cases::<f32>(11, 20, &lengths) {
        let one = with_threads(1, &case);
        let many = with_threads(3, &case);
        assert!(
            one.weights == many.weights && one.biases == many.biases && one.extra == many.extra,
            "{:?}",
            case.variant
        );
        assert_eq!(one.inputs, many.inputs, "{:?}", case.variant);
        for n in [0, 5, 18] {
            let alone = with_threads(1, &case.only(&[n]));
            assert_eq!(alone.inputs[0], one.inputs[n], "{:?}", case.variant);
        }
    }
}

#[test]
fn a_sequence_cut_anywhere_gives_the_same_bits() {
    for case in cases::<f32>(13, 20, &[9]) {
        for row in f32::rows() {
            let whole = case.forward(row).outputs.remove(0);
            for cut in 1..9 {
                let (mut first, mut second) = (case.only(&[0]), case.only(&[0]));
                first.lengths[0] = cut;
                first.inputs[0].truncate(case.routing.inputs_len(cut));
                let before = first.forward(row);
                second.lengths[0] -= cut;
                second.inputs[0].drain(..cut * case.routing.stride);
                let state_len = case.variant.state_len(&case.routing);
                second.states[0] = before.saved[0][(cut - 1) * state_len..].to_vec();
                let pieces = [&before.outputs[0][..], &second.forward(row).outputs[0]].concat();
                assert_eq!(whole, pieces, "{} cut at {cut}, {:?}", row.name, case.variant);
            }
        }
    }
}

#[test]
fn couplings_of_an_input_sum_to_one_and_the_padding_class_gets_none() {
    for case in cases::<f32>(17, 37, &[8]) {
        for row in f32::rows() {
            for couplings in case.forward(row).couplings[0].chunks(case.routing.n_out) {
                // A sum of up to 37 numbers, each rounded at 6e-8.
                assert!((couplings.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{} {:?}", row.name, case.variant);
                assert!(!case.routing.has_padding_class || couplings[0] == 0.0, "{} {:?}", row.name, case.variant);
            }
        }
    }
}

#[test]
fn the_first_slice_of_em_and_of_attention_is_routed_equally() {
    for case in cases::<f64>(19, 20, &[2]) {
        if matches!(case.variant, RoutingVariant::Em | RoutingVariant::Inverted { .. })
            && case.routing.n_iterations == 1
        {
            let couplings = &case.forward(&f64::rows()[0]).couplings[0];
            let n_classes = case.routing.n_out - usize::from(case.routing.has_padding_class);
            let n_pairs = case.routing.n_in * case.routing.n_out;
            let is_equal = |c: &f64| *c == 0.0 || (c * n_classes as f64 - 1.0).abs() < 1e-12;
            assert!(couplings[..n_pairs].iter().all(is_equal), "{:?}", case.variant);
            assert!(!couplings[n_pairs..].iter().all(is_equal), "{:?}", case.variant);
        }
    }
}

#[test]
fn gradients_pass_where_they_may() {
    for case in cases::<f64>(23, 8, &[4]) {
        let forward = case.forward(&f64::rows()[0]);
        let weights = |through_iterations: bool, through_time: bool| {
            case.backward(&forward, GradientPaths { through_iterations, through_time }).weights
        };
        let full = weights(true, true);
        let what = format!("{:?} {:?}", case.variant, case.routing);
        assert_eq!(weights(true, false) != full, case.routing.is_sequential, "in time: {what}");
        assert_eq!(weights(false, true) != full, case.routing.n_iterations > 1, "through iterations: {what}");
    }
}

#[test]
fn very_large_votes_give_finite_results() {
    for mut case in cases::<f32>(29, 20, &[5]) {
        case.weights.iter_mut().for_each(|w| *w *= 1e4);
        let forward = case.forward(f32::kernels());
        let backward = case.backward(&forward, GradientPaths::FULL);
        assert!(forward.outputs.iter().flatten().all(|v| v.is_finite()), "{:?}", case.variant);
        assert!(backward.weights.iter().all(|v| v.is_finite()), "{:?}", case.variant);
    }
}
