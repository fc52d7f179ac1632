//! Routing on vectors: everything runs vertically over output capsules, a block of lanes at a time.
//!
//! Poses and votes are packed as `[block of output capsules][depth][lane]`, so that agreement, softmax and weighted sum
//! need no horizontal sums but those of the softmax itself.
//! Votes of a few input capsules for up to [`TILE`] slices are computed against one load of the weights, stay in the
//! first-level cache, are used, and are forgotten.
//!
//! Each slice is computed by the same sequence of operations however many others share the load of the weights: that
//! is why an utterance gives the same bits alone, in any batch and in a stream.
//!
//! # Safety
//! Kernels work on pointers: slices of the same utterance overlap, and tasks write to interleaved capsules.
//! [`forward()`] and [`backward()`] check all lengths; every `unsafe fn` below relies on BOUNDS, SCRATCH and DISJOINT of
//! the crate's notes, with these lengths in floats:
//! - poses and sums of a slice (`v`, `s`, `d_v`, `d_s`, `carried`): `len`; votes of `n` capsules: `n * len`;
//! - couplings and agreements (of each capsule), `start` and `valid`: `n_lanes`;
//! - a pose of an input capsule (`x`, `d_x`): `depth_in`; `t`, `i` and `slice` name a slice and a capsule that exist.
#![allow(unsafe_op_in_unsafe_fn)] // one contract, stated above: a block in every function would only repeat it

mod backward;
mod forward;
mod weights;

use std::array;
use std::ops::Deref;

pub(crate) use backward::{Task as BackwardTask, backward, run as run_backward};
pub(crate) use forward::{Task as ForwardTask, forward, run as run_forward};
pub(crate) use weights::{Task as WeightsTask, run as run_weights};

use super::{Packed, Routing, SQUASH_EPSILON, Workspace};
use crate::simd::Vector;
use crate::{BLOCK, Buffer};

