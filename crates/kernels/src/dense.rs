//! The dense layer y = x W + b on rows, and matrix products on slices with strides.
//!
//! # Shapes
//! - x `[rows][n_in]`, W `[n_in][n_out]`, b `[n_out]`, y `[rows][n_out]`
//!
//! Saved for the backward pass: x.
//! The forward pass computes each row by the same operations whatever the number of rows in the call, so frames one by
//! one and all at once give the same bits; the backward pass, which only training uses, need not.
//! A product runs on one thread: threads belong to the caller.

use crate::conv::pack_panels;
use crate::conv::tiles::{Grid, Panels, Segment, Steps, sweep};
use crate::element::accumulate;
use crate::simd::Vector;
use crate::{BLOCK, Buffer, Element};

/// The weights of a dense layer, packed once a step or once at load.
#[derive(Clone)]
pub struct DenseWeights<E> {
    n_in: usize,
    n_out: usize,
    /// `[panel][input][lane]`.
    panels: Buffer<E>,
    /// `[lane]`.
    bias: Buffer<E>,
}

impl<E: Element> DenseWeights<E> {
    /// Room for the weights; nothing is packed yet.
    pub fn new(n_in: usize, n_out: usize) -> Self {
        let n_lanes = n_out.next_multiple_of(BLOCK);
        Self { n_in, n_out, panels: Buffer::zeros(n_in * n_lanes), bias: Buffer::zeros(n_lanes) }
    }

    /// Packs `kernel` (`[n_in][n_out]`) and `bias`.
    #[track_caller]
    pub fn pack(&mut self, kernel: &[E], bias: Option<&[E]>) {
        assert_eq!(kernel.len(), self.n_in * self.n_out, "dense: values in the kernel");
        pack_panels(kernel, self.n_out, &mut self.panels);
        match bias {
            Some(bias) => self.bias[..self.n_out].copy_from_slice(bias),
            None => self.bias.fill(E::ZERO),
        }
    }

    #[track_caller]
    fn check(&self, n_x: usize, n_y: usize) -> usize {
        let n_rows = n_y / self.n_out;
        assert!(n_rows * self.n_out == n_y && n_rows * self.n_in == n_x, "dense: {n_x} inputs, {n_y} outputs");
        n_rows
    }
}

/// The definition of the forward pass.
pub(crate) fn forward<E: Element>(weights: &DenseWeights<E>, x: &[E], y: &mut [E]) {
    weights.check(x.len(), y.len());
    for (x, y) in x.chunks_exact(weights.n_in).zip(y.chunks_exact_mut(weights.n_out)) {
        for (o, y) in y.iter_mut().enumerate() {
            let panel = &weights.panels[o / BLOCK * weights.n_in * BLOCK..];
            let sum: E = x.iter().enumerate().map(|(i, &x)| x * panel[i * BLOCK + o % BLOCK]).sum();
            *y = sum + weights.bias[o];
        }
    }
}

/// The forward pass in tiles of vectors.
#[inline(always)]
pub(crate) fn forward_tiles<V: Vector, const N: usize>(weights: &DenseWeights<f32>, x: &[f32], y: &mut [f32]) {
    let n_rows = weights.check(x.len(), y.len());
    let (n_in, n_out) = (weights.n_in, weights.n_out);
    let steps = |row| Steps { first: 0, row, col: 0 };
    let grid = Grid { n_rows, n_cols: 1, input: steps(n_in), output: steps(n_out) };
    let panels =
        Panels { values: &weights.panels, n_taps: n_in, n_lanes: weights.bias.len(), n_wanted: n_out, n_branches: 1 };
    let segments = [Segment { input: 0, tap: 0, len: n_in }];
    sweep::<V, N>(&grid, x, &segments, &panels, |at, lane, width, sums| {
        let width = width.min(n_out - lane);
        let y = &mut y[at + lane..][..width];
        for ((y, sum), bias) in y.iter_mut().zip(sums).zip(&weights.bias[lane..]) {
            *y = sum + bias;
        }
    });
}

/// Writes the gradient of the input: dx = dy W^T.
#[track_caller]
pub fn dense_input_gradient<E: Element>(kernel: &[E], n_out: usize, d_y: &[E], d_x: &mut [E]) {
    let shape = [d_y.len() / n_out, kernel.len() / n_out, n_out];
    let kernel = View { data: kernel, row: 1, col: n_out };
    product(shape, View { data: d_y, row: n_out, col: 1 }, kernel, false, d_x);
}

