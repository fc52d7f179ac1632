//! The rows of the table for `f32`: each operation's one body, compiled for each instruction set.

use crate::adam::{self, Adam};
use crate::batch_norm::{self, Factors};
use crate::conv::{self, Conv, ConvWeights};
use crate::dense::{self, DenseWeights};
use crate::dropout::{self, Dropout};
use crate::routing::family::{self, Layer, Scratch};
use crate::routing::{GradientPaths, Utterance, UtteranceBack};
use crate::{attention, layer_norm, lstm, squash, sum};

/// Writes one safe function from a body that is inlined into a function with the instruction set enabled.
macro_rules! compiled {
    ($features:literal, $name:ident($($arg:ident: $type:ty),* $(,)?) $body:expr) => {
        pub(crate) fn $name($($arg: $type),*) {
            #[target_feature(enable = $features)]
            fn enabled($($arg: $type),*) {
                $body
            }
            // SAFETY: the table offers this row only where the processor was found to have the instructions.
            unsafe { enabled($($arg),*) }
        }
    };
}

/// Writes a row: `$vector` is its vector, of which a tile of the convolution holds `$n` side by side.
macro_rules! row {
    ($row:ident, $doc:literal, $features:literal, $vector:path, $n:literal) => {
        #[doc = $doc]
        pub(crate) mod $row {
            use $vector as V;

            use crate::simd::Vector as _;

            use super::{
                attention, Adam, Conv, ConvWeights, DenseWeights, Dropout, Factors, GradientPaths, Layer, Scratch,
                Utterance, UtteranceBack, adam, batch_norm, conv, dense, dropout, family, layer_norm, lstm, squash, sum,
            };

            compiled!($features, family_forward(
                layer: &Layer<'_, f32>, utterance: &mut Utterance<'_, f32>, scratch: &mut Scratch<f32>,
            ) {
                family::walk_forward::<f32, true>(layer, utterance, scratch);
            });
            compiled!($features, family_backward(
                layer: &Layer<'_, f32>, paths: GradientPaths, utterance: &mut UtteranceBack<'_, f32>,
                scratch: &mut Scratch<f32>,
            ) {
                family::walk_backward::<f32, true>(layer, paths, utterance, scratch);
            });

            compiled!($features, conv_forward(
                weights: &ConvWeights<f32>, x: &[f32], dropout: Option<Dropout>, out: &mut [f32], choices: &mut [u8],
            ) {
                // SAFETY: this function enables the instructions.
                unsafe { conv::fast::forward::<V, $n>(weights, x, dropout, out, choices) }
            });
            compiled!($features, conv_spread(
                conv: &Conv, dropout: Option<Dropout>, grad_out: &[f32], choices: &[u8], spread: &mut [f32],
            ) {
                conv::spread::spread(conv, dropout, grad_out, choices, spread);
            });
            compiled!($features, conv_input_gradient(
                weights: &ConvWeights<f32>, spread: &mut [f32], n_frames: usize, first_frame: usize, grad_x: &mut [f32],
            ) {
                // SAFETY: this function enables the instructions.
                unsafe {
                    if conv::scatters(&weights.conv) {
                        conv::fast::scatter::<V, $n>(weights, spread, n_frames, first_frame, grad_x)
                    } else {
                        conv::sparse::input_gradient::<V, { conv::GROUP / V::LANES }>(weights, spread, n_frames, first_frame, grad_x)
                    }
                }
            });
            compiled!($features, conv_weight_gradient(
                conv: &Conv, x: &[f32], spread: &[f32], n_frames: usize, grad: &mut [f32],
            ) {
                // SAFETY: this function enables the instructions.
                unsafe { conv::outer::weight_gradient::<V, $n>(conv, x, spread, n_frames, grad) }
            });
            compiled!($features, dense_forward(weights: &DenseWeights<f32>, x: &[f32], y: &mut [f32]) {
                // SAFETY: this function enables the instructions.
                unsafe { dense::forward_fast::<V, $n>(weights, x, y) }
            });
            compiled!($features, dropout_apply(dropout: Dropout, x: &mut [f32]) {
                dropout::apply(dropout, x);
            });
            compiled!($features, row_moments(rows: &[f32], mean: &mut [f32], deviation: &mut [f32]) {
                batch_norm::row_moments(rows, mean, deviation);
            });
            compiled!($features, gradient_moments(
                x: &[f32], grad_y: &[f32], mean: &[f32], gradient: &mut [f32], product: &mut [f32],
            ) {
                batch_norm::gradient_moments(x, grad_y, mean, gradient, product);
            });
            compiled!($features, affine(x: &[f32], scale: &[f32], shift: &[f32], y: &mut [f32]) {
                batch_norm::affine(x, scale, shift, y);
            });
            compiled!($features, batch_norm_backward(
                x: &[f32], mean: &[f32], factors: Factors<'_, f32>, grad: &mut [f32],
            ) {
                batch_norm::backward(x, mean, factors, grad);
            });
            compiled!($features, layer_norm_forward(
                x: &[f32], gamma: &[f32], beta: &[f32], epsilon: f32, y: &mut [f32], saved: &mut [f32],
            ) {
                layer_norm::forward(x, gamma, beta, epsilon, y, saved);
            });
            compiled!($features, layer_norm_backward(
                x: &[f32], gamma: &[f32], saved: &[f32], grad: &mut [f32], grad_gamma: &mut [f32], grad_beta: &mut [f32],
            ) {
                layer_norm::backward(x, gamma, saved, grad, grad_gamma, grad_beta);
            });
            compiled!($features, lstm_forward(
                gates: &mut [f32], recurrent: &[f32], before: &[f32], cells: &mut [f32], outputs: &mut [f32],
            ) {
                // SAFETY: this function enables the instructions.
                unsafe { lstm::forward_fast::<V>(gates, recurrent, before, cells, outputs) }
            });
            compiled!($features, lstm_backward(
                gates: &mut [f32], before: &[f32], cells: &[f32], grad_outputs: &[f32], grad_cells: &mut [f32],
            ) {
                // SAFETY: this function enables the instructions.
                unsafe { lstm::backward_fast::<V>(gates, before, cells, grad_outputs, grad_cells) }
            });
            compiled!($features, attention_forward(row: &mut [f32], scale: f32, penalty: &[f32]) {
                // SAFETY: this function enables the instructions.
                unsafe { attention::forward_fast::<V>(row, scale, penalty) }
            });
            compiled!($features, attention_backward(weights: &[f32], scale: f32, grad: &mut [f32]) {
                attention::backward(weights, scale, grad);
            });
            compiled!($features, squash_forward(s: &[f32], depth: usize, v: &mut [f32]) {
                squash::forward(s, depth, v);
            });
            compiled!($features, squash_backward(s: &[f32], depth: usize, grad: &mut [f32]) {
                squash::backward(s, depth, grad);
            });
            compiled!($features, length_forward(v: &[f32], depth: usize, lengths: &mut [f32]) {
                squash::length(v, depth, lengths);
            });
            compiled!($features, length_backward(
                v: &[f32], depth: usize, lengths: &[f32], grad_lengths: &[f32], grad_v: &mut [f32],
            ) {
                squash::length_backward(v, depth, lengths, grad_lengths, grad_v);
            });
            compiled!($features, accumulate(from: &[f32], to: &mut [f32]) {
                sum::accumulate(from, to);
            });
            compiled!($features, adam(adam: Adam, grad: &[f32], m: &mut [f32], v: &mut [f32], x: &mut [f32]) {
                adam::update(adam, grad, m, v, x);
            });
        }
    };
}

#[cfg(target_arch = "x86_64")]
row!(avx2, "AVX2 with FMA: 16 registers of 8 lanes.", "avx2,fma", crate::simd::x86::F32x8, 2);
#[cfg(target_arch = "x86_64")]
row!(
    avx512,
    "AVX-512: 32 registers of 16 lanes.",
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
    crate::simd::x86::F32x16,
    4
);
#[cfg(target_arch = "aarch64")]
row!(neon, "NEON: 32 registers of 4 lanes.", "neon", crate::simd::arm::F32x4, 4);
