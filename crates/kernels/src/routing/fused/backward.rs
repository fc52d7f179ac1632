//! The first phase of the backward pass, back in time: from gradients of the outputs to couplings, and to the gradients
//! of agreements and of sums.

use std::{array, ptr};

use rayon::prelude::*;

use super::forward::{self, COUPLINGS, add_weighted, by_count, predict_consecutive, predict_tile};
use super::{
    Layer, MAX_INPUTS, SQUASH_EPSILON, TILE, Tasks, pack, partition, softmax, specialized, squash, sum_each, tile_size,
    weights,
};
use crate::routing::{GradientPaths, Packed, Routing, UtteranceBack, Workspace, check_backward};
use crate::simd::Vector;
use crate::{BLOCK, Buffer};

/// An utterance as pointers, for the kernels.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) n_slices: usize,
    /// The utterance's first slice in the traces.
    pub(super) first_slice: usize,
    pub(super) inputs: *const f32,
    pub(super) d_inputs: *mut f32,
    /// Null for zero.
    state: *const f32,
    outputs: *const f32,
    saved: *const f32,
    d_outputs: *const f32,
}

// SAFETY: DISJOINT: `d_inputs` comes from one exclusively borrowed utterance and is written by the second phase only, at
// capsules that belong to one task; everything else is read.
unsafe impl Send for Row {}
// SAFETY: as above.
unsafe impl Sync for Row {}

/// What the first phase leaves for the second, term by term: see the fields of `Workspace`.
#[derive(Clone, Copy)]
pub(super) struct Trace {
    pub(super) n_terms: usize,
    pub(super) couplings: *mut f32,
    pub(super) d_logits: *mut f32,
    pub(super) d_sums: *mut f32,
    pub(super) agreed: *mut f32,
}

// SAFETY: DISJOINT: tasks of the first phase write to the slices of their own utterances only; the second phase reads.
unsafe impl Send for Trace {}
// SAFETY: as above.
unsafe impl Sync for Trace {}

impl Trace {
    /// Where the lanes of capsule `i` at `slice` lie in `couplings` and `d_logits`.
    #[inline(always)]
    pub(super) fn lanes_at(&self, layer: &Layer, i: usize, slice: usize, term: usize) -> usize {
        ((slice * self.n_terms + term) * layer.n_in + i) * 2 * layer.n_lanes
    }

    /// Where the poses of `slice` lie in `d_sums` and `agreed`.
    #[inline(always)]
    pub(super) fn poses_at(&self, layer: &Layer, slice: usize, term: usize) -> usize {
        (slice * self.n_terms + term) * layer.len
    }
}

/// A few utterances for one thread, longest first, and its scratch.
pub(crate) struct Task<'a> {
    layer: Layer,
    trace: Trace,
    paths: GradientPaths,
    rows: Vec<Row>,
    scratch: &'a mut Buffer<f32>,
}

