//! Routing by agreement with sums of votes: all variants but EM.
//!
//! The state of a capsule is the weighted sum of its votes, s_j = Σ_i c_ij u_ij; agreement is the inner product of a
//! vote with a pose made of that sum. What differs:
//!
//! ```text
//! DR, SDR            r_ij = b_ij + Σ over iterations <u_ij, squash(s_j)>              v_j = squash(s_j)
//! entropy λ          r_ij = b_ij + <u_ij, squash(s_j)> / λ                            v_j = squash(s_j)
//! self-routing       r_ij = <w_ij, x_i> + b_ij + g_j <u_ij, squash(s_j)>              v_j = squash(s_j)
//! inverted attention r_ij = <u_ij, norm(s_j)> / √depth                                v_j = norm(s_j)
//! ```
//!
//! **Learned start** (Ramasinghe et al., 2018). b_ij is a parameter of each pair instead of 0.
//!
//! **Entropy** (Wang and Liu, 2018). The couplings of an input capsule maximise Σ_j c_ij <u_ij, v_j> - λ KL(c_i, uniform),
//! whose solution is the softmax of agreements over λ. It depends on the present poses only, so agreements of several
//! iterations are not added up: that would be the solution for λ divided by their number, the ever sharper decisions
//! that the regulariser is there to prevent. With a learned start the divergence is from softmax(b_i).
//!
//! **Self-routing** (Hahn et al., 2019). An input capsule decides by a matrix of its own, without iteration. What is
//! shared recurrently is the outcome of the slice before, its poses: their agreement with the votes is added, weighed by
//! a gate g_j of each output capsule. At g = 0 this is plain self-routing, at w = b = 0 and g = 1 it is SDR with one
//! iteration, and training chooses between them.
//!
//! **Inverted dot-product attention** (Tsai et al., 2020). The layer norm of each capsule takes the place of squash.
//! Agreements are over √depth, as in other attention: normed poses have that length, so that without it a softmax would
//! start with decisions already made. The norm leaves every capsule alike in length, and the length of a class capsule is what
//! it has to say; so the last layer agrees by normed poses, and gives the squashed sums.

use super::lanes::{Lanes, Normalizer, Pose, add, add_product, add2, dot, map, map2, total};
use super::walk::{Back, Slice, SliceGradient, Steps};
use super::{Dynamic, Layer};
use crate::Element;

/// What agreements start from.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Zero,
    /// A row b_i for each input capsule.
    Learned,
    /// `depth_in` rows w_i for each input capsule, then a row b_i for each, then the row of gates.
    Matrix,
}

/// See the module.
pub(super) struct Sums<E> {
    start: Start,
    normalizer: Normalizer,
    accumulates: bool,
    /// The pose that votes agree with, and the one that is given away.
    agreed: Pose,
    given: Pose,
    scale: E,
}

impl<E: Element> Sums<E> {
    pub(super) fn dynamic(options: Dynamic) -> Self {
        Self {
            start: if options.learns_start { Start::Learned } else { Start::Zero },
            normalizer: options.normalizer,
            accumulates: options.entropy.is_none(),
            agreed: Pose::Squash,
            given: Pose::Squash,
            scale: E::from_f64(1.0 / options.entropy.unwrap_or(1.0)),
        }
    }

    pub(super) fn self_routing() -> Self {
        Self {
            start: Start::Matrix,
            normalizer: Normalizer::Softmax,
            accumulates: false,
            agreed: Pose::Squash,
            given: Pose::Squash,
            scale: E::ONE,
        }
    }

    pub(super) fn inverted(depth: usize, keeps_lengths: bool) -> Self {
        Self {
            start: Start::Zero,
            normalizer: Normalizer::Softmax,
            accumulates: false,
            agreed: Pose::LayerNorm,
            given: if keeps_lengths { Pose::Squash } else { Pose::LayerNorm },
            scale: E::ONE / E::from_f64(depth as f64).sqrt(),
        }
    }

