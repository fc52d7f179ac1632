//! Routing on vectors: everything runs vertically over output capsules, a block of lanes at a time.
//!
//! Poses and votes are packed as `[block of output capsules][depth][lane]`, so that agreement, softmax and weighted sum
//! need no horizontal sums but those of the softmax itself.
//! Votes of a few input capsules for up to [`TILE`] slices are computed against one load of the weights, stay in the
//! first-level cache, are used, and are forgotten.
//!
//! Each slice is computed by the same sequence of operations however many others share the load of the weights: that
//! is why an utterance gives the same bits alone, in any batch and in a stream.

mod backward;
mod forward;
mod weights;

use std::array;

use super::{GradientPaths, Packed, Routing, SQUASH_EPSILON, Utterance, UtteranceBack, Workspace};
use crate::BLOCK;
use crate::simd::Vector;

/// Slices that share one load of the weights.
const TILE: usize = 4;

/// Input capsules whose votes are handled together; their votes for a tile of slices stay in the first-level cache.
const MAX_INPUTS: usize = 4;
const VOTES_FLOATS: usize = 5120;

/// Runs `$body` with `$layer`'s depths known to the compiler where both are 8, the most used: loops over a depth are
/// short, and unrolled they run a seventh faster. (At depth 16 or 20 the gain does not pay for the compile time.)
macro_rules! specialised {
    ($layer:ident, $body:expr) => {
        if $layer.depth_in == 8 && $layer.depth_out == 8 {
            let $layer = &Layer { depth_in: 8, depth_out: 8, ..$layer };
            $body
        } else {
            let $layer = &$layer;
            $body
        }
    };
}
use specialised;

/// Writes a function that enables the instruction set and runs a task in it.
macro_rules! run_with {
    ($name:ident, $features:literal, $module:ident, $vector:ty) => {
        fn $name(task: &mut super::$module::Task<'_>) {
            #[target_feature(enable = $features)]
            fn run(task: &mut super::$module::Task<'_>) {
                super::$module::run::<$vector>(task);
            }
            // SAFETY: the table lists this row only where the processor has the features.
            unsafe { run(task) }
        }
    };
}

