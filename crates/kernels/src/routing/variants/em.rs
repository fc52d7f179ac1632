//! EM routing (Hinton, Sabour and Frosst, 2018), slice after slice.
//!
//! Every output capsule is a Gaussian over the votes for it, and input capsules share themselves out by how well each
//! Gaussian explains their votes. With h over the depth D and the slice's Gaussians starting as those of the slice
//! before:
//!
//! ```text
//! E   r_ij = (k_j - ½ Σ_h π_jh (u_ijh - μ_jh)²) / D      c_i = softmax_j(r_i)
//! M   N_j  = Σ_i c_ij                                    μ_jh = Σ_i c_ij u_ijh / N_j
//!     σ²_jh = Σ_i c_ij (u_ijh - μ_jh)² / N_j + floor     π_jh = 1 / σ²_jh
//!     a_j  = sigmoid(β_a,j - λ N_j Σ_h (β_u,j + ln σ_jh))
//!     k_j  = ln a_j - Σ_h ln σ_jh                        v_j = a_j squash(μ_j)
//! ```
//!
//! How it fits here:
//! - At the start of an utterance π and k are zero: all agreements are equal, so the first E step is the uniform one
//!   that EM routing starts with.
//! - A capsule layer gives poses only, and the length of a class capsule is how sure it is: v has the direction of the
//!   mean, and a length of at most the activation. (At exactly the activation, a μ/|μ|, the gradient is as steep as the
//!   mean is short.)
//! - Input capsules come layer-normed, which leaves nothing in their length, so that each counts 1, as in DR.
//! - λ is 1 / (D · n_in / n_out), the depth and the mass of an equal share: what the sigmoid sees is a cost of each
//!   value of each vote, whatever the layer's size. It does not multiply β_a, so that both learn at one pace.
//! - The values of a vote come from one capsule and are not independent witnesses: log-likelihoods are means over
//!   them, not sums. With sums and the floor below, decisions are all but final after one slice and the gradient
//!   through time grows: a network of two layers did not learn two utterances in 400 steps, with means it took 40.
//!   (With a floor five or ten times as high, sums learnt them too.)
//! - The floor of the variance, a tenth of that of untrained votes, keeps a capsule that has won a single vote from
//!   becoming a needle that explains nothing in the next slice.

use super::Layer;
use super::lanes::{Lanes, Normalizer, Pose, add, add_product, add2, map, map2};
use super::walk::{Back, Slice, SliceGradient, Steps};
use crate::{BLOCK, Element};

/// Added to every variance.
const FLOOR: f64 = 0.1;

/// Added to the mass of a capsule, which may have none.
const LEAST_MASS: f64 = 1e-6;

/// Extra rows: β_a, then β_u.
pub(super) const N_ROWS: usize = 2;

/// See the module.
pub(super) struct Em<E> {
    /// λ.
    inverse_temperature: E,
    /// 1 / D.
    share: E,
}

/// The Gaussians, or their gradients, one part after another.
struct Parts<S> {
    means: S,
    precisions: S,
    /// k, N and a.
    levels: S,
    masses: S,
    activations: S,
}

fn parts<'a, E>(layer: &Layer<'_, E>, state: &'a [Lanes<E>]) -> Parts<&'a [Lanes<E>]> {
    let (means, rest) = state.split_at(layer.len);
    let (precisions, rest) = rest.split_at(layer.len);
    let (levels, rest) = rest.split_at(layer.n_blocks);
    let (masses, activations) = rest.split_at(layer.n_blocks);
    Parts { means, precisions, levels, masses, activations }
}

fn parts_mut<'a, E>(layer: &Layer<'_, E>, state: &'a mut [Lanes<E>]) -> Parts<&'a mut [Lanes<E>]> {
    let (means, rest) = state.split_at_mut(layer.len);
    let (precisions, rest) = rest.split_at_mut(layer.len);
    let (levels, rest) = rest.split_at_mut(layer.n_blocks);
    let (masses, activations) = rest.split_at_mut(layer.n_blocks);
    Parts { means, precisions, levels, masses, activations }
}

impl<E: Element> Em<E> {
    pub(super) fn new(layer: &Layer<'_, E>) -> Self {
        let routing = layer.routing;
        let inverse = routing.n_out as f64 / (routing.depth_out * routing.n_in) as f64;
        Self { inverse_temperature: E::from_f64(inverse), share: E::from_f64(1.0 / routing.depth_out as f64) }
    }

