//! Cepstral mean and variance normalisation: gives frames mean 0 (and variance 1).
//!
//! Over a speaker, an utterance or a corpus the statistics are gathered first ([`CmvnStats`]); on a live stream each
//! frame is normalised by itself and those before it. [`Normalizer`] does what the configuration asks for.

use super::config::{Cmvn, FeaturesConfig};

/// Sums over frames, from which mean and variance follow.
///
/// ```
/// use srf_audio::features::cmvn::CmvnStats;
///
/// let mut speaker = CmvnStats::of(2, &[1.0, 2.0, 3.0, 4.0]);
/// speaker.merge(&CmvnStats::of(2, &[5.0, 6.0]));
/// assert_eq!(speaker.n_frames(), 3.0);
/// // As Kaldi's `compute-cmvn-stats` writes them.
/// assert_eq!(CmvnStats::from_kaldi(&speaker.to_kaldi()), Some(speaker));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CmvnStats {
    n_frames: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl CmvnStats {
    /// Of no frames yet, with `n_dims` values each.
    pub fn new(n_dims: usize) -> Self {
        Self { n_frames: 0.0, sums: vec![0.0; n_dims], squares: vec![0.0; n_dims] }
    }

    /// Values per frame.
    pub fn n_dims(&self) -> usize {
        self.sums.len()
    }

    /// How many frames were counted; not whole when scaled.
    pub fn n_frames(&self) -> f64 {
        self.n_frames
    }

    /// Of `frames`, given row by row.
    pub fn of(n_dims: usize, frames: &[f32]) -> Self {
        let mut stats = Self::new(n_dims);
        stats.add(frames);
        stats
    }

    /// Counts frames, given row by row.
    pub fn add(&mut self, frames: &[f32]) {
        for frame in frames.chunks_exact(self.n_dims().max(1)) {
            self.add_scaled(frame, 1.0);
        }
    }

    /// Counts what others have counted.
    pub fn merge(&mut self, other: &Self) {
        self.merge_scaled(other, 1.0);
    }

    fn add_scaled(&mut self, frame: &[f32], factor: f64) {
        self.n_frames += factor;
        for ((sum, square), &value) in self.sums.iter_mut().zip(&mut self.squares).zip(frame) {
            let value = f64::from(value);
            *sum += factor * value;
            *square += factor * value * value;
        }
    }

    fn merge_scaled(&mut self, other: &Self, factor: f64) {
        self.n_frames += factor * other.n_frames;
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum += factor * more;
        }
        for (square, more) in self.squares.iter_mut().zip(&other.squares) {
            *square += factor * more;
        }
    }

    /// Kaldi's matrix: a row of sums ending in the count, and a row of sums of squares ending in 0.
    ///
    /// # Shapes
    /// - `[2, n_dims + 1]`, row by row
    pub fn to_kaldi(&self) -> Vec<f64> {
        let counts = [self.n_frames];
        [&self.sums, counts.as_slice(), &self.squares, &[0.0]].concat()
    }

    /// The reverse of [`to_kaldi`](Self::to_kaldi); `None` when it is no such matrix or counts no frames.
    pub fn from_kaldi(values: &[f64]) -> Option<Self> {
        let n_dims = (values.len() / 2).checked_sub(1)?;
        let (sums, squares) = values.split_at(n_dims + 1);
        let n_frames = sums[n_dims];
        let is_good = values.len() == 2 * (n_dims + 1) && n_frames >= 1.0 && values.iter().all(|v| v.is_finite());
        is_good.then(|| Self { n_frames, sums: sums[..n_dims].to_vec(), squares: squares[..n_dims].to_vec() })
    }
}

/// Variances below this are taken for it, so that a constant value does not become infinite.
const MIN_VARIANCE: f64 = 1e-20;

/// A normalisation ready to be applied: x becomes scale x + offset.
///
/// A value that hardly varies has a large scale and offset, which nearly cancel: hence the double precision.
#[derive(Clone, Debug, PartialEq)]
struct Affine {
    scales: Vec<f64>,
    offsets: Vec<f64>,
}

impl Affine {
    /// The normalisation that gives the frames counted mean 0 and, with `with_variance`, variance 1.
    ///
    /// Of no frames at all it changes nothing.
    fn new(stats: &CmvnStats, with_variance: bool) -> Self {
        let n_dims = stats.n_dims();
        let mut affine = Self { scales: vec![1.0; n_dims], offsets: vec![0.0; n_dims] };
        affine.update(stats, with_variance);
        affine
    }

    fn update(&mut self, stats: &CmvnStats, with_variance: bool) {
        if stats.n_frames <= 0.0 {
            return;
        }
        let targets = self.scales.iter_mut().zip(&mut self.offsets);
        for ((scale, offset), (sum, square)) in targets.zip(stats.sums.iter().zip(&stats.squares)) {
            let mean = sum / stats.n_frames;
            let variance = (square / stats.n_frames - mean * mean).max(MIN_VARIANCE);
            let factor = if with_variance { 1.0 / variance.sqrt() } else { 1.0 };
            *scale = factor;
            *offset = -mean * factor;
        }
    }

