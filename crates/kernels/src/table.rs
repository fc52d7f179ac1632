//! The list of operations, each declared once, and the rows of implementations that follow from it.
//!
//! [`operations!`] is the list.
//! `scalar` is the definition of an operation, generic over [`Element`].
//! In the rows for an instruction set that definition is compiled for the set, unless the list has something better:
//! `vector`, written over [`Vector`](crate::simd::Vector) and compiled for the set, or `tasks`, which deals out work to
//! threads and enables the set in each task.
//! A row that has only a few operations of its own starts from another one:
//! `Kernels { name, conv_forward, ..avx512::kernels() }`.

use std::fmt;
use std::sync::OnceLock;

use crate::adam::{self, Adam};
use crate::conv::{self, Conv, ConvWeights};
use crate::dense::{self, DenseWeights};
use crate::dropout::{self, Dropout};
use crate::norm::{self, Factors};
use crate::routing::variants::{self, Layer, Scratch};
use crate::routing::{self, GradientPaths, Packed, Routing, Utterance, UtteranceBack, Workspace, fused};
use crate::{Element, attention, element, lstm, squash};

/// Hands the list to the macro `$with`, after the arguments for it.
///
/// `V` is the row's vector, of which a tile of the convolution holds `N` side by side and a group `G`.
macro_rules! operations {
    ($with:ident $($argument:tt)*) => {
        $with! { [$($argument)*]
            /// See [`routing::forward`].
            routing_forward(routing: &Routing, packed: &Packed<E>, utterances: &mut [Utterance<'_, E>],
                workspace: &mut Workspace<E>)
                scalar routing::scalar::forward, tasks fused::forward::<Tasks>;
            /// See [`routing::backward`].
            routing_backward(routing: &Routing, packed: &Packed<E>, paths: GradientPaths,
                utterances: &mut [UtteranceBack<'_, E>], d_packed: &mut Packed<E>, workspace: &mut Workspace<E>)
                scalar routing::scalar::backward, tasks fused::backward::<Tasks>;
            /// An utterance through a routing of [`variants`].
            variant_forward(layer: &Layer<'_, E>, utterance: &mut Utterance<'_, E>, scratch: &mut Scratch<E>)
                scalar variants::walk_forward::<E, false>, vector variants::walk_forward::<E, true>;
            /// Its backward pass; adds to the gradients in the scratch.
            variant_backward(layer: &Layer<'_, E>, paths: GradientPaths, utterance: &mut UtteranceBack<'_, E>,
                scratch: &mut Scratch<E>)
                scalar variants::walk_backward::<E, false>, vector variants::walk_backward::<E, true>;
            /// [`Conv`] forward; `choices` may be empty.
            conv_forward(weights: &ConvWeights<E>, x: &[E], dropout: Option<Dropout>, out: &mut [E],
                choices: &mut [u8])
                scalar conv::plain::forward, vector conv::tiles::forward::<V, N>;
            /// The gradient of a maxout spread over its branches.
            conv_spread(conv: &Conv, dropout: Option<Dropout>, d_out: &[E], choices: &[u8], spread: &mut [E])
                scalar conv::spread;
            /// Gradient of the input frames from `first_frame` on; uses up the spread gradient of `n_frames`.
            conv_input_gradient(weights: &ConvWeights<E>, spread: &mut [E], n_frames: usize, first_frame: usize,
                d_x: &mut [E])
                scalar conv::plain::input_gradient, vector conv::gradients::input_gradient::<V, N, G>;
            /// Adds the gradient of the weights.
            conv_weight_gradient(conv: &Conv, x: &[E], spread: &[E], n_frames: usize, d_weights: &mut [E])
                scalar conv::plain::weight_gradient, vector conv::gradients::weight_gradient::<V, N>;
            /// Dense layer: input rows to output rows.
            dense_forward(weights: &DenseWeights<E>, x: &[E], y: &mut [E])
                scalar dense::forward, vector dense::forward_tiles::<V, N>;
            /// Dropout in place, forward or backward.
            dropout_apply(dropout: Dropout, x: &mut [E]) scalar dropout::apply;
            /// Batch norm: rows of channels to their means and summed squared deviations.
            row_moments(rows: &[E], mean: &mut [E], deviation: &mut [E]) scalar norm::row_moments;
            /// Batch norm: the sums of dy and of dy (x - mean) over rows.
            gradient_moments(x: &[E], d_y: &[E], mean: &[E], gradient: &mut [E], product: &mut [E])
                scalar norm::gradient_moments;
            /// Batch norm: y = x * scale + shift.
            affine(x: &[E], scale: &[E], shift: &[E], y: &mut [E]) scalar norm::affine;
            /// Batch norm: replaces dy by dx.
            batch_norm_backward(x: &[E], mean: &[E], factors: Factors<'_, E>, d_y: &mut [E])
                scalar norm::batch_norm_backward;
            /// Layer norm; saves mean and inverse deviation of each row.
            layer_norm_forward(x: &[E], gamma: &[E], beta: &[E], epsilon: E, y: &mut [E], saved: &mut [E])
                scalar norm::layer_norm_forward;
            /// Layer norm: replaces dy by dx, adds to the gradients of gamma and beta.
            layer_norm_backward(x: &[E], gamma: &[E], saved: &[E], d_y: &mut [E], d_gamma: &mut [E],
                d_beta: &mut [E])
                scalar norm::layer_norm_backward;
            /// LSTM: gates hold x W + b and are activated, `recurrent` is h' R.
            lstm_forward(gates: &mut [E], recurrent: &[E], cells_before: &[E], cells: &mut [E], outputs: &mut [E])
                scalar lstm::forward, vector lstm::forward_lanes::<V>;
            /// LSTM: replaces gates by their gradients, `d_cells` by the gradient of the cells before.
            lstm_backward(gates: &mut [E], cells_before: &[E], cells: &[E], d_outputs: &[E], d_cells: &mut [E])
                scalar lstm::backward, vector lstm::backward_lanes::<V>;
            /// Attention: replaces a row of scores by weights.
            attention_forward(row: &mut [E], scale: E, penalty: &[E])
                scalar attention::forward, vector attention::forward_lanes::<V>;
            /// Attention: replaces the gradient of a row of weights by that of the scores.
            attention_backward(weights: &[E], scale: E, d_row: &mut [E]) scalar attention::backward;
            /// Squash: capsules of `depth` values to poses.
            squash_forward(s: &[E], depth: usize, v: &mut [E]) scalar squash::forward;
            /// Squash: replaces dv by ds.
            squash_backward(s: &[E], depth: usize, d_v: &mut [E]) scalar squash::backward;
            /// Lengths of capsules of `depth` values.
            length_forward(v: &[E], depth: usize, lengths: &mut [E]) scalar squash::length;
            /// Gradient of the capsules from that of their lengths.
            length_backward(v: &[E], depth: usize, lengths: &[E], d_lengths: &[E], d_v: &mut [E])
                scalar squash::length_backward;
            /// Adds the first slice to the second.
            accumulate(from: &[E], to: &mut [E]) scalar element::accumulate;
            /// One step of [`adam`](crate::adam()): both means and the parameters.
            adam(adam: Adam, gradient: &[E], m: &mut [E], v: &mut [E], x: &mut [E]) scalar adam::update;
        }
    };
}

/// Writes the table and its row of definitions.
macro_rules! table {
    ([] $($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*)
        scalar $scalar:path $(, $kind:ident $better:path)?;)*) => {
        /// One row of the table: an implementation of every operation.
        #[derive(Clone, Copy)]
        #[allow(clippy::type_complexity)] // each signature stands once, in the list
        pub struct Kernels<E> {
            /// The instruction set: `scalar`, `avx2`, `avx512`, `neon` or `simd128`.
            pub name: &'static str,
            $($(#[$doc])* pub $name: fn($($type),*),)*
        }

        fn scalar<E: Element>() -> Kernels<E> {
            Kernels { name: "scalar", $($name: $scalar,)* }
        }
    };
}
operations!(table);

/// Writes a row for an instruction set: its name, what to enable, its vector, and how many make a tile.
macro_rules! row {
    ([$row:ident $features:literal $vector:path, $n:literal] $($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*)
        scalar $scalar:path $(, $kind:ident $better:path)?;)*) => {
        mod $row {
            #[allow(clippy::wildcard_imports)] // whatever the list names
            use super::*;
            use crate::simd::Vector as _;

            type E = f32;
            type V = $vector;
            const N: usize = $n;
            const G: usize = conv::GROUP / V::LANES;

            /// Routing in tasks that enable the instruction set.
            struct Tasks;

            impl fused::Tasks for Tasks {
                enabled!($features fn forward(task: &mut fused::ForwardTask<'_>) fused::run_forward::<V>);
                enabled!($features fn backward(task: &mut fused::BackwardTask<'_>) fused::run_backward::<V>);
                enabled!($features fn weights(task: &mut fused::WeightsTask<'_>) fused::run_weights::<V>);
            }

            pub(super) fn kernels() -> Kernels<f32> {
                Kernels {
                    name: stringify!($row),
                    $($name: implementation!($features ($($arg: $type),*) $scalar $(, $kind $better)?),)*
                }
            }
        }
    };
}

/// Writes a safe function whose body is inlined into one with the instruction set enabled.
macro_rules! enabled {
    ($features:literal fn $name:ident($($arg:ident: $type:ty),*) $body:path) => {
        fn $name($($arg: $type),*) {
            #[target_feature(enable = $features)]
            fn enabled($($arg: $type),*) {
                $body($($arg),*);
            }
            // SAFETY: ISA. WebAssembly checks it when a module is loaded, and calls need no `unsafe`.
            #[allow(unused_unsafe)]
            unsafe {
                enabled($($arg),*);
            }
        }
    };
}

/// What a row for an instruction set has for an operation.
macro_rules! implementation {
    ($features:literal $args:tt $scalar:path, tasks $better:path) => { $better };
    ($features:literal $args:tt $scalar:path, vector $better:path) => { implementation!($features $args $better) };
    ($features:literal ($($arg:ident: $type:ty),*) $body:path) => {{
        enabled!($features fn run($($arg: $type),*) $body);
        run
    }};
}

#[cfg(target_arch = "x86_64")]
operations!(row avx2 "avx2,fma" crate::simd::x86::F32x8, 2);
#[cfg(target_arch = "x86_64")]
operations!(row avx512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma" crate::simd::x86::F32x16, 4);
#[cfg(target_arch = "aarch64")]
operations!(row neon "neon" crate::simd::arm::F32x4, 4);
#[cfg(target_arch = "wasm32")]
operations!(row simd128 "simd128" crate::simd::wasm::F32x4, 2);

/// The names of all rows that the program may have, whatever the processor.
const NAMES: [&str; 5] = ["scalar", "avx2", "avx512", "neon", "simd128"];

/// The rows for `f32` that this processor can run, the definition first and the fastest last; found once.
pub(crate) fn rows_f32() -> &'static [Kernels<f32>] {
    static ROWS: OnceLock<Vec<Kernels<f32>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = vec![scalar()];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            rows.push(avx2::kernels());
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                rows.push(avx512::kernels());
            }
        }
        #[cfg(target_arch = "aarch64")]
        rows.push(neon::kernels());
        // A module with these instructions does not load at all where they are missing.
        #[cfg(target_arch = "wasm32")]
        rows.push(simd128::kernels());
        rows
    })
}

/// The rows for `f64`: gradients are checked in it, nothing runs in it.
pub(crate) fn rows_f64() -> &'static [Kernels<f64>] {
    static ROWS: OnceLock<[Kernels<f64>; 1]> = OnceLock::new();
    ROWS.get_or_init(|| [scalar()])
}

/// The row that `f32` runs with: the fastest, or the one that `SRF_ISA` names.
///
/// # Panics
/// If [`isa`] is an error.
pub(crate) fn chosen_f32() -> &'static Kernels<f32> {
    chosen().as_ref().copied().unwrap_or_else(|error| panic!("{error}"))
}

/// The name of the instruction set in use, for reports.
///
/// # Errors
/// If the environment variable `SRF_ISA` names an instruction set that is unknown or that this processor does not
/// have: programs call this once at their start, for operations panic then.
pub fn isa() -> Result<&'static str, IsaError> {
    chosen().clone().map(|row| row.name)
}

fn chosen() -> &'static Result<&'static Kernels<f32>, IsaError> {
    static CHOSEN: OnceLock<Result<&'static Kernels<f32>, IsaError>> = OnceLock::new();
    CHOSEN.get_or_init(|| choose(rows_f32(), std::env::var_os("SRF_ISA").map(|name| name.display().to_string())))
}

fn choose(rows: &'static [Kernels<f32>], wanted: Option<String>) -> Result<&'static Kernels<f32>, IsaError> {
    let row = match &wanted {
        Some(name) => rows.iter().find(|row| row.name == name),
        None => rows.last(),
    };
    row.ok_or_else(|| IsaError {
        wanted: wanted.unwrap_or_default(),
        available: rows.iter().map(|row| row.name).collect(),
    })
}

/// `SRF_ISA` names an instruction set that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IsaError {
    /// The value of the variable.
    pub wanted: String,
    /// The names of what this processor can run.
    pub available: Vec<&'static str>,
}

impl fmt::Display for IsaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match NAMES.contains(&self.wanted.as_str()) {
            true => "which this processor does not have",
            false => "which is no instruction set",
        };
        let available = self.available.join("`, `");
        write!(f, "SRF_ISA is {:?}, {problem}; expected one of `{available}`", self.wanted)
    }
}

impl std::error::Error for IsaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_row_is_chosen_unless_another_one_is_named() {
        let choose = |name: &str| choose(rows_f32(), Some(name.to_owned())).map(|row| row.name);
        for row in rows_f32() {
            assert_eq!(choose(row.name), Ok(row.name));
            assert!(NAMES.contains(&row.name));
        }
        assert_eq!(super::choose(rows_f32(), None).map(|row| row.name).ok(), rows_f32().last().map(|row| row.name));
        let missing = NAMES.into_iter().find(|&name| rows_f32().iter().all(|row| row.name != name)).unwrap();
        let error = choose(missing).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("SRF_ISA is \"{missing}\", which this processor does not have; ")),
            "{error}"
        );
        let error = choose("fast").unwrap_err().to_string();
        assert!(
            error.starts_with("SRF_ISA is \"fast\", which is no instruction set; expected one of `scalar`"),
            "{error}"
        );
    }
}
