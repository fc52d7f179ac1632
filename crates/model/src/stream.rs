//! The network of capsules as a stream: gives log-probabilities as soon as its look-ahead allows.
//!
//! [`StreamingSrf`] holds the weights, packed once and shared by all streams; [`SrfStream`] the state of one speaker,
//! whose size does not grow.
//! Every layer runs the kernel that training uses, and no kernel's bits depend on how many slices it gets at a time:
//! a stream gives the same bits for any cut of its input.
//!
//! # Shapes
//! - in: frames of `[features]`, out: ceil(n / 4) slices of `[classes]` log-probabilities for n frames
//!
//! ```
//! use std::sync::Arc;
//! use srf_model::config::{ModelConfig, SrfConfig};
//! use srf_model::inference::{Inference, InferenceStream};
//! use srf_model::params::{Layout, Params};
//! use srf_model::stream::{LayerHealth, SrfStream, StreamingSrf, TapConfig, Taps};
//!
//! let srf = SrfConfig { features: 8, filters: 2, layers: 2, primary_height: 2, ..SrfConfig::new(4) };
//! let config = ModelConfig::Srf(srf.clone());
//! let params = Params::<f32>::initialize(Arc::new(Layout::new(&config)), 1);
//! let net = Inference::new(&config, &params.values);
//! let mut stream: InferenceStream<f32> = net.stream();
//! let capsules = stream.srf().expect("a network of capsules");
//! capsules.tap(Some(TapConfig { has_health: true, has_hidden: true, full_layer: None }));
//! let mut log_probs = Vec::new();
//! for frames in [[0.1; 8 * 10]; 4] {
//!     stream.accept(&frames, &mut log_probs);
//! }
//! stream.finish(&mut log_probs);
//! assert_eq!(log_probs.len(), 10 * net.classes());
//!
//! let taps: &mut Taps<f32> = stream.srf().and_then(|capsules| capsules.taps()).expect("the tap is open");
//! assert_eq!((taps.n_layers(), taps.class_mass().len(), taps.mass(1).len()), (2, 10 * 4, 10 * 4));
//! let mut all = taps.clone();
//! all.merge(taps);
//! for LayerHealth { name, entropy, n_dead, .. } in all.health() {
//!     println!("{name}: entropy {entropy:.3}, {n_dead} dead capsules");
//! }
//!
//! // The same without the choice of architecture.
//! let mut same: SrfStream<f32> = Arc::new(StreamingSrf::new(&srf, &params.values)).stream();
//! let mut others = Vec::new();
//! same.accept(&[0.1; 8 * 40], &mut others);
//! same.finish(&mut others);
//! assert_eq!(others, log_probs);
//! ```

mod taps;

#[cfg(test)]
mod tests;

pub use self::taps::{LayerHealth, TapConfig, Taps};

use std::sync::Arc;

use srf_kernels::routing::{Router, Tap, Utterance, Workspace};
use srf_kernels::{ConvWeights, DenseWeights, Element, log_softmax};

use crate::config::{CapsuleShape, SrfConfig};
use crate::layers::LayerNorm;
use crate::network::{CapsuleBlock, EPSILON, SrfBlocks};
use crate::params::Plan;

/// Frames that go through all layers at a time: whole tiles of slices, and few enough to stay in cache.
const FRAMES_AT_A_TIME: usize = 64;

/// The weights of a network, packed for inference.
pub struct StreamingSrf<E> {
    config: SrfConfig,
    conv1: ConvStage<E>,
    conv2: ConvStage<E>,
    proj: DenseWeights<E>,
    encaps: ConvWeights<E>,
    ln_in: Norm<E>,
    layers: Vec<CapsuleLayer<E>>,
    ln_out: Norm<E>,
}

/// A convolution and its batch norm, as one scale and shift per channel.
struct ConvStage<E> {
    weights: ConvWeights<E>,
    scale: Vec<E>,
    shift: Vec<E>,
}

