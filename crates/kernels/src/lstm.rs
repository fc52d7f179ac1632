//! The gates of an LSTM cell, one row (an utterance at one frame) at a time.
//!
//! With z = x W + h' R + b cut into four equal parts, h' and c' the output and the cell of the step before:
//!
//! ```text
//! i = sigmoid(z_i), f = sigmoid(z_f), g = tanh(z_g), o = sigmoid(z_o)
//! c = f c' + i g
//! h = o tanh(c)
//! ```
//!
//! Saved for the backward pass: the four gates, which take the place of z, and the cells.
//! Each value is computed by the same operations wherever it stands in a row.

use crate::Element;
use crate::simd::{Vector, load_or, store};

/// Adds `recurrent` (h' R) to `gates` (x W + b), replaces them by the activated gates, and writes `cells` and `outputs`.
pub(crate) fn forward<E: Element>(
    gates: &mut [E],
    recurrent: &[E],
    cells_before: &[E],
    cells: &mut [E],
    outputs: &mut [E],
) {
    let n = check(gates.len(), cells_before.len(), cells.len(), outputs.len());
    for k in 0..n {
        let z = |part: usize| gates[part * n + k] + recurrent[part * n + k];
        let [i, f, g, o] = [sigmoid(z(0)), sigmoid(z(1)), tanh(z(2)), sigmoid(z(3))];
        for (part, gate) in [i, f, g, o].into_iter().enumerate() {
            gates[part * n + k] = gate;
        }
        cells[k] = f * cells_before[k] + i * g;
        outputs[k] = o * tanh(cells[k]);
    }
}

/// Replaces the `gates` of the forward pass by the gradient of z, and `d_cells` by the gradient of the cells before.
pub(crate) fn backward<E: Element>(
    gates: &mut [E],
    cells_before: &[E],
    cells: &[E],
    d_outputs: &[E],
    d_cells: &mut [E],
) {
    let n = check(gates.len(), cells_before.len(), cells.len(), d_outputs.len());
    for k in 0..n {
        let [i, f, g, o] = [0, 1, 2, 3].map(|part| gates[part * n + k]);
        let squeezed = tanh(cells[k]);
        let d_cell = d_cells[k] + d_outputs[k] * o * (E::ONE - squeezed * squeezed);
        gates[k] = d_cell * g * (i * (E::ONE - i));
        gates[n + k] = d_cell * cells_before[k] * (f * (E::ONE - f));
        gates[2 * n + k] = d_cell * i * (E::ONE - g * g);
        gates[3 * n + k] = d_outputs[k] * squeezed * (o * (E::ONE - o));
        d_cells[k] = d_cell * f;
    }
}

#[track_caller]
fn check(n_gates: usize, n_before: usize, n_cells: usize, n_outputs: usize) -> usize {
    assert!(
        n_gates == 4 * n_cells && n_before == n_cells && n_outputs == n_cells,
        "lstm: {n_gates} gates, {n_before} cells before, {n_cells} cells, {n_outputs} outputs"
    );
    n_cells
}

fn sigmoid<E: Element>(x: E) -> E {
    E::ONE / (E::ONE + (-x).exp())
}

/// Without overflow: the exponent is never positive.
fn tanh<E: Element>(x: E) -> E {
    let size = if x < E::ZERO { -x } else { x };
    let e = (-(size + size)).exp();
    let y = (E::ONE - e) / (E::ONE + e);
    if x < E::ZERO { -y } else { y }
}

/// `x - x` is 0, or NaN for what is not finite, which `exp` alone would hide.
#[inline(always)]
fn sigmoid_fast<V: Vector>(x: V) -> V {
    let one = V::splat(1.0);
    one.div(one.add(V::zero().sub(x).exp())).add(x.sub(x))
}

/// 1 - 2 / (1 + e^2x): both ends are reached without overflow, for `exp` clamps its argument; `x - x` as above.
#[inline(always)]
fn tanh_fast<V: Vector>(x: V) -> V {
    let one = V::splat(1.0);
    one.sub(V::splat(2.0).div(one.add(x.add(x).exp()))).add(x.sub(x))
}

/// As [`forward`], in vectors.
#[inline(always)]
pub(crate) fn forward_lanes<V: Vector>(
    gates: &mut [f32],
    recurrent: &[f32],
    cells_before: &[f32],
    cells: &mut [f32],
    outputs: &mut [f32],
) {
    let n = check(gates.len(), cells_before.len(), cells.len(), outputs.len());
    let [i, f, g, o] = quarters(gates, n);
    let [ri, rf, rg, ro] = [0, 1, 2, 3].map(|part| &recurrent[part * n..(part + 1) * n]);
    for k in (0..n).step_by(V::LANES) {
        let zi = load::<V>(i, k).add(load(ri, k));
        let zf = load::<V>(f, k).add(load(rf, k));
        let zg = load::<V>(g, k).add(load(rg, k));
        let zo = load::<V>(o, k).add(load(ro, k));
        let [input, forget, output] = [sigmoid_fast(zi), sigmoid_fast(zf), sigmoid_fast(zo)];
        let candidate = tanh_fast(zg);
        let cell = forget.mul_add(load(cells_before, k), input.mul(candidate));
        store(input, i, k);
        store(forget, f, k);
        store(candidate, g, k);
        store(output, o, k);
        store(cell, cells, k);
        store(output.mul(tanh_fast(cell)), outputs, k);
    }
}

/// As [`backward`], in vectors.
#[inline(always)]
pub(crate) fn backward_lanes<V: Vector>(
    gates: &mut [f32],
    cells_before: &[f32],
    cells: &[f32],
    d_outputs: &[f32],
    d_cells: &mut [f32],
) {
    let n = check(gates.len(), cells_before.len(), cells.len(), d_outputs.len());
    assert_eq!(d_cells.len(), n, "lstm: gradients of cells");
    let [i, f, g, o] = quarters(gates, n);
    let one = V::splat(1.0);
    for k in (0..n).step_by(V::LANES) {
        let [input, forget, candidate, output]: [V; 4] = [load(i, k), load(f, k), load(g, k), load(o, k)];
        let squeezed = tanh_fast(load::<V>(cells, k));
        let d_output: V = load(d_outputs, k);
        let slope = one.sub(squeezed.mul(squeezed));
        let d_cell = d_output.mul(output).mul_add(slope, load(d_cells, k));
        store(d_cell.mul(candidate).mul(input.mul(one.sub(input))), i, k);
        store(d_cell.mul(load(cells_before, k)).mul(forget.mul(one.sub(forget))), f, k);
        store(d_cell.mul(input).mul(one.sub(candidate.mul(candidate))), g, k);
        store(d_output.mul(squeezed).mul(output.mul(one.sub(output))), o, k);
        store(d_cell.mul(forget), d_cells, k);
    }
}

/// A vector of `from[at..]`, zeros beyond its end.
#[inline(always)]
fn load<V: Vector>(from: &[f32], at: usize) -> V {
    load_or(from, at, 0.0)
}

#[inline(always)]
fn quarters(gates: &mut [f32], n: usize) -> [&mut [f32]; 4] {
    let (i, rest) = gates.split_at_mut(n);
    let (f, rest) = rest.split_at_mut(n);
    let (g, o) = rest.split_at_mut(n);
    [i, f, g, o]
}

#[cfg(test)]
mod tests;