/// Adds to the rows of inputs `first..` of the gradient of the kernel, as many as `d_kernel` holds: dW = x^T dy.
///
/// All frames in one product: the packing of dy is paid once for the rows of a call, so let them be many.
#[track_caller]
pub fn dense_kernel_gradient<E: Element>(
    x: &[E],
    n_in: usize,
    first: usize,
    d_y: &[E],
    n_out: usize,
    d_kernel: &mut [E],
) {
    let (n_rows, n_frames) = (d_kernel.len() / n_out, d_y.len() / n_out);
    assert!(
        n_frames * n_in == x.len() && n_frames * n_out == d_y.len() && first + n_rows <= n_in,
        "dense: {} inputs, {} outputs, {} weights",
        x.len(),
        d_y.len(),
        d_kernel.len()
    );
    if n_frames > 0 {
        let x = View { data: &x[first..], row: 1, col: n_in };
        product([n_rows, n_out, n_frames], x, View { data: d_y, row: n_out, col: 1 }, true, d_kernel);
    }
}

/// Adds the gradient of the bias: the sum of dy over the rows.
pub fn dense_bias_gradient<E: Element>(d_y: &[E], d_bias: &mut [E]) {
    for d_y in d_y.chunks_exact(d_bias.len()) {
        accumulate(d_y, d_bias);
    }
}

/// A matrix inside a slice.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, E> {
    /// The values, element (i, j) at `i * row + j * col`.
    pub data: &'a [E],
    /// From row to row.
    pub row: usize,
    /// From column to column.
    pub col: usize,
}

impl<E> View<'_, E> {
    fn transposed(self) -> Self {
        Self { data: self.data, row: self.col, col: self.row }
    }

    fn holds(&self, n_rows: usize, n_cols: usize) -> bool {
        n_rows == 0 || n_cols == 0 || (n_rows - 1) * self.row + (n_cols - 1) * self.col < self.data.len()
    }
}

/// Writes (or adds, if `adds`) the product of `a` (m by k) and `b` (k by n) to `out` (m by n, row by row).
///
/// `shape` is [m, n, k].
#[track_caller]
pub fn product<E: Element>(shape: [usize; 3], a: View<'_, E>, b: View<'_, E>, adds: bool, out: &mut [E]) {
    assert_eq!(out.len(), shape[0] * shape[1], "product: values of the result");
    product_into(shape, a, b, adds, out, shape[1]);
}

/// As [`product`], for an `out` whose rows begin `row` values apart.
#[track_caller]
pub fn product_into<E: Element>(
    shape: [usize; 3],
    a: View<'_, E>,
    b: View<'_, E>,
    adds: bool,
    out: &mut [E],
    row: usize,
) {
    let [m, n, k] = shape;
    let holds = n <= row && View { data: out, row, col: 1 }.holds(m, n);
    assert!(a.holds(m, k) && b.holds(k, n) && holds, "product: {m} x {k} by {k} x {n} beyond a slice");
    E::multiply(shape, a, b, adds, out, row);
}

/// [`product_into`] after its checks, by the `gemm` crates.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn multiply_fast(
    [m, n, k]: [usize; 3],
    a: View<'_, f32>,
    b: View<'_, f32>,
    adds: bool,
    out: &mut [f32],
    row: usize,
) {
    // Its kernels write columns, so that rows are computed as the transposed product.
    let ([m, n], [out_row, out_col], [a, b]) =
        if 1 < row { ([n, m], [1, row], [b.transposed(), a.transposed()]) } else { ([m, n], [row, 1], [a, b]) };
    let kept = if adds { 1.0 } else { 0.0 };
    // SAFETY: BOUNDS, the three matrices lie inside their slices as asserted.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            m,
            n,
            k,
            out.as_mut_ptr(),
            out_col as isize,
            out_row as isize,
            adds,
            a.data.as_ptr(),
            a.col as isize,
            a.row as isize,
            b.data.as_ptr(),
            b.col as isize,
            b.row as isize,
            kept,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}

/// [`product_into`] after its checks, as loops: for gradient checks in double precision, and for WebAssembly, where
/// `gemm` has no vectors and is large.
pub(crate) fn multiply_plain<E: Element>(
    [m, n, k]: [usize; 3],
    a: View<'_, E>,
    b: View<'_, E>,
    adds: bool,
    out: &mut [E],
    row: usize,
) {
    for (i, out) in out.chunks_mut(row.max(1)).take(m).enumerate() {
        let out = &mut out[..n];
        if !adds {
            out.fill(E::ZERO);
        }
        for l in 0..k {
            let factor = a.data[i * a.row + l * a.col];
            let b = b.data[l * b.row..].iter().step_by(b.col);
            for (out, &b) in out.iter_mut().zip(b) {
                *out += factor * b;
            }
        }
    }
}

#[cfg(test)]
mod tests;