struct Norm<E> {
    gamma: Vec<E>,
    beta: Vec<E>,
}

struct CapsuleLayer<E> {
    router: Router<E>,
    norm: Norm<E>,
}

impl<E: Element> StreamingSrf<E> {
    /// Packs the parameters `values` of the network that `config`, which has been checked, describes.
    pub fn new(config: &SrfConfig, values: &[E]) -> Self {
        let mut plan = Plan::new(config.features);
        let SrfBlocks { mut conv_stack, mut primary, capsules, lengths } = SrfBlocks::new(&mut plan, config);
        let layout = plan.finish();
        assert_eq!(values.len(), layout.n_values(), "parameters of the network");
        let (params, statistics) = values.split_at(layout.n_trainable());
        let [conv1, conv2] = conv_stack.packed(params, statistics);
        let layer = |block: &CapsuleBlock<E>| CapsuleLayer {
            router: block.capsules.packed(params),
            norm: Norm::new(&block.norm, params),
        };
        Self {
            conv1: ConvStage::new(conv1),
            conv2: ConvStage::new(conv2),
            proj: primary.proj.packed(params),
            encaps: primary.encapsulate.packed(params),
            ln_in: Norm::new(&primary.norm, params),
            layers: capsules.iter().map(layer).collect(),
            ln_out: Norm::new(&lengths.norm, params),
            config: config.clone(),
        }
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &SrfConfig {
        &self.config
    }

    /// A stream at its start.
    pub fn stream(self: &Arc<Self>) -> SrfStream<E> {
        SrfStream::new(Arc::clone(self))
    }
}

impl<E: Element> ConvStage<E> {
    fn new((weights, [scale, shift]): (ConvWeights<E>, [Vec<E>; 2])) -> Self {
        Self { weights, scale, shift }
    }

    /// Takes `window`'s frames as far as they suffice; the outputs replace what is in `out`.
    fn run(&self, window: &mut Window<E>, conv_out: &mut Vec<E>, out: &mut Vec<E>) {
        let n = window.n_ready();
        resize(conv_out, n * self.weights.conv().width_out());
        resize(out, conv_out.len());
        (E::kernels().conv_forward)(&self.weights, window.ready(n), None, conv_out, &mut []);
        (E::kernels().affine)(conv_out, &self.scale, &self.shift, out);
        window.advance(n);
    }
}

impl<E: Element> Norm<E> {
    fn new(norm: &LayerNorm<E>, params: &[E]) -> Self {
        let [gamma, beta] = norm.params(params).map(<[E]>::to_vec);
        Self { gamma, beta }
    }

    fn run(&self, x: &[E], saved: &mut Vec<E>, y: &mut Vec<E>) {
        resize(saved, 2 * x.len() / self.gamma.len());
        resize(y, x.len());
        (E::kernels().layer_norm_forward)(x, &self.gamma, &self.beta, E::from_f64(EPSILON), y, saved);
    }
}

/// Makes the length `len`; the contents are unspecified.
fn resize<E: Element>(values: &mut Vec<E>, len: usize) {
    values.resize(len, E::ZERO);
}

/// The state of one speaker.
pub struct SrfStream<E> {
    net: Arc<StreamingSrf<E>>,
    /// What the two convolutions, the capsulation and each capsule layer still need of their inputs.
    frames: Window<E>,
    halves: Window<E>,
    numbers: Window<E>,
    capsules: Vec<Window<E>>,
    /// What each capsule layer's last slice leaves to the next: its outputs, or what its routing wants.
    states: Vec<Vec<E>>,
    scratch: Scratch<E>,
    /// Records what the routing decides, if opened.
    taps: Option<Box<Taps<E>>>,
}

/// Activations on their way from one layer to the next.
struct Scratch<E> {
    a: Vec<E>,
    b: Vec<E>,
    saved: Vec<E>,
    workspace: Workspace<E>,
}

impl<E: Element> SrfStream<E> {
    fn new(net: Arc<StreamingSrf<E>>) -> Self {
        let config = &net.config;
        let [features, halves, _] = config.conv_widths();
        let of_layer =
            |shape: CapsuleShape| Window::new(shape.in_height * shape.in_depth, shape.window(), 1, shape.margin());
        Self {
            frames: Window::new(features, 3, 2, [1, 1]),
            halves: Window::new(halves * config.filters, 3, 2, [1, 1]),
            numbers: Window::new(config.primary_height, 3, 1, [1, 1]),
            capsules: config.capsule_shapes().map(of_layer).collect(),
            states: vec![Vec::new(); config.layers],
            scratch: Scratch { a: Vec::new(), b: Vec::new(), saved: Vec::new(), workspace: Workspace::new() },
            taps: None,
            net,
        }
    }