    /// β_a and β_u of a block of capsules.
    fn costs<'a>(layer: &Layer<'a, E>, block: usize) -> [&'a Lanes<E>; N_ROWS] {
        [&layer.extra[block], &layer.extra[layer.n_blocks + block]]
    }

    /// Σ_h (β_u + ln σ_h) of a block of capsules.
    #[inline(always)]
    fn cost(layer: &Layer<'_, E>, block: usize, precisions: &[Lanes<E>]) -> Lanes<E> {
        let depth = E::from_f64(precisions.len() as f64);
        map2(Self::costs(layer, block)[1], &log_deviations(precisions), |beta, log| depth * beta + log)
    }

    /// Activation and level from mass and precisions.
    #[inline(always)]
    fn activate(&self, layer: &Layer<'_, E>, block: usize, mass: &Lanes<E>, precisions: &[Lanes<E>]) -> [Lanes<E>; 2] {
        let cost = map2(&Self::cost(layer, block, precisions), mass, |cost, mass| cost * mass);
        let argument = map2(Self::costs(layer, block)[0], &cost, |beta, cost| beta - self.inverse_temperature * cost);
        // ln(1 + e^-z), without a large power.
        let log = map(&argument, |z| (-z).max(E::ZERO) + (E::ONE + (-z.max(-z)).exp()).ln());
        let level = map2(&log, &log_deviations(precisions), |log, deviations| -log - deviations);
        [map(&log, |log| (-log).exp()), level]
    }

    /// Takes gradients of activation, level and precisions to those of precisions (in place), of the mass and of β.
    #[inline(always)]
    fn activate_backward(
        &self,
        layer: &Layer<'_, E>,
        block: usize,
        state: &Parts<&[Lanes<E>]>,
        d_state: &mut Parts<&mut [Lanes<E>]>,
        d_extra: &mut [Lanes<E>],
    ) {
        let here = capsules(layer, block);
        let precisions = &state.precisions[here.clone()];
        let (mass, activation) = (&state.masses[block], &state.activations[block]);
        // da = a (1 - a) dz, d(ln a) = (1 - a) dz.
        let by_level = map2(activation, &d_state.activations[block], |a, d_a| a * d_a);
        let along = map2(&by_level, &d_state.levels[block], |d_a, d_k| d_a + d_k);
        let d_argument = map2(&along, activation, |along, a| along * (E::ONE - a));
        let d_cost = map(&d_argument, |d| -self.inverse_temperature * d);
        add2(&mut d_extra[block], &d_argument, &d_argument, |d, _| d);
        let depth = E::from_f64(precisions.len() as f64);
        add2(&mut d_extra[layer.n_blocks + block], &d_cost, mass, |d_cost, mass| depth * d_cost * mass);
        add_product(&mut d_state.masses[block], &d_cost, &Self::cost(layer, block, precisions));
        // d(ln σ) = dcost N - dk, and ln σ = -½ ln π.
        let by_mass = map2(&d_cost, mass, |d_cost, mass| d_cost * mass);
        let d_log = map2(&by_mass, &d_state.levels[block], |by_mass, d_k| E::from_f64(-0.5) * (by_mass - d_k));
        for (d_precision, precision) in d_state.precisions[here].iter_mut().zip(precisions) {
            add2(d_precision, &d_log, precision, |d_log, precision| d_log / precision);
        }
    }

    /// Weighted means and variances; leaves variances without the floor where precisions belong.
    #[inline(always)]
    fn fit(slice: &Slice<'_, E>, c: &[Lanes<E>], state: &mut Parts<&mut [Lanes<E>]>) {
        let depth = slice.layer.routing.depth_out;
        for (votes, c) in slice.each_vote().zip(c.chunks_exact(slice.layer.n_blocks)) {
            for (block, c) in c.iter().enumerate() {
                for at in capsules(slice.layer, block) {
                    add_product(&mut state.means[at], c, &votes[at]);
                }
            }
            add(state.masses, c);
        }
        for (at, mean) in state.means.iter_mut().enumerate() {
            *mean = map2(mean, &state.masses[at / depth], |sum, mass| sum / at_least(mass));
        }
        for (votes, c) in slice.each_vote().zip(c.chunks_exact(slice.layer.n_blocks)) {
            for (block, c) in c.iter().enumerate() {
                for at in capsules(slice.layer, block) {
                    let square = map2(&votes[at], &state.means[at], |vote, mean| (vote - mean) * (vote - mean));
                    add_product(&mut state.precisions[at], c, &square);
                }
            }
        }
        for (at, sum) in state.precisions.iter_mut().enumerate() {
            *sum = map2(sum, &state.masses[at / depth], |sum, mass| sum / at_least(mass));
        }
    }
}

