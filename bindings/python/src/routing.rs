//! The routing kernels for `srf.torch`: a capsule layer, forward and backward, on arrays of floats.

use std::sync::{Mutex, PoisonError};

use anyhow::ensure;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use srf_kernels::Element;
use srf_kernels::routing::{GradientPaths, Router, RouterGradient, Routing, Tap, Utterance, UtteranceBack, Workspace};

use crate::errors::compute;

/// The most values that one array of a layer may have.
const MAX_VALUES: usize = 1 << 32;

/// The shape of a layer as `srf.torch` says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Shape {
    in_capsules: usize,
    in_depth: usize,
    out_capsules: usize,
    out_depth: usize,
    window: usize,
    iterations: usize,
    is_sequential: bool,
    has_padding_class: bool,
    through_iterations: bool,
    through_time: bool,
}

impl Shape {
    fn routing(&self) -> anyhow::Result<Routing> {
        let Self { in_capsules, in_depth, out_capsules, out_depth, window, iterations, .. } = *self;
        let sizes = [in_capsules, in_depth, out_capsules, out_depth, window];
        ensure!(sizes.iter().all(|size| 0 < *size) && 0 < iterations, "sizes and iterations are at least 1");
        let n_weights = sizes.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        ensure!(n_weights.is_some_and(|n| n <= MAX_VALUES), "the layer has more than {MAX_VALUES} weights");
        let n_classes = out_capsules - usize::from(self.has_padding_class);
        ensure!(0 < n_classes, "one output capsule is the padding class, expected at least one more");
        Ok(Routing {
            n_in: window * in_capsules,
            n_out: out_capsules,
            depth_in: in_depth,
            depth_out: out_depth,
            stride: in_capsules * in_depth,
            n_iterations: iterations,
            is_sequential: self.is_sequential,
            has_padding_class: self.has_padding_class,
        })
    }
}

/// A layer and the memory it reuses.
struct Layer<E> {
    router: Router<E>,
    gradient: RouterGradient<E>,
    workspace: Workspace<E>,
    paths: GradientPaths,
}

/// Utterances of a batch: how many slices each has, and how many there is room for.
struct Batch<'a> {
    lengths: &'a [usize],
    n_slices: usize,
    routing: Routing,
}

impl Batch<'_> {
    /// Frames of input per utterance: its slices and the rest of the window.
    fn inputs_len(&self) -> usize {
        self.routing.inputs_len(self.n_slices)
    }

    fn outputs_len(&self) -> usize {
        self.n_slices * self.routing.output_len()
    }

    fn check(&self, found: &[(&str, usize, usize)]) -> anyhow::Result<()> {
        ensure!(0 < self.n_slices, "there are no slices");
        let longest = self.lengths.iter().copied().max().unwrap_or(0);
        ensure!(longest <= self.n_slices, "an utterance has {longest} slices, but there are only {}", self.n_slices);
        for (name, found, expected) in found {
            ensure!(found == expected, "{name} has {found} values, expected {expected}");
        }
        Ok(())
    }
}

/// Outputs, what the backward pass wants, and couplings if they were asked for.
type Routed<E> = (Vec<E>, Vec<E>, Vec<E>);

impl<E: Element> Layer<E> {
    fn new(shape: &Shape) -> anyhow::Result<Self> {
        let router = Router::new(shape.routing()?, None);
        let paths = GradientPaths { through_iterations: shape.through_iterations, through_time: shape.through_time };
        Ok(Self { gradient: router.new_gradient(), router, workspace: Workspace::new(), paths })
    }

    fn pack(&mut self, weights: &[E], biases: &[E]) -> anyhow::Result<()> {
        let Routing { n_in, n_out, depth_in, depth_out, .. } = self.router.routing();
        let n = n_in * n_out * depth_out;
        let found = [weights.len(), biases.len()];
        ensure!(
            found == [n * depth_in, n],
            "weights and biases have {found:?} values, expected {:?}",
            [n * depth_in, n]
        );
        self.router.pack(weights, biases, &[]);
        Ok(())
    }

    fn forward(&mut self, batch: &Batch<'_>, inputs: &[E], wants: [bool; 2]) -> anyhow::Result<Routed<E>> {
        let [has_backward, has_couplings] = wants;
        let n = batch.lengths.len();
        batch.check(&[("inputs", inputs.len(), n * batch.inputs_len())])?;
        let per_slice = batch.routing.n_in * batch.routing.n_out;
        let saved_len = self.router.saved_len(batch.n_slices, has_backward);
        let tap_len = if has_couplings { batch.n_slices * per_slice } else { 0 };
        let mut outputs = vec![E::ZERO; n * batch.outputs_len()];
        let mut saved = vec![E::ZERO; n * saved_len];
        let mut couplings = vec![E::ZERO; n * tap_len];
        let mut agreements = vec![E::ZERO; n * tap_len];
        let mut saved_rows = rows(&mut saved, saved_len);
        let mut taps = rows(&mut couplings, tap_len).zip(rows(&mut agreements, tap_len));
        let mut utterances = Vec::with_capacity(n);
        for ((outputs, inputs), &n_slices) in
            rows(&mut outputs, batch.outputs_len()).zip(inputs.chunks_exact(batch.inputs_len())).zip(batch.lengths)
        {
            let tap = taps.next().map(|(couplings, agreements)| Tap {
                couplings: &mut couplings[..n_slices * per_slice],
                agreements: &mut agreements[..n_slices * per_slice],
            });
            utterances.push(Utterance {
                n_slices,
                inputs: &inputs[..batch.routing.inputs_len(n_slices)],
                state: &[],
                outputs: &mut outputs[..n_slices * batch.routing.output_len()],
                saved: saved_rows
                    .next()
                    .map_or(&mut [][..], |row| &mut row[..self.router.saved_len(n_slices, has_backward)]),
                tap,
            });
        }
        self.router.forward(&mut utterances, &mut self.workspace);
        Ok((outputs, saved, couplings))
    }

