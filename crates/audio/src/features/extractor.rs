//! All steps on a stream: frames are emitted as soon as they can be known.

use super::Frames;
use super::config::{FeaturesConfig, FeaturesConfigError};
use super::delta::Deltas;
use super::fft::PowerSpectrum;
use super::frame::Framer;
use super::lanes::{Lanes, N_LANES};
use super::mel::MelBank;
use super::window::Window;

/// Samples taken in at once, so that a long recording does not pile up.
const PIECE_SAMPLES: usize = 1 << 13;

/// Features of one utterance after the other, before normalisation.
///
/// However the samples are cut into pieces, the frames have the same bits. Nothing is allocated once the buffers have
/// grown to their size.
///
/// ```
/// use srf_audio::features::{Extractor, FeaturesConfig};
///
/// let config = FeaturesConfig { dither: 0.0, ..FeaturesConfig::default() };
/// let mut extractor = Extractor::new(&config)?;
/// let mut frames = Vec::new();
/// for piece in vec![1.0; 16_000].chunks(1000) {
///     extractor.accept(piece, &mut frames);
/// }
/// extractor.finish(&mut frames);
/// assert_eq!(frames.len(), 98 * 123);
/// # Ok::<(), srf_audio::features::FeaturesConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Extractor {
    n_static: usize,
    n_dims: usize,
    use_energy: bool,
    framer: Framer,
    window: Window,
    spectrum: PowerSpectrum,
    bank: MelBank,
    deltas: Deltas,
    scratch: Scratch,
}

/// Space for one group of frames.
#[derive(Clone, Debug)]
struct Scratch {
    rows: Vec<Lanes>,
    re: Vec<Lanes>,
    im: Vec<Lanes>,
    power: Vec<Lanes>,
    features: Vec<Lanes>,
    frame: Vec<f32>,
}

impl Extractor {
    /// Builds the tables that `config` needs.
    pub fn new(config: &FeaturesConfig) -> Result<Self, FeaturesConfigError> {
        config.check()?;
        let spectrum = PowerSpectrum::new(config.frame_samples().next_power_of_two().max(4));
        let n_points = spectrum.n_points();
        let zeros = |n: usize| vec![Lanes::ZERO; n];
        let scratch = Scratch {
            rows: zeros(config.frame_samples()),
            re: zeros(n_points),
            im: zeros(n_points),
            power: zeros(n_points),
            features: zeros(config.n_static()),
            frame: vec![0.0; config.n_static()],
        };
        Ok(Self {
            n_static: config.n_static(),
            n_dims: config.n_features(),
            use_energy: config.energy,
            framer: Framer::new(config),
            window: Window::new(config),
            bank: MelBank::new(config, n_points)?,
            spectrum,
            deltas: Deltas::new(config.n_static(), config.delta_order, config.delta_window),
            scratch,
        })
    }

    /// Values per frame.
    pub fn n_dims(&self) -> usize {
        self.n_dims
    }

    /// Takes the next samples (from -1 to 1) and appends to `frames` those now complete, row by row.
    pub fn accept(&mut self, samples: &[f32], frames: &mut Vec<f32>) {
        for piece in samples.chunks(PIECE_SAMPLES) {
            self.framer.push(piece);
            while self.framer.n_ready() >= N_LANES {
                self.analyse(frames);
            }
        }
        if self.framer.n_ready() > 0 {
            self.analyse(frames);
        }
    }

    /// Ends the utterance: appends the frames that waited for later ones, and makes ready for the next utterance.
    ///
    /// Samples that do not fill a frame are dropped.
    pub fn finish(&mut self, frames: &mut Vec<f32>) {
        self.deltas.finish(frames);
        self.framer.reset();
    }

    /// Forgets the utterance so far.
    ///
    /// ```
    /// use srf_audio::features::{Extractor, FeaturesConfig};
    ///
    /// let mut extractor = Extractor::new(&FeaturesConfig::default())?;
    /// let mut frames = Vec::new();
    /// extractor.accept(&[0.0; 16_000], &mut frames);
    /// extractor.reset();
    /// # Ok::<(), srf_audio::features::FeaturesConfigError>(())
    /// ```
    pub fn reset(&mut self) {
        self.framer.reset();
        self.deltas.reset();
    }

    /// One group of frames through all steps.
    fn analyse(&mut self, frames: &mut Vec<f32>) {
        let Scratch { rows, re, im, power, features, frame } = &mut self.scratch;
        let n_frames = self.framer.take(rows);
        let log_energy = self.window.apply(rows, re, im);
        self.spectrum.apply(re, im, power);
        let n_energy = usize::from(self.use_energy);
        features[..n_energy].fill(log_energy);
        self.bank.apply(power, &mut features[n_energy..self.n_static]);
        for lane in 0..n_frames {
            for (value, row) in frame.iter_mut().zip(&*features) {
                *value = row.0[lane];
            }
            self.deltas.push(frame, frames);
        }
    }
}

/// The features of a whole utterance, before normalisation: a stream fed at once.
pub fn extract(config: &FeaturesConfig, samples: &[f32]) -> Result<Frames, FeaturesConfigError> {
    let mut extractor = Extractor::new(config)?;
    let mut values = Vec::with_capacity(config.n_frames(samples.len()) * config.n_features());
    extractor.accept(samples, &mut values);
    extractor.finish(&mut values);
    Ok(Frames { n_dims: extractor.n_dims(), values })
}
