//! Kernels and biases as a training step hands them over in, panels in the order the tiles read them out.

use crate::{BLOCK, Buffer, Conv, Element};

/// Lanes of a group: a group of the 128 rows of the front end's second convolution fits the nearest cache.
pub(crate) const GROUP: usize = 48;
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
        let n_rows =
            if scatters(&conv) { n_panels(conv.n_taps()) * BLOCK } else { conv.kernel[0] * n_groups(&conv) * GROUP };
        let forward = Buffer::zeros(lanes * conv.n_taps());
        Self { conv, forward, bias: Buffer::zeros(lanes), backward: Buffer::zeros(lanes * n_rows) }
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
                pack_transposed::<E, BLOCK>(
                    branch.kernel,
                    conv.n_filters,
                    first_row,
                    2 * conv.n_lanes(),
                    &mut self.backward,
                );
            }
            return;
        }
        let n_run = conv.kernel[1] * conv.n_channels * conv.n_filters;
        for (index, branch) in branches.iter().enumerate() {
            let first_row = index * conv.n_lanes();
            let n_panel = n_groups(&conv) * GROUP * 2 * conv.n_lanes();
            for (kernel, panels) in branch.kernel.chunks_exact(n_run).zip(self.backward.chunks_exact_mut(n_panel)) {
                pack_transposed::<E, GROUP>(kernel, conv.n_filters, first_row, 2 * conv.n_lanes(), panels);
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

/// Packs `[lane][filter]` into panels of `L` lanes whose rows are filters, from `first_row` on, of `n_rows`.
fn pack_transposed<E: Element, const L: usize>(
    kernel: &[E],
    n_filters: usize,
    first_row: usize,
    n_rows: usize,
    panels: &mut [E],
) {
    for (lane, filters) in kernel.chunks_exact(n_filters).enumerate() {
        let start = (lane / L * n_rows + first_row) * L + lane % L;
        for (filter, &weight) in filters.iter().enumerate() {
            panels[start + filter * L] = weight;
        }
    }
}

/// Whether the gradient of the input is scattered: with few channels, the taps of an output fill vectors better than
/// the channels of an input do.
pub(crate) fn scatters(conv: &Conv) -> bool {
    conv.n_channels < BLOCK
}

/// Groups that the taps of one frame fill, all frequencies and channels.
pub(crate) fn n_groups(conv: &Conv) -> usize {
    (conv.kernel[1] * conv.n_channels).div_ceil(GROUP)
}
