//! The search against all paths, against golden beams and against itself cut in pieces.

use std::collections::HashMap;

use proptest::prelude::*;

use super::beam::Beam;
use super::{Decoder, DecoderConfig, Hypothesis, Search};
use crate::fusion::{Fusion, State};

/// Natural log-probabilities of logits, slice by slice.
pub(crate) fn log_softmax(logits: &[f32], n_classes: usize) -> Vec<f32> {
    let normalise = |slice: &[f32]| {
        let sum: f64 = slice.iter().map(|x| f64::from(*x).exp()).sum();
        slice.iter().map(|x| (f64::from(*x) - sum.ln()) as f32).collect::<Vec<_>>()
    };
    logits.chunks_exact(n_classes).flat_map(normalise).collect()
}

/// Every label sequence with the sum of its paths, by listing all paths.
fn all_sums(log_probs: &[f32], n_classes: usize) -> HashMap<Vec<usize>, f64> {
    let blank = n_classes - 1;
    let mut paths: Vec<(Vec<usize>, f64)> = vec![(Vec::new(), 0.0)];
    for slice in log_probs.chunks_exact(n_classes) {
        let longer = |(path, sum): &(Vec<usize>, f64)| {
            let (path, sum) = (path.clone(), *sum);
            (1..n_classes)
                .map(|class| ([&path[..], &[class]].concat(), sum + f64::from(slice[class])))
                .collect::<Vec<_>>()
        };
        paths = paths.iter().flat_map(longer).collect();
    }
    let mut sums = HashMap::new();
    for (mut path, log_prob) in paths {
        path.dedup();
        path.retain(|class| *class != blank);
        *sums.entry(path).or_insert(0.0) += log_prob.exp();
    }
    sums
}

fn beam(n_classes: usize, width: usize) -> Decoder {
    Decoder::new(n_classes, &DecoderConfig { search: Search::Beam { width }, ..DecoderConfig::default() })
}

fn logits(max_slices: usize, classes: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = (Vec<f32>, usize)> {
    (0..=max_slices, classes).prop_flat_map(|(n_slices, n_classes)| {
        let values = proptest::collection::vec(-4.0f32..4.0, n_slices * n_classes);
        values.prop_map(move |values| (log_softmax(&values, n_classes), n_classes))
    })
}

/// A prefix of [`plain_beam`].
#[derive(Clone, Copy)]
struct Plain {
    by_blank: f64,
    by_label: f64,
    state: State,
    bonus: f64,
}

impl Plain {
    fn total(&self) -> f64 {
        add(self.by_blank, self.by_label)
    }
}

fn add(a: f64, b: f64) -> f64 {
    if a.max(b) == f64::NEG_INFINITY { a } else { a.max(b) + (-(a - b).abs()).exp().ln_1p() }
}

/// The same search without any shortcut: all prefixes in a map, all labels, then the best `width` with their sums.
///
/// With fusion only where a label leads to one state.
pub(crate) fn plain_beam(
    log_probs: &[f32],
    n_classes: usize,
    width: usize,
    fusion: Option<&Fusion>,
) -> Vec<(Vec<usize>, f64)> {
    let none = f64::NEG_INFINITY;
    let state = fusion.map_or_else(State::default, Fusion::start);
    let mut entries = vec![(Vec::new(), Plain { by_blank: 0.0, by_label: none, state, bonus: 0.0 })];
    for slice in log_probs.chunks_exact(n_classes) {
        let mut next: HashMap<Vec<usize>, Plain> = HashMap::new();
        for (prefix, entry) in &entries {
            let empty = Plain { by_blank: none, by_label: none, ..*entry };
            let here = next.entry(prefix.clone()).or_insert(empty);
            here.by_blank = add(here.by_blank, entry.total() + f64::from(slice[n_classes - 1]));
            if let Some(last) = prefix.last() {
                here.by_label = add(here.by_label, entry.by_label + f64::from(slice[*last]));
            }
            for (class, log_prob) in slice.iter().enumerate().take(n_classes - 1).skip(1) {
                let mut extensions = Vec::new();
                if let Some(fusion) = fusion {
                    let mut ends = Vec::new();
                    fusion.word_ends(&entry.state, &mut ends);
                    fusion.extend(&entry.state, class as u32, &ends, &mut extensions);
                }
                let (state, gain) = extensions.first().map_or((entry.state, 0.0), |e| (e.state, e.gain));
                let from = if prefix.last() == Some(&class) { entry.by_blank } else { entry.total() };
                let new = Plain { state, bonus: entry.bonus + gain, ..empty };
                let there = next.entry([&prefix[..], &[class]].concat()).or_insert(new);
                there.by_label = add(there.by_label, from + f64::from(*log_prob));
            }
        }
        entries = next.into_iter().filter(|(_, entry)| none < entry.total()).collect();
        entries.sort_by(|(_, a), (_, b)| (b.total() + b.bonus).total_cmp(&(a.total() + a.bonus)));
        entries.truncate(width);
    }
    entries.into_iter().map(|(prefix, entry)| (prefix, entry.total())).collect()
}

pub(crate) fn same(found: &[Hypothesis], expected: &[(Vec<usize>, f64)]) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(h, (classes, sum))| h.classes() == *classes && (h.log_prob - sum).abs() < 1e-9)
}

