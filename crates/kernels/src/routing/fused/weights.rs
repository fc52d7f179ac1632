//! The second phase of the backward pass, by input capsules: from the traces of the first one to the gradients of
//! weights, biases and inputs.
//!
//! A task owns some capsule heights and sees all slices in order, so neither the gradients of weights nor those of
//! inputs depend on how the heights are shared out to threads. Chunks of slices never cross utterances, so the gradient
//! of an utterance's inputs does not depend on its batch.

use std::array;
use std::ops::Range;

use rayon::prelude::*;

use super::backward::{Row, Trace};
use super::{Layer, Tasks, at_least, specialized, sum_each};
use crate::routing::Packed;
use crate::simd::Vector;
use crate::{BLOCK, Buffer};

/// Slices whose gradients of sums and poses stay in the second-level cache while all capsules use them.
const CHUNK: usize = 64;
/// Floats of vote gradients that stay in the first-level cache.
const VOTES_FLOATS: usize = 8192;

/// A range of heights of the input capsules for one thread, and its scratch.
pub(crate) struct Task<'a> {
    layer: Layer,
    trace: Trace,
    rows: &'a [Row],
    heights: Range<usize>,
    d_weights: *mut f32,
    d_biases: *mut f32,
    scratch: &'a mut Buffer<f32>,
}

// SAFETY: DISJOINT: a task writes to the gradients of its own capsules.
unsafe impl Send for Task<'_> {}

/// Runs tasks that together cover all input capsules.
pub(super) fn all<T: Tasks>(
    layer: Layer,
    trace: Trace,
    rows: &[Row],
    d_packed: &mut Packed<f32>,
    buffers: &mut Vec<Buffer<f32>>,
) {
    let n_heights = layer.stride / layer.depth_in;
    assert_eq!(n_heights * layer.depth_in, layer.stride, "the stride is a whole number of capsules");
    assert_eq!(layer.n_in % n_heights, 0, "the window is a whole number of slices");
    d_packed.weights.fill(0.0);
    d_packed.biases.fill(0.0);
    let per_task = n_heights.div_ceil(4 * rayon::current_num_threads());
    let (d_weights, d_biases) = (d_packed.weights.as_mut_ptr(), d_packed.biases.as_mut_ptr());
    let buffers = at_least(buffers, n_heights.div_ceil(per_task)).iter_mut().enumerate();
    let tasks = buffers.map(|(n, scratch)| {
        let heights = n * per_task..((n + 1) * per_task).min(n_heights);
        Task { layer, trace, rows, heights, d_weights, d_biases, scratch }
    });
    tasks.collect::<Vec<_>>().par_iter_mut().for_each(T::weights);
}

/// All slices for the capsules of a task.
#[inline(always)]
pub(crate) fn run<V: Vector>(task: &mut Task<'_>) {
    let layer = task.layer;
    specialized!(layer, run_layer::<V>(layer, task));
}

#[inline(always)]
fn run_layer<V: Vector>(layer: &Layer, task: &mut Task<'_>) {
    let n_heights = layer.stride / layer.depth_in;
    let n_together = (VOTES_FLOATS / layer.len).clamp(4, 64) / 4 * 4;
    task.scratch.resize(n_together * layer.len);
    let d_votes = task.scratch.as_mut_ptr();
    for row in task.rows {
        for begin in (0..row.n_slices).step_by(CHUNK) {
            let end = row.n_slices.min(begin + CHUNK);
            for h in task.heights.clone() {
                for i in (h..layer.n_in).step_by(n_heights) {
                    for t in (begin..end).step_by(n_together) {
                        let run = Run { i, t, n: n_together.min(end - t), d_votes };
                        // SAFETY: BOUNDS and SCRATCH; DISJOINT, the capsule is the task's.
                        unsafe { run.add_gradients::<V>(layer, task, row) };
                    }
                }
            }
        }
    }
}

