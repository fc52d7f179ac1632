//! The gradient of the kernel, dW = x^T dy: a few inputs by a few vectors of outputs in registers, one pass over the
//! frames.

use crate::Element;
use crate::simd::{Vector, load_or, store};

/// Frames of a block: what a task reads of them, 64 inputs and a tile's outputs, stays in the nearest cache.
const FRAMES: usize = 64;
/// Inputs of a tile.
const ROWS: usize = 6;

/// Adds to the rows of inputs `first..` of the gradient, as many as `grad` holds: the definition.
pub(crate) fn plain<E: Element>(x: &[E], n_in: usize, first: usize, grad_y: &[E], n_out: usize, grad: &mut [E]) {
    check(x.len(), n_in, first, grad_y.len(), n_out, grad.len());
    for (x, grad_y) in x.chunks_exact(n_in).zip(grad_y.chunks_exact(n_out)) {
        for (&x, grad) in x[first..].iter().zip(grad.chunks_exact_mut(n_out)) {
            grad.iter_mut().zip(grad_y).for_each(|(grad, &grad_y)| *grad += x * grad_y);
        }
    }
}

#[track_caller]
fn check(n_x: usize, n_in: usize, first: usize, n_y: usize, n_out: usize, n_grad: usize) {
    let n_frames = n_x / n_in;
    let fits = n_frames * n_in == n_x && n_frames * n_out == n_y && n_grad.is_multiple_of(n_out);
    assert!(fits && first + n_grad / n_out <= n_in, "dense: {n_x} inputs, {n_y} outputs, {n_grad} weights");
}

/// As [`plain`], in vectors, `N` of them side by side.
///
/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
pub(crate) unsafe fn fast<V: Vector, const N: usize>(
    x: &[f32],
    n_in: usize,
    first: usize,
    grad_y: &[f32],
    n_out: usize,
    grad: &mut [f32],
) {
    check(x.len(), n_in, first, grad_y.len(), n_out, grad.len());
    for (x, grad_y) in x.chunks(FRAMES * n_in).zip(grad_y.chunks(FRAMES * n_out)) {
        let mut lane = 0;
        while lane < n_out {
            let is_wide = lane + N * V::LANES <= n_out;
            for (index, grad) in grad.chunks_mut(ROWS * n_out).enumerate() {
                let block = Block { x: &x[first + index * ROWS..], n_in, grad_y: &grad_y[lane..], n_out };
                // SAFETY: the caller's promise.
                unsafe {
                    match (is_wide, grad.len() / n_out) {
                        (true, ROWS) => block.add::<V, ROWS, N>(lane, grad),
                        (true, _) => grad.chunks_exact_mut(n_out).enumerate().for_each(|(r, grad)| {
                            block.after(r).add::<V, 1, N>(lane, grad);
                        }),
                        (false, ROWS) => block.add::<V, ROWS, 1>(lane, grad),
                        (false, _) => grad.chunks_exact_mut(n_out).enumerate().for_each(|(r, grad)| {
                            block.after(r).add::<V, 1, 1>(lane, grad);
                        }),
                    }
                }
            }
            lane += if is_wide { N * V::LANES } else { V::LANES };
        }
    }
}

/// Frames, from the first input and the first output of a tile on.
struct Block<'a> {
    x: &'a [f32],
    n_in: usize,
    grad_y: &'a [f32],
    n_out: usize,
}

impl Block<'_> {
    /// The same from the input `n` further on.
    #[inline(always)]
    fn after(&self, n: usize) -> Self {
        Self { x: &self.x[n..], ..*self }
    }

    /// Adds `R` inputs by `N` vectors of outputs from `lane` on; of a single vector lanes may be missing.
    ///
    /// # Safety
    /// The processor has the instructions of `V`.
    #[inline(always)]
    unsafe fn add<V: Vector, const R: usize, const N: usize>(&self, lane: usize, grad: &mut [f32]) {
        let mut sums = [[V::zero(); N]; R];
        for (x, grad_y) in self.x.chunks(self.n_in).zip(self.grad_y.chunks(self.n_out)) {
            // The last frame of the slices ends with the frame, the others with the tile's columns of the next one.
            let mut outputs = [V::zero(); N];
            for (n, output) in outputs.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *output = unsafe { load_or(grad_y, n * V::LANES, 0.0) };
            }
            for (sums, &x) in sums.iter_mut().zip(&x[..R]) {
                let input = V::splat(x);
                for (sum, output) in sums.iter_mut().zip(outputs) {
                    *sum = input.mul_add(output, *sum);
                }
            }
        }
        for (sums, grad) in sums.iter().zip(grad.chunks_exact_mut(self.n_out)) {
            for (n, sum) in sums.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe {
                    let before: V = load_or(grad, lane + n * V::LANES, 0.0);
                    store(before.add(*sum), grad, lane + n * V::LANES);
                }
            }
        }
    }
}
