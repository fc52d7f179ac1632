//! Kernels and biases as a training step hands them over in, panels in the order the tiles read them out.

use crate::{BLOCK, Buffer, Conv, Element};

/// Most taps in time.
pub(crate) const MAX_TIME_TAPS: usize = 16;

/// The parameters of one branch.
#[derive(Clone, Copy, Debug)]
pub struct Branch<'a, E> {
    /// `[time][freq][n_channels][n_filters]`.
    pub kernel: &'a [E],
    /// `[n_filters]`, or none.
    pub bias: Option<&'a [E]>,
}

/// The weights of a convolution, packed once a step (or once at load) and shared by all utterances.
#[derive(Clone)]
pub struct ConvWeights<E> {
    pub(crate) conv: Conv,
    /// `[branch][panel][tap][lane]`: lanes are filters.
    pub(crate) forward: Buffer<E>,
    /// `[branch][lane]`.
    pub(crate) bias: Buffer<E>,
    /// For the gradient of the input. With many channels the phases one after another, `[phase][panel][row][lane]`,
    /// lanes are channels; with few, see [`scatters`], `[panel][filter of either branch][lane]`, lanes are taps.
    pub(crate) backward: Buffer<E>,
}

/// The inputs whose distance from the grid of outputs is the same: they see the same taps of the kernel.
///
/// Input frame `stride * q + time` and frequency `stride * g + freq` get gradient from the outputs `q - i`, `g - j`
/// through the taps `time + stride * i`, `freq + stride * j`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) time: usize,
    pub(crate) freq: usize,
    /// Taps in time and frequency.
    pub(crate) n: [usize; 2],
    /// Where its panels start in [`ConvWeights::backward`].
    pub(crate) start: usize,
}

impl Phase {
    /// Rows of its panels.
    pub(crate) fn n_rows(&self, conv: &Conv) -> usize {
        self.n[0] * self.n[1] * 2 * conv.n_lanes()
    }
}

/// Panels that hold `n` lanes.
pub(crate) fn n_panels(n: usize) -> usize {
    n.div_ceil(BLOCK)
}

impl<E: Element> ConvWeights<E> {
    /// The convolution they belong to.
    pub fn conv(&self) -> &Conv {
        &self.conv
    }

    /// Room for the weights of `conv`; nothing is packed yet.
    pub fn new(conv: Conv) -> Self {
        let lanes = 2 * conv.n_lanes();
        assert!(conv.pad_freq.iter().all(|&pad| pad < conv.kernel[1]), "conv: an output that reads only padding");
        assert!(conv.kernel[0] <= MAX_TIME_TAPS, "conv: {} taps in time", conv.kernel[0]);
        let last = phases(&conv).last();
        let n_gathered = last.map_or(0, |p| p.start + p.n_rows(&conv) * n_panels(conv.n_channels) * BLOCK);
        let n_backward = if scatters(&conv) { lanes * n_panels(conv.n_taps()) * BLOCK } else { n_gathered };
        let forward = Buffer::zeros(lanes * conv.n_taps());
        Self { conv, forward, bias: Buffer::zeros(lanes), backward: Buffer::zeros(n_backward) }
    }

    /// Packs what the forward pass reads.
    #[track_caller]
    pub fn pack(&mut self, branches: [Branch<'_, E>; 2]) {
        let conv = self.conv;
        let (n_taps, n_lanes, n_filters) = (conv.n_taps(), conv.n_lanes(), conv.n_filters);
        for (index, branch) in branches.iter().enumerate() {
            assert_eq!(branch.kernel.len(), n_taps * n_filters, "conv: values in the kernel of branch {index}");
            let panels = &mut self.forward[index * n_taps * n_lanes..][..n_taps * n_lanes];
            pack_panels(branch.kernel, n_filters, panels);
            let bias = &mut self.bias[index * n_lanes..][..n_filters];
            match branch.bias {
                Some(values) => bias.copy_from_slice(values),
                None => bias.fill(E::ZERO),
            }
        }
    }

    /// Packs what the gradient with respect to the input reads.
    #[track_caller]
    pub fn pack_backward(&mut self, branches: [Branch<'_, E>; 2]) {
        let conv = self.conv;
        if scatters(&conv) {
            for (index, branch) in branches.iter().enumerate() {
                let first_row = index * conv.n_lanes();
                pack_transposed(branch.kernel, conv.n_filters, first_row, 2 * conv.n_lanes(), &mut self.backward);
            }
            return;
        }
        for phase in phases(&conv) {
            let n_rows = phase.n_rows(&conv);
            let panels = &mut self.backward[phase.start..][..n_rows * n_panels(conv.n_channels) * BLOCK];
            for i in 0..phase.n[0] {
                for j in 0..phase.n[1] {
                    let tap = (phase.time + i * conv.stride[0]) * conv.kernel[1] + phase.freq + j * conv.stride[1];
                    // Frequencies run upwards in memory, taps downwards.
                    let row = (i * phase.n[1] + phase.n[1] - 1 - j) * 2 * conv.n_lanes();
                    for (index, branch) in branches.iter().enumerate() {
                        let n = conv.n_channels * conv.n_filters;
                        let kernel = &branch.kernel[tap * n..(tap + 1) * n];
                        pack_transposed(kernel, conv.n_filters, row + index * conv.n_lanes(), n_rows, panels);
                    }
                }
            }
        }
    }
}

/// Packs `[row][lane]` into `[panel][row][lane]`.
pub(crate) fn pack_panels<E: Element>(matrix: &[E], n_lanes: usize, panels: &mut [E]) {
    let n_rows = matrix.len() / n_lanes;
    for (panel, first) in panels.chunks_exact_mut(n_rows * BLOCK).zip((0..n_lanes).step_by(BLOCK)) {
        let width = BLOCK.min(n_lanes - first);
        for (row, values) in panel.chunks_exact_mut(BLOCK).enumerate() {
            values[..width].copy_from_slice(&matrix[row * n_lanes + first..][..width]);
        }
    }
}

/// Packs `[lane][filter]` so that filters are rows (from `first_row` on, of `n_rows`) of the panels.
fn pack_transposed<E: Element>(kernel: &[E], n_filters: usize, first_row: usize, n_rows: usize, panels: &mut [E]) {
    for (lane, filters) in kernel.chunks_exact(n_filters).enumerate() {
        let start = (lane / BLOCK * n_rows + first_row) * BLOCK + lane % BLOCK;
        for (filter, &weight) in filters.iter().enumerate() {
            panels[start + filter * BLOCK] = weight;
        }
    }
}

/// Whether the gradient of the input is scattered: with few channels, the taps of an output fill vectors better than
/// the channels of an input do.
pub(crate) fn scatters(conv: &Conv) -> bool {
    conv.n_channels < BLOCK
}

/// The phases of `conv`, in the order in which they are packed.
pub(crate) fn phases(conv: &Conv) -> impl Iterator<Item = Phase> + use<> {
    let conv = *conv;
    let mut start = 0;
    (0..conv.stride[0] * conv.stride[1]).map(move |index| {
        let (time, freq) = (index / conv.stride[1], index % conv.stride[1]);
        let n = [(conv.kernel[0], conv.stride[0], time), (conv.kernel[1], conv.stride[1], freq)]
            .map(|(taps, stride, first)| taps.saturating_sub(first).div_ceil(stride));
        let phase = Phase { time, freq, n, start };
        start += phase.n_rows(&conv) * n_panels(conv.n_channels) * BLOCK;
        phase
    })
}
