//! Taps: recording what the routing of a stream decides.
//!
//! Input capsule i of a slice is shared out over the output capsules: its couplings c_ij sum to 1 over j.
//! The *mass* of output capsule j is the sum of c_ij over i, between 0 and the number of input capsules.
//! Taps are off by default and cost nothing when off.

use srf_kernels::Element;
use srf_kernels::routing::Routing;

/// What to keep of the routing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapConfig {
    /// Hidden capsule layers too, not only the last one, whose capsules are the classes.
    pub has_hidden: bool,
    /// A summary of each layer ([`Taps::health`]).
    pub has_health: bool,
    /// The layer, counted from 0, of which every coefficient is kept.
    pub full_layer: Option<usize>,
}

/// How a capsule layer routes, over all slices since the tap was opened.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct LayerHealth {
    /// Its name, as in the names of its tensors.
    pub name: String,
    /// Slices that were counted.
    pub n_slices: u64,
    /// Output capsules that can have couplings: all but the padding class.
    pub n_capsules: usize,
    /// Mean entropy of an input capsule's couplings, over that of equal ones: 1 shares evenly, 0 has decided.
    pub entropy: f64,
    /// Output capsules whose mean mass is below a tenth of an equal share.
    pub n_dead: usize,
    /// Of the last layer: slices in which the class with the largest mass is the most probable by the softmax, 0 to 1.
    pub agreement: Option<f64>,
}

/// A mean mass below this part of an equal share makes a dead capsule.
const DEAD_SHARE: f64 = 0.1;

/// What a tap has gathered; a layer that was not asked for is empty.
#[derive(Clone, Debug)]
pub struct Taps<E> {
    config: TapConfig,
    layers: Vec<LayerTap<E>>,
    couplings: Vec<E>,
    agreements: Vec<E>,
}

#[derive(Clone, Debug)]
struct LayerTap<E> {
    routing: Routing,
    /// `[slices, n_out]`.
    mass: Vec<E>,
    /// `[slices, n_in, n_out]`.
    couplings: Vec<E>,
    n_slices: u64,
    entropy_sum: f64,
    mass_sums: Vec<f64>,
    n_agreeing: u64,
}

impl<E: Element> Taps<E> {
    pub(super) fn new(config: TapConfig, layers: impl Iterator<Item = Routing>) -> Self {
        let layer = |routing: Routing| LayerTap {
            routing,
            mass: Vec::new(),
            couplings: Vec::new(),
            n_slices: 0,
            entropy_sum: 0.0,
            mass_sums: vec![0.0; routing.n_out],
            n_agreeing: 0,
        };
        Self { config, layers: layers.map(layer).collect(), couplings: Vec::new(), agreements: Vec::new() }
    }

    /// Capsule layers of the network.
    pub fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Input and output capsules of a layer.
    #[track_caller]
    pub fn capsules(&self, layer: usize) -> [usize; 2] {
        let Routing { n_in, n_out, .. } = self.layers[layer].routing;
        [n_in, n_out]
    }

    /// The mass of each output capsule of a layer, `[slices, n_out]`, since the last [`Taps::clear`].
    ///
    /// A layer gives a slice as soon as it can: those of the last one come with the log-probabilities, earlier
    /// layers are ahead of it by the windows between them.
    #[track_caller]
    pub fn mass(&self, layer: usize) -> &[E] {
        &self.layers[layer].mass
    }

    /// The mass of each class, `[slices, classes]`: a row for each row of log-probabilities.
    pub fn class_mass(&self) -> &[E] {
        self.layers.last().map_or(&[], |layer| &layer.mass)
    }

    /// Every coefficient of the layer that was asked for, `[slices, n_in, n_out]`, since the last [`Taps::clear`].
    pub fn couplings(&self) -> &[E] {
        self.config.full_layer.and_then(|layer| self.layers.get(layer)).map_or(&[], |layer| &layer.couplings)
    }

    /// Drops the slices, so that memory does not grow; summaries continue.
    pub fn clear(&mut self) {
        for layer in &mut self.layers {
            layer.mass.clear();
            layer.couplings.clear();
        }
    }

    /// A summary of each layer that was asked for and has been counted.
    pub fn health(&self) -> Vec<LayerHealth> {
        let last = self.layers.len() - 1;
        let counted = self.layers.iter().enumerate().filter(|(_, layer)| self.config.has_health && 0 < layer.n_slices);
        counted.map(|(index, layer)| layer.health(index, index == last)).collect()
    }