proptest! {
    #[test]
    fn a_beam_wide_enough_finds_the_sum_over_all_paths((log_probs, n_classes) in logits(6, 2..=5)) {
        let mut decoder = beam(n_classes, 100_000);
        decoder.accept(&log_probs);
        let found = decoder.n_best(usize::MAX);
        let sums = all_sums(&log_probs, n_classes);
        prop_assert_eq!(found.len(), sums.len());
        for hypothesis in &found {
            // Sums of up to 4^6 paths in a different order.
            prop_assert!((hypothesis.log_prob - sums[&hypothesis.classes()].ln()).abs() < 1e-9);
        }
        prop_assert!(found.is_sorted_by(|a, b| b.score <= a.score));
    }

    #[test]
    fn shortcuts_lose_nothing((log_probs, n_classes) in logits(14, 3..=12), width in 1usize..30) {
        let mut decoder = beam(n_classes, width);
        decoder.accept(&log_probs);
        let mut expected = plain_beam(&log_probs, n_classes, width + width / 4, None);
        expected.truncate(width);
        prop_assert!(same(&decoder.n_best(width), &expected));
    }

    #[test]
    fn any_cut_gives_the_same_bits(
        (log_probs, n_classes) in logits(200, 3..=8),
        cuts in proptest::collection::vec(0usize..20, 0..40),
        is_greedy in any::<bool>(),
    ) {
        let search = if is_greedy { Search::Greedy } else { Search::Beam { width: 10 } };
        let config = DecoderConfig { search, ..DecoderConfig::default() };
        let (mut whole, mut pieces) = (Decoder::new(n_classes, &config), Decoder::new(n_classes, &config));
        whole.accept(&log_probs);
        let mut rest = &log_probs[..];
        for n_slices in cuts {
            let (piece, behind) = rest.split_at((n_slices * n_classes).min(rest.len()));
            pieces.accept(piece);
            rest = behind;
        }
        pieces.accept(rest);
        prop_assert_eq!(whole.n_best(10), pieces.n_best(10));
        prop_assert_eq!(whole.finish(10), pieces.finish(10));
    }

    #[test]
    fn taking_settled_tokens_changes_no_result((log_probs, n_classes) in logits(400, 3..=5), every in 1usize..90) {
        let (mut whole, mut taken) = (beam(n_classes, 8), beam(n_classes, 8));
        let mut tokens = Vec::new();
        for (index, slice) in log_probs.chunks_exact(n_classes).enumerate() {
            whole.accept(slice);
            taken.accept(slice);
            if index % every == 0 {
                tokens.extend(taken.take_settled().tokens);
            }
        }
        tokens.extend(taken.best().tokens);
        prop_assert_eq!(tokens, whole.best().tokens);
    }

    #[test]
    fn tokens_lie_in_order_with_their_peaks_inside((log_probs, n_classes) in logits(60, 3..=8)) {
        let mut decoder = beam(n_classes, 20);
        decoder.accept(&log_probs);
        for hypothesis in decoder.finish(20) {
            let tokens = &hypothesis.tokens;
            prop_assert!(tokens.iter().all(|t| (t.start_slice..t.end_slice).contains(&t.peak_slice)));
            prop_assert!(tokens.is_sorted_by(|a, b| a.end_slice <= b.start_slice));
            prop_assert!(tokens.last().is_none_or(|t| t.end_slice <= decoder.n_slices()));
        }
    }

    #[test]
    fn what_is_no_number_does_no_harm(values in proptest::collection::vec(
        prop_oneof![Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), -9.0f32..0.0], 0..200)
    ) {
        for search in [Search::Greedy, Search::Beam { width: 7 }] {
            let mut decoder = Decoder::new(5, &DecoderConfig { search, ..DecoderConfig::default() });
            decoder.accept(&values[..values.len() / 5 * 5]);
            let best = decoder.finish(1).pop().unwrap();
            prop_assert!(best.tokens.iter().all(|t| (1..4).contains(&t.class) && (0.0..=1.0).contains(&t.confidence)));
        }
    }
}