/// See [`routing::backward`](crate::routing::backward): the first phase by utterances, the second by input capsules.
pub(crate) fn backward<T: Tasks>(
    routing: &Routing,
    packed: &Packed<f32>,
    paths: GradientPaths,
    utterances: &mut [UtteranceBack<'_, f32>],
    d_packed: &mut Packed<f32>,
    workspace: &mut Workspace<f32>,
) {
    utterances.iter().for_each(|utterance| check_backward(routing, utterance));
    d_packed.check(routing, "gradient");
    workspace.prepare_lanes(routing);
    let layer = Layer::new(routing, packed, workspace);
    let trace = prepare_trace(routing, paths, utterances, workspace);
    let rows = rows(utterances);
    let lengths: Vec<usize> = rows.iter().map(|row| row.n_slices).collect();
    let mut tasks: Vec<Task<'_>> = partition(&lengths, &mut workspace.tasks)
        .map(|(members, scratch)| {
            let rows = members.iter().map(|&m| rows[m]).collect();
            Task { layer, trace, paths, rows, scratch }
        })
        .collect();
    tasks.par_iter_mut().for_each(T::backward);
    weights::all::<T>(layer, trace, &rows, d_packed, &mut workspace.tasks);
}

fn prepare_trace(
    routing: &Routing,
    paths: GradientPaths,
    utterances: &[UtteranceBack<'_, f32>],
    workspace: &mut Workspace<f32>,
) -> Trace {
    let n_slices: usize = utterances.iter().map(|utterance| utterance.n_slices).sum();
    let n_terms = if paths.through_iterations { routing.n_iterations } else { 1 };
    let Workspace { couplings, d_sums, agreed, .. } = workspace;
    couplings.resize(n_slices * n_terms * routing.n_in * 2 * routing.n_lanes());
    for buffer in [&mut *d_sums, &mut *agreed] {
        buffer.resize(n_slices * n_terms * routing.packed_len());
    }
    let couplings = couplings.as_mut_ptr();
    Trace {
        n_terms,
        couplings,
        d_logits: couplings.wrapping_add(routing.n_lanes()),
        d_sums: d_sums.as_mut_ptr(),
        agreed: agreed.as_mut_ptr(),
    }
}

fn rows(utterances: &mut [UtteranceBack<'_, f32>]) -> Vec<Row> {
    let mut first_slice = 0;
    let mut rows = Vec::with_capacity(utterances.len());
    for utterance in utterances {
        // Before the pointer is taken: writing through the slice afterwards would end the pointer's right to be used.
        utterance.d_inputs.fill(0.0);
        rows.push(Row {
            n_slices: utterance.n_slices,
            first_slice,
            inputs: utterance.inputs.as_ptr(),
            d_inputs: utterance.d_inputs.as_mut_ptr(),
            state: if utterance.state.is_empty() { ptr::null() } else { utterance.state.as_ptr() },
            outputs: utterance.outputs.as_ptr(),
            saved: utterance.saved.as_ptr(),
            d_outputs: utterance.d_outputs.as_ptr(),
        });
        first_slice += utterance.n_slices;
    }
    rows
}

impl Row {
    /// The poses that slice `t` started from, packed into `v`.
    unsafe fn read_start(&self, layer: &Layer, t: usize, v: *mut f32) {
        ptr::write_bytes(v, 0, layer.len);
        if !layer.is_sequential {
        } else if t > 0 {
            pack(layer, self.outputs.add((t - 1) * layer.n_out * layer.depth_out), v);
        } else if !self.state.is_null() {
            pack(layer, self.state, v);
        }
    }

    /// `d_v = d_outputs[t] + carried`, packed.
    unsafe fn read_gradient(&self, layer: &Layer, t: usize, carried: *const f32, d_v: *mut f32) {
        ptr::write_bytes(d_v, 0, layer.len);
        pack(layer, self.d_outputs.add(t * layer.n_out * layer.depth_out), d_v);
        for at in 0..layer.len {
            *d_v.add(at) += *carried.add(at);
        }
    }
}

/// Goes back in time through the utterances of a task.
#[inline(always)]
pub(crate) fn run<V: Vector>(task: &mut Task<'_>) {
    let layer = task.layer;
    specialized!(layer, run_layer::<V>(layer, task));
}

#[inline(always)]
fn run_layer<V: Vector>(layer: &Layer, task: &mut Task<'_>) {
    // SAFETY: BOUNDS, checked in `backward`; SCRATCH, both functions size what they use.
    unsafe {
        if layer.n_iterations == 1 && task.rows.len() > 1 {
            side_by_side::<V>(layer, task);
        } else {
            for index in 0..task.rows.len() {
                alone::<V>(layer, task, index);
            }
        }
    }
}

/// Utterances side by side, one iteration; see the forward pass.
#[inline(always)]
unsafe fn side_by_side<V: Vector>(layer: &Layer, task: &mut Task<'_>) {
    let Task { trace, paths, rows, scratch, .. } = task;
    let (len, together) = (layer.len, layer.n_together());
    scratch.resize((rows.len() + 1 + TILE * together) * len);
    let carries = layer.is_sequential && paths.through_time;
    let carried = scratch.as_mut_ptr();
    let d_v = carried.add(rows.len() * len);
    let votes = d_v.add(len);
    ptr::write_bytes(carried, 0, rows.len() * len);
    let n_slices = rows.iter().map(|row| row.n_slices).max().unwrap_or(0);
    let tile = tile_size(rows.len());
    for t in (0..n_slices).rev() {
        for (r, row) in rows.iter().enumerate().filter(|(_, row)| row.n_slices > t) {
            let poses = trace.poses_at(layer, row.first_slice + t, 0);
            row.read_start(layer, t, trace.agreed.add(poses));
            row.read_gradient(layer, t, carried.add(r * len), d_v);
            squash_backward::<V>(layer, row.saved.add(t * len), d_v, trace.d_sums.add(poses));
            ptr::write_bytes(carried.add(r * len), 0, len);
        }
        let mut i = 0;
        while i < layer.n_in {
            let n = together.min(layer.n_in - i);
            for first in (0..rows.len()).step_by(tile) {
                let active = rows[first..].iter().take(tile).take_while(|row| row.n_slices > t).count();
                let x = |r: usize| rows[first + r].inputs.add(t * layer.stride);
                predict_tile::<V>(layer, active, x, i, n, votes, together);
                let parts: [Part; TILE] = array::from_fn(|r| Part {
                    i,
                    n,
                    slice: rows.get(first + r).map_or(0, |row| row.first_slice + t),
                    votes: votes.add(r * together * len),
                    carried: if carries { carried.wrapping_add((first + r) * len) } else { ptr::null_mut() },
                });
                go_back::<V>(layer, trace, &parts[..active]);
            }
            i += n;
        }
    }
}

/// Up to [`MAX_INPUTS`] input capsules of one slice of one iteration.
struct Part {
    /// The first capsule, and how many there are.
    i: usize,
    n: usize,
    /// In the traces.
    slice: usize,
    /// Of these capsules, one after the other.
    votes: *const f32,
    /// Where gradients of the poses they agreed with are summed; null if not wanted.
    carried: *mut f32,
}

impl Part {
    #[inline(always)]
    fn lanes<const N: usize>(&self, layer: &Layer, trace: &Trace, of: *mut f32) -> [*mut f32; N] {
        array::from_fn(|q| of.wrapping_add(trace.lanes_at(layer, self.i + q, self.slice, 0)))
    }
}

/// Couplings again, their gradients, and what goes back to the poses they agreed with; step by step as in the forward
/// pass, for the same reason.
#[inline(always)]
unsafe fn go_back<V: Vector>(layer: &Layer, trace: &Trace, parts: &[Part]) {
    for part in parts {
        by_count!(part.n, V, agree_both, layer, trace, part);
    }
    for part in parts {
        by_count!(part.n, V, couple, layer, trace, part);
    }
    for part in parts {
        by_count!(part.n, V, uncouple, layer, trace, part);
    }
    for part in parts {
        by_count!(part.n, V, carry, layer, trace, part);
    }
}

/// Agreements of votes with the poses of the slice before, and with the gradients of the sums.
#[inline(always)]
unsafe fn agree_both<V: Vector, const N: usize>(layer: &Layer, trace: &Trace, part: &Part) {
    let poses = trace.poses_at(layer, part.slice, 0);
    let (couplings, d_logits) =
        (part.lanes::<N>(layer, trace, trace.couplings), part.lanes::<N>(layer, trace, trace.d_logits));
    let (v, d_s) = (trace.agreed.add(poses), trace.d_sums.add(poses));
    for jv in 0..layer.n_vectors::<V>() {
        let (lane, at) = (jv * V::LANES, layer.at::<V>(jv));
        let mut r = [V::load(layer.start.add(lane)); N];
        let mut d_c = [V::zero(); N];
        for o in 0..layer.depth_out {
            let v = V::load(v.add(at + o * BLOCK));
            let d_s = V::load(d_s.add(at + o * BLOCK));
            for q in 0..N {
                let vote = V::load(part.votes.add(q * layer.len + at + o * BLOCK));
                r[q] = vote.mul_add(v, r[q]);
                d_c[q] = vote.mul_add(d_s, d_c[q]);
            }
        }
        for q in 0..N {
            r[q].store(couplings[q].add(lane));
            d_c[q].store(d_logits[q].add(lane));
        }
    }
}

#[inline(always)]
unsafe fn couple<V: Vector, const N: usize>(layer: &Layer, trace: &Trace, part: &Part) {
    let couplings = part.lanes::<N>(layer, trace, trace.couplings);
    softmax::<V, N>(layer, couplings, couplings);
}

#[inline(always)]
unsafe fn uncouple<V: Vector, const N: usize>(layer: &Layer, trace: &Trace, part: &Part) {
    let (couplings, d_logits) =
        (part.lanes::<N>(layer, trace, trace.couplings), part.lanes::<N>(layer, trace, trace.d_logits));
    softmax_backward::<V, N>(layer, couplings, d_logits, [ptr::null(); N]);
}

#[inline(always)]
unsafe fn carry<V: Vector, const N: usize>(layer: &Layer, trace: &Trace, part: &Part) {
    if !part.carried.is_null() {
        let d_logits = part.lanes::<N>(layer, trace, trace.d_logits);
        add_weighted::<V, N>(layer, part.votes, d_logits, part.carried);
    }
}

/// `d_r = c (d_c - Σ c d_c) + later`, in place of `d_c`; `later` may be null.
#[inline(always)]
unsafe fn softmax_backward<V: Vector, const N: usize>(
    layer: &Layer,
    couplings: [*mut f32; N],
    d_couplings: [*mut f32; N],
    later: [*const f32; N],
) {
    let mut means = [V::zero(); N];
    for q in 0..N {
        for jv in 0..layer.n_vectors::<V>() {
            let lane = jv * V::LANES;
            means[q] = V::load(couplings[q].add(lane)).mul_add(V::load(d_couplings[q].add(lane)), means[q]);
        }
    }
    let means = sum_each(means);
    for q in 0..N {
        let mean = V::splat(means[q]);
        for jv in 0..layer.n_vectors::<V>() {
            let lane = jv * V::LANES;
            let d_r = V::load(couplings[q].add(lane)).mul(V::load(d_couplings[q].add(lane)).sub(mean));
            let d_r = if later[q].is_null() { d_r } else { d_r.add(V::load(later[q].add(lane))) };
            d_r.store(d_couplings[q].add(lane));
        }
    }
}

/// One utterance alone, any number of iterations: each slice is routed again, then differentiated.
#[inline(always)]
unsafe fn alone<V: Vector>(layer: &Layer, task: &mut Task<'_>, index: usize) {
    let row = task.rows[index];
    let Task { trace, paths, scratch, .. } = task;
    let (len, n) = (layer.len, layer.n_iterations);
    scratch.resize((2 * n + 4 + TILE * layer.n_in) * len + (TILE * COUPLINGS + layer.n_in) * layer.n_lanes);
    let poses = scratch.as_mut_ptr();
    let sums = poses.add((n + 1) * len);
    let carried = sums.add(n * len);
    let d_v = carried.add(len);
    let votes = d_v.add(2 * len);
    let couplings = votes.add(TILE * layer.n_in * len);
    let logits = couplings.add(TILE * COUPLINGS * layer.n_lanes);
    ptr::write_bytes(carried, 0, len);
    let mut end = row.n_slices;
    while end > 0 {
        let begin = end.saturating_sub(TILE);
        predict_consecutive::<V>(layer, row.inputs.add(begin * layer.stride), end - begin, votes);
        for t in (begin..end).rev() {
            let votes = votes.add((t - begin) * layer.n_in * len).cast_const();
            let memory = forward::Slice { votes, poses, sums, couplings, logits };
            let slice = Slice { memory, index: row.first_slice + t, d_v };
            row.read_start(layer, t, poses);
            slice.route_again::<V>(layer, trace);
            row.read_gradient(layer, t, carried, d_v);
            let d_start = slice.go_back::<V>(layer, trace);
            ptr::write_bytes(carried, 0, len);
            if layer.is_sequential && paths.through_time && trace.n_terms == layer.n_iterations {
                ptr::copy_nonoverlapping(d_start, carried, len);
            }
        }
        end = begin;
    }
}

/// The memory of one slice with several iterations.
struct Slice {
    /// Poses before the first iteration and after each, and the sums of each.
    memory: forward::Slice,
    /// Gradient of the poses, twice: what came, and what goes.
    d_v: *mut f32,
    /// In the traces.
    index: usize,
}

impl Slice {
    /// The forward pass, keeping of each iteration what the backward pass needs.
    #[inline(always)]
    unsafe fn route_again<V: Vector>(&self, layer: &Layer, trace: &Trace) {
        let first = layer.n_iterations - trace.n_terms;
        self.memory.start(layer);
        for n in 0..layer.n_iterations {
            let (v, s) = (self.memory.poses.add(n * layer.len), self.memory.sums.add(n * layer.len));
            self.memory.iterate::<V>(layer, v, s, |part| {
                for q in 0..if n < first { 0 } else { part.n } {
                    let to = trace.couplings.add(trace.lanes_at(layer, part.i + q, self.index, n - first));
                    ptr::copy_nonoverlapping(part.coupling(layer, q), to, layer.n_lanes);
                }
            });
            squash::<V>(layer, s, v.add(layer.len));
        }
        let agreed = trace.agreed.add(trace.poses_at(layer, self.index, 0));
        ptr::copy_nonoverlapping(self.memory.poses.add(first * layer.len), agreed, trace.n_terms * layer.len);
    }

    /// From the gradient of the slice's outputs in `d_v` to that of the poses it started from, which is returned.
    #[inline(always)]
    unsafe fn go_back<V: Vector>(&self, layer: &Layer, trace: &Trace) -> *const f32 {
        let first = layer.n_iterations - trace.n_terms;
        let (mut d_v, mut d_next) = (self.d_v, self.d_v.add(layer.len));
        for n in (0..trace.n_terms).rev() {
            let d_s = trace.d_sums.add(trace.poses_at(layer, self.index, n));
            squash_backward::<V>(layer, self.memory.sums.add((first + n) * layer.len), d_v, d_s);
            ptr::write_bytes(d_next, 0, layer.len);
            for i in (0..layer.n_in).step_by(MAX_INPUTS) {
                let (count, votes) = (MAX_INPUTS.min(layer.n_in - i), self.memory.votes.add(i * layer.len));
                by_count!(count, V, iteration_backward, layer, trace, self.index, n, i, votes, d_next);
            }
            (d_v, d_next) = (d_next, d_v);
        }
        d_v
    }
}

#[inline(always)]
unsafe fn iteration_backward<V: Vector, const N: usize>(
    layer: &Layer,
    trace: &Trace,
    slice: usize,
    n: usize,
    i: usize,
    votes: *const f32,
    d_v: *mut f32,
) {
    let d_s = trace.d_sums.add(trace.poses_at(layer, slice, n));
    let lanes = |q: usize, n: usize| trace.lanes_at(layer, i + q, slice, n);
    let couplings: [*mut f32; N] = array::from_fn(|q| trace.couplings.add(lanes(q, n)));
    let d_logits: [*mut f32; N] = array::from_fn(|q| trace.d_logits.add(lanes(q, n)));
    let later: [*const f32; N] = array::from_fn(|q| match n + 1 < trace.n_terms {
        true => trace.d_logits.add(lanes(q, n + 1)).cast_const(),
        false => ptr::null(),
    });
    for jv in 0..layer.n_vectors::<V>() {
        let at = layer.at::<V>(jv);
        let mut d_c = [V::zero(); N];
        for o in 0..layer.depth_out {
            let d_s = V::load(d_s.add(at + o * BLOCK));
            for q in 0..N {
                d_c[q] = V::load(votes.add(q * layer.len + at + o * BLOCK)).mul_add(d_s, d_c[q]);
            }
        }
        for q in 0..N {
            d_c[q].store(d_logits[q].add(jv * V::LANES));
        }
    }
    softmax_backward::<V, N>(layer, couplings, d_logits, later);
    add_weighted::<V, N>(layer, votes, d_logits, d_v);
}

/// The gradient of the sums from that of their squashed poses; the formula is derived in `scalar`.
#[inline(always)]
unsafe fn squash_backward<V: Vector>(layer: &Layer, s: *const f32, d_v: *const f32, d_s: *mut f32) {
    let epsilon = V::splat(SQUASH_EPSILON as f32);
    for jv in 0..layer.n_vectors::<V>() {
        let at = layer.at::<V>(jv);
        let (mut n2, mut along) = (V::zero(), V::zero());
        for o in 0..layer.depth_out {
            let s = V::load(s.add(at + o * BLOCK));
            n2 = s.mul_add(s, n2);
            along = s.mul_add(V::load(d_v.add(at + o * BLOCK)), along);
        }
        let root = n2.add(epsilon).sqrt();
        let wide = n2.add(V::splat(1.0));
        let factor = n2.div(wide.mul(root));
        let slope = n2.add(epsilon).add(epsilon).sub(n2.mul(n2));
        let along = along.mul(slope.div(root.mul(root).mul(root).mul(wide).mul(wide)));
        for o in 0..layer.depth_out {
            let s = V::load(s.add(at + o * BLOCK));
            let d_v = V::load(d_v.add(at + o * BLOCK));
            s.mul(along).add(d_v.mul(factor)).store(d_s.add(at + o * BLOCK));
        }
    }
}