    /// Gradients of inputs, weights and biases.
    fn backward(
        &mut self,
        batch: &Batch<'_>,
        [inputs, outputs, saved, d_outputs]: [&[E]; 4],
    ) -> anyhow::Result<[Vec<E>; 3]> {
        let n = batch.lengths.len();
        let saved_len = self.router.saved_len(batch.n_slices, true);
        batch.check(&[
            ("inputs", inputs.len(), n * batch.inputs_len()),
            ("outputs", outputs.len(), n * batch.outputs_len()),
            ("saved", saved.len(), n * saved_len),
            ("gradient of outputs", d_outputs.len(), n * batch.outputs_len()),
        ])?;
        let mut d_inputs = vec![E::ZERO; inputs.len()];
        let mut utterances = Vec::with_capacity(n);
        for (at, (d_inputs, &n_slices)) in rows(&mut d_inputs, batch.inputs_len()).zip(batch.lengths).enumerate() {
            let inputs_len = batch.routing.inputs_len(n_slices);
            let outputs_len = n_slices * batch.routing.output_len();
            utterances.push(UtteranceBack {
                n_slices,
                inputs: &inputs[at * batch.inputs_len()..][..inputs_len],
                state: &[],
                outputs: &outputs[at * batch.outputs_len()..][..outputs_len],
                saved: &saved[at * saved_len..][..self.router.saved_len(n_slices, true)],
                d_outputs: &d_outputs[at * batch.outputs_len()..][..outputs_len],
                d_inputs: &mut d_inputs[..inputs_len],
            });
        }
        self.router.backward(self.paths, &mut utterances, &mut self.gradient, &mut self.workspace);
        let Routing { n_in, n_out, depth_in, depth_out, .. } = batch.routing;
        let n = n_in * n_out * depth_out;
        let (mut d_weights, mut d_biases) = (vec![E::ZERO; n * depth_in], vec![E::ZERO; n]);
        self.gradient.add_to(&batch.routing, &mut d_weights, &mut d_biases, &mut []);
        Ok([d_inputs, d_weights, d_biases])
    }
}

/// Parts of `len` values; none if `len` is 0.
fn rows<E>(values: &mut [E], len: usize) -> std::slice::ChunksExactMut<'_, E> {
    values.chunks_exact_mut(len.max(1))
}

/// A capsule layer as a Python class for one type of floats. All arrays are flat and contiguous.
macro_rules! router {
    ($name:ident, $element:ty) => {
        /// A capsule layer.
        #[pyclass(frozen, module = "srf._srf")]
        pub(crate) struct $name {
            layer: Mutex<Layer<$element>>,
        }

        #[pymethods]
        impl $name {
            #[new]
            fn new(py: Python<'_>, shape: Shape) -> PyResult<Self> {
                compute(py, || Ok(Self { layer: Mutex::new(Layer::new(&shape)?) }))
            }

            /// Outputs, what the backward pass wants, and couplings, the latter two empty if not wanted.
            fn forward<'py>(
                &self,
                parameters: [PyReadonlyArray1<'py, $element>; 2],
                inputs: PyReadonlyArray1<'py, $element>,
                lengths: Vec<usize>,
                n_slices: usize,
                wants: [bool; 2],
            ) -> PyResult<[Bound<'py, PyArray1<$element>>; 3]> {
                let py = inputs.py();
                let [weights, biases] = [parameters[0].as_slice()?, parameters[1].as_slice()?];
                let inputs = inputs.as_slice()?;
                let (outputs, saved, couplings) = compute(py, || {
                    let mut layer = self.layer.lock().unwrap_or_else(PoisonError::into_inner);
                    let batch = Batch { lengths: &lengths, n_slices, routing: layer.router.routing() };
                    layer.pack(weights, biases)?;
                    layer.forward(&batch, inputs, wants)
                })?;
                Ok([outputs, saved, couplings].map(|values| PyArray1::from_vec(py, values)))
            }

            /// The gradients of inputs, weights and biases, from inputs, outputs and saved values of the forward pass
            /// and the gradient of the outputs.
            fn backward<'py>(
                &self,
                parameters: [PyReadonlyArray1<'py, $element>; 2],
                values: [PyReadonlyArray1<'py, $element>; 4],
                lengths: Vec<usize>,
                n_slices: usize,
            ) -> PyResult<[Bound<'py, PyArray1<$element>>; 3]> {
                let py = values[0].py();
                let [weights, biases] = [parameters[0].as_slice()?, parameters[1].as_slice()?];
                let [inputs, outputs, saved, d_outputs] = &values;
                let given = [inputs.as_slice()?, outputs.as_slice()?, saved.as_slice()?, d_outputs.as_slice()?];
                let gradients = compute(py, || {
                    let mut layer = self.layer.lock().unwrap_or_else(PoisonError::into_inner);
                    let batch = Batch { lengths: &lengths, n_slices, routing: layer.router.routing() };
                    layer.pack(weights, biases)?;
                    layer.backward(&batch, given)
                })?;
                Ok(gradients.map(|values| PyArray1::from_vec(py, values)))
            }
        }
    };
}

router!(Router32, f32);
router!(Router64, f64);
