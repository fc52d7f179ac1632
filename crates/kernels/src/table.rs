//! The table of implementations: the processor in, the rows that it can run out.

use std::sync::OnceLock;

use crate::Element;
use crate::routing::{self, GradientPaths, Packed, Routing, Utterance, UtteranceBack, Workspace};

/// One row of the table: an implementation of every operation that has more than one.
pub struct Kernels<E> {
    /// What the row is called: `scalar`, `avx2`, `avx512` or `neon`.
    pub name: &'static str,
    /// See [`routing::forward`].
    pub routing_forward: RoutingForward<E>,
    /// See [`routing::backward`].
    pub routing_backward: RoutingBackward<E>,
}

/// See [`routing::forward`].
pub(crate) type RoutingForward<E> = fn(&Routing, &Packed<E>, &mut [Utterance<'_, E>], &mut Workspace<E>);
/// See [`routing::backward`].
pub(crate) type RoutingBackward<E> =
    fn(&Routing, &Packed<E>, GradientPaths, &mut [UtteranceBack<'_, E>], &mut Packed<E>, &mut Workspace<E>);

/// The definition.
fn scalar<E: Element>() -> Kernels<E> {
    Kernels { name: "scalar", routing_forward: routing::scalar_forward, routing_backward: routing::scalar_backward }
}

/// A row of vector code from the module of its entry points.
macro_rules! vector_row {
    ($name:ident) => {
        Kernels {
            name: stringify!($name),
            routing_forward: routing::$name::forward,
            routing_backward: routing::$name::backward,
        }
    };
}

/// The rows for `f32`, found once.
pub(crate) fn rows_f32() -> &'static [Kernels<f32>] {
    static ROWS: OnceLock<Vec<Kernels<f32>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = vec![scalar()];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                rows.push(vector_row!(avx2));
            }
            if is_x86_feature_detected!("avx512f") {
                rows.push(vector_row!(avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        rows.push(vector_row!(neon));
        rows
    })
}

/// The rows for `f64`: gradients are checked in it, nothing runs in it.
pub(crate) fn rows_f64() -> &'static [Kernels<f64>] {
    static ROWS: OnceLock<Vec<Kernels<f64>>> = OnceLock::new();
    ROWS.get_or_init(|| vec![scalar()])
}
