//! The forward pass, with the votes of a few capsules alive at any moment.

use std::{array, ptr};

use rayon::prelude::*;

use super::{
    Layer, MAX_INPUTS, TILE, Tasks, pack, partition, predict, softmax, specialized, squash, tile_size, unpack,
};
use crate::routing::{Packed, Routing, Utterance, Workspace, check_forward};
use crate::simd::Vector;
use crate::{BLOCK, Buffer};

/// An utterance as pointers, for the kernels.
#[derive(Clone, Copy)]
struct Row {
    n_slices: usize,
    inputs: *const f32,
    /// Null for zero.
    state: *const f32,
    outputs: *mut f32,
    /// Null where not wanted.
    saved: *mut f32,
    couplings: *mut f32,
    agreements: *mut f32,
}

// SAFETY: DISJOINT: a row's pointers come from one exclusively borrowed utterance, and each row goes to one task.
unsafe impl Send for Row {}

/// A few utterances for one thread, longest first, and its scratch.
pub(crate) struct Task<'a> {
    layer: Layer,
    rows: Vec<Row>,
    scratch: &'a mut Buffer<f32>,
}

/// See [`routing::forward`](crate::routing::forward).
pub(crate) fn forward<T: Tasks>(
    routing: &Routing,
    packed: &Packed<f32>,
    utterances: &mut [Utterance<'_, f32>],
    workspace: &mut Workspace<f32>,
) {
    utterances.iter().for_each(|utterance| check_forward(routing, utterance));
    workspace.prepare_lanes(routing);
    let layer = Layer::new(routing, packed, workspace);
    let lengths: Vec<usize> = utterances.iter().map(|utterance| utterance.n_slices).collect();
    let rows: Vec<Row> = utterances.iter_mut().map(Row::new).collect();
    let mut tasks: Vec<Task<'_>> = partition(&lengths, &mut workspace.tasks)
        .map(|(members, scratch)| Task { layer, rows: members.iter().map(|&m| rows[m]).collect(), scratch })
        .collect();
    match tasks.as_mut_slice() {
        [only] => T::forward(only),
        many => many.par_iter_mut().for_each(T::forward),
    }
}

impl Row {
    fn new(utterance: &mut Utterance<'_, f32>) -> Self {
        let (couplings, agreements) = match &mut utterance.tap {
            Some(tap) => (tap.couplings.as_mut_ptr(), tap.agreements.as_mut_ptr()),
            None => (ptr::null_mut(), ptr::null_mut()),
        };
        Self {
            n_slices: utterance.n_slices,
            inputs: utterance.inputs.as_ptr(),
            state: if utterance.state.is_empty() { ptr::null() } else { utterance.state.as_ptr() },
            outputs: utterance.outputs.as_mut_ptr(),
            saved: if utterance.saved.is_empty() { ptr::null_mut() } else { utterance.saved.as_mut_ptr() },
            couplings,
            agreements,
        }
    }

    unsafe fn read_state(&self, layer: &Layer, v: *mut f32) {
        ptr::write_bytes(v, 0, layer.len);
        if !self.state.is_null() && layer.is_sequential {
            pack(layer, self.state, v);
        }
    }

    /// Squashes `s` into `v` and writes what is asked for slice `t`.
    #[inline(always)]
    unsafe fn finish<V: Vector>(&self, layer: &Layer, t: usize, s: *const f32, v: *mut f32) {
        squash::<V>(layer, s, v);
        unpack(layer, v, self.outputs.add(t * layer.n_out * layer.depth_out));
        if !self.saved.is_null() {
            ptr::copy_nonoverlapping(s, self.saved.add(t * layer.len), layer.len);
        }
    }

    /// Writes what `part` decided, if anybody looks.
    #[inline(always)]
    unsafe fn write_tap(&self, layer: &Layer, t: usize, part: &Part) {
        if self.couplings.is_null() {
            return;
        }
        for q in 0..part.n {
            let at = (t * layer.n_in + part.i + q) * layer.n_out;
            ptr::copy_nonoverlapping(part.coupling(layer, q), self.couplings.add(at), layer.n_out);
            ptr::copy_nonoverlapping(part.agreement(layer, q), self.agreements.add(at), layer.n_out);
        }
    }
}

/// Routes the utterances of a task.
#[inline(always)]
pub(crate) fn run<V: Vector>(task: &mut Task<'_>) {
    let layer = task.layer;
    specialized!(layer, run_layer::<V>(layer, task));
}

#[inline(always)]
fn run_layer<V: Vector>(layer: &Layer, task: &mut Task<'_>) {
    // SAFETY: BOUNDS, checked in `forward`; SCRATCH, both functions size what they use.
    unsafe {
        if layer.n_iterations == 1 && task.rows.len() > 1 {
            for rows in task.rows.chunks(layer.n_side_by_side(task.rows.len())) {
                side_by_side::<V>(layer, rows, task.scratch);
            }
        } else {
            for row in &task.rows {
                alone::<V>(layer, row, task.scratch);
            }
        }
    }
}

/// Utterances side by side, slice by slice, one iteration: the votes of a few capsules live in the first-level cache.
#[inline(always)]
unsafe fn side_by_side<V: Vector>(layer: &Layer, rows: &[Row], scratch: &mut Buffer<f32>) {
    let (len, together) = (layer.len, layer.n_together());
    scratch.resize((2 * rows.len() + TILE * together) * len + TILE * COUPLINGS * layer.n_lanes);
    let v = scratch.as_mut_ptr();
    let s = v.add(rows.len() * len);
    let votes = s.add(rows.len() * len);
    let couplings = votes.add(TILE * together * len);
    rows.iter().enumerate().for_each(|(r, row)| row.read_state(layer, v.add(r * len)));
    let n_slices = rows.iter().map(|row| row.n_slices).max().unwrap_or(0);
    let tile = tile_size(rows.len());
    for t in 0..n_slices {
        ptr::write_bytes(s, 0, rows.len() * len);
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
                    votes: votes.add(r * together * len),
                    v: v.wrapping_add((first + r) * len),
                    s: s.wrapping_add((first + r) * len),
                    couplings: couplings.add(r * COUPLINGS * layer.n_lanes),
                    logits: ptr::null_mut(),
                });
                route::<V>(layer, &parts[..active]);
                for r in 0..active {
                    rows[first + r].write_tap(layer, t, &parts[r]);
                }
            }
            i += n;
        }
        for (r, row) in rows.iter().enumerate().filter(|(_, row)| row.n_slices > t) {
            row.finish::<V>(layer, t, s.add(r * len), v.add(r * len));
            if !layer.is_sequential {
                ptr::write_bytes(v.add(r * len), 0, len);
            }
        }
    }
}