    /// Opens a tap on the routing, or closes it with `None`; the results stay the same.
    pub fn tap(&mut self, config: Option<TapConfig>) {
        let layers = self.net.layers.iter().map(|layer| layer.router.routing());
        self.taps = config.map(|config| Box::new(Taps::new(config, layers)));
    }

    /// What an open tap has gathered; the reader clears it.
    pub fn taps(&mut self) -> Option<&mut Taps<E>> {
        self.taps.as_deref_mut()
    }

    /// Takes whole frames and appends the log-probabilities of the slices that they complete to `log_probs`.
    #[track_caller]
    pub fn accept(&mut self, frames: &[E], log_probs: &mut Vec<E>) {
        let width = self.net.config.features;
        assert!(frames.len().is_multiple_of(width), "whole frames of {width} values, found {} values", frames.len());
        for piece in frames.chunks(FRAMES_AT_A_TIME * width) {
            self.frames.push(piece);
            self.run(false, log_probs);
        }
    }

    /// Appends the log-probabilities of the slices that were waiting for look-ahead, and goes back to the start.
    pub fn finish(&mut self, log_probs: &mut Vec<E>) {
        self.frames.end();
        self.run(true, log_probs);
        self.reset();
    }

    /// Back to the start.
    pub fn reset(&mut self) {
        self.frames.reset();
        self.halves.reset();
        self.numbers.reset();
        self.capsules.iter_mut().for_each(Window::reset);
        self.states.iter_mut().for_each(Vec::clear);
    }

    /// Values that the buffers of this stream have room for.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        let windows = [&self.frames, &self.halves, &self.numbers].into_iter().chain(&self.capsules);
        let Scratch { a, b, saved, workspace: _ } = &self.scratch;
        let vectors = [a, b, saved].into_iter().chain(&self.states);
        windows.map(Window::capacity).sum::<usize>() + vectors.map(Vec::capacity).sum::<usize>()
    }

    /// Takes what the windows hold through all layers.
    fn run(&mut self, is_end: bool, log_probs: &mut Vec<E>) {
        let Self { net, frames, halves, numbers, capsules, states, scratch, taps } = self;
        let Scratch { a, b, saved, workspace } = scratch;
        net.conv1.run(frames, a, b);
        halves.push_or_end(b, is_end);
        net.conv2.run(halves, a, b);
        resize(a, b.len() / net.config.flat_width() * net.config.primary_height);
        (E::kernels().dense_forward)(&net.proj, b, a);
        numbers.push_or_end(a, is_end);
        let n = numbers.n_ready();
        resize(a, n * net.encaps.conv().width_out());
        (E::kernels().conv_forward)(&net.encaps, numbers.ready(n), None, a, &mut []);
        numbers.advance(n);
        resize(b, a.len());
        (E::kernels().squash_forward)(a, net.config.primary_depth, b);
        net.ln_in.run(b, saved, a);
        for (index, ((layer, window), state)) in net.layers.iter().zip(capsules).zip(states).enumerate() {
            window.push_or_end(a, is_end);
            let tap = taps.as_deref_mut().and_then(|taps| taps.open(index, window.n_ready()));
            layer.run((window, state), (saved, workspace), tap, b);
            if let Some(taps) = taps {
                taps.close(index);
            }
            layer.norm.run(b, saved, a);
        }
        resize(b, a.len() / net.config.class_depth);
        (E::kernels().length_forward)(a, net.config.class_depth, b);
        net.ln_out.run(b, saved, a);
        let start = log_probs.len();
        resize(log_probs, start + a.len());
        log_softmax(a, net.config.classes, &mut log_probs[start..]);
        if let Some(taps) = taps {
            taps.compare(&log_probs[start..]);
        }
    }
}

