//! The table of implementations: the processor in, the rows that it can run out.

use std::sync::OnceLock;

/// One row of the table: an implementation of every operation that has more than one.
pub struct Kernels<E> {
    /// What the row is called: `scalar`, `avx2`, `avx512` or `neon`.
    pub name: &'static str,
    _element: std::marker::PhantomData<E>,
}

impl<E> Kernels<E> {
    const fn new(name: &'static str) -> Self {
        Self { name, _element: std::marker::PhantomData }
    }
}

/// The rows for `f32`, found once.
pub(crate) fn rows_f32() -> &'static [Kernels<f32>] {
    static ROWS: OnceLock<Vec<Kernels<f32>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = vec![Kernels::new("scalar")];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                rows.push(Kernels::new("avx2"));
            }
            if is_x86_feature_detected!("avx512f") {
                rows.push(Kernels::new("avx512"));
            }
        }
        #[cfg(target_arch = "aarch64")]
        rows.push(Kernels::new("neon"));
        rows
    })
}

/// The rows for `f64`: gradients are checked in it, nothing runs in it.
pub(crate) fn rows_f64() -> &'static [Kernels<f64>] {
    static ROWS: OnceLock<Vec<Kernels<f64>>> = OnceLock::new();
    ROWS.get_or_init(|| vec![Kernels::new("scalar")])
}
