//! The smallest case of every operation with pointers in it, on every row: few enough operations for an interpreter
//! that checks each access (`cargo xtask deep miri`).

use srf_kernels::routing::variants::RoutingVariant;
use srf_kernels::routing::{self, GradientPaths, Packed, Router, Routing, Saved, Utterance, UtteranceBack, Workspace};
use srf_kernels::{Branch, Conv, ConvWeights, DenseWeights, Dropout, Element, Kernels};

/// Numbers from -1 to 1 with no pattern that matters.
fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}

/// Runs `compute` on every row and compares with the first, the definition; sums have at most a hundred terms.
fn same_on_all_rows(what: &str, compute: impl Fn(&Kernels<f32>) -> Vec<f32>) {
    let expected = compute(&f32::rows()[0]);
    for row in &f32::rows()[1..] {
        for (found, expected) in compute(row).iter().zip(&expected) {
            assert!(
                (found - expected).abs() < 1e-4 * (1.0 + expected.abs()),
                "{what}, {}: {found} {expected}",
                row.name
            );
        }
    }
}

const ROUTING: Routing = Routing {
    n_in: 6,
    n_out: 18,
    depth_in: 5,
    depth_out: 3,
    stride: 15,
    n_iterations: 1,
    is_sequential: true,
    has_padding_class: true,
};

#[test]
fn routing_forward_and_backward() {
    for (n_iterations, lengths) in [(1, &[2][..]), (2, &[1]), (1, &[2, 1])] {
        let routing = Routing { n_iterations, ..ROUTING };
        let n_biases = routing.n_in * routing.output_len();
        let mut packed = Packed::new(&routing);
        packed.pack(&routing, &wave(n_biases * routing.depth_in, 0.7), &wave(n_biases, 0.3));
        let inputs: Vec<_> = lengths.iter().map(|&n| wave(routing.inputs_len(n), 0.9)).collect();
        same_on_all_rows("routing", |row| {
            let each = |len: &dyn Fn(usize) -> usize| lengths.iter().map(|&n| vec![0.0; len(n)]).collect::<Vec<_>>();
            let mut outputs = each(&|n| n * routing.output_len());
            let mut saved = each(&|n| Saved::len(&routing, n));
            let mut d_inputs = each(&|n| routing.inputs_len(n));
            let d_outputs: Vec<_> = outputs.iter().map(|outputs| wave(outputs.len(), 0.4)).collect();
            let mut workspace = Workspace::new();
            let utterances = outputs.iter_mut().zip(&mut saved).enumerate();
            let utterances = utterances.map(|(u, (outputs, saved))| {
                let (n_slices, inputs) = (lengths[u], &inputs[u]);
                Utterance { n_slices, inputs, state: &[], outputs, saved, tap: None }
            });
            (row.routing_forward)(&routing, &packed, &mut utterances.collect::<Vec<_>>(), &mut workspace);
            let mut d_packed = Packed::new(&routing);
            let utterances = d_inputs.iter_mut().enumerate().map(|(u, d_inputs)| UtteranceBack {
                n_slices: lengths[u],
                inputs: &inputs[u],
                state: &[],
                outputs: &outputs[u],
                saved: &saved[u],
                d_outputs: &d_outputs[u],
                d_inputs,
            });
            let mut utterances: Vec<_> = utterances.collect();
            let paths = GradientPaths::FULL;
            (row.routing_backward)(&routing, &packed, paths, &mut utterances, &mut d_packed, &mut workspace);
            let (mut d_weights, mut d_biases) = (vec![0.0; n_biases * routing.depth_in], vec![0.0; n_biases]);
            d_packed.add_to(&routing, &mut d_weights, &mut d_biases);
            [outputs.concat(), d_inputs.concat(), d_weights, d_biases].concat()
        });
    }
}