    /// Adds what another tap on the same network has counted, so that summaries are of both.
    #[track_caller]
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.layers.len(), other.layers.len(), "taps on one network");
        for (layer, more) in self.layers.iter_mut().zip(&other.layers) {
            layer.n_slices += more.n_slices;
            layer.entropy_sum += more.entropy_sum;
            layer.n_agreeing += more.n_agreeing;
            layer.mass_sums.iter_mut().zip(&more.mass_sums).for_each(|(sum, more)| *sum += more);
        }
    }

    fn is_tapped(&self, index: usize) -> bool {
        self.config.has_hidden || self.config.full_layer == Some(index) || index + 1 == self.layers.len()
    }

    /// Room for the coefficients of `n_slices` of a layer, if it is tapped.
    pub(super) fn open(&mut self, index: usize, n_slices: usize) -> Option<srf_kernels::routing::Tap<'_, E>> {
        if !self.is_tapped(index) {
            return None;
        }
        let Routing { n_in, n_out, .. } = self.layers[index].routing;
        self.couplings.resize(n_slices * n_in * n_out, E::ZERO);
        self.agreements.resize(n_slices * n_in * n_out, E::ZERO);
        Some(srf_kernels::routing::Tap { couplings: &mut self.couplings, agreements: &mut self.agreements })
    }

    /// Counts the coefficients that routing wrote.
    pub(super) fn close(&mut self, index: usize) {
        if self.is_tapped(index) {
            let is_full = self.config.full_layer == Some(index);
            self.layers[index].count(&self.couplings, self.config.has_health, is_full);
        }
    }

    /// Compares the masses of the latest slices with their log-probabilities.
    pub(super) fn compare(&mut self, log_probs: &[E]) {
        let Some(layer) = self.layers.last_mut().filter(|_| self.config.has_health) else { return };
        let n_out = layer.routing.n_out;
        let masses = &layer.mass[layer.mass.len() - log_probs.len()..];
        let rows = masses.chunks_exact(n_out).zip(log_probs.chunks_exact(n_out));
        layer.n_agreeing += rows.filter(|(mass, log_probs)| largest(mass) == largest(log_probs)).count() as u64;
    }
}

impl<E: Element> LayerTap<E> {
    fn count(&mut self, couplings: &[E], has_health: bool, is_full: bool) {
        let Routing { n_in, n_out, .. } = self.routing;
        for slice in couplings.chunks_exact(n_in * n_out) {
            let start = self.mass.len();
            self.mass.resize(start + n_out, E::ZERO);
            let mass = &mut self.mass[start..];
            for row in slice.chunks_exact(n_out) {
                mass.iter_mut().zip(row).for_each(|(sum, c)| *sum += *c);
            }
            if has_health {
                self.n_slices += 1;
                self.mass_sums.iter_mut().zip(&*mass).for_each(|(sum, m)| *sum += m.to_f64());
                self.entropy_sum += slice.iter().map(|c| entropy_term(c.to_f64())).sum::<f64>();
            }
        }
        if is_full {
            self.couplings.extend_from_slice(couplings);
        }
    }

    fn health(&self, index: usize, is_last: bool) -> LayerHealth {
        let Routing { n_in, n_out, has_padding_class, .. } = self.routing;
        let n_padding = usize::from(has_padding_class);
        let n_capsules = n_out - n_padding;
        let n_slices = self.n_slices as f64;
        let equal_mass = n_in as f64 / n_capsules as f64;
        let is_dead = |sum: &&f64| **sum / n_slices < DEAD_SHARE * equal_mass;
        // A single capsule has nothing to decide.
        let most = (n_capsules as f64).ln().max(f64::MIN_POSITIVE);
        LayerHealth {
            name: format!("caps{}", index + 1),
            n_slices: self.n_slices,
            n_capsules,
            entropy: self.entropy_sum / (n_slices * n_in as f64) / most,
            n_dead: self.mass_sums[n_padding..].iter().filter(is_dead).count(),
            agreement: is_last.then(|| self.n_agreeing as f64 / n_slices),
        }
    }
}

/// -c ln c, 0 at 0.
fn entropy_term(coupling: f64) -> f64 {
    if coupling > 0.0 { -coupling * coupling.ln() } else { 0.0 }
}