/// Votes of `n` capsules from `i` on for up to [`TILE`] slices whose inputs start at `x`, `[slice][capsule][packed]`.
#[inline(always)]
pub(super) unsafe fn predict_tile<V: Vector>(
    layer: &Layer,
    n_slices: usize,
    x: impl Fn(usize) -> *const f32,
    i: usize,
    n: usize,
    votes: *mut f32,
    together: usize,
) {
    for q in 0..n {
        let x = |r: usize| x(r).add((i + q) * layer.depth_in);
        let to = |r: usize| votes.add((r * together + q) * layer.len);
        match n_slices {
            0 => {}
            1 => predict::<V, 1>(layer, i + q, array::from_fn(x), array::from_fn(to)),
            2 => predict::<V, 2>(layer, i + q, array::from_fn(x), array::from_fn(to)),
            3 => predict::<V, 3>(layer, i + q, array::from_fn(x), array::from_fn(to)),
            _ => predict::<V, 4>(layer, i + q, array::from_fn(x), array::from_fn(to)),
        }
    }
}

/// One utterance alone, any number of iterations: the votes of up to [`TILE`] consecutive slices are computed against
/// one load of the weights, then each slice is routed in its turn.
#[inline(always)]
unsafe fn alone<V: Vector>(layer: &Layer, row: &Row, scratch: &mut Buffer<f32>) {
    let len = layer.len;
    scratch.resize((2 + TILE * layer.n_in) * len + (TILE * COUPLINGS + layer.n_in) * layer.n_lanes);
    let v = scratch.as_mut_ptr();
    let s = v.add(len);
    let votes = s.add(len);
    let couplings = votes.add(TILE * layer.n_in * len);
    let logits = couplings.add(TILE * COUPLINGS * layer.n_lanes);
    row.read_state(layer, v);
    let mut t = 0;
    while t < row.n_slices {
        let n = TILE.min(row.n_slices - t);
        predict_consecutive::<V>(layer, row.inputs.add(t * layer.stride), n, votes);
        for q in 0..n {
            let votes = votes.add(q * layer.n_in * len).cast_const();
            let slice = Slice { votes, poses: v, sums: s, couplings, logits };
            slice.start(layer);
            for n in 0..layer.n_iterations {
                if n > 0 {
                    squash::<V>(layer, s, v);
                }
                slice.iterate::<V>(layer, v, s, |part| row.write_tap(layer, t + q, part));
            }
            row.finish::<V>(layer, t + q, s, v);
            if !layer.is_sequential {
                ptr::write_bytes(v, 0, len);
            }
        }
        t += n;
    }
}