/// A few consecutive slices of one capsule, and room for the gradients of their votes.
struct Run {
    i: usize,
    t: usize,
    n: usize,
    d_votes: *mut f32,
}

impl Run {
    #[inline(always)]
    unsafe fn add_gradients<V: Vector>(&self, layer: &Layer, task: &Task<'_>, row: &Row) {
        let at = self.t * layer.stride + self.i * layer.depth_in;
        for s in 0..self.n {
            // The next capsule's couplings lie behind this one's, each slice's far from the last one's.
            let lanes = task.trace.lanes_at(layer, self.i, row.first_slice + self.t + s, 0);
            for line in (2 * layer.n_lanes..4 * layer.n_lanes).step_by(BLOCK) {
                V::prefetch(task.trace.couplings.wrapping_add(lanes + line));
            }
            self.rebuild::<V>(layer, &task.trace, row.first_slice + self.t + s, self.d_votes.add(s * layer.len));
        }
        let d_weights = task.d_weights.add(self.i * layer.len * layer.depth_in);
        let d_biases = task.d_biases.add(self.i * layer.len);
        self.add_to_weights::<V>(layer, row.inputs.add(at), d_weights, d_biases);
        self.add_to_inputs::<V>(layer, row.d_inputs.add(at));
    }

    /// `du = Σ_n c_n ds_n + D_n v_n` of one slice.
    #[inline(always)]
    unsafe fn rebuild<V: Vector>(&self, layer: &Layer, trace: &Trace, slice: usize, d_vote: *mut f32) {
        for n in 0..trace.n_terms {
            let lanes = trace.lanes_at(layer, self.i, slice, n);
            let poses = trace.poses_at(layer, slice, n);
            for jv in 0..layer.n_vectors::<V>() {
                let at = layer.at::<V>(jv);
                let c = V::load(trace.couplings.add(lanes + jv * V::LANES));
                let d_r = V::load(trace.d_logits.add(lanes + jv * V::LANES));
                for o in 0..layer.depth_out {
                    let d_s = V::load(trace.d_sums.add(poses + at + o * BLOCK));
                    let v = V::load(trace.agreed.add(poses + at + o * BLOCK));
                    let to = d_vote.add(at + o * BLOCK);
                    let so_far = if n == 0 { c.mul(d_s) } else { c.mul_add(d_s, V::load(to)) };
                    d_r.mul_add(v, so_far).store(to);
                }
            }
        }
    }

    /// `dW += du x`, `db += du`.
    #[inline(always)]
    unsafe fn add_to_weights<V: Vector>(&self, layer: &Layer, x: *const f32, d_weights: *mut f32, d_biases: *mut f32) {
        let depth_out = layer.depth_out;
        for jv in 0..layer.n_vectors::<V>() {
            let at = layer.at::<V>(jv);
            let d_weights = d_weights.add(at / BLOCK * BLOCK * layer.depth_in + at % BLOCK);
            let step = if V::LANES == 8 { 2 } else { 4 };
            let mut o = 0;
            while o + step <= depth_out {
                let (d_vote, d_w) = (self.d_votes.add(at + o * BLOCK), d_weights.add(o * layer.depth_in * BLOCK));
                if V::LANES == 8 {
                    self.add_outer::<V, 2>(layer, x, d_vote, d_w);
                } else {
                    self.add_outer::<V, 4>(layer, x, d_vote, d_w);
                }
                o += step;
            }
            while o < depth_out {
                let (d_vote, d_w) = (self.d_votes.add(at + o * BLOCK), d_weights.add(o * layer.depth_in * BLOCK));
                self.add_outer::<V, 1>(layer, x, d_vote, d_w);
                o += 1;
            }
            for o in 0..depth_out {
                let mut sum = V::load(d_biases.add(at + o * BLOCK));
                for s in 0..self.n {
                    sum = sum.add(V::load(self.d_votes.add(s * layer.len + at + o * BLOCK)));
                }
                sum.store(d_biases.add(at + o * BLOCK));
            }
        }
    }