/// Where the largest value is; the first of equals.
fn largest<E: Element>(row: &[E]) -> usize {
    let mut best = 0;
    for (index, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = index;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{ModelConfig, PerLayer, Routing as RoutingKind, SrfConfig};
    use crate::params::{Layout, Params};
    use crate::random::Random;
    use crate::stream::{SrfStream, StreamingSrf};

    const ALL: TapConfig = TapConfig { has_hidden: true, has_health: true, full_layer: Some(1) };

    fn config() -> SrfConfig {
        SrfConfig {
            features: 12,
            filters: 3,
            layers: 3,
            primary_height: 6,
            hidden_height: PerLayer::Same(5),
            ..SrfConfig::new(7)
        }
    }

    fn stream(config: &SrfConfig) -> SrfStream<f32> {
        let values = Params::<f32>::initialize(Arc::new(Layout::new(&ModelConfig::Srf(config.clone()))), 1).values;
        Arc::new(StreamingSrf::new(config, &values)).stream()
    }

    fn frames(n_frames: usize) -> Vec<f32> {
        let mut random = Random::new(4, "frames");
        (0..12 * n_frames).map(|_| random.normal() as f32).collect()
    }

    fn run(stream: &mut SrfStream<f32>, frames: &[f32], piece: usize) -> Vec<f32> {
        let mut log_probs = Vec::new();
        frames.chunks(12 * piece).for_each(|piece| stream.accept(piece, &mut log_probs));
        stream.finish(&mut log_probs);
        log_probs
    }

    #[test]
    fn a_tap_changes_no_bit_and_does_not_depend_on_the_pieces() {
        let config = config();
        let plain = run(&mut stream(&config), &frames(90), 90);
        let tapped = |piece| {
            let mut stream = stream(&config);
            stream.tap(Some(ALL));
            assert_eq!(run(&mut stream, &frames(90), piece), plain);
            let taps = stream.taps().unwrap();
            (taps.mass(0).to_vec(), taps.class_mass().to_vec(), taps.couplings().to_vec(), taps.health())
        };
        assert_eq!(tapped(1), tapped(90));
    }

    #[test]
    fn couplings_of_an_input_capsule_sum_to_1_and_the_padding_class_gets_nothing() {
        let mut stream = stream(&config());
        stream.tap(Some(ALL));
        let log_probs = run(&mut stream, &frames(60), 60);
        let taps = stream.taps().unwrap();
        assert_eq!(taps.class_mass().len(), log_probs.len());
        assert_eq!(taps.capsules(0), [18, 5]);
        for layer in 0..taps.n_layers() {
            let [n_in, n_out] = taps.capsules(layer);
            assert_eq!(taps.mass(layer).len(), 15 * n_out);
            for mass in taps.mass(layer).chunks_exact(n_out) {
                // Sums of at most 18 rows, each of which rounds its own sum to 1.
                assert!((mass.iter().sum::<f32>() - n_in as f32).abs() < 1e-4, "{mass:?}");
                assert!(layer + 1 < taps.n_layers() || mass[0] == 0.0);
            }
        }
        let [n_in, n_out] = taps.capsules(1);
        let first: Vec<f32> = (0..n_out).map(|j| (0..n_in).map(|i| taps.couplings()[i * n_out + j]).sum()).collect();
        assert_eq!(first, taps.mass(1)[..n_out]);
        taps.clear();
        assert!(taps.class_mass().is_empty() && taps.couplings().is_empty());
        assert_eq!(taps.health()[0].n_slices, 15);
    }

    #[test]
    fn equal_couplings_have_entropy_1_and_no_dead_capsule() {
        let config = SrfConfig { routing: RoutingKind::Dr, iterations: 1, ..config() };
        let mut stream = stream(&config);
        stream.tap(Some(ALL));
        run(&mut stream, &frames(60), 60);
        for layer in stream.taps().unwrap().health() {
            assert!((layer.entropy - 1.0).abs() < 1e-6, "{layer:?}");
            assert_eq!(layer.n_dead, 0);
        }
    }

    #[test]
    fn decided_couplings_have_entropy_0_and_leave_the_others_dead() {
        let routing = stream(&config()).net.layers[2].router.routing();
        let mut taps = Taps::<f32>::new(ALL, std::iter::once(routing));
        // Every input capsule goes to class 2, which the softmax agrees with in one slice of two.
        let tap = taps.open(0, 2).unwrap();
        tap.couplings.fill(0.0);
        tap.couplings.chunks_exact_mut(7).for_each(|row| row[2] = 1.0);
        taps.close(0);
        let mut log_probs = [-3.0_f32; 14];
        (log_probs[2], log_probs[7 + 3]) = (-0.1, -0.1);
        taps.compare(&log_probs);
        let health = &taps.health()[0];
        assert_eq!((health.entropy, health.n_dead, health.agreement), (0.0, 5, Some(0.5)));
        let other = taps.clone();
        taps.merge(&other);
        assert_eq!((taps.health()[0].n_slices, taps.health()[0].agreement), (4, Some(0.5)));
    }
}
