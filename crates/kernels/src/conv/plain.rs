//! The definition: each equation as loops, for any number type.

use super::{Conv, ConvWeights, Spread, check_forward, pick};
use crate::{BLOCK, Dropout, Element};

/// The output frames that the input frames `x` give, and where each value came from unless `choices` is empty.
pub(crate) fn forward<E: Element>(
    weights: &ConvWeights<E>,
    x: &[E],
    dropout: Option<Dropout>,
    out: &mut [E],
    choices: &mut [u8],
) {
    let conv = &weights.conv;
    check_forward(conv, x.len(), out.len(), choices.len());
    for (index, value) in out.iter_mut().enumerate() {
        let (position, filter) = (index / conv.n_filters, index % conv.n_filters);
        let at = (position / conv.n_freq_out(), position % conv.n_freq_out());
        let [a, b] = [0, 1].map(|branch| sum_at(weights, x, at, branch, filter));
        let keeps = dropout.map_or([true; 2], |dropout| dropout.keeps_pair(index));
        let (larger, choice) = pick(keeps, dropout.map_or(E::ONE, Dropout::scale), a, b);
        *value = larger;
        if let Some(slot) = choices.get_mut(index) {
            *slot = choice;
        }
    }
}

fn sum_at<E: Element>(weights: &ConvWeights<E>, x: &[E], at: (usize, usize), branch: usize, filter: usize) -> E {
    let conv = &weights.conv;
    let panel = branch * conv.n_lanes() / BLOCK + filter / BLOCK;
    let mut sum = E::ZERO;
    for_each_tap(conv, at, |input, tap| {
        sum += x[input] * weights.forward[(panel * conv.n_taps() + tap) * BLOCK + filter % BLOCK];
    });
    sum + weights.bias[branch * conv.n_lanes() + filter]
}

/// Calls `visit` with each input that the output at frame and frequency `at` reads, and the tap it meets.
fn for_each_tap(conv: &Conv, at: (usize, usize), mut visit: impl FnMut(usize, usize)) {
    let (t, f) = at;
    let taps = conv.taps_at(f);
    for i in 0..conv.kernel[0] {
        let input = (t * conv.stride[0] + i) * conv.width_in() + conv.column(f, taps.start);
        let tap = (i * conv.kernel[1] + taps.start) * conv.n_channels;
        for k in 0..taps.len() * conv.n_channels {
            visit(input + k, tap + k);
        }
    }
}

/// Writes the gradient of the input frames from `first_frame` on, as many as `d_x` holds.
pub(crate) fn input_gradient<E: Element>(
    weights: &ConvWeights<E>,
    spread: &mut [E],
    n_frames: usize,
    first_frame: usize,
    d_x: &mut [E],
) {
    let conv = &weights.conv;
    let shape = Spread::new(conv);
    let n_panels = conv.n_lanes() / BLOCK;
    d_x.fill(E::ZERO);
    for position in 0..n_frames * conv.n_freq_out() {
        let at = (position / conv.n_freq_out(), position % conv.n_freq_out());
        let gradients = &spread[shape.at(at.0, at.1)..][..shape.col];
        for_each_tap(conv, at, |input, tap| {
            let Some(slot) = input.checked_sub(first_frame * conv.width_in()).and_then(|i| d_x.get_mut(i)) else {
                return;
            };
            for (lane, &gradient) in gradients.iter().enumerate() {
                let panel = lane / conv.n_lanes() * n_panels + lane % conv.n_lanes() / BLOCK;
                *slot += gradient * weights.forward[(panel * conv.n_taps() + tap) * BLOCK + lane % BLOCK];
            }
        });
    }
}

/// Adds the gradient of the weights to `d_weights`, `[branch][tap, then bias][lane]`.
pub(crate) fn weight_gradient<E: Element>(conv: &Conv, x: &[E], spread: &[E], n_frames: usize, d_weights: &mut [E]) {
    let shape = Spread::new(conv);
    let n_lanes = conv.n_lanes();
    for position in 0..n_frames * conv.n_freq_out() {
        let at = (position / conv.n_freq_out(), position % conv.n_freq_out());
        let gradients = &spread[shape.at(at.0, at.1)..][..shape.col];
        for (gradients, d_weights) in gradients.chunks(n_lanes).zip(d_weights.chunks_mut((conv.n_taps() + 1) * n_lanes))
        {
            let mut add = |tap: usize, input: E| {
                for (slot, &gradient) in d_weights[tap * n_lanes..][..n_lanes].iter_mut().zip(gradients) {
                    *slot += input * gradient;
                }
            };
            for_each_tap(conv, at, |input, tap| add(tap, x[input]));
            add(conv.n_taps(), E::ONE);
        }
    }
}