/// How a row of the table runs tasks: with its instruction set enabled.
pub(crate) trait Tasks {
    fn forward(task: &mut ForwardTask<'_>);
    fn backward(task: &mut BackwardTask<'_>);
    fn weights(task: &mut WeightsTask<'_>);
}

/// Slices that share one load of the weights.
const TILE: usize = 4;

/// Input capsules whose votes are handled together; their votes for a tile of slices stay in the first-level cache.
const MAX_INPUTS: usize = 4;
const VOTES_FLOATS: usize = 5120;

/// Runs `$body` with `$layer`'s depths known to the compiler where both are 8, the most used: loops over a depth are
/// short, and unrolled they run a seventh faster. (At depth 16 or 20 the gain does not pay for the compile time.)
macro_rules! specialized {
    ($layer:ident, $body:expr) => {
        if $layer.depth_in == 8 && $layer.depth_out == 8 {
            let routing = crate::routing::Routing { depth_in: 8, depth_out: 8, ..$layer.routing };
            let $layer = &Layer { routing, ..$layer };
            $body
        } else {
            let $layer = &$layer;
            $body
        }
    };
}
use specialized;

/// What the kernels need to know of a layer; pointers stay valid for the call that made it.
#[derive(Clone, Copy)]
struct Layer {
    routing: Routing,
    /// Lanes of a coupling vector, a multiple of [`BLOCK`].
    n_lanes: usize,
    /// Floats of packed poses.
    len: usize,
    weights: *const f32,
    biases: *const f32,
    start: *const f32,
    valid: *const f32,
}

// SAFETY: ALIVE; nothing is written through the pointers.
unsafe impl Send for Layer {}
// SAFETY: as above.
unsafe impl Sync for Layer {}

impl Deref for Layer {
    type Target = Routing;

    #[inline(always)]
    fn deref(&self) -> &Routing {
        &self.routing
    }
}

impl Layer {
    fn new(routing: &Routing, packed: &Packed<f32>, workspace: &Workspace<f32>) -> Self {
        packed.check(routing, "weights");
        Self {
            routing: *routing,
            n_lanes: routing.n_lanes(),
            len: routing.packed_len(),
            weights: packed.weights.as_ptr(),
            biases: packed.biases.as_ptr(),
            start: workspace.start.as_ptr(),
            valid: workspace.valid.as_ptr(),
        }
    }

    /// Vectors that hold the output capsules; lanes beyond them are zero for good.
    #[inline(always)]
    fn n_vectors<V: Vector>(&self) -> usize {
        self.n_out.div_ceil(V::LANES)
    }

    /// Where vector `jv` of depth element 0 lies in packed poses; element `o` lies `o * BLOCK` further.
    #[inline(always)]
    fn at<V: Vector>(&self, jv: usize) -> usize {
        let lane = jv * V::LANES;
        lane / BLOCK * self.depth_out * BLOCK + lane % BLOCK
    }

    /// Utterances to walk through side by side: few, so that their poses and sums stay in the first-level cache, unless
    /// the weights are too many for the second-level cache, where each loading of them should serve many.
    fn n_side_by_side(&self, n_utterances: usize) -> usize {
        const SECOND_LEVEL_FLOATS: usize = 1 << 19;
        let fits = self.n_in * self.len * self.depth_in <= SECOND_LEVEL_FLOATS;
        if fits { tile_size(n_utterances) } else { n_utterances.max(1) }
    }

    /// Input capsules to handle together.
    fn n_together(&self) -> usize {
        (VOTES_FLOATS / (TILE * self.len)).clamp(1, MAX_INPUTS)
    }
}

/// Votes of `R` slices for `O` depth elements of one vector of output capsules.
#[inline(always)]
unsafe fn tile<V: Vector, const R: usize, const O: usize>(
    weights: *const f32,
    biases: *const f32,
    x: [*const f32; R],
    depth_in: usize,
) -> [[V; R]; O] {
    let mut votes: [[V; R]; O] = array::from_fn(|o| [V::load(biases.add(o * BLOCK)); R]);
    for k in 0..depth_in {
        let pose: [V; R] = array::from_fn(|r| V::splat(*x[r].add(k)));
        for o in 0..O {
            let weight = V::load(weights.add((o * depth_in + k) * BLOCK));
            for r in 0..R {
                votes[o][r] = pose[r].mul_add(weight, votes[o][r]);
            }
        }
    }
    votes
}

/// Depth elements whose votes for `n_slices` slices are accumulated at once: enough chains of dependent additions to
/// keep the processor busy (eight at least), few enough for its registers (16 with AVX2, 32 otherwise).
const fn n_depths<V: Vector>(n_slices: usize) -> usize {
    match (V::LANES == 8, n_slices) {
        (true, 4..) => 2,
        (true, 2..) | (false, 3..) => 4,
        _ => 8,
    }
}

/// Votes of input capsule `i` for `R` slices, packed.
#[inline(always)]
unsafe fn predict<V: Vector, const R: usize>(layer: &Layer, i: usize, x: [*const f32; R], votes: [*mut f32; R]) {
    for jv in 0..layer.n_vectors::<V>() {
        let at = layer.at::<V>(jv);
        let weights =
            layer.weights.add(i * layer.len * layer.depth_in + at / BLOCK * BLOCK * layer.depth_in + at % BLOCK);
        let biases = layer.biases.add(i * layer.len + at);
        let mut o = 0;
        let step = n_depths::<V>(R);
        while o + step <= layer.depth_out {
            let (w, b) = (weights.add(o * layer.depth_in * BLOCK), biases.add(o * BLOCK));
            match step {
                2 => store(tile::<V, R, 2>(w, b, x, layer.depth_in), votes, at + o * BLOCK),
                4 => store(tile::<V, R, 4>(w, b, x, layer.depth_in), votes, at + o * BLOCK),
                _ => store(tile::<V, R, 8>(w, b, x, layer.depth_in), votes, at + o * BLOCK),
            }
            o += step;
        }
        while o < layer.depth_out {
            let (w, b) = (weights.add(o * layer.depth_in * BLOCK), biases.add(o * BLOCK));
            store(tile::<V, R, 1>(w, b, x, layer.depth_in), votes, at + o * BLOCK);
            o += 1;
        }
    }
}

#[inline(always)]
unsafe fn store<V: Vector, const R: usize, const O: usize>(tile: [[V; R]; O], votes: [*mut f32; R], at: usize) {
    for (o, rows) in tile.into_iter().enumerate() {
        for (r, vote) in rows.into_iter().enumerate() {
            vote.store(votes[r].add(at + o * BLOCK));
        }
    }
}

/// Softmax over the lanes of `N` vectors of agreements; lanes that are no class become exactly zero.
#[inline(always)]
unsafe fn softmax<V: Vector, const N: usize>(layer: &Layer, agreements: [*mut f32; N], couplings: [*mut f32; N]) {
    let mut sums = [V::zero(); N];
    for n in 0..N {
        let shift = V::splat(shift::<V>(layer, agreements[n]));
        for jv in 0..layer.n_vectors::<V>() {
            let lane = jv * V::LANES;
            let r = V::load(agreements[n].add(lane));
            let power = r.sub(shift).exp().mul(V::load(layer.valid.add(lane)));
            power.store(couplings[n].add(lane));
            sums[n] = sums[n].add(power);
        }
    }
    let sums = sum_each(sums);
    for n in 0..N {
        let scale = V::splat(1.0 / sums[n]);
        for jv in 0..layer.n_vectors::<V>() {
            let at = couplings[n].add(jv * V::LANES);
            V::load(at).mul(scale).store(at);
        }
    }
}

/// What to subtract before the exponential: nothing while the largest is of moderate size, for then no exponential
/// overflows and their sum does not vanish; the largest itself otherwise.
#[inline(always)]
unsafe fn shift<V: Vector>(layer: &Layer, row: *const f32) -> f32 {
    const MODERATE: f32 = 60.0;
    let mut largest = V::load(row);
    for jv in 1..layer.n_vectors::<V>() {
        largest = largest.max(V::load(row.add(jv * V::LANES)));
    }
    if largest.any_gt(V::splat(MODERATE)) || !largest.any_gt(V::splat(-MODERATE)) { largest.largest() } else { 0.0 }
}

/// The sums over the lanes of each of `N` vectors.
///
/// Always four at a time, zeros in place of those that are missing: how many capsules share a step depends on the
/// shape and on what else is in the task, and the order of additions must not.
#[inline(always)]
fn sum_each<V: Vector, const N: usize>(vectors: [V; N]) -> [f32; N] {
    let mut sums = [0.0; N];
    for first in (0..N).step_by(4) {
        let four = array::from_fn(|n| if first + n < N { vectors[first + n] } else { V::zero() });
        for (sum, total) in sums[first..].iter_mut().zip(V::sum4(four)) {
            *sum = total;
        }
    }
    sums
}

/// `v = squash(s)` on packed poses.
#[inline(always)]
unsafe fn squash<V: Vector>(layer: &Layer, s: *const f32, v: *mut f32) {
    for jv in 0..layer.n_vectors::<V>() {
        let at = layer.at::<V>(jv);
        let mut n2 = V::zero();
        for o in 0..layer.depth_out {
            let s = V::load(s.add(at + o * BLOCK));
            n2 = s.mul_add(s, n2);
        }
        let root = n2.add(V::splat(SQUASH_EPSILON as f32)).sqrt();
        let factor = n2.div(n2.add(V::splat(1.0)).mul(root));
        for o in 0..layer.depth_out {
            V::load(s.add(at + o * BLOCK)).mul(factor).store(v.add(at + o * BLOCK));
        }
    }
}

/// Packed poses to `[n_out, depth_out]`.
unsafe fn unpack(layer: &Layer, packed: *const f32, poses: *mut f32) {
    for j in 0..layer.n_out {
        let from = j / BLOCK * layer.depth_out * BLOCK + j % BLOCK;
        for o in 0..layer.depth_out {
            *poses.add(j * layer.depth_out + o) = *packed.add(from + o * BLOCK);
        }
    }
}

/// `[n_out, depth_out]` to packed poses; lanes that are no capsule are left as they are.
unsafe fn pack(layer: &Layer, poses: *const f32, packed: *mut f32) {
    for j in 0..layer.n_out {
        let to = j / BLOCK * layer.depth_out * BLOCK + j % BLOCK;
        for o in 0..layer.depth_out {
            *packed.add(to + o * BLOCK) = *poses.add(j * layer.depth_out + o);
        }
    }
}

/// Shares utterances out to the threads by their lengths, the longest first; each group gets a buffer of its own.
fn partition<'a>(
    lengths: &[usize],
    buffers: &'a mut Vec<Buffer<f32>>,
) -> impl Iterator<Item = (Vec<usize>, &'a mut Buffer<f32>)> + use<'a> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(lengths[index]));
    let mut groups = vec![(0, Vec::new()); rayon::current_num_threads().min(lengths.len())];
    for index in order {
        let shortest =
            groups.iter_mut().min_by_key(|(n_slices, _)| *n_slices).expect("a group if anything is in order");
        shortest.0 += lengths[index];
        shortest.1.push(index);
    }
    let buffers = at_least(buffers, groups.len());
    groups.into_iter().map(|(_, members)| members).zip(buffers)
}

/// How many of `n` utterances share each load of the weights: [`TILE`] at most, in tiles of about equal size, because
/// the last of five alone would cost as much as the other four.
fn tile_size(n: usize) -> usize {
    n.div_ceil(n.div_ceil(TILE).max(1)).max(1)
}

/// The first `n` buffers, of which there are so many afterwards.
fn at_least(buffers: &mut Vec<Buffer<f32>>, n: usize) -> &mut [Buffer<f32>] {
    if buffers.len() < n {
        buffers.resize_with(n, Buffer::new);
    }
    &mut buffers[..n]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::with_threads;

    #[test]
    #[cfg_attr(target_family = "wasm", ignore = "there is one thread only")]
    fn utterances_are_shared_out_evenly() {
        let shares = |n_threads: usize, lengths: &[usize]| {
            with_threads(n_threads, || {
                partition(lengths, &mut Vec::new()).map(|(members, _)| members).collect::<Vec<_>>()
            })
        };
        assert_eq!(shares(2, &[300; 4]), [[0, 2], [1, 3]]);
        assert_eq!(shares(2, &[100, 300, 200, 400]), [[3, 0], [1, 2]]);
        assert_eq!(shares(8, &[300, 200]), [[0], [1]]);
        assert_eq!(shares(2, &[9, 9, 9, 9, 9, 2, 2, 2, 1]), [vec![0, 2, 4], vec![1, 3, 5, 6, 7, 8]]);
        assert!(shares(2, &[]).is_empty());
    }

    #[test]
    fn tiles_are_of_about_equal_size() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13].map(tile_size), [1, 1, 2, 3, 4, 3, 3, 4, 4, 3, 4]);
    }
}
