//! Votes of a few slices against one load of the weights: input poses in, votes out, and the way back.
//!
//! u_ij = W_ij x_i + b_ij; so dW_ij = Σ du_ij x_iᵀ, db_ij = Σ du_ij, dx_i = Σ_j W_ijᵀ du_ij.
//! Each slice is computed by the same operations however many share the load.

use super::Layer;
use super::lanes::{Lanes, add, total};
use crate::{BLOCK, Element};

/// `a * b + c`, in one instruction where the row has it.
#[inline(always)]
fn multiply_add<E: Element, const FUSED: bool>(a: E, b: E, c: E) -> E {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Votes of `T` slices from their windows of input poses.
#[inline(always)]
pub(super) fn predict<E: Element, const FUSED: bool, const T: usize>(
    layer: &Layer<'_, E>,
    x: [&[E]; T],
    mut votes: [&mut [Lanes<E>]; T],
) {
    let depth = layer.routing.depth_in;
    for i in 0..layer.routing.n_in {
        let pose: [&[E]; T] = x.map(|x| &x[i * depth..][..depth]);
        for at in i * layer.len..(i + 1) * layer.len {
            let mut sums = [layer.biases[at]; T];
            for (k, weight) in layer.weights[at * depth..][..depth].iter().enumerate() {
                for (sum, pose) in sums.iter_mut().zip(&pose) {
                    for l in 0..BLOCK {
                        sum[l] = multiply_add::<E, FUSED>(pose[k], weight[l], sum[l]);
                    }
                }
            }
            for (votes, sum) in votes.iter_mut().zip(sums) {
                votes[at] = sum;
            }
        }
    }
}

/// Gradients of weights and biases, packed.
pub(super) struct PackedGradient<'a, E> {
    pub(super) weights: &'a mut [Lanes<E>],
    pub(super) biases: &'a mut [Lanes<E>],
}

/// Adds to the gradients of weights, biases and input poses from those of the votes of `T` slices; the window of slice
/// `t` of them starts at `starts[t]` of `x` and `d_x`.
#[inline(always)]
pub(super) fn predict_backward<E: Element, const FUSED: bool, const T: usize>(
    layer: &Layer<'_, E>,
    d_votes: [&[Lanes<E>]; T],
    starts: [usize; T],
    x: &[E],
    d_x: &mut [E],
    gradient: &mut PackedGradient<'_, E>,
) {
    let (depth, len) = (layer.routing.depth_in, layer.len);
    for i in 0..layer.routing.n_in {
        let here = d_votes.map(|votes| &votes[i * len..][..len]);
        let biases = &mut gradient.biases[i * len..][..len];
        for votes in here {
            add(biases, votes);
        }
        let weights = &layer.weights[i * len * depth..][..len * depth];
        let d_weights = &mut gradient.weights[i * len * depth..][..len * depth];
        for k in 0..depth {
            let at = starts.map(|start| start + i * depth + k);
            let poses = at.map(|at| x[at]);
            let sums = column::<E, FUSED, T>(here, poses, depth, &weights[k..], &mut d_weights[k..]);
            for (at, sum) in at.into_iter().zip(sums) {
                d_x[at] += total(&[sum]);
            }
        }
    }
}

/// One column of the matrices of an input capsule: adds to its gradient and gives the products with the votes'.
#[inline(always)]
fn column<E: Element, const FUSED: bool, const T: usize>(
    d_votes: [&[Lanes<E>]; T],
    poses: [E; T],
    depth: usize,
    weights: &[Lanes<E>],
    d_weights: &mut [Lanes<E>],
) -> [Lanes<E>; T] {
    let mut sums = [[E::ZERO; BLOCK]; T];
    let columns = weights.iter().step_by(depth).zip(d_weights.iter_mut().step_by(depth));
    for (n, (weight, d_weight)) in columns.enumerate() {
        let (weight, mut gradient) = (*weight, *d_weight);
        for t in 0..T {
            let d_vote = d_votes[t][n];
            for l in 0..BLOCK {
                gradient[l] = multiply_add::<E, FUSED>(d_vote[l], poses[t], gradient[l]);
            }
            for l in 0..BLOCK {
                sums[t][l] = multiply_add::<E, FUSED>(d_vote[l], weight[l], sums[t][l]);
            }
        }
        *d_weight = gradient;
    }
    sums
}
