//! The table of implementations: the processor in, the rows that it can run out.

use std::sync::OnceLock;

use crate::adam::{self, Adam};
use crate::batch_norm::{self, Factors};
use crate::conv::{self, Conv, ConvWeights};
use crate::dense::{self, DenseWeights};
use crate::dropout::{self, Dropout};
use crate::routing::family::{self, Layer, Scratch};
use crate::routing::{self, GradientPaths, Packed, Routing, Utterance, UtteranceBack, Workspace};
use crate::{Element, attention, layer_norm, lstm, squash, sum};

/// One row of the table: an implementation of every operation that has more than one.
// Each signature stands once, here; a name for each would hide it.
#[allow(clippy::type_complexity)]
pub struct Kernels<E> {
    /// What the row is called: `scalar`, `avx2`, `avx512` or `neon`.
    pub name: &'static str,
    /// See [`routing::forward`].
    pub routing_forward: RoutingForward<E>,
    /// See [`routing::backward`].
    pub routing_backward: RoutingBackward<E>,
    /// An utterance through a member of [`family`].
    pub family_forward: fn(&Layer<'_, E>, &mut Utterance<'_, E>, &mut Scratch<E>),
    /// An utterance back through it; adds to the gradients in the scratch.
    pub family_backward: fn(&Layer<'_, E>, GradientPaths, &mut UtteranceBack<'_, E>, &mut Scratch<E>),
    /// [`Conv`] forward: weights, input frames, dropout, output frames, choices (or empty).
    pub conv_forward: fn(&ConvWeights<E>, &[E], Option<Dropout>, &mut [E], &mut [u8]),
    /// The gradient of a maxout spread over its branches: dropout, output gradient, choices, spread gradient.
    pub conv_spread: fn(&Conv, Option<Dropout>, &[E], &[u8], &mut [E]),
    /// Gradient of the input: spread gradient, its frames, the first input frame wanted, the gradients from there on.
    pub conv_input_gradient: fn(&ConvWeights<E>, &mut [E], usize, usize, &mut [E]),
    /// Adds the gradient of the weights: input frames, spread gradient, its frames, gradient.
    pub conv_weight_gradient: fn(&Conv, &[E], &[E], usize, &mut [E]),
    /// Dense layer: weights, input rows, output rows.
    pub dense_forward: fn(&DenseWeights<E>, &[E], &mut [E]),
    /// Dropout in place, forward or backward.
    pub dropout_apply: fn(Dropout, &mut [E]),
    /// Batch norm: rows of channels to their means and summed squared deviations.
    pub row_moments: fn(&[E], &mut [E], &mut [E]),
    /// Batch norm: rows x, dy and the means to the sums of dy and of dy (x - mean).
    pub gradient_moments: fn(&[E], &[E], &[E], &mut [E], &mut [E]),
    /// Batch norm: rows x, scales and shifts to x * scale + shift.
    pub affine: fn(&[E], &[E], &[E], &mut [E]),
    /// Batch norm: rows x, the means and the factors; replaces dy by dx.
    pub batch_norm_backward: fn(&[E], &[E], Factors<'_, E>, &mut [E]),
    /// Layer norm: rows x, gamma, beta, epsilon, results, and mean and inverse deviation of each row.
    pub layer_norm_forward: fn(&[E], &[E], &[E], E, &mut [E], &mut [E]),
    /// Layer norm: rows x, gamma, what was saved; replaces dy by dx, adds to the gradients of gamma and beta.
    pub layer_norm_backward: fn(&[E], &[E], &[E], &mut [E], &mut [E], &mut [E]),
    /// LSTM: gates (x W + b, activated afterwards), h' R, cells before, cells, outputs of a row.
    pub lstm_forward: fn(&mut [E], &[E], &[E], &mut [E], &mut [E]),
    /// LSTM: gates (their gradients afterwards), cells before, cells, gradients of outputs and (in place) of cells.
    pub lstm_backward: fn(&mut [E], &[E], &[E], &[E], &mut [E]),
    /// Attention: a row of scores (weights afterwards), scale, penalties.
    pub attention_forward: fn(&mut [E], E, &[E]),
    /// Attention: a row of weights, scale; replaces dp by ds.
    pub attention_backward: fn(&[E], E, &mut [E]),
    /// Squash: capsules, their depth, results.
    pub squash_forward: fn(&[E], usize, &mut [E]),
    /// Squash: capsules, their depth; replaces dv by ds.
    pub squash_backward: fn(&[E], usize, &mut [E]),
    /// Length: capsules, their depth, lengths.
    pub length_forward: fn(&[E], usize, &mut [E]),
    /// Length: capsules, their depth, lengths, gradients of these, gradients of the capsules.
    pub length_backward: fn(&[E], usize, &[E], &[E], &mut [E]),
    /// Adds the first slice to the second.
    pub accumulate: fn(&[E], &mut [E]),
    /// One step of [`adam`](crate::adam()): gradient, both means, parameters.
    pub adam: fn(Adam, &[E], &mut [E], &mut [E], &mut [E]),
}

/// See [`routing::forward`].
pub(crate) type RoutingForward<E> = fn(&Routing, &Packed<E>, &mut [Utterance<'_, E>], &mut Workspace<E>);
/// See [`routing::backward`].
pub(crate) type RoutingBackward<E> =
    fn(&Routing, &Packed<E>, GradientPaths, &mut [UtteranceBack<'_, E>], &mut Packed<E>, &mut Workspace<E>);

/// The definition of every operation.
fn scalar<E: Element>() -> Kernels<E> {
    Kernels {
        name: "scalar",
        routing_forward: routing::scalar_forward,
        routing_backward: routing::scalar_backward,
        family_forward: family::walk_forward::<E, false>,
        family_backward: family::walk_backward::<E, false>,
        conv_forward: conv::plain::forward,
        conv_spread: conv::spread::spread,
        conv_input_gradient: conv::plain::input_gradient,
        conv_weight_gradient: conv::plain::weight_gradient,
        dense_forward: dense::forward,
        dropout_apply: dropout::apply,
        row_moments: batch_norm::row_moments,
        gradient_moments: batch_norm::gradient_moments,
        affine: batch_norm::affine,
        batch_norm_backward: batch_norm::backward,
        layer_norm_forward: layer_norm::forward,
        layer_norm_backward: layer_norm::backward,
        lstm_forward: lstm::forward,
        lstm_backward: lstm::backward,
        attention_forward: attention::forward,
        attention_backward: attention::backward,
        squash_forward: squash::forward,
        squash_backward: squash::backward,
        length_forward: squash::length,
        length_backward: squash::length_backward,
        accumulate: sum::accumulate,
        adam: adam::update,
    }
}

/// Fills a row from the module of [`rows`](crate::rows) with its name.
macro_rules! row {
    ($name:ident) => {{
        use crate::rows::$name;
        Kernels {
            name: stringify!($name),
            routing_forward: routing::$name::forward,
            routing_backward: routing::$name::backward,
            family_forward: $name::family_forward,
            family_backward: $name::family_backward,
            conv_forward: $name::conv_forward,
            conv_spread: $name::conv_spread,
            conv_input_gradient: $name::conv_input_gradient,
            conv_weight_gradient: $name::conv_weight_gradient,
            dense_forward: $name::dense_forward,
            dropout_apply: $name::dropout_apply,
            row_moments: $name::row_moments,
            gradient_moments: $name::gradient_moments,
            affine: $name::affine,
            batch_norm_backward: $name::batch_norm_backward,
            layer_norm_forward: $name::layer_norm_forward,
            layer_norm_backward: $name::layer_norm_backward,
            lstm_forward: $name::lstm_forward,
            lstm_backward: $name::lstm_backward,
            attention_forward: $name::attention_forward,
            attention_backward: $name::attention_backward,
            squash_forward: $name::squash_forward,
            squash_backward: $name::squash_backward,
            length_forward: $name::length_forward,
            length_backward: $name::length_backward,
            accumulate: $name::accumulate,
            adam: $name::adam,
        }
    }};
}

/// The rows for `f32`, found once.
pub(crate) fn rows_f32() -> &'static [Kernels<f32>] {
    static ROWS: OnceLock<Vec<Kernels<f32>>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut rows = vec![scalar()];
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if has_avx2 {
                rows.push(row!(avx2));
            }
            let has_avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if has_avx2 && has_avx512 {
                rows.push(row!(avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        rows.push(row!(neon));
        rows
    })
}

/// The rows for `f64`: gradients are checked in it, nothing runs in it.
pub(crate) fn rows_f64() -> &'static [Kernels<f64>] {
    static ROWS: OnceLock<Vec<Kernels<f64>>> = OnceLock::new();
    ROWS.get_or_init(|| vec![scalar()])
}