/// Votes of all capsules for `n` consecutive slices that start at `inputs`, `[slice][capsule][packed]`.
#[inline(always)]
pub(super) unsafe fn predict_consecutive<V: Vector>(layer: &Layer, inputs: *const f32, n: usize, votes: *mut f32) {
    predict_tile::<V>(layer, n, |q| inputs.add(q * layer.stride), 0, layer.n_in, votes, layer.n_in);
}

/// What routing one slice of several iterations reads and writes.
pub(super) struct Slice {
    /// Of all input capsules.
    pub(super) votes: *const f32,
    pub(super) poses: *mut f32,
    pub(super) sums: *mut f32,
    /// Room for [`TILE`] parts' couplings.
    pub(super) couplings: *mut f32,
    /// Agreements of all capsules, kept from iteration to iteration.
    pub(super) logits: *mut f32,
}

impl Slice {
    /// Agreements before the first iteration.
    pub(super) unsafe fn start(&self, layer: &Layer) {
        for i in 0..layer.n_in {
            ptr::copy_nonoverlapping(layer.start, self.logits.add(i * layer.n_lanes), layer.n_lanes);
        }
    }

    /// One iteration from the poses `v` to the sums `s`; shows each part to `look` once it is routed.
    #[inline(always)]
    pub(super) unsafe fn iterate<V: Vector>(&self, layer: &Layer, v: *mut f32, s: *mut f32, look: impl Fn(&Part)) {
        ptr::write_bytes(s, 0, layer.len);
        for first in (0..layer.n_in).step_by(TILE * MAX_INPUTS) {
            let n_parts = TILE.min((layer.n_in - first).div_ceil(MAX_INPUTS));
            let parts: [Part; TILE] = array::from_fn(|q| {
                let i = first + q * MAX_INPUTS;
                Part {
                    i,
                    n: MAX_INPUTS.min(layer.n_in.saturating_sub(i)),
                    votes: self.votes.wrapping_add(i * layer.len),
                    v,
                    s,
                    couplings: self.couplings.add(q * COUPLINGS * layer.n_lanes),
                    logits: self.logits.wrapping_add(i * layer.n_lanes),
                }
            });
            route::<V>(layer, &parts[..n_parts]);
            parts[..n_parts].iter().for_each(&look);
        }
    }
}

/// Vectors of lanes that a part needs: couplings, then agreements, of each of its capsules.
pub(super) const COUPLINGS: usize = 2 * MAX_INPUTS;

/// Up to [`MAX_INPUTS`] input capsules of one slice.
pub(super) struct Part {
    /// The first capsule, and how many there are.
    pub(super) i: usize,
    pub(super) n: usize,
    /// Of these capsules, one after the other.
    votes: *const f32,
    /// The poses that votes are compared with, then the sums.
    v: *const f32,
    s: *mut f32,
    /// Room for [`COUPLINGS`] vectors.
    couplings: *mut f32,
    /// Agreements of these capsules kept from iteration to iteration; null if there is one iteration.
    logits: *mut f32,
}

