//! The tensors of a network of self-attention: its configuration in, a slot for each tensor and the layout that holds
//! them out.

use super::slots::{DenseSlots, NormSlots, SlicerSlots, dense, kernel, norm};
use super::{Layout, Slot};
use crate::config::TransformerConfig;

/// Where the tensors of a network of self-attention live.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformerParams {
    /// The strided convolutions.
    pub slicer: SlicerSlots,
    /// Dense layer from the slices to the width of the blocks.
    pub proj: DenseSlots,
    /// Blocks, the lowest first.
    pub blocks: Vec<BlockSlots>,
    /// Layer norm behind the last block.
    pub ln_out: NormSlots,
    /// Dense layer to the classes.
    pub out: DenseSlots,
}

/// A block of self-attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSlots {
    /// Layer norm before the attention.
    pub ln_att: NormSlots,
    /// The attention.
    pub attention: AttentionSlots,
    /// Layer norm before the dense layers.
    pub ln_ffn: NormSlots,
    /// First dense layer.
    pub ff1: DenseSlots,
    /// Second dense layer.
    pub ff2: DenseSlots,
}

/// Projections of an attention, all `[width, width]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionSlots {
    /// To queries, keys and values, without bias.
    pub qkv: [Slot; 3],
    /// Of the heads' results.
    pub o: DenseSlots,
}

impl TransformerParams {
    /// Lays out the network that `config`, which has been checked, describes.
    pub fn new(config: &TransformerConfig) -> (Self, Layout) {
        let layout = &mut Layout::default();
        let mut slicer = SlicerSlots::new(layout, config.filters);
        let proj = dense(layout, "proj", &[config.flat_width(), config.width]);
        let blocks = (1..=config.layers).map(|number| block(layout, number, config)).collect();
        let ln_out = norm(layout, "ln_out", config.width);
        let out = dense(layout, "out", &[config.width, config.classes]);
        slicer.add_statistics(layout);
        (Self { slicer, proj, blocks, ln_out, out }, std::mem::take(layout))
    }
}

fn block(layout: &mut Layout, number: usize, config: &TransformerConfig) -> BlockSlots {
    let (width, inner) = (config.width, config.inner);
    let name = |part: &str| format!("block{number}.{part}");
    let ln_att = norm(layout, &name("ln_att"), width);
    let qkv = ["q", "k", "v"].map(|part| kernel(layout, &name(&format!("{part}.kernel")), &[width, width]));
    let o = dense(layout, &name("o"), &[width, width]);
    let ln_ffn = norm(layout, &name("ln_ffn"), width);
    let ff1 = dense(layout, &name("ff1"), &[width, inner]);
    let ff2 = dense(layout, &name("ff2"), &[inner, width]);
    BlockSlots { ln_att, attention: AttentionSlots { qkv, o }, ln_ffn, ff1, ff2 }
}
