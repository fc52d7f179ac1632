//! Streams against streams in other pieces and against the network in training; what they may read, when they give
//! results and what they keep.

use proptest::prelude::*;

use super::*;
use crate::config::{ModelConfig, PerLayer, any_srf};
use crate::frames::Frames;
use crate::network::{Mode, Network};
use crate::params::{Layout, Params};
use crate::random::Random;

const FRAMES_PER_SLICE: usize = 4;

/// Random numbers in every tensor, drawn from a seed.
fn parameters(config: &SrfConfig, seed: u64) -> Vec<f32> {
    let layout = Arc::new(Layout::new(&ModelConfig::Srf(config.clone())));
    let mut values = Params::<f32>::initialize(layout, seed).values;
    let mut random = Random::new(seed, "tests of streams");
    for value in &mut values {
        *value += (0.4 * random.uniform() - 0.2) as f32;
    }
    values
}

fn network(config: &SrfConfig, seed: u64) -> Arc<StreamingSrf<f32>> {
    Arc::new(StreamingSrf::new(config, &parameters(config, seed)))
}

fn speech(config: &SrfConfig, seed: u64, n_frames: usize) -> Vec<f32> {
    let mut random = Random::new(seed, "speech");
    (0..n_frames * config.features).map(|_| random.normal() as f32).collect()
}

/// The log-probabilities of `frames`, fed in pieces of these sizes and the rest at once; before and after the end.
fn log_probs_of(stream: &mut SrfStream<f32>, frames: &[f32], pieces: &[usize]) -> [Vec<f32>; 2] {
    let width = stream.net.config.features;
    let (mut early, mut rest) = (Vec::new(), frames);
    for &n_frames in pieces {
        let (piece, others) = rest.split_at((n_frames * width).min(rest.len()));
        stream.accept(piece, &mut early);
        rest = others;
    }
    stream.accept(rest, &mut early);
    let mut late = Vec::new();
    stream.finish(&mut late);
    [early, late]
}

fn all_log_probs(stream: &mut SrfStream<f32>, frames: &[f32], pieces: &[usize]) -> Vec<f32> {
    log_probs_of(stream, frames, pieces).concat()
}

/// Bits, so that a NaN equals itself and zero has a sign.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Frames after its first one that a slice waits for; filterbanks' deltas come on top.
fn look_ahead_frames(config: &SrfConfig) -> usize {
    7 + FRAMES_PER_SLICE * config.capsule_shapes().map(|shape| shape.window_right).sum::<usize>()
}

/// Slices that `n_frames` suffice for: the last of them is the largest t with 4 t + look-ahead < n.
fn n_slices_ready(config: &SrfConfig, n_frames: usize) -> usize {
    n_frames.saturating_sub(look_ahead_frames(config)).div_ceil(FRAMES_PER_SLICE)
}

/// Networks with several blocks of capsules and filters, at the depths that have code of their own.
fn wide_srf() -> impl Strategy<Value = SrfConfig> {
    (any_srf(), 17_usize..36, 15_usize..34, prop_oneof![Just(8_usize), Just(16), Just(5)]).prop_map(
        |(config, height, classes, depth)| SrfConfig {
            classes,
            filters: height,
            layers: config.layers.min(2),
            hidden_height: PerLayer::Same(height),
            hidden_depth: PerLayer::Same(depth),
            primary_depth: depth,
            class_depth: depth,
            window_left: PerLayer::Same(config.window_left.at(0)),
            window_right: PerLayer::Same(config.window_right.at(0)),
            ..config
        },
    )
}

fn any_size() -> impl Strategy<Value = SrfConfig> {
    prop_oneof![3 => any_srf(), 1 => wide_srf()]
}

proptest! {
    #[test]
    fn any_pieces_give_the_same_bits_which_are_those_of_the_network_in_inference(
        config in any_size(), n_frames in 0_usize..=70, seed in 0_u64..1000,
        pieces in prop::collection::vec(0_usize..20, 0..12),
    ) {
        let values = parameters(&config, seed);
        let net = Arc::new(StreamingSrf::new(&config, &values));
        let frames = speech(&config, seed, n_frames);
        let at_once = all_log_probs(&mut net.stream(), &frames, &[]);
        prop_assert_eq!(at_once.len(), n_frames.div_ceil(FRAMES_PER_SLICE) * config.classes);
        prop_assert!(at_once.iter().all(|x| x.is_finite()));
        for pieces in [vec![1; n_frames], pieces] {
            prop_assert_eq!(bits(&all_log_probs(&mut net.stream(), &frames, &pieces)), bits(&at_once));
        }
        prop_assert_eq!(bits(&offline(&config, values, &frames)), bits(&at_once));
    }

    #[test]
    fn a_slice_comes_with_the_last_frame_of_its_look_ahead(config in any_srf(), n_frames in 0_usize..=70) {
        let net = network(&config, 1);
        let (mut stream, mut log_probs) = (net.stream(), Vec::new());
        for (n_before, frame) in speech(&config, 2, n_frames).chunks(config.features).enumerate() {
            stream.accept(frame, &mut log_probs);
            prop_assert_eq!(log_probs.len() / config.classes, n_slices_ready(&config, n_before + 1));
        }
    }

    /// With everything fed at once, frames beyond a slice's look-ahead are there to be read by mistake.
    #[test]
    fn a_slice_reads_nothing_beyond_its_look_ahead(config in any_size(), n_frames in 0_usize..=70, n_more in 1_usize..40) {
        let net = network(&config, 3);
        let mut frames = speech(&config, 4, n_frames);
        let expected = log_probs_of(&mut net.stream(), &frames, &[])[0].clone();
        prop_assert_eq!(expected.len(), n_slices_ready(&config, n_frames) * config.classes);
        frames.resize((n_frames + n_more) * config.features, f32::NAN);
        for pieces in [vec![], vec![n_frames], vec![n_frames / 2, n_frames]] {
            let poisoned = all_log_probs(&mut net.stream(), &frames, &pieces);
            prop_assert_eq!(bits(&poisoned[..expected.len()]), bits(&expected));
        }
    }

    #[test]
    fn the_next_utterance_hears_nothing_of_the_one_before(
        config in any_srf(), lengths in prop::array::uniform2(0_usize..=70), is_finished in any::<bool>(),
    ) {
        let net = network(&config, 5);
        let [first, second] = [0, 1].map(|n| speech(&config, n as u64, lengths[n]));
        let mut stream = net.stream();
        let mut log_probs = Vec::new();
        stream.accept(&first, &mut log_probs);
        if is_finished { stream.finish(&mut log_probs) } else { stream.reset() }
        let after = all_log_probs(&mut stream, &second, &[3, 7]);
        prop_assert_eq!(bits(&after), bits(&all_log_probs(&mut net.stream(), &second, &[3, 7])));
    }
}