impl Part {
    #[inline(always)]
    pub(super) fn coupling(&self, layer: &Layer, q: usize) -> *mut f32 {
        self.couplings.wrapping_add(q * layer.n_lanes)
    }

    #[inline(always)]
    fn agreement(&self, layer: &Layer, q: usize) -> *mut f32 {
        self.couplings.wrapping_add((MAX_INPUTS + q) * layer.n_lanes)
    }
}

/// Calls `$function::<V, N>` with the part's number of capsules as `N`.
macro_rules! by_count {
    ($n:expr, $vector:ty, $function:ident, $($argument:expr),*) => {
        match $n {
            1 => $function::<$vector, 1>($($argument),*),
            2 => $function::<$vector, 2>($($argument),*),
            3 => $function::<$vector, 3>($($argument),*),
            _ => $function::<$vector, 4>($($argument),*),
        }
    };
}
pub(super) use by_count;

/// Agreement, softmax and weighted sum of each part.
///
/// Each step is done for all parts before the next: a softmax is a long chain of dependent instructions, and the
/// processor works on as many chains as it finds.
#[inline(always)]
unsafe fn route<V: Vector>(layer: &Layer, parts: &[Part]) {
    for part in parts {
        by_count!(part.n, V, agree, layer, part);
    }
    for part in parts {
        by_count!(part.n, V, couple, layer, part);
    }
    for part in parts {
        by_count!(part.n, V, gather, layer, part);
    }
}

#[inline(always)]
unsafe fn agree<V: Vector, const N: usize>(layer: &Layer, part: &Part) {
    for jv in 0..layer.n_vectors::<V>() {
        let (lane, at) = (jv * V::LANES, layer.at::<V>(jv));
        let start = |q: usize| match part.logits.is_null() {
            true => V::load(layer.start.add(lane)),
            false => V::load(part.logits.add(q * layer.n_lanes + lane)),
        };
        let mut r: [V; N] = array::from_fn(start);
        for o in 0..layer.depth_out {
            let v = V::load(part.v.add(at + o * BLOCK));
            for q in 0..N {
                r[q] = V::load(part.votes.add(q * layer.len + at + o * BLOCK)).mul_add(v, r[q]);
            }
        }
        for q in 0..N {
            r[q].store(part.agreement(layer, q).add(lane));
            if !part.logits.is_null() {
                r[q].store(part.logits.add(q * layer.n_lanes + lane));
            }
        }
    }
}

#[inline(always)]
unsafe fn couple<V: Vector, const N: usize>(layer: &Layer, part: &Part) {
    let agreements: [*mut f32; N] = array::from_fn(|q| part.agreement(layer, q));
    let couplings: [*mut f32; N] = array::from_fn(|q| part.coupling(layer, q));
    softmax::<V, N>(layer, agreements, couplings);
}

#[inline(always)]
unsafe fn gather<V: Vector, const N: usize>(layer: &Layer, part: &Part) {
    let couplings: [*mut f32; N] = array::from_fn(|q| part.coupling(layer, q));
    add_weighted::<V, N>(layer, part.votes, couplings, part.s);
}

/// `sum += Σ_q weights_q · votes_q` on packed poses.
#[inline(always)]
pub(super) unsafe fn add_weighted<V: Vector, const N: usize>(
    layer: &Layer,
    votes: *const f32,
    weights: [*mut f32; N],
    sum: *mut f32,
) {
    for jv in 0..layer.n_vectors::<V>() {
        let at = layer.at::<V>(jv);
        let c: [V; N] = array::from_fn(|q| V::load(weights[q].add(jv * V::LANES)));
        for o in 0..layer.depth_out {
            let mut s = V::load(sum.add(at + o * BLOCK));
            for q in 0..N {
                s = c[q].mul_add(V::load(votes.add(q * layer.len + at + o * BLOCK)), s);
            }
            s.store(sum.add(at + o * BLOCK));
        }
    }
}
