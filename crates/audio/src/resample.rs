//! Resampling, at once or as a stream.
//!
//! Band-limited interpolation by rubato. Output sample k lies at the time of k output periods, to the exact place
//! where the ratio of the rates is not too odd, and n input samples give ceil(n x ratio) output samples.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Async, FixedAsync, Resampler as _, SincInterpolationParameters, SincInterpolationType, WindowFunction};

use crate::recording::Samples;

/// Rates that can be resampled from and to.
const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Input samples rubato is given at a time, whatever pieces they arrive in.
const CHUNK_SAMPLES: usize = 512;

/// Length of the interpolating filter, in periods of the lower rate.
const FILTER_PERIODS: usize = 256;
const MAX_FILTER_SAMPLES: usize = 4096;

/// Up to this many different filters are made, one for each position of an output sample between two input samples;
/// rates with more positions are interpolated between filters.
const MAX_PHASES: u32 = 1024;

/// A sample rate outside of what can be resampled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a sample rate of {found_hz} Hz cannot be resampled, expected {} to {} Hz", RATES_HZ.start(), RATES_HZ.end())]
pub struct ResampleError {
    /// The rate.
    pub found_hz: u32,
}

/// Resamples one stream of samples; however it is cut into pieces, the output has the same bits.
///
/// ```
/// use srf_audio::resample::{ResampleError, Resampler};
///
/// let mut resampler = Resampler::new(8_000, 16_000)?;
/// let mut output = Vec::new();
/// for block in [[0.5; 400]; 2] {
///     resampler.accept(&block, &mut output);
/// }
/// resampler.finish(&mut output);
/// assert_eq!(output.len(), 1600);
/// assert_eq!(Resampler::new(0, 16_000).err(), Some(ResampleError { found_hz: 0 }));
/// # Ok::<(), ResampleError>(())
/// ```
pub struct Resampler {
    /// `None` when both rates are the same.
    inner: Option<Async<f32>>,
    up: u64,
    down: u64,
    /// Input samples that do not fill a chunk yet.
    pending: Vec<f32>,
    chunk: Vec<f32>,
    n_in: u64,
    n_out: u64,
    /// Output samples before time 0 still to come.
    n_skip: usize,
    alignment: Alignment,
}

/// What makes output sample 0 fall on input sample 0.
#[derive(Clone, Copy)]
struct Alignment {
    /// Zeros put before the input.
    n_zeros: usize,
    /// Output samples dropped.
    n_skip: usize,
}

impl Alignment {
    /// The filter is centred on half its length, one phase early; output n lies at input time
    /// (n + 1) down / up - length / 2 - zeros + 1 / phases. With as many phases as `up`, some number of zeros makes
    /// this 0 for a whole n.
    fn new(up: u32, down: u32, filter_samples: usize, n_phases: u32) -> Self {
        let half = filter_samples as u64 / 2;
        let (up, down) = (u64::from(up), u64::from(down));
        if u64::from(n_phases) == up {
            let n_zeros = (0..down).find(|zeros| ((half + zeros) * up - 1).is_multiple_of(down));
            let n_zeros = n_zeros.expect("the ratio is in lowest terms");
            let n_skip = ((half + n_zeros) * up - 1) / down - 1;
            return Self { n_zeros: n_zeros as usize, n_skip: n_skip as usize };
        }
        let n_skip = (half as f64 * up as f64 / down as f64).round() as usize - 1;
        Self { n_zeros: 0, n_skip }
    }
}

