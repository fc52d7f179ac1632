//! Matrix products on slices with strides, one thread each: threads belong to the caller, outside.

use gemm::Parallelism;

use crate::Element;

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
    let strides = [a.col, a.row, b.col, b.row].map(|stride| stride as isize);
    let kept = if adds { E::ONE } else { E::ZERO };
    // SAFETY: the three matrices lie inside their slices, as asserted; `out` is borrowed alone.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            row as isize,
            adds,
            a.data.as_ptr(),
            strides[0],
            strides[1],
            b.data.as_ptr(),
            strides[2],
            strides[3],
            kept,
            E::ONE,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn strided_and_transposed_views_give_the_sums_of_the_definition() {
        let (m, n, k) = (7, 5, 11);
        let mut random = Random(1);
        let (a, b) = (random.numbers::<f64>(2 * m * k, 1.0), random.numbers::<f64>(n * k, 1.0));
        let start = random.numbers::<f64>(m * n, 1.0);
        for adds in [false, true] {
            let mut out = start.clone();
            let view = View { data: &a, row: 2 * k, col: 1 };
            product([m, n, k], view, View { data: &b, row: 1, col: k }, adds, &mut out);
            let mut spread = vec![f64::NAN; m * 2 * n];
            spread.chunks_mut(2 * n).zip(start.chunks(n)).for_each(|(row, start)| row[..n].copy_from_slice(start));
            product_into([m, n, k], view, View { data: &b, row: 1, col: k }, adds, &mut spread, 2 * n);
            for (spread, out) in spread.chunks(2 * n).zip(out.chunks(n)) {
                assert!(spread[..n] == *out && spread[n..].iter().all(|x| x.is_nan()), "{spread:?}");
            }
            for (index, &value) in out.iter().enumerate() {
                let (i, j) = (index / n, index % n);
                let sum: f64 = (0..k).map(|l| a[i * 2 * k + l] * b[j * k + l]).sum();
                let expected = sum + if adds { start[index] } else { 0.0 };
                assert!((value - expected).abs() < 1e-13, "{value} {expected}");
            }
        }
    }
}