    /// Normalises frames, given row by row, in place.
    fn apply(&self, frames: &mut [f32]) {
        for frame in frames.chunks_exact_mut(self.scales.len().max(1)) {
            for (value, (scale, offset)) in frame.iter_mut().zip(self.scales.iter().zip(&self.offsets)) {
                *value = (f64::from(*value) * scale + offset) as f32;
            }
        }
    }
}

/// Normalisation of a live stream: each frame by itself and those before it.
///
/// While there are fewer than the window holds, the speaker's earlier frames and then the global ones fill it up, each
/// up to its limit; without either, the first frames are normalised by very little.
#[derive(Clone, Debug)]
struct Online {
    config: FeaturesConfig,
    speaker: Option<CmvnStats>,
    global: Option<CmvnStats>,
    window: CmvnStats,
    smoothed: CmvnStats,
    /// The last frames, a ring once it is full.
    ring: Vec<f32>,
    next: usize,
    affine: Affine,
}

impl Online {
    /// For one utterance, with what is known before it starts.
    fn new(config: &FeaturesConfig, n_dims: usize, speaker: Option<CmvnStats>, global: Option<CmvnStats>) -> Self {
        let stats = CmvnStats::new(n_dims);
        let affine = Affine::new(&stats, config.cmvn_variance);
        let is_useful = |stats: &CmvnStats| stats.n_frames > 0.0 && stats.n_dims() == n_dims;
        Self {
            config: config.clone(),
            speaker: speaker.filter(is_useful),
            global: global.filter(is_useful),
            window: stats.clone(),
            smoothed: stats,
            ring: Vec::new(),
            next: 0,
            affine,
        }
    }

    /// Normalises the next frames, given row by row, in place.
    fn apply(&mut self, frames: &mut [f32]) {
        let n_dims = self.window.n_dims();
        for frame in frames.chunks_exact_mut(n_dims.max(1)) {
            self.count(frame);
            self.smooth();
            self.affine.update(&self.smoothed, self.config.cmvn_variance);
            self.affine.apply(frame);
        }
    }

    /// Adds a frame to the window, and drops the one that leaves it.
    fn count(&mut self, frame: &[f32]) {
        let n_dims = frame.len();
        if self.ring.len() < self.config.cmvn_window * n_dims {
            self.ring.extend_from_slice(frame);
        } else {
            let oldest = &mut self.ring[self.next * n_dims..][..n_dims];
            self.window.add_scaled(oldest, -1.0);
            oldest.copy_from_slice(frame);
            self.next = (self.next + 1) % self.config.cmvn_window;
        }
        self.window.add_scaled(frame, 1.0);
    }

    /// The window filled up by what was known before.
    fn smooth(&mut self) {
        self.smoothed.n_frames = self.window.n_frames;
        self.smoothed.sums.clone_from(&self.window.sums);
        self.smoothed.squares.clone_from(&self.window.squares);
        let sources =
            [(&self.speaker, self.config.cmvn_speaker_frames), (&self.global, self.config.cmvn_global_frames)];
        for (stats, max_frames) in sources {
            let n_missing = self.config.cmvn_window as f64 - self.smoothed.n_frames;
            if let Some(stats) = stats
                && n_missing > 0.0
            {
                // A speaker with two frames does not count as six hundred; global statistics always suffice.
                let n_counted = n_missing.min(max_frames as f64).min(stats.n_frames);
                self.smoothed.merge_scaled(stats, n_counted / stats.n_frames);
            }
        }
    }
}

/// The normalisation of one stream of frames, as its configuration asks for: the only place that applies it.
///
/// ```
/// use srf_audio::features::cmvn::{CmvnStats, Normalizer};
/// use srf_audio::features::FeaturesConfig;
///
/// let config = FeaturesConfig { mel_bins: 1, energy: false, delta_order: 0, ..FeaturesConfig::default() };
/// let mut stats = CmvnStats::new(1);
/// stats.add(&[1.0, 3.0]);
/// let mut frames = [1.0, 3.0];
/// Normalizer::new(&config, Some(&stats), None).apply(&mut frames);
/// assert_eq!(frames, [-1.0, 1.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Normalizer(Method);

#[derive(Clone, Debug)]
enum Method {
    None,
    Fixed(Affine),
    Online(Box<Online>),
}

impl Normalizer {
    /// With the statistics at hand: those of the speaker (or utterance) and those of the training set.
    ///
    /// By speaker, the global ones stand in where the speaker's are not known; without any, frames stay as they are.
    pub fn new(config: &FeaturesConfig, speaker: Option<&CmvnStats>, global: Option<&CmvnStats>) -> Self {
        let statistics = match config.cmvn {
            Cmvn::None => None,
            Cmvn::Global => global,
            Cmvn::Speaker | Cmvn::Utterance => speaker.or(global),
            Cmvn::Online => {
                let online = Online::new(config, config.n_features(), speaker.cloned(), global.cloned());
                return Self(Method::Online(Box::new(online)));
            }
        };
        Self(statistics.map_or(Method::None, |stats| Method::Fixed(Affine::new(stats, config.cmvn_variance))))
    }