impl Resampler {
    /// From one rate to another.
    pub fn new(from_hz: u32, to_hz: u32) -> Result<Self, ResampleError> {
        if let Some(&found_hz) = [from_hz, to_hz].iter().find(|rate_hz| !RATES_HZ.contains(rate_hz)) {
            return Err(ResampleError { found_hz });
        }
        let divisor = greatest_common_divisor(from_hz, to_hz);
        let (up, down) = (to_hz / divisor, from_hz / divisor);
        let (n_phases, interpolation) = if up <= MAX_PHASES {
            (up, SincInterpolationType::Nearest)
        } else {
            (MAX_PHASES, SincInterpolationType::Cubic)
        };
        let stretch = (f64::from(from_hz) / f64::from(to_hz)).max(1.0);
        let filter_samples = ((FILTER_PERIODS as f64 * stretch) as usize).min(MAX_FILTER_SAMPLES).next_multiple_of(8);
        let parameters = SincInterpolationParameters::new(filter_samples, WindowFunction::BlackmanHarris2)
            .oversampling_factor(n_phases as usize)
            .interpolation(interpolation);
        let ratio = f64::from(to_hz) / f64::from(from_hz);
        let make = || {
            Async::new_sinc(ratio, 1.0, &parameters, CHUNK_SAMPLES, 1, FixedAsync::Input)
                .expect("the ratio is finite and the chunk not empty")
        };
        let alignment = Alignment::new(up, down, filter_samples, n_phases);
        let mut resampler = Self {
            inner: (up != down).then(make),
            up: up.into(),
            down: down.into(),
            pending: Vec::new(),
            chunk: Vec::new(),
            n_in: 0,
            n_out: 0,
            n_skip: 0,
            alignment,
        };
        resampler.reset();
        Ok(resampler)
    }

    /// Takes the next input samples and appends to `output` what can be computed now.
    pub fn accept(&mut self, input: &[f32], output: &mut Vec<f32>) {
        self.n_in += input.len() as u64;
        if self.inner.is_none() {
            output.extend_from_slice(input);
            return;
        }
        let mut rest = input;
        while self.pending.len() + rest.len() >= CHUNK_SAMPLES {
            let (now, later) = rest.split_at(CHUNK_SAMPLES - self.pending.len());
            self.pending.extend_from_slice(now);
            rest = later;
            self.process(output, u64::MAX);
        }
        self.pending.extend_from_slice(rest);
    }

    /// Ends the stream: appends the rest, and makes ready for the next one.
    pub fn finish(&mut self, output: &mut Vec<f32>) {
        if self.inner.is_some() {
            let n_wanted = (self.n_in * self.up).div_ceil(self.down);
            while self.n_out < n_wanted {
                self.pending.resize(CHUNK_SAMPLES, 0.0);
                self.process(output, n_wanted);
            }
        }
        self.reset();
    }

    fn reset(&mut self) {
        if let Some(inner) = &mut self.inner {
            inner.reset();
        }
        self.pending.clear();
        self.pending.resize(if self.inner.is_some() { self.alignment.n_zeros } else { 0 }, 0.0);
        self.n_skip = self.alignment.n_skip;
        (self.n_in, self.n_out) = (0, 0);
    }

    /// Sends one chunk of `pending` through rubato, up to `n_wanted` samples of output in all.
    fn process(&mut self, output: &mut Vec<f32>, n_wanted: u64) {
        let Some(inner) = &mut self.inner else { return };
        self.chunk.resize(inner.output_frames_next(), 0.0);
        let n_chunk = self.chunk.len();
        let from = SequentialSlice::new(&self.pending[..CHUNK_SAMPLES], 1, CHUNK_SAMPLES).expect("it is that long");
        let mut to = SequentialSlice::new_mut(&mut self.chunk, 1, n_chunk).expect("it is that long");
        inner.process_into_buffer(&from, &mut to, None).expect("both buffers have the size asked for");
        self.pending.drain(..CHUNK_SAMPLES);
        let skipped = self.n_skip.min(n_chunk);
        self.n_skip -= skipped;
        let n_new = ((n_chunk - skipped) as u64).min(n_wanted - self.n_out) as usize;
        output.extend_from_slice(&self.chunk[skipped..skipped + n_new]);
        self.n_out += n_new as u64;
    }
}