/// The mass that means are divided by.
#[inline(always)]
fn at_least<E: Element>(mass: E) -> E {
    mass + E::from_f64(LEAST_MASS)
}

/// Σ_h ln σ_h.
#[inline(always)]
fn log_deviations<E: Element>(precisions: &[Lanes<E>]) -> Lanes<E> {
    let mut sum = [E::ZERO; BLOCK];
    for precision in precisions {
        add2(&mut sum, precision, precision, |p, _| E::from_f64(-0.5) * p.ln());
    }
    sum
}

/// Where the values of a block of capsules lie.
#[inline(always)]
fn capsules<E>(layer: &Layer<'_, E>, block: usize) -> std::ops::Range<usize> {
    block * layer.routing.depth_out..(block + 1) * layer.routing.depth_out
}

impl<E: Element> Steps<E> for Em<E> {
    fn normalizer(&self) -> Normalizer {
        Normalizer::Softmax
    }

    fn accumulates(&self) -> bool {
        false
    }

    fn start(&self, _slice: &Slice<'_, E>, _r: &mut [Lanes<E>]) {}

    fn start_backward(&self, _slice: &Slice<'_, E>, _d_r: &[Lanes<E>], _gradient: &mut SliceGradient<'_, E>) {}

    #[inline(always)]
    fn agree(&self, slice: &Slice<'_, E>, state: &[Lanes<E>], _scratch: &mut [Lanes<E>], r: &mut [Lanes<E>]) {
        let state = parts(slice.layer, state);
        for (votes, r) in slice.each_vote().zip(r.chunks_exact_mut(slice.layer.n_blocks)) {
            for (block, r) in r.iter_mut().enumerate() {
                let mut distance = [E::ZERO; BLOCK];
                for at in capsules(slice.layer, block) {
                    let difference = map2(&votes[at], &state.means[at], |vote, mean| vote - mean);
                    add2(&mut distance, &difference, &state.precisions[at], |x, precision| x * x * precision);
                }
                let (half, share) = (E::from_f64(0.5), self.share);
                add2(r, &state.levels[block], &distance, |level, distance| share * (level - half * distance));
            }
        }
    }

    /// With x = u - μ and dr over D: dk = Σ dr, dπ = -½ Σ dr x², and what dr sends to u, -dr π x, it takes from μ.
    #[inline(always)]
    fn agree_backward(&self, slice: &Slice<'_, E>, d_r: &[Lanes<E>], back: Back<'_, '_, E>) {
        let Back { state, d_state, gradient, .. } = back;
        let layer = slice.layer;
        let (state, d_state) = (parts(layer, state), parts_mut(layer, d_state));
        let votes = slice.each_vote().zip(gradient.votes.chunks_exact_mut(layer.len));
        for ((votes, d_votes), d_r) in votes.zip(d_r.chunks_exact(layer.n_blocks)) {
            for (block, d_r) in d_r.iter().enumerate() {
                let d_r = &map(d_r, |d_r| self.share * d_r);
                add2(&mut d_state.levels[block], d_r, d_r, |d_r, _| d_r);
                for at in capsules(layer, block) {
                    let x = map2(&votes[at], &state.means[at], |vote, mean| vote - mean);
                    let pull = map2(&map2(&x, &state.precisions[at], |x, p| x * p), d_r, |x, d_r| x * d_r);
                    add2(&mut d_state.means[at], &pull, &pull, |pull, _| pull);
                    add2(&mut d_votes[at], &pull, &pull, |pull, _| -pull);
                    add2(&mut d_state.precisions[at], d_r, &x, |d_r, x| E::from_f64(-0.5) * d_r * x * x);
                }
            }
        }
    }

    #[inline(always)]
    fn update_state(&self, slice: &Slice<'_, E>, c: &[Lanes<E>], state: &mut [Lanes<E>]) {
        state.as_flattened_mut().fill(E::ZERO);
        let layer = slice.layer;
        let mut state = parts_mut(layer, state);
        Self::fit(slice, c, &mut state);
        let floor = E::from_f64(FLOOR);
        for variance in &mut *state.precisions {
            *variance = map(variance, |v| E::ONE / (v + floor));
        }
        for block in 0..layer.n_blocks {
            let precisions = &state.precisions[capsules(layer, block)];
            let [activation, level] = self.activate(layer, block, &state.masses[block], precisions);
            state.activations[block] = activation;
            state.levels[block] = level;
        }
    }

    /// With n = N + least, x = u - μ, w = σ² - floor and dσ² = -π² dπ:
    /// dμ += 2 dσ² (−μ least / n), because Σ c x is μ least and not 0;
    /// du = c/n (dμ + 2 dσ² x);
    /// dc = dN + Σ_h (dμ x + dσ² (x² - w)) / n, where μ and σ² lose by dividing by a larger mass;
    /// w is the same for all votes, so its part is in dN.
    #[inline(always)]
    fn update_state_backward(&self, slice: &Slice<'_, E>, c: &[Lanes<E>], d_c: &mut [Lanes<E>], back: Back<'_, '_, E>) {
        let Back { state, d_state, gradient, .. } = back;
        let layer = slice.layer;
        let (state, mut d_state) = (parts(layer, state), parts_mut(layer, d_state));
        for block in 0..layer.n_blocks {
            self.activate_backward(layer, block, &state, &mut d_state, gradient.extra);
        }
        let depth = layer.routing.depth_out;
        let (two, least, floor) = (E::from_f64(2.0), E::from_f64(LEAST_MASS), E::from_f64(FLOOR));
        for at in 0..layer.len {
            let share = map(&state.masses[at / depth], |mass| E::ONE / at_least(mass));
            let d_variance = map2(&d_state.precisions[at], &state.precisions[at], |d, p| -d * p * p);
            let spread = map2(&d_variance, &share, |d_variance, share| two * least * d_variance * share);
            add2(&mut d_state.means[at], &spread, &state.means[at], |spread, mean| -spread * mean);
            d_state.means[at] = map2(&d_state.means[at], &share, |d_mean, share| d_mean * share);
            d_state.precisions[at] = map2(&d_variance, &share, |d_variance, share| d_variance * share);
            let variance = map(&state.precisions[at], |p| E::ONE / p - floor);
            add2(&mut d_state.masses[at / depth], &d_state.precisions[at], &variance, |d, w| -(d * w));
        }
        let rows = c.chunks_exact(layer.n_blocks).zip(d_c.chunks_exact_mut(layer.n_blocks));
        let votes = slice.each_vote().zip(gradient.votes.chunks_exact_mut(layer.len));
        for ((votes, d_votes), (c, d_c)) in votes.zip(rows) {
            for (block, c) in c.iter().enumerate() {
                let mut sum = d_state.masses[block];
                for at in capsules(layer, block) {
                    let (d_mean, d_variance) = (&d_state.means[at], &d_state.precisions[at]);
                    let x = map2(&votes[at], &state.means[at], |vote, mean| vote - mean);
                    let along = map2(d_variance, &x, |d_variance, x| two * d_variance * x);
                    add2(&mut d_votes[at], c, &map2(d_mean, &along, |a, b| a + b), |c, d| c * d);
                    add_product(&mut sum, d_mean, &x);
                    add2(&mut sum, d_variance, &x, |d_variance, x| d_variance * x * x);
                }
                d_c[block] = sum;
            }
        }
    }

    #[inline(always)]
    fn emit(&self, layer: &Layer<'_, E>, state: &[Lanes<E>], output: &mut [Lanes<E>]) {
        let state = parts(layer, state);
        let depth = layer.routing.depth_out;
        Pose::Squash.forward(depth, state.means, output);
        for (v, activation) in output.chunks_exact_mut(depth).zip(state.activations) {
            for v in v {
                *v = map2(v, activation, |v, a| v * a);
            }
        }
    }

    /// With p = squash(μ): da = <dv, p>, dp = a dv.
    #[inline(always)]
    fn emit_backward(
        &self,
        layer: &Layer<'_, E>,
        state: &[Lanes<E>],
        d_output: &[Lanes<E>],
        scratch: &mut [Lanes<E>],
        d_state: &mut [Lanes<E>],
    ) {
        let (state, d_state) = (parts(layer, state), parts_mut(layer, d_state));
        let depth = layer.routing.depth_out;
        let (poses, d_poses) = scratch.split_at_mut(layer.len);
        Pose::Squash.forward(depth, state.means, poses);
        for (at, (pose, d_pose)) in poses.iter().zip(&mut *d_poses).enumerate() {
            add_product(&mut d_state.activations[at / depth], pose, &d_output[at]);
            *d_pose = map2(&d_output[at], &state.activations[at / depth], |d_v, a| d_v * a);
        }
        Pose::Squash.backward(depth, state.means, d_poses, d_state.means);
    }
}
