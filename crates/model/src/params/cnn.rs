//! The tensors of a convolutional network: its configuration in, a slot for each tensor and the layout that holds them
//! out.

use super::slots::{NormSlots, SlicerSlots, kernel, norm};
use super::{Layout, Slot};
use crate::config::CnnConfig;

/// Where the tensors of a convolutional network live.
#[derive(Clone, Debug, PartialEq)]
pub struct CnnParams {
    /// The strided convolutions, if there are any.
    pub slicer: Option<SlicerSlots>,
    /// Convolutional layers, the lowest first; kernels `[5, 3, in, 2 out]`.
    pub convs: Vec<MaxoutNormSlots>,
    /// Dense layers, that of the classes last; kernels `[in, 2 out]`.
    pub dense: Vec<MaxoutNormSlots>,
}

/// Both branches of a maxout side by side, without bias, and the layer norm behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxoutNormSlots {
    /// The last axis holds the first branch, then the second.
    pub kernel: Slot,
    /// The layer norm.
    pub norm: NormSlots,
}

impl CnnParams {
    /// Lays out the network that `config`, which has been checked, describes.
    pub fn new(config: &CnnConfig) -> (Self, Layout) {
        let layout = &mut Layout::default();
        let mut slicer = config.front_end.then(|| SlicerSlots::new(layout, config.filters));
        let convs = config.conv_shapes().enumerate().map(|(index, shape)| {
            let kernel =
                kernel(layout, &format!("conv_block{}.kernel", index + 1), &[5, 3, shape.n_in, 2 * shape.n_out]);
            MaxoutNormSlots { kernel, norm: norm(layout, &format!("ln_conv{}", index + 1), shape.n_out) }
        });
        let convs = convs.collect();
        let dense = config.dense_shapes().enumerate().map(|(index, [n_in, n_out])| {
            let is_last = index == config.dense_layers;
            let name = if is_last { "fc_out".to_owned() } else { format!("fc{}", index + 1) };
            let kernel = kernel(layout, &format!("{name}.kernel"), &[n_in, 2 * n_out]);
            let name = if is_last { "ln_out".to_owned() } else { format!("ln_{name}") };
            MaxoutNormSlots { kernel, norm: norm(layout, &name, n_out) }
        });
        let dense = dense.collect();
        slicer.iter_mut().for_each(|slicer| slicer.add_statistics(layout));
        (Self { slicer, convs, dense }, std::mem::take(layout))
    }
}