impl<E: Element> CapsuleLayer<E> {
    /// Routes the slices that `window` has ready; `state` is what the slice before left, empty at the start.
    fn run(
        &self,
        (window, state): (&mut Window<E>, &mut Vec<E>),
        (saved, workspace): (&mut Vec<E>, &mut Workspace<E>),
        tap: Option<Tap<'_, E>>,
        out: &mut Vec<E>,
    ) {
        let n_slices = window.n_ready();
        resize(out, n_slices * self.router.routing().output_len());
        if n_slices == 0 {
            return;
        }
        resize(saved, self.router.saved_len(n_slices, false));
        let utterance = Utterance { n_slices, inputs: window.ready(n_slices), state, outputs: out, saved, tap };
        self.router.forward(&mut [utterance], workspace);
        let last = self.router.last_state(out, saved);
        state.clear();
        state.extend_from_slice(last);
        window.advance(n_slices);
    }
}

/// What a layer that reads several frames at once still needs of its input.
struct Window<E> {
    width: usize,
    /// Frames that one output needs, and from one output to the next.
    size: usize,
    stride: usize,
    /// Zero frames before the first and after the last.
    margin: [usize; 2],
    frames: Vec<E>,
    /// Whether a real frame came since the start.
    has_frames: bool,
}

impl<E: Element> Window<E> {
    fn new(width: usize, size: usize, stride: usize, margin: [usize; 2]) -> Self {
        let mut window = Self { width, size, stride, margin, frames: Vec::new(), has_frames: false };
        window.reset();
        window
    }

    /// Back to the start: only the zero frames before the first.
    fn reset(&mut self) {
        self.frames.clear();
        self.push_zeros(self.margin[0]);
        self.has_frames = false;
    }

    /// Takes whole frames.
    fn push(&mut self, frames: &[E]) {
        self.has_frames |= !frames.is_empty();
        self.frames.extend_from_slice(frames);
    }

    /// After the last frame: zeros follow, unless there was no frame at all.
    fn end(&mut self) {
        if self.has_frames {
            self.push_zeros(self.margin[1]);
        } else {
            self.frames.clear();
        }
    }

    /// Takes whole frames, the last ones if `is_end`.
    fn push_or_end(&mut self, frames: &[E], is_end: bool) {
        self.push(frames);
        if is_end {
            self.end();
        }
    }

    /// Outputs that the frames suffice for.
    fn n_ready(&self) -> usize {
        let n_frames = self.frames.len() / self.width;
        if n_frames < self.size { 0 } else { (n_frames - self.size) / self.stride + 1 }
    }

    /// The frames that the next `n` outputs need.
    fn ready(&self, n: usize) -> &[E] {
        let n_frames = if n == 0 { 0 } else { (n - 1) * self.stride + self.size };
        &self.frames[..n_frames * self.width]
    }

    /// Drops the frames that outputs after the next `n` do not need.
    fn advance(&mut self, n: usize) {
        self.frames.drain(..(n * self.stride * self.width).min(self.frames.len()));
    }

    /// Values that it has room for.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    fn push_zeros(&mut self, n: usize) {
        self.frames.resize(self.frames.len() + n * self.width, E::ZERO);
    }
}