/// Tensors of the golden file of beams.
struct Golden(safetensors::SafeTensors<'static>);

impl Golden {
    fn load() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../model/tests/golden/ctc_loss_and_beam.safetensors");
        let bytes: &'static [u8] = Box::leak(std::fs::read(path).unwrap().into_boxed_slice());
        Self(safetensors::SafeTensors::deserialize(bytes).unwrap())
    }

    fn words(&self, name: &str) -> Vec<[u8; 4]> {
        let tensor = self.0.tensor(name).unwrap();
        tensor.data().chunks_exact(4).map(|word| word.try_into().unwrap()).collect()
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        self.words(name).into_iter().map(f32::from_le_bytes).collect()
    }

    fn classes(&self, name: &str) -> Vec<usize> {
        self.words(name).into_iter().map(|word| i32::from_le_bytes(word) as usize).collect()
    }

    fn n_classes(&self, case: usize) -> usize {
        self.0.tensor(&format!("beam{case}.logits")).unwrap().shape()[1]
    }
}

/// The log-probability of a label sequence: the forward sum over its lattice.
pub(crate) fn sequence_log_prob(log_probs: &[f32], n_classes: usize, classes: &[usize]) -> f64 {
    let blank = n_classes - 1;
    let mut states = vec![blank];
    classes.iter().for_each(|class| states.extend([*class, blank]));
    let mut alpha = vec![0.0; states.len()];
    alpha[0] = 1.0;
    let mut log_scale = 0.0;
    for slice in log_probs.chunks_exact(n_classes) {
        let before = alpha.clone();
        for (s, class) in states.iter().enumerate() {
            let skips = *class != blank && 2 <= s && states[s - 2] != *class;
            let mut sum = before[s] + if 0 < s { before[s - 1] } else { 0.0 };
            sum += if skips { before[s - 2] } else { 0.0 };
            alpha[s] = sum * f64::from(slice[*class]).exp();
        }
        let scale: f64 = alpha.iter().sum();
        alpha.iter_mut().for_each(|a| *a /= scale);
        log_scale += scale.ln();
    }
    let last: f64 = alpha.iter().rev().take(2).sum();
    last.ln() + log_scale
}

/// The golden beams may write class 0, which a [`Decoder`] never does.
fn golden_beam(golden: &Golden, case: usize, width: usize) -> (Vec<f32>, Vec<Hypothesis>) {
    let n_classes = golden.n_classes(case);
    let log_probs = log_softmax(&golden.floats(&format!("beam{case}.logits")), n_classes);
    let mut beam = Beam::new(n_classes, width, 0, None);
    log_probs.chunks_exact(n_classes).enumerate().for_each(|(at, slice)| beam.step(slice, at));
    (log_probs, beam.n_best(5))
}

#[test]
fn golden_beams_hold_nothing_likelier_than_what_is_found() {
    let golden = Golden::load();
    for case in 0..5 {
        for (width, prefix) in [(100, ""), (10, "w10.")] {
            let (log_probs, found) = golden_beam(&golden, case, width);
            let n_classes = golden.n_classes(case);
            let stored = golden.classes(&format!("beam{case}.{prefix}hyp0"));
            let theirs = sequence_log_prob(&log_probs, n_classes, &stored);
            let ours = sequence_log_prob(&log_probs, n_classes, &found[0].classes());
            // The same sum in another order where both found the same.
            assert!(theirs <= ours + 1e-9, "beam{case}.{prefix}: {theirs} stored, {ours} found");
            assert!(found[0].log_prob <= ours + 1e-9, "a beam loses alignments, it never makes any up");
        }
    }
}

#[test]
fn golden_greedy_paths_are_found() {
    let golden = Golden::load();
    for case in 0..5 {
        let n_classes = golden.n_classes(case);
        let log_probs = log_softmax(&golden.floats(&format!("beam{case}.logits")), n_classes);
        let stored = golden.classes(&format!("beam{case}.greedy"));
        let mut decoder =
            Decoder::new(n_classes, &DecoderConfig { search: Search::Greedy, ..DecoderConfig::default() });
        decoder.accept(&log_probs);
        if !stored.contains(&0) {
            assert_eq!(decoder.best().classes(), stored, "beam{case}");
        }
    }
}

#[test]
fn memory_stays_flat_when_settled_tokens_are_taken() {
    let n_classes = 20;
    let mut decoder = beam(n_classes, 50);
    let mut random = 7u64;
    let mut largest = [0, 0];
    for at in 0..40_000 {
        let logits: Vec<f32> = (0..n_classes)
            .map(|class| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let is_said = at % 3 == 0 && class == 1 + at / 3 % 17 || at % 3 != 0 && class == n_classes - 1;
                (random >> 40) as f32 / (1 << 22) as f32 + if is_said { 7.0 } else { 0.0 }
            })
            .collect();
        decoder.accept(&log_softmax(&logits, n_classes));
        if at % 100 == 0 {
            decoder.take_settled();
            let super::Searching::Beam(beam) = &decoder.state else { unreachable!() };
            let half = usize::from(20_000 < at);
            largest[half] = largest[half].max(beam.n_living() + decoder.best().tokens.len());
        }
    }
    assert!(largest[1] <= largest[0] * 11 / 10, "{largest:?}");
}