    #[inline(always)]
    unsafe fn add_outer<V: Vector, const O: usize>(
        &self,
        layer: &Layer,
        x: *const f32,
        d_vote: *const f32,
        d_w: *mut f32,
    ) {
        let mut k = 0;
        while k + 4 <= layer.depth_in {
            self.add_outer_tile::<V, O, 4>(layer, x.add(k), d_vote, d_w.add(k * BLOCK));
            k += 4;
        }
        while k < layer.depth_in {
            self.add_outer_tile::<V, O, 1>(layer, x.add(k), d_vote, d_w.add(k * BLOCK));
            k += 1;
        }
    }

    #[inline(always)]
    unsafe fn add_outer_tile<V: Vector, const O: usize, const K: usize>(
        &self,
        layer: &Layer,
        x: *const f32,
        d_vote: *const f32,
        d_w: *mut f32,
    ) {
        let to = |o: usize, k: usize| d_w.wrapping_add((o * layer.depth_in + k) * BLOCK);
        let mut sums: [[V; K]; O] = array::from_fn(|o| array::from_fn(|k| V::load(to(o, k))));
        for s in 0..self.n {
            let pose: [V; K] = array::from_fn(|k| V::splat(*x.add(s * layer.stride + k)));
            for o in 0..O {
                let d_vote = V::load(d_vote.add(s * layer.len + o * BLOCK));
                for k in 0..K {
                    sums[o][k] = pose[k].mul_add(d_vote, sums[o][k]);
                }
            }
        }
        for o in 0..O {
            for k in 0..K {
                sums[o][k].store(to(o, k));
            }
        }
    }

    /// `dx += W' du`.
    #[inline(always)]
    unsafe fn add_to_inputs<V: Vector>(&self, layer: &Layer, d_x: *mut f32) {
        let mut s = 0;
        while V::LANES != 8 && s + 4 <= self.n {
            self.add_product::<V, 4>(layer, s, d_x.add(s * layer.stride));
            s += 4;
        }
        while s + 2 <= self.n {
            self.add_product::<V, 2>(layer, s, d_x.add(s * layer.stride));
            s += 2;
        }
        if s < self.n {
            self.add_product::<V, 1>(layer, s, d_x.add(s * layer.stride));
        }
    }

    #[inline(always)]
    unsafe fn add_product<V: Vector, const S: usize>(&self, layer: &Layer, s: usize, d_x: *mut f32) {
        let mut k = 0;
        while k + 4 <= layer.depth_in {
            self.add_product_tile::<V, S, 4>(layer, s, k, d_x);
            k += 4;
        }
        while k < layer.depth_in {
            self.add_product_tile::<V, S, 1>(layer, s, k, d_x);
            k += 1;
        }
    }

    #[inline(always)]
    unsafe fn add_product_tile<V: Vector, const S: usize, const K: usize>(
        &self,
        layer: &Layer,
        s: usize,
        k: usize,
        d_x: *mut f32,
    ) {
        let weights = layer.weights.wrapping_add(self.i * layer.len * layer.depth_in);
        let mut sums = [[V::zero(); K]; S];
        for jv in 0..layer.n_vectors::<V>() {
            let at = layer.at::<V>(jv);
            let weights = weights.add(at / BLOCK * BLOCK * layer.depth_in + at % BLOCK + k * BLOCK);
            for o in 0..layer.depth_out {
                let w: [V; K] = array::from_fn(|k| V::load(weights.add((o * layer.depth_in + k) * BLOCK)));
                for n in 0..S {
                    let d_vote = V::load(self.d_votes.add((s + n) * layer.len + at + o * BLOCK));
                    for k in 0..K {
                        sums[n][k] = w[k].mul_add(d_vote, sums[n][k]);
                    }
                }
            }
        }
        for n in 0..S {
            for (sum, q) in sum_each(sums[n]).into_iter().zip(k..) {
                *d_x.add(n * layer.stride + q) += sum;
            }
        }
    }
}