#[test]
fn a_routing_variant_forward_and_backward() {
    let routing = Routing { n_in: 2, n_out: 3, depth_in: 2, depth_out: 2, stride: 4, ..ROUTING };
    let mut router = Router::<f32>::new(routing, Some(RoutingVariant::Em));
    let n_biases = routing.n_in * routing.output_len();
    router.pack(&wave(n_biases * routing.depth_in, 0.7), &wave(n_biases, 0.3), &wave(router.n_extra_params(), 0.2));
    let inputs = wave(routing.inputs_len(2), 0.9);
    let (mut outputs, mut saved) = (vec![0.0; 2 * routing.output_len()], vec![0.0; router.saved_len(2, true)]);
    let mut workspace = Workspace::new();
    let utterance =
        Utterance { n_slices: 2, inputs: &inputs, state: &[], outputs: &mut outputs, saved: &mut saved, tap: None };
    router.forward(&mut [utterance], &mut workspace);
    let (mut d_inputs, d_outputs) = (vec![0.0; inputs.len()], wave(outputs.len(), 0.4));
    let utterance = UtteranceBack {
        n_slices: 2,
        inputs: &inputs,
        state: &[],
        outputs: &outputs,
        saved: &saved,
        d_outputs: &d_outputs,
        d_inputs: &mut d_inputs,
    };
    let mut gradient = router.new_gradient();
    router.backward(GradientPaths::FULL, &mut [utterance], &mut gradient, &mut workspace);
    assert!(d_inputs.iter().all(|d| d.is_finite()) && d_inputs.iter().any(|&d| d != 0.0));
}

#[test]
fn routing_without_slices_is_nothing() {
    let mut packed = Packed::<f32>::new(&ROUTING);
    let mut workspace = Workspace::new();
    routing::forward(&ROUTING, &packed.clone(), &mut [], &mut workspace);
    routing::backward(&ROUTING, &packed.clone(), GradientPaths::FULL, &mut [], &mut packed, &mut workspace);
}

/// One channel, whose input gradient is scattered, and seventeen, where it is gathered.
#[test]
fn convolution_forward_and_backward() {
    for n_channels in [1, 17] {
        let conv = Conv { kernel: [2, 3], stride: [1, 2], n_freq: 3, pad_freq: [1, 1], n_channels, n_filters: 9 };
        let (n_frames, n_taps) = (2, 6 * n_channels);
        let kernels = [0.1, 0.2].map(|step| wave(n_taps * conv.n_filters, step));
        let bias = wave(conv.n_filters, 0.6);
        let branches = [0, 1].map(|i| Branch { kernel: &kernels[i], bias: Some(&bias) });
        let mut weights = ConvWeights::new(conv);
        weights.pack(branches);
        weights.pack_backward(branches);
        let x = wave(conv.n_frames_read(n_frames) * conv.width_in(), 0.3);
        same_on_all_rows("convolution", |row| {
            let mut out = vec![0.0; n_frames * conv.width_out()];
            let mut choices = vec![0; out.len()];
            let dropout = Dropout::new(0.2, 1, 2, 3);
            (row.conv_forward)(&weights, &x, dropout, &mut out, &mut choices);
            let mut spread = vec![0.0; conv.n_spread(n_frames)];
            (row.conv_spread)(&conv, dropout, &wave(out.len(), 0.8), &choices, &mut spread);
            let (mut d_weights, mut d_x) = (vec![0.0; conv.n_gradient()], vec![0.0; x.len()]);
            (row.conv_weight_gradient)(&conv, &x, &spread, n_frames, &mut d_weights);
            (row.conv_input_gradient)(&weights, &mut spread, n_frames, 0, &mut d_x);
            [out, d_weights, d_x].concat()
        });
    }
}

#[test]
fn dense_lstm_and_attention() {
    let (n_in, n_out) = (5, 18);
    let mut weights = DenseWeights::new(n_in, n_out);
    weights.pack(&wave(n_in * n_out, 0.1), Some(&wave(n_out, 0.2)));
    same_on_all_rows("dense", |row| {
        let mut y = vec![0.0; 7 * n_out];
        (row.dense_forward)(&weights, &wave(7 * n_in, 0.3), &mut y);
        y
    });
    let n = 11;
    same_on_all_rows("lstm", |row| {
        let (mut gates, before) = (wave(4 * n, 0.5), wave(n, 0.7));
        let (mut cells, mut outputs) = (vec![0.0; n], vec![0.0; n]);
        (row.lstm_forward)(&mut gates, &wave(4 * n, 0.2), &before, &mut cells, &mut outputs);
        let mut d_cells = wave(n, 0.9);
        (row.lstm_backward)(&mut gates, &before, &cells, &outputs, &mut d_cells);
        [gates, cells, outputs, d_cells].concat()
    });
    same_on_all_rows("attention", |row| {
        let (mut weights, mut d_row) = (wave(n, 0.4), wave(n, 0.8));
        (row.attention_forward)(&mut weights, 0.5, &wave(n, 0.1));
        (row.attention_backward)(&weights, 0.5, &mut d_row);
        [weights, d_row].concat()
    });
}
