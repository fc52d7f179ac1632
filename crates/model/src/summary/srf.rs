//! What a network of capsules amounts to.

use super::{
    FRAMES_PER_SLICE, LayerSummary, ParameterCount, SLICER_REACH_FRAMES, TAPS, count, layer, maxout_parameters, norm,
    slicer_layers, slicer_products,
};
use crate::config::{CapsuleShape, Routing, SrfConfig, Start};

/// Frames to either side that a slice of primary capsules is computed from: see the notes of the module above.
const CONV_REACH_FRAMES: usize = SLICER_REACH_FRAMES + FRAMES_PER_SLICE;

impl SrfConfig {
    /// Floating-point operations of the products that one slice needs at the least, on the way forward.
    pub fn flops_per_slice(&self) -> u64 {
        let capsulation = self.primary_height * (self.flat_width() + TAPS * 2 * self.primary_depth);
        // Self-routing multiplies each input capsule by one more column for each output.
        let n_more = usize::from(self.routing == Routing::SelfRouting);
        let votes = |s: CapsuleShape| s.n_inputs() * s.in_depth * s.out_height * (s.out_depth + n_more);
        let slicer = slicer_products(self.features, self.filters);
        let products = slicer + capsulation + self.capsule_shapes().map(votes).sum::<usize>();
        2 * products as u64
    }
}

/// Numbers in a network of capsules.
pub fn srf_parameters(srf: &SrfConfig) -> ParameterCount {
    count(&layers(srf), srf.filters)
}

/// Feature frames after its own that a slice waits for.
pub fn srf_look_ahead_frames(srf: &SrfConfig) -> usize {
    reach_frames(srf.capsule_shapes().map(|shape| shape.window_right))
}

pub(super) fn reach(srf: &SrfConfig) -> [Option<usize>; 2] {
    [Some(reach_frames(srf.capsule_shapes().map(|shape| shape.window_left))), Some(srf_look_ahead_frames(srf))]
}

/// Feature frames to one side that a slice depends on.
fn reach_frames(contexts: impl Iterator<Item = usize>) -> usize {
    CONV_REACH_FRAMES + FRAMES_PER_SLICE * contexts.sum::<usize>()
}

pub(super) fn layers(srf: &SrfConfig) -> Vec<LayerSummary> {
    let mut layers = front_end_layers(srf);
    for (index, caps) in srf.capsule_shapes().enumerate() {
        let pairs = (caps.n_inputs() * caps.out_height) as u64;
        let numbers_a_pair = (caps.out_depth * caps.in_depth + caps.out_depth) as u64;
        let shape = [caps.out_height, caps.out_depth];
        let parameters = pairs * numbers_a_pair + own_parameters(srf, caps);
        layers.push(layer(format!("caps{}", index + 1), FRAMES_PER_SLICE, &shape, parameters));
        layers.push(norm(format!("ln_caps{}", index + 1), FRAMES_PER_SLICE, &shape));
    }
    layers.push(layer("length", FRAMES_PER_SLICE, &[srf.classes], 0));
    layers.push(norm("ln_out", FRAMES_PER_SLICE, &[srf.classes]));
    layers
}

/// Numbers that the routing of a capsule layer has of its own.
fn own_parameters(srf: &SrfConfig, caps: CapsuleShape) -> u64 {
    let pairs = (caps.n_inputs() * caps.out_height) as u64;
    match (srf.routing, srf.start) {
        (Routing::Em, _) => 2 * caps.out_height as u64,
        (Routing::SelfRouting, _) => pairs * (caps.in_depth as u64 + 1) + caps.out_height as u64,
        (_, Start::Learned) => pairs,
        (_, Start::Zero) => 0,
    }
}

fn front_end_layers(srf: &SrfConfig) -> Vec<LayerSummary> {
    let (height, depth) = (srf.primary_height, srf.primary_depth);
    let projection = (srf.flat_width() * height + height) as u64;
    let mut layers = vec![layer("input", 1, &[srf.features], 0)];
    layers.extend(slicer_layers(srf.features, srf.filters));
    layers.extend([
        layer("proj", FRAMES_PER_SLICE, &[height], projection),
        layer("encaps", FRAMES_PER_SLICE, &[height, depth], maxout_parameters(1, depth)),
        norm("ln_in", FRAMES_PER_SLICE, &[height, depth]),
    ]);
    layers
}
