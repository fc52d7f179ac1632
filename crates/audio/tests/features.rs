//! The front end as a whole: against its definition, and as a stream cut anywhere.

use proptest::prelude::*;
use srf_audio::features::{Extractor, FeaturesConfig, FeaturesConfigError, extract};
use srf_audio::resample::resample;
use srf_audio::{I16_SCALE, Samples};

/// Something like speech: a few harmonics, a slow swell, a little noise and an offset.
fn samples(n_samples: usize) -> Vec<f32> {
    (0..n_samples)
        .map(|i| {
            let t = i as f64 / 16_000.0;
            let swell = 0.6 + 0.4 * (3.1 * t).sin();
            let tone: f64 =
                (1..8).map(|h| (2.0 * std::f64::consts::PI * 131.0 * f64::from(h) * t).sin() / f64::from(h)).sum();
            let noise = ((i * 7919 + i * i * 31) % 1009) as f64 / 1009.0 - 0.5;
            (2000.0 * swell * tone + 60.0 * noise + 17.0).round() as f32 / I16_SCALE
        })
        .collect()
}

/// One frame by the textbook, in f64: the oracle.
fn naive(config: &FeaturesConfig, frame: &[f32]) -> Vec<f64> {
    let turn = 2.0 * std::f64::consts::PI;
    let n = frame.len();
    let mean = frame.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
    let centred: Vec<f64> = frame.iter().map(|&x| f64::from(x) - mean).collect();
    let floor = f64::from(f32::EPSILON);
    let energy = centred.iter().map(|x| x * x).sum::<f64>().max(floor).ln();
    let n_fft = n.next_power_of_two();
    let windowed: Vec<f64> = (0..n)
        .map(|i| {
            let before = if i == 0 { centred[0] } else { centred[i - 1] };
            let window = (0.5 - 0.5 * (turn * i as f64 / (n - 1) as f64).cos()).powf(0.85);
            (centred[i] - 0.97 * before) * window
        })
        .collect();
    let power: Vec<f64> = (0..n_fft / 2)
        .map(|k| {
            let angle = |i: usize| turn * (i * k % n_fft) as f64 / n_fft as f64;
            let re: f64 = windowed.iter().enumerate().map(|(i, x)| x * angle(i).cos()).sum();
            let im: f64 = windowed.iter().enumerate().map(|(i, x)| x * angle(i).sin()).sum();
            re * re + im * im
        })
        .collect();
    let mel = |hz: f64| 1127.0 * (1.0 + hz / 700.0).ln();
    let (low, high) = (mel(20.0), mel(f64::from(config.sample_rate_hz) / 2.0));
    let step = (high - low) / (config.mel_bins + 1) as f64;
    let bins = (0..config.mel_bins).map(|bin| {
        let [left, centre, right] = [0.0, 1.0, 2.0].map(|j| low + (bin as f64 + j) * step);
        let weight = |k: usize| {
            let m = mel(f64::from(config.sample_rate_hz) * k as f64 / n_fft as f64);
            ((m - left) / (centre - left)).min((right - m) / (right - centre)).max(0.0)
        };
        power.iter().enumerate().map(|(k, p)| weight(k) * p).sum::<f64>().max(floor).ln()
    });
    std::iter::once(energy).chain(bins).collect()
}

