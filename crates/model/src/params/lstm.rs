//! The tensors of a recurrent network: its configuration in, a slot for each tensor and the layout that holds them out.

use super::slots::{NormSlots, SlicerSlots, kernel, norm};
use super::{Init, Layout, Slot};
use crate::config::{Directions, LstmConfig};

/// Where the tensors of a recurrent network live.
#[derive(Clone, Debug, PartialEq)]
pub struct LstmParams {
    /// The strided convolutions, if there are any.
    pub slicer: Option<SlicerSlots>,
    /// Recurrent layers, the lowest first; each has one cell or, running both ways, two.
    pub layers: Vec<Vec<CellSlots>>,
    /// The layer norm behind each recurrent layer.
    pub norms: Vec<NormSlots>,
    /// Dense layer to the classes, without bias.
    pub proj: Slot,
    /// Layer norm of the classes.
    pub ln_out: NormSlots,
}

/// One direction of a recurrent layer; the four gates i, f, g, o one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellSlots {
    /// `[inputs, 4 cells]`.
    pub kernel: Slot,
    /// `[cells, 4 cells]`.
    pub recurrent: Slot,
    /// `[4 cells]`.
    pub bias: Slot,
}

impl LstmParams {
    /// Lays out the network that `config`, which has been checked, describes.
    pub fn new(config: &LstmConfig) -> (Self, Layout) {
        let layout = &mut Layout::default();
        let mut slicer = config.front_end.then(|| SlicerSlots::new(layout, config.filters));
        let (mut layers, mut norms) = (Vec::new(), Vec::new());
        for index in 0..config.layers {
            let name = format!("lstm{}", index + 1);
            let names = match config.directions {
                Directions::Forward => vec![name],
                Directions::Both => vec![format!("{name}.fwd"), format!("{name}.bwd")],
            };
            let n_in = config.layer_width(index);
            layers.push(names.iter().map(|name| cell(layout, name, n_in, config.cells)).collect());
            norms.push(norm(layout, &format!("ln{}", index + 1), config.hidden_width()));
        }
        let proj = kernel(layout, "proj.kernel", &[config.hidden_width(), config.classes]);
        let ln_out = norm(layout, "ln_out", config.classes);
        slicer.iter_mut().for_each(|slicer| slicer.add_statistics(layout));
        (Self { slicer, layers, norms, proj, ln_out }, std::mem::take(layout))
    }
}

fn cell(layout: &mut Layout, name: &str, n_in: usize, n_cells: usize) -> CellSlots {
    let kernel = kernel(layout, &format!("{name}.kernel"), &[n_in, 4 * n_cells]);
    let shape = [n_cells, 4 * n_cells];
    let recurrent = layout.trainable(format!("{name}.recurrent_kernel"), &shape, Init::Orthogonal { rows: n_cells });
    CellSlots { kernel, recurrent, bias: layout.trainable(format!("{name}.bias"), &[4 * n_cells], Init::ForgetOne) }
}
