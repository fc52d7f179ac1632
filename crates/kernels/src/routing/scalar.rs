//! The definition of routing: plain loops, any [`Element`], votes of one slice at a time.

use super::{
    GradientPaths, Packed, Routing, SQUASH_EPSILON, Utterance, UtteranceBack, Workspace, check_backward, check_forward,
};
use crate::Element;

/// Everything that one slice computes.
struct Slice<E> {
    /// `[n_in, n_out, depth_out]`.
    votes: Vec<E>,
    /// Poses before the first iteration and after each, `[n_out, depth_out]`.
    poses: Vec<Vec<E>>,
    /// Sums of each iteration, `[n_out, depth_out]`.
    sums: Vec<Vec<E>>,
    /// Agreements and couplings of each iteration, `[n_in, n_out]`.
    agreements: Vec<Vec<E>>,
    couplings: Vec<Vec<E>>,
}

/// See [`super::forward`].
pub(crate) fn forward<E: Element>(
    routing: &Routing,
    packed: &Packed<E>,
    utterances: &mut [Utterance<'_, E>],
    _workspace: &mut Workspace<E>,
) {
    for utterance in utterances {
        check_forward(routing, utterance);
        for t in 0..utterance.n_slices {
            let slice =
                route(routing, packed, utterance.inputs, start(routing, utterance.state, utterance.outputs, t), t);
            let n = routing.output_len();
            utterance.outputs[t * n..][..n].copy_from_slice(&slice.poses[routing.n_iterations]);
            if !utterance.saved.is_empty() {
                let saved = &mut utterance.saved[t * routing.packed_len()..][..routing.packed_len()];
                pack_poses(routing, &slice.sums[routing.n_iterations - 1], saved);
            }
            if let Some(tap) = &mut utterance.tap {
                let n = routing.n_in * routing.n_out;
                tap.couplings[t * n..][..n].copy_from_slice(&slice.couplings[routing.n_iterations - 1]);
                tap.agreements[t * n..][..n].copy_from_slice(&slice.agreements[routing.n_iterations - 1]);
            }
        }
    }
}

/// See [`super::backward`].
pub(crate) fn backward<E: Element>(
    routing: &Routing,
    packed: &Packed<E>,
    paths: GradientPaths,
    utterances: &mut [UtteranceBack<'_, E>],
    d_packed: &mut Packed<E>,
    _workspace: &mut Workspace<E>,
) {
    packed.check(routing, "weights");
    d_packed.check(routing, "gradient");
    d_packed.weights.fill(E::ZERO);
    d_packed.biases.fill(E::ZERO);
    for utterance in utterances {
        check_backward(routing, utterance);
        utterance.d_inputs.fill(E::ZERO);
        let mut d_carried = vec![E::ZERO; routing.output_len()];
        for t in (0..utterance.n_slices).rev() {
            let v = start(routing, utterance.state, utterance.outputs, t);
            let slice = route(routing, packed, utterance.inputs, v, t);
            let d_output = &utterance.d_outputs[t * routing.output_len()..][..routing.output_len()];
            let d_v: Vec<E> = d_output.iter().zip(&d_carried).map(|(a, b)| *a + *b).collect();
            let (d_votes, d_start) = slice_backward(routing, &slice, d_v, paths);
            votes_backward(routing, packed, utterance, t, &d_votes, d_packed);
            d_carried =
                if routing.is_sequential && paths.through_time { d_start } else { vec![E::ZERO; d_start.len()] };
        }
    }
}

/// The poses that slice `t` starts from.
fn start<E: Element>(routing: &Routing, state: &[E], outputs: &[E], t: usize) -> Vec<E> {
    let n = routing.output_len();
    match t {
        _ if !routing.is_sequential => vec![E::ZERO; n],
        0 if state.is_empty() => vec![E::ZERO; n],
        0 => state.to_vec(),
        _ => outputs[(t - 1) * n..][..n].to_vec(),
    }
}

fn pack_poses<E: Element>(routing: &Routing, poses: &[E], packed: &mut [E]) {
    for (index, pose) in poses.iter().enumerate() {
        packed[routing.packed_index(index / routing.depth_out, index % routing.depth_out)] = *pose;
    }
}

fn route<E: Element>(routing: &Routing, packed: &Packed<E>, inputs: &[E], v: Vec<E>, t: usize) -> Slice<E> {
    let Routing { n_in, n_out, depth_out, .. } = *routing;
    let votes = votes(routing, packed, &inputs[t * routing.stride..]);
    let mut slice = Slice { votes, poses: vec![v], sums: vec![], agreements: vec![], couplings: vec![] };
    let mut r = vec![E::ZERO; n_in * n_out];
    if routing.has_padding_class {
        r.iter_mut().step_by(n_out).for_each(|r| *r = E::from_f64(super::NEVER));
    }
    for n in 0..routing.n_iterations {
        let mut sums = vec![E::ZERO; n_out * depth_out];
        for (pair, r) in r.iter_mut().enumerate() {
            let vote = &slice.votes[pair * depth_out..][..depth_out];
            *r += dot(vote, &slice.poses[n][pair % n_out * depth_out..][..depth_out]);
        }
        let couplings: Vec<E> = r.chunks(n_out).flat_map(softmax).collect();
        for (pair, c) in couplings.iter().enumerate() {
            let vote = &slice.votes[pair * depth_out..][..depth_out];
            let sum = &mut sums[pair % n_out * depth_out..][..depth_out];
            sum.iter_mut().zip(vote).for_each(|(s, u)| *s += *c * *u);
        }
        slice.poses.push(sums.chunks(depth_out).flat_map(squash).collect());
        slice.sums.push(sums);
        slice.agreements.push(r.clone());
        slice.couplings.push(couplings);
    }
    slice
}

fn votes<E: Element>(routing: &Routing, packed: &Packed<E>, x: &[E]) -> Vec<E> {
    let Routing { n_in, n_out, depth_in, depth_out, .. } = *routing;
    let mut votes = Vec::with_capacity(n_in * n_out * depth_out);
    for i in 0..n_in {
        let pose = &x[i * depth_in..][..depth_in];
        for j in 0..n_out {
            for o in 0..depth_out {
                let bias = packed.biases[i * routing.packed_len() + routing.packed_index(j, o)];
                let weight = |k| packed.weights[routing.weight_index(i, j, o, k)];
                votes.push(pose.iter().enumerate().fold(bias, |sum, (k, x)| sum + *x * weight(k)));
            }
        }
    }
    votes
}

/// Gradients of the votes and of the poses that the slice started from, from that of its outputs.
fn slice_backward<E: Element>(
    routing: &Routing,
    slice: &Slice<E>,
    d_output: Vec<E>,
    paths: GradientPaths,
) -> (Vec<E>, Vec<E>) {
    let Routing { n_out, depth_out, .. } = *routing;
    let mut d_votes = vec![E::ZERO; slice.votes.len()];
    let mut d_r = vec![E::ZERO; slice.couplings[0].len()];
    let mut d_v = d_output;
    let first = if paths.through_iterations { 0 } else { routing.n_iterations - 1 };
    for n in (first..routing.n_iterations).rev() {
        let d_sums: Vec<E> = (0..n_out)
            .flat_map(|j| {
                squash_backward(&slice.sums[n][j * depth_out..][..depth_out], &d_v[j * depth_out..][..depth_out])
            })
            .collect();
        add_softmax_backward(routing, slice, n, &d_sums, &mut d_r);
        let v = &slice.poses[n];
        d_v = vec![E::ZERO; v.len()];
        for (pair, d_r) in d_r.iter().enumerate() {
            let (c, j) = (slice.couplings[n][pair], pair % n_out * depth_out);
            for o in 0..depth_out {
                d_votes[pair * depth_out + o] += c * d_sums[j + o] + *d_r * v[j + o];
                d_v[j + o] += *d_r * slice.votes[pair * depth_out + o];
            }
        }
    }
    let d_start = if first == 0 { d_v } else { vec![E::ZERO; d_v.len()] };
    (d_votes, d_start)
}

fn add_softmax_backward<E: Element>(routing: &Routing, slice: &Slice<E>, n: usize, d_sums: &[E], d_r: &mut [E]) {
    let Routing { n_out, depth_out, .. } = *routing;
    for i in 0..routing.n_in {
        let c = &slice.couplings[n][i * n_out..][..n_out];
        let d_c: Vec<E> = (0..n_out)
            .map(|j| {
                dot(&slice.votes[(i * n_out + j) * depth_out..][..depth_out], &d_sums[j * depth_out..][..depth_out])
            })
            .collect();
        let mean = dot(c, &d_c);
        for j in 0..n_out {
            d_r[i * n_out + j] += c[j] * (d_c[j] - mean);
        }
    }
}

fn votes_backward<E: Element>(
    routing: &Routing,
    packed: &Packed<E>,
    utterance: &mut UtteranceBack<'_, E>,
    t: usize,
    d_votes: &[E],
    d_packed: &mut Packed<E>,
) {
    let Routing { n_in, n_out, depth_in, depth_out, stride, .. } = *routing;
    for i in 0..n_in {
        for j in 0..n_out {
            for o in 0..depth_out {
                let d_vote = d_votes[(i * n_out + j) * depth_out + o];
                d_packed.biases[i * routing.packed_len() + routing.packed_index(j, o)] += d_vote;
                for k in 0..depth_in {
                    let x = t * stride + i * depth_in + k;
                    let w = routing.weight_index(i, j, o, k);
                    d_packed.weights[w] += d_vote * utterance.inputs[x];
                    utterance.d_inputs[x] += d_vote * packed.weights[w];
                }
            }
        }
    }
}

fn dot<E: Element>(a: &[E], b: &[E]) -> E {
    a.iter().zip(b).map(|(a, b)| *a * *b).sum()
}

fn softmax<E: Element>(r: &[E]) -> Vec<E> {
    let largest = r.iter().copied().fold(E::NEG_INFINITY, E::max);
    let powers: Vec<E> = r.iter().map(|r| (*r - largest).exp()).collect();
    let sum: E = powers.iter().copied().sum();
    powers.iter().map(|p| *p / sum).collect()
}

fn squash<E: Element>(s: &[E]) -> Vec<E> {
    let n2 = dot(s, s);
    let factor = n2 / ((E::ONE + n2) * (n2 + E::from_f64(SQUASH_EPSILON)).sqrt());
    s.iter().map(|s| factor * *s).collect()
}

/// With n = |s|² and g = √(n+ε), squash is f(n)·s with f = n/((1+n)g), so ds = f dv + 2 f' <s, dv> s, where
/// f' = (n + 2ε - n²) / (2 g³ (1+n)²).
fn squash_backward<E: Element>(s: &[E], d_v: &[E]) -> Vec<E> {
    let epsilon = E::from_f64(SQUASH_EPSILON);
    let n2 = dot(s, s);
    let root = (n2 + epsilon).sqrt();
    let wide = E::ONE + n2;
    let factor = n2 / (wide * root);
    let slope = (n2 + epsilon + epsilon - n2 * n2) / (root * root * root * wide * wide);
    let along = slope * dot(s, d_v);
    s.iter().zip(d_v).map(|(s, d_v)| factor * *d_v + along * *s).collect()
}