#[test]
fn static_features_are_those_of_the_textbook() {
    for (rate_hz, n_mels) in [(16_000, 40), (8000, 23), (22_050, 80)] {
        let config = FeaturesConfig {
            sample_rate_hz: rate_hz,
            mel_bins: n_mels,
            dither: 0.0,
            delta_order: 0,
            ..FeaturesConfig::default()
        };
        let samples = samples(8000);
        let frames = extract(&config, &samples).unwrap();
        assert_eq!(frames.n_frames(), config.n_frames(samples.len()));
        for (t, row) in frames.rows().enumerate() {
            let frame = &samples[t * config.shift_samples()..][..config.frame_samples()];
            let expected = naive(&config, &frame.iter().map(|v| v * I16_SCALE).collect::<Vec<_>>());
            for (dim, (found, expected)) in row.iter().zip(&expected).enumerate() {
                // f32 rounding relative to the loudest point of the spectrum, seen in a bin some 60 dB below it.
                assert!(
                    (f64::from(*found) - expected).abs() < 2e-4,
                    "{rate_hz} Hz, frame {t}, {dim}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn the_default_is_123_values_and_98_frames_a_second() {
    let config = FeaturesConfig::default();
    assert_eq!((config.frame_samples(), config.shift_samples(), config.n_features()), (400, 160, 123));
    assert_eq!([0, 399, 400, 559, 560, 16_000].map(|n| config.n_frames(n)), [0, 0, 1, 1, 2, 98]);
    assert_eq!(extract(&config, &samples(399)).unwrap().n_frames(), 0);
    assert_eq!(extract(&config, &samples(16_000)).unwrap().n_frames(), 98);
}

#[test]
fn silence_is_finite_with_and_without_dither() {
    for dither in [0.0, 1.0] {
        let config = FeaturesConfig { dither, ..FeaturesConfig::default() };
        let frames = extract(&config, &[0.0; 4000]).unwrap();
        assert!(frames.values.iter().all(|v| v.is_finite()));
    }
}

#[test]
fn dither_is_the_same_for_a_seed_and_another_for_another() {
    let with =
        |dither_seed| extract(&FeaturesConfig { dither_seed, ..FeaturesConfig::default() }, &samples(4000)).unwrap();
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
}

#[test]
fn settings_that_cannot_be_are_told_by_name() {
    let message = |config: FeaturesConfig| Extractor::new(&config).unwrap_err().to_string();
    let default = FeaturesConfig::default;
    assert_eq!(
        message(FeaturesConfig { sample_rate_hz: 1, ..default() }),
        "`features.sample_rate_hz` is 1, expected 1000 to 768000"
    );
    assert_eq!(
        message(FeaturesConfig { high_hz: 9000.0, ..default() }),
        "`features.high_hz` is 9000, expected at most half the sample rate, 8000"
    );
    assert_eq!(
        message(FeaturesConfig { shift_ms: f64::NAN, ..default() }),
        "`features.shift_ms` is NaN, expected 1 to 1000"
    );
    assert!(matches!(
        Extractor::new(&FeaturesConfig { mel_bins: 200, ..default() }),
        Err(FeaturesConfigError::EmptyBin { mel_bins: 200, .. })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_cut_anywhere_gives_the_bits_of_the_whole(
        n_samples in 0usize..9000,
        cuts in proptest::collection::vec(0usize..3000, 0..12),
        dither in prop_oneof![Just(0.0f32), Just(1.0)],
        delta_order in 0usize..3,
        shift_ms in prop_oneof![Just(10.0), Just(30.0)],
    ) {
        let config = FeaturesConfig { dither, delta_order, shift_ms, ..FeaturesConfig::default() };
        let samples = samples(n_samples);
        let whole = extract(&config, &samples).unwrap().values;
        let mut extractor = Extractor::new(&config).unwrap();
        // The second utterance of one extractor must not remember the first.
        extractor.accept(&samples[..n_samples / 2], &mut Vec::new());
        extractor.finish(&mut Vec::new());
        let mut stream = Vec::new();
        let mut rest = samples.as_slice();
        for cut in cuts {
            let (piece, later) = rest.split_at(cut.min(rest.len()));
            extractor.accept(piece, &mut stream);
            rest = later;
        }
        extractor.accept(rest, &mut stream);
        extractor.finish(&mut stream);
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&stream), bits(&whole));
    }
}

#[test]
fn a_stream_of_single_samples_gives_the_bits_of_the_whole() {
    let config = FeaturesConfig::default();
    let samples = samples(3000);
    let mut extractor = Extractor::new(&config).unwrap();
    let mut stream = Vec::new();
    for sample in &samples {
        extractor.accept(std::slice::from_ref(sample), &mut stream);
    }
    extractor.finish(&mut stream);
    assert_eq!(stream, extract(&config, &samples).unwrap().values);
}

#[test]
fn samples_from_minus_one_to_one_have_the_bits_of_16_bit_samples() {
    let integers: Vec<i16> = (i16::MIN..=i16::MAX).collect();
    let unit = Samples::from_i16(8000, &integers);
    assert!(unit.values.iter().zip(&integers).all(|(value, &integer)| value * I16_SCALE == f32::from(integer)));
    // Resampling is linear, and a factor of a power of two rounds nothing.
    let large = Samples { rate_hz: 8000, values: integers.iter().map(|&value| f32::from(value)).collect() };
    let [unit, large] = [unit, large].map(|samples| resample(samples, 16_000).unwrap().values);
    assert!(unit.iter().zip(&large).all(|(unit, large)| (unit * I16_SCALE).to_bits() == large.to_bits()));
}