    /// What multiplies the agreements with each block of capsules.
    #[inline(always)]
    fn scales<'a>(&self, layer: &Layer<'a, E>) -> impl Iterator<Item = Lanes<E>> + use<'a, E> {
        let (scale, gates) = (self.scale, self.gates(layer));
        (0..layer.n_blocks).map(move |block| gates.map_or([scale; _], |gates| map(&gates[block], |gate| gate * scale)))
    }

    #[inline(always)]
    fn gates<'a>(&self, layer: &Layer<'a, E>) -> Option<&'a [Lanes<E>]> {
        (self.start == Start::Matrix).then(|| &layer.extra[layer.extra.len() - layer.n_blocks..])
    }
}

impl<E: Element> Steps<E> for Sums<E> {
    fn normalizer(&self) -> Normalizer {
        self.normalizer
    }

    fn accumulates(&self) -> bool {
        self.accumulates
    }

    #[inline(always)]
    fn start(&self, slice: &Slice<'_, E>, r: &mut [Lanes<E>]) {
        let extra = slice.layer.extra;
        match self.start {
            Start::Zero => {}
            Start::Learned => add(r, extra),
            Start::Matrix => {
                let width = slice.layer.n_blocks;
                add(r, &extra[slice.x.len() * width..]);
                for (n, (&x, weights)) in slice.x.iter().zip(extra.chunks_exact(width)).enumerate() {
                    let row = &mut r[n / slice.layer.routing.depth_in * width..][..width];
                    for (r, w) in row.iter_mut().zip(weights) {
                        add2(r, w, w, |w, _| x * w);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn start_backward(&self, slice: &Slice<'_, E>, d_r: &[Lanes<E>], gradient: &mut SliceGradient<'_, E>) {
        let extra = slice.layer.extra;
        match self.start {
            Start::Zero => {}
            Start::Learned => add(gradient.extra, d_r),
            Start::Matrix => {
                let width = slice.layer.n_blocks;
                let (d_weights, d_biases) = gradient.extra.split_at_mut(slice.x.len() * width);
                add(d_biases, d_r);
                let rows = extra.chunks_exact(width).zip(d_weights.chunks_exact_mut(width));
                for (n, (weights, d_weights)) in rows.enumerate() {
                    let x = slice.x[n];
                    let d_r = &d_r[n / slice.layer.routing.depth_in * width..][..width];
                    for (d_w, d_r) in d_weights.iter_mut().zip(d_r) {
                        add2(d_w, d_r, d_r, |d_r, _| x * d_r);
                    }
                    gradient.x[n] += total(&[dot(weights, d_r)]);
                }
            }
        }
    }

    #[inline(always)]
    fn agree(&self, slice: &Slice<'_, E>, state: &[Lanes<E>], scratch: &mut [Lanes<E>], r: &mut [Lanes<E>]) {
        let depth = slice.layer.routing.depth_out;
        let poses = &mut scratch[..state.len()];
        self.agreed.forward(depth, state, poses);
        for (poses, scale) in poses.chunks_exact_mut(depth).zip(self.scales(slice.layer)) {
            for pose in poses {
                *pose = map2(pose, &scale, |pose, scale| pose * scale);
            }
        }
        for (votes, r) in slice.each_vote().zip(r.chunks_exact_mut(slice.layer.n_blocks)) {
            let capsules = votes.chunks_exact(depth).zip(poses.chunks_exact(depth));
            for (r, (votes, poses)) in r.iter_mut().zip(capsules) {
                *r = map2(r, &dot(votes, poses), |r, agreement| r + agreement);
            }
        }
    }

    /// With p_j = scale_j v_j: du_ij += dr_ij p_j, dp_j = Σ_i dr_ij u_ij, dv_j = scale_j dp_j, dg_j = scale <dp_j, v_j>.
    #[inline(always)]
    fn agree_backward(&self, slice: &Slice<'_, E>, d_r: &[Lanes<E>], back: Back<'_, '_, E>) {
        let Back { state, d_state, scratch, gradient } = back;
        let layer = slice.layer;
        let depth = layer.routing.depth_out;
        let (poses, d_poses) = scratch.split_at_mut(state.len());
        self.agreed.forward(depth, state, poses);
        d_poses.as_flattened_mut().fill(E::ZERO);
        let votes = slice.each_vote().zip(gradient.votes.chunks_exact_mut(layer.len));
        for ((votes, d_votes), d_r) in votes.zip(d_r.chunks_exact(layer.n_blocks)) {
            for (block, (d_r, scale)) in d_r.iter().zip(self.scales(layer)).enumerate() {
                let d_product = map2(d_r, &scale, |d_r, scale| d_r * scale);
                for at in block * depth..(block + 1) * depth {
                    add_product(&mut d_votes[at], &d_product, &poses[at]);
                    add_product(&mut d_poses[at], d_r, &votes[at]);
                }
            }
        }
        if self.start == Start::Matrix {
            let first = gradient.extra.len() - layer.n_blocks;
            let capsules = poses.chunks_exact(depth).zip(d_poses.chunks_exact(depth));
            for (d_gate, (poses, d_poses)) in gradient.extra[first..].iter_mut().zip(capsules) {
                add2(d_gate, &dot(poses, d_poses), &[self.scale; _], |product, scale| product * scale);
            }
        }
        for (d_poses, scale) in d_poses.chunks_exact_mut(depth).zip(self.scales(layer)) {
            for d_pose in d_poses {
                *d_pose = map2(d_pose, &scale, |d_pose, scale| d_pose * scale);
            }
        }
        self.agreed.backward(depth, state, d_poses, d_state);
    }

    #[inline(always)]
    fn update_state(&self, slice: &Slice<'_, E>, c: &[Lanes<E>], state: &mut [Lanes<E>]) {
        let depth = slice.layer.routing.depth_out;
        state.as_flattened_mut().fill(E::ZERO);
        for (votes, c) in slice.each_vote().zip(c.chunks_exact(slice.layer.n_blocks)) {
            for (block, c) in c.iter().enumerate() {
                for at in block * depth..(block + 1) * depth {
                    add_product(&mut state[at], c, &votes[at]);
                }
            }
        }
    }

    #[inline(always)]
    fn update_state_backward(&self, slice: &Slice<'_, E>, c: &[Lanes<E>], d_c: &mut [Lanes<E>], back: Back<'_, '_, E>) {
        let Back { d_state, gradient, .. } = back;
        let Layer { len, n_blocks, .. } = *slice.layer;
        let depth = slice.layer.routing.depth_out;
        let rows = c.chunks_exact(n_blocks).zip(d_c.chunks_exact_mut(n_blocks));
        let votes = slice.each_vote().zip(gradient.votes.chunks_exact_mut(len));
        for ((votes, d_votes), (c, d_c)) in votes.zip(rows) {
            for block in 0..n_blocks {
                let here = block * depth..(block + 1) * depth;
                d_c[block] = dot(&votes[here.clone()], &d_state[here.clone()]);
                for at in here {
                    add_product(&mut d_votes[at], &c[block], &d_state[at]);
                }
            }
        }
    }

    #[inline(always)]
    fn emit(&self, layer: &Layer<'_, E>, state: &[Lanes<E>], output: &mut [Lanes<E>]) {
        self.given.forward(layer.routing.depth_out, state, output);
    }

    #[inline(always)]
    fn emit_backward(
        &self,
        layer: &Layer<'_, E>,
        state: &[Lanes<E>],
        d_output: &[Lanes<E>],
        _scratch: &mut [Lanes<E>],
        d_state: &mut [Lanes<E>],
    ) {
        self.given.backward(layer.routing.depth_out, state, d_output, d_state);
    }
}