/// The log-probabilities of the network that is trained, in inference.
fn offline(config: &SrfConfig, mut values: Vec<f32>, frames: &[f32]) -> Vec<f32> {
    let mut x = Frames::new(config.features, [1, 1]);
    x.resize_for([frames.len() / config.features]);
    x.real_mut(0).copy_from_slice(frames);
    let (mut net, _) = Network::new(&ModelConfig::Srf(config.clone()));
    let logits = net.forward(&mut values, Mode::default(), &x).real(0);
    let mut log_probs = vec![0.0; logits.len()];
    log_softmax(logits, config.classes, &mut log_probs);
    log_probs
}

#[test]
fn log_probabilities_of_a_slice_sum_to_one() {
    let config = SrfConfig { layers: 2, ..SrfConfig::new(30) };
    let log_probs = all_log_probs(&mut network(&config, 1).stream(), &speech(&config, 2, 40), &[]);
    for slice in log_probs.chunks(30) {
        let sum: f64 = slice.iter().map(|&x| f64::from(x).exp()).sum();
        // Each of 30 logarithms of up to 10 is rounded to 1e-7 of it.
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }
}

#[test]
fn the_look_ahead_is_that_of_the_summary_without_the_deltas() {
    let text = "[model]\narchitecture = \"srf\"\nclasses = 5\nlayers = 3\nwindow_right = [2, 0, 1]";
    let recipe = crate::config::Recipe::parse(text, std::path::Path::new("r.toml")).unwrap();
    let crate::config::ModelConfig::Srf(config) = &recipe.model else { panic!("{:?}", recipe.model) };
    let of_network = recipe.summary().look_ahead_frames.unwrap() - recipe.features.look_ahead_frames();
    assert_eq!(of_network, look_ahead_frames(config));
}

#[test]
fn a_stream_does_not_grow_however_long_it_listens() {
    let config = SrfConfig { features: 9, filters: 3, layers: 3, ..SrfConfig::new(7) };
    let mut stream = network(&config, 1).stream();
    let frames = speech(&config, 2, 3000);
    let mut listen = |round: usize, n_frames: usize| {
        let pieces = [1, 2 + round, 3 * round, 64, 65, 128];
        let log_probs = all_log_probs(&mut stream, &frames[..n_frames * config.features], &pieces[..round % 7]);
        assert!(log_probs.iter().all(|x| x.is_finite()));
        stream.capacity()
    };
    let full = (0..7).map(|round| listen(round, 150)).last();
    assert!((7..21).all(|round| Some(listen(round, 3000)) == full));
}

#[test]
fn streams_of_one_network_do_not_hear_each_other() {
    let config = SrfConfig { features: 9, filters: 3, layers: 3, ..SrfConfig::new(7) };
    let net = network(&config, 1);
    let speakers = [0, 1].map(|speaker| speech(&config, speaker, 200));
    let alone = speakers.each_ref().map(|frames| all_log_probs(&mut net.stream(), frames, &[]));
    let mut streams = [net.stream(), net.stream()];
    let mut taken_in_turns = [Vec::new(), Vec::new()];
    for start in (0..200).step_by(5) {
        for n in 0..2 {
            let piece = &speakers[n][start * config.features..][..5 * config.features];
            streams[n].accept(piece, &mut taken_in_turns[n]);
        }
    }
    for n in 0..2 {
        streams[n].finish(&mut taken_in_turns[n]);
        assert_eq!(bits(&taken_in_turns[n]), bits(&alone[n]));
    }
    std::thread::scope(|scope| {
        let threads = speakers.each_ref().map(|frames| {
            let mut stream = net.stream();
            scope.spawn(move || all_log_probs(&mut stream, frames, &[5; 39]))
        });
        for (thread, alone) in threads.into_iter().zip(&alone) {
            assert_eq!(bits(&thread.join().unwrap()), bits(alone));
        }
    });
}