/// `samples` at `to_hz`: a stream fed at once.
pub fn resample(samples: Samples, to_hz: u32) -> Result<Samples, ResampleError> {
    if samples.rate_hz == to_hz {
        return Ok(samples);
    }
    let mut resampler = Resampler::new(samples.rate_hz, to_hz)?;
    let mut values = Vec::new();
    resampler.accept(&samples.values, &mut values);
    resampler.finish(&mut values);
    Ok(Samples { rate_hz: to_hz, values })
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sine(rate_hz: u32, hz: f64, n_samples: usize) -> Vec<f32> {
        let step = 2.0 * std::f64::consts::PI * hz / f64::from(rate_hz);
        (0..n_samples).map(|i| (10_000.0 * (step * i as f64).sin()) as f32).collect()
    }

    #[test]
    fn a_sine_comes_out_as_the_same_sine_in_the_same_place() {
        for (from_hz, to_hz) in [
            (8000, 16_000),
            (48_000, 16_000),
            (44_100, 16_000),
            (22_050, 16_000),
            (16_000, 8000),
            (20_000, 16_000),
            (16_000, 48_000),
            (11_025, 16_000),
            (96_000, 16_000),
            (1000, 16_000),
        ] {
            let n_samples = from_hz as usize;
            let hz = f64::from(from_hz.min(to_hz)) * 0.31;
            let input = Samples { rate_hz: from_hz, values: sine(from_hz, hz, n_samples) };
            let output = resample(input, to_hz).unwrap().values;
            let expected = sine(to_hz, hz, to_hz as usize);
            assert_eq!(output.len(), expected.len());
            // The ends are filtered together with the silence around them.
            let margin = output.len() / 4;
            let inner = margin..output.len() - margin;
            let worst =
                output[inner.clone()].iter().zip(&expected[inner]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // The window's side lobes are below -90 dB of the 10000 that went in.
            assert!(worst < 1.0, "{from_hz} to {to_hz}: {worst}");
        }
    }

    #[test]
    fn odd_ratios_are_within_a_sample() {
        let input = Samples { rate_hz: 16_001, values: sine(16_001, 440.0, 16_001) };
        let output = resample(input, 16_000).unwrap().values;
        assert_eq!(output.len(), 16_000);
        let expected = sine(16_000, 440.0, 16_000);
        let worst = output[4000..12_000].iter().zip(&expected[4000..]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        // A whole sample late, 440 Hz differs by 10000 x 2 pi x 440 / 16000.
        assert!(worst < 1728.0, "{worst}");
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_gone() {
        let input = Samples { rate_hz: 48_000, values: sine(48_000, 10_000.0, 48_000) };
        let output = resample(input, 16_000).unwrap().values;
        let worst = output[2000..14_000].iter().fold(0.0f32, |worst, v| worst.max(v.abs()));
        assert!(worst < 1.0, "{worst}");
    }

    #[test]
    fn absurd_rates_are_told() {
        let message = Resampler::new(16_000, 1).err().unwrap().to_string();
        assert_eq!(message, "a sample rate of 1 Hz cannot be resampled, expected 1000 to 768000 Hz");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_stream_cut_anywhere_gives_the_bits_of_the_whole(
            rates in prop_oneof![Just((8000, 16_000)), Just((44_100, 16_000)), Just((48_000, 16_000)), Just((16_000, 16_000))],
            n_samples in 0usize..4000,
            cuts in proptest::collection::vec(0usize..1200, 0..8),
        ) {
            let values = sine(rates.0, 300.0, n_samples);
            let whole = resample(Samples { rate_hz: rates.0, values: values.clone() }, rates.1).unwrap().values;
            prop_assert_eq!(whole.len(), (n_samples * rates.1 as usize).div_ceil(rates.0 as usize));
            let mut resampler = Resampler::new(rates.0, rates.1).unwrap();
            resampler.accept(&values[..n_samples / 3], &mut Vec::new());
            resampler.finish(&mut Vec::new());
            let mut stream = Vec::new();
            let mut rest = values.as_slice();
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                resampler.accept(piece, &mut stream);
                rest = later;
            }
            resampler.accept(rest, &mut stream);
            resampler.finish(&mut stream);
            prop_assert_eq!(stream, whole);
        }
    }
}