/// Writes the two entry points of a row.
macro_rules! row {
    ($name:ident, $vector:ty, $features:literal) => {
        pub(crate) mod $name {
            //! Entry points of one row of the table.

            use super::{GradientPaths, Packed, Routing, Utterance, UtteranceBack, Workspace};

            run_with!(forward_task, $features, forward, $vector);
            run_with!(backward_task, $features, backward, $vector);
            run_with!(weights_task, $features, weights, $vector);

            /// See [`crate::routing::forward`].
            pub(crate) fn forward(
                routing: &Routing,
                packed: &Packed<f32>,
                utterances: &mut [Utterance<'_, f32>],
                workspace: &mut Workspace<f32>,
            ) {
                super::forward::all(routing, packed, utterances, workspace, forward_task);
            }

            /// See [`crate::routing::backward`].
            pub(crate) fn backward(
                routing: &Routing,
                packed: &Packed<f32>,
                paths: GradientPaths,
                utterances: &mut [UtteranceBack<'_, f32>],
                d_packed: &mut Packed<f32>,
                workspace: &mut Workspace<f32>,
            ) {
                let run = super::backward::Run { in_time: backward_task, to_weights: weights_task };
                super::backward::all(routing, packed, paths, utterances, d_packed, workspace, &run);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
row!(avx2, crate::simd::x86::F32x8, "avx2,fma");
#[cfg(target_arch = "x86_64")]
row!(avx512, crate::simd::x86::F32x16, "avx512f");
#[cfg(target_arch = "aarch64")]
row!(neon, crate::simd::arm::F32x4, "neon");

/// What the kernels need to know of a layer; pointers stay valid for the call that made it.
#[derive(Clone, Copy)]
struct Layer {
    n_in: usize,
    n_out: usize,
    depth_in: usize,
    depth_out: usize,
    stride: usize,
    n_iterations: usize,
    is_sequential: bool,
    /// Lanes of a coupling vector, a multiple of [`BLOCK`].
    n_lanes: usize,
    /// Floats of packed poses.
    len: usize,
    weights: *const f32,
    biases: *const f32,
    start: *const f32,
    valid: *const f32,
}

// SAFETY: the pointers lead to memory that is borrowed immutably for the whole call.
unsafe impl Send for Layer {}
// SAFETY: as above; nothing is written through them.
unsafe impl Sync for Layer {}

impl Layer {
    fn new(routing: &Routing, packed: &Packed<f32>, workspace: &Workspace<f32>) -> Self {
        assert_eq!(packed.biases.len(), routing.n_in * routing.packed_len(), "packed biases");
        assert_eq!(packed.weights.len(), packed.biases.len() * routing.depth_in, "packed weights");
        Self {
            n_in: routing.n_in,
            n_out: routing.n_out,
            depth_in: routing.depth_in,
            depth_out: routing.depth_out,
            stride: routing.stride,
            n_iterations: routing.n_iterations,
            is_sequential: routing.is_sequential,
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
    fn n_side_by_side(&self) -> usize {
        const SECOND_LEVEL_FLOATS: usize = 1 << 19;
        if self.n_in * self.len * self.depth_in <= SECOND_LEVEL_FLOATS { TILE } else { usize::MAX }
    }

    /// Input capsules to handle together.
    fn n_together(&self) -> usize {
        (VOTES_FLOATS / (TILE * self.len)).clamp(1, MAX_INPUTS)
    }
}

/// Votes of `R` slices for `O` depth elements of one vector of output capsules.
///
/// # Safety
/// `weights` and `biases` point to a block's vectors of at least `O` depth elements; each `x` to `depth_in` floats.
#[inline(always)]
unsafe fn tile<V: Vector, const R: usize, const O: usize>(
    weights: *const f32,
    biases: *const f32,
    x: [*const f32; R],
    depth_in: usize,
) -> [[V; R]; O] {
    // SAFETY: the caller's promise.
    unsafe {
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
}

/// Votes of input capsule `i` for `R` slices, packed.
///
/// # Safety
/// Each `x` points to the pose of that capsule, each of `votes` to `len` writable floats.
#[inline(always)]
unsafe fn predict<V: Vector, const R: usize>(layer: &Layer, i: usize, x: [*const f32; R], votes: [*mut f32; R]) {
    // SAFETY: the caller's promise, and offsets within a capsule's packed weights.
    unsafe {
        for jv in 0..layer.n_vectors::<V>() {
            let at = layer.at::<V>(jv);
            let weights =
                layer.weights.add(i * layer.len * layer.depth_in + at / BLOCK * BLOCK * layer.depth_in + at % BLOCK);
            let biases = layer.biases.add(i * layer.len + at);
            let mut o = 0;
            // Sixteen accumulators fill half of 32 registers, eight half of AVX2's 16.
            let step = if V::LANES == 8 { 2 } else { 4 };
            while o + step <= layer.depth_out {
                let (w, b) = (weights.add(o * layer.depth_in * BLOCK), biases.add(o * BLOCK));
                if V::LANES == 8 {
                    store(tile::<V, R, 2>(w, b, x, layer.depth_in), votes, at + o * BLOCK);
                } else {
                    store(tile::<V, R, 4>(w, b, x, layer.depth_in), votes, at + o * BLOCK);
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
}

/// # Safety
/// Each of `votes` has the tile's vectors from `at` on.
#[inline(always)]
unsafe fn store<V: Vector, const R: usize, const O: usize>(tile: [[V; R]; O], votes: [*mut f32; R], at: usize) {
    for (o, rows) in tile.into_iter().enumerate() {
        for (r, vote) in rows.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { vote.store(votes[r].add(at + o * BLOCK)) };
        }
    }
}

/// Softmax over the lanes of `N` vectors of agreements; lanes that are no class become exactly zero.
///
/// # Safety
/// All point to `n_lanes` floats; a coupling may lie where its agreement lies.
#[inline(always)]
unsafe fn softmax<V: Vector, const N: usize>(layer: &Layer, agreements: [*mut f32; N], couplings: [*mut f32; N]) {
    // SAFETY: the caller's promise.
    unsafe {
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
}

/// What to subtract before the exponential: nothing while the largest is of moderate size, for then no exponential
/// overflows and their sum does not vanish; the largest itself otherwise.
///
/// # Safety
/// `row` points to `n_lanes` floats.
#[inline(always)]
unsafe fn shift<V: Vector>(layer: &Layer, row: *const f32) -> f32 {
    const MODERATE: f32 = 60.0;
    // SAFETY: the caller's promise.
    unsafe {
        let mut largest = V::load(row);
        for jv in 1..layer.n_vectors::<V>() {
            largest = largest.max(V::load(row.add(jv * V::LANES)));
        }
        if largest.any_gt(V::splat(MODERATE)) || !largest.any_gt(V::splat(-MODERATE)) { largest.largest() } else { 0.0 }
    }
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
///
/// # Safety
/// Both point to `len` floats.
#[inline(always)]
unsafe fn squash<V: Vector>(layer: &Layer, s: *const f32, v: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe {
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
}

/// Packed poses to `[n_out, depth_out]`.
///
/// # Safety
/// `packed` points to `len` floats, `poses` to `n_out * depth_out`.
unsafe fn unpack(layer: &Layer, packed: *const f32, poses: *mut f32) {
    for j in 0..layer.n_out {
        let from = j / BLOCK * layer.depth_out * BLOCK + j % BLOCK;
        for o in 0..layer.depth_out {
            // SAFETY: the caller's promise.
            unsafe { *poses.add(j * layer.depth_out + o) = *packed.add(from + o * BLOCK) };
        }
    }
}

/// `[n_out, depth_out]` to packed poses; lanes that are no capsule are left as they are.
///
/// # Safety
/// As [`unpack`].
unsafe fn pack(layer: &Layer, poses: *const f32, packed: *mut f32) {
    for j in 0..layer.n_out {
        let to = j / BLOCK * layer.depth_out * BLOCK + j % BLOCK;
        for o in 0..layer.depth_out {
            // SAFETY: the caller's promise.
            unsafe { *packed.add(to + o * BLOCK) = *poses.add(j * layer.depth_out + o) };
        }
    }
}

/// Deals tiles of utterances of like length to `n_tasks` tasks, so that each gets its share of long ones.
fn deal(lengths: &[usize], n_tasks: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(lengths[index]));
    let mut tasks = vec![Vec::new(); n_tasks.max(1)];
    for (tile, members) in order.chunks(TILE).enumerate() {
        tasks[tile % n_tasks.max(1)].extend_from_slice(members);
    }
    tasks.retain(|members| !members.is_empty());
    tasks
}