    /// Normalises the next frames, given row by row, in place.
    pub fn apply(&mut self, frames: &mut [f32]) {
        match &mut self.0 {
            Method::None => {}
            Method::Fixed(affine) => affine.apply(frames),
            Method::Online(online) => online.apply(frames),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two values a frame, nothing regular about them.
    fn frames(n_frames: usize) -> Vec<f32> {
        (0..2 * n_frames).map(|i| ((i * i * 31 + i * 7) % 97) as f32 / 9.0 - (i % 2) as f32 * 40.0).collect()
    }

    fn stats(frames: &[f32]) -> CmvnStats {
        let mut stats = CmvnStats::new(2);
        stats.add(frames);
        stats
    }

    fn column(frames: &[f32], dim: usize) -> Vec<f64> {
        frames.iter().skip(dim).step_by(2).map(|&v| f64::from(v)).collect()
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn what_was_counted_gets_mean_zero_and_variance_one() {
        let frames = frames(500);
        let mut normal = frames.clone();
        Affine::new(&stats(&frames), true).apply(&mut normal);
        let mut centred = frames.clone();
        Affine::new(&stats(&frames), false).apply(&mut centred);
        for dim in 0..2 {
            let values = column(&normal, dim);
            // f32 values of size 1: their roundings average out far below 1e-6.
            assert!(mean(&values).abs() < 1e-6);
            assert!((mean(&values.iter().map(|v| v * v).collect::<Vec<_>>()) - 1.0).abs() < 1e-5);
            assert!(mean(&column(&centred, dim)).abs() < 1e-5);
        }
    }

    #[test]
    fn parts_merge_to_the_whole_and_survive_the_way_through_kaldi() {
        let frames = frames(10);
        let mut merged = stats(&frames[..6]);
        merged.merge(&stats(&frames[6..]));
        let whole = stats(&frames);
        assert_eq!(merged.n_frames(), 10.0);
        for (a, b) in merged.to_kaldi().iter().zip(whole.to_kaldi()) {
            assert!((a - b).abs() <= 1e-12 * b.abs());
        }
        assert_eq!(CmvnStats::from_kaldi(&whole.to_kaldi()), Some(whole));
        assert_eq!(CmvnStats::from_kaldi(&[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn a_constant_value_does_not_become_infinite() {
        let mut frames = vec![3.0; 20];
        Affine::new(&stats(&frames.clone()), true).apply(&mut frames);
        assert!(frames.iter().all(|v| v.is_finite()));
    }

    /// The definition, for one frame and dimension: window, then speaker, then global, each weighted.
    fn online_mean(
        frames: &[f32],
        t: usize,
        dim: usize,
        speaker: &[f32],
        global: &[f32],
        config: &FeaturesConfig,
    ) -> f64 {
        let window = column(&frames[2 * (t + 1).saturating_sub(config.cmvn_window)..2 * (t + 1)], dim);
        let mut missing = (config.cmvn_window - window.len()) as f64;
        let mut sum: f64 = window.iter().sum();
        let mut count = window.len() as f64;
        for (others, max) in [(speaker, config.cmvn_speaker_frames), (global, config.cmvn_global_frames)] {
            let others = column(others, dim);
            let weight = missing.min(max as f64).min(others.len() as f64);
            sum += weight * mean(&others);
            count += weight;
            missing -= weight;
        }
        sum / count
    }

    #[test]
    fn online_normalisation_is_its_definition_at_any_chunking() {
        let config = FeaturesConfig {
            cmvn: Cmvn::Online,
            cmvn_variance: false,
            cmvn_window: 30,
            cmvn_speaker_frames: 12,
            cmvn_global_frames: 10,
            ..FeaturesConfig::default()
        };
        let (speaker, global) = (frames(9), frames(400));
        let input = frames(100);
        let new = || Online::new(&config, 2, Some(stats(&speaker)), Some(stats(&global)));
        let mut whole = input.clone();
        new().apply(&mut whole);
        for t in 0..100 {
            for dim in 0..2 {
                let expected = f64::from(input[2 * t + dim]) - online_mean(&input, t, dim, &speaker, &global, &config);
                // One rounding of the mean and one of the difference, of values below 64.
                assert!((f64::from(whole[2 * t + dim]) - expected).abs() < 2.0 * 64.0 * f64::from(f32::EPSILON));
            }
        }
        let mut pieces = input;
        let mut online = new();
        for piece in pieces.chunks_mut(2 * 7) {
            online.apply(piece);
        }
        assert_eq!(pieces, whole);
    }
}
