//! Each kind of augmentation does what it says, and the same again when asked again.

use proptest::prelude::*;

use super::*;

const RATE_HZ: u32 = 16_000;

fn tone(n_samples: usize, frequency_hz: f32) -> Vec<f32> {
    (0..n_samples).map(|i| 5000.0 * (i as f32 * frequency_hz * std::f32::consts::TAU / RATE_HZ as f32).sin()).collect()
}

fn augmenter(config: AugmentConfig) -> Augmenter {
    Augmenter::new(config, 7).unwrap()
}

fn n_crossings(samples: &[f32]) -> usize {
    samples.windows(2).filter(|pair| pair[0] < 0.0 && 0.0 <= pair[1]).count()
}

#[test]
fn nothing_happens_by_default() {
    let off = augmenter(AugmentConfig::default());
    assert!(off.is_off());
    let (mut samples, mut features) = (tone(1000, 440.0), vec![1.0; 50 * 6]);
    assert_eq!(off.change_samples(1, "u", RATE_HZ, &mut samples), 1.0);
    off.mask_features(1, "u", &mut features, 2, 3);
    assert_eq!(samples, tone(1000, 440.0));
    assert_eq!(features, vec![1.0; 50 * 6]);
}

#[test]
fn faster_is_shorter_and_higher() {
    let fast = augmenter(AugmentConfig { speeds: vec![1.25], ..AugmentConfig::default() });
    let mut samples = tone(16_000, 400.0);
    assert_eq!(fast.change_samples(0, "u", RATE_HZ, &mut samples), 1.25);
    assert_eq!(samples.len(), 12_800);
    // 400 Hz played 1.25 times as fast are 500 Hz, in 0.8 s 400 periods; one may be cut at either end.
    assert!(n_crossings(&samples).abs_diff(400) <= 1, "{}", n_crossings(&samples));
}

#[test]
fn all_speeds_are_drawn() {
    let speeds = vec![0.9, 1.0, 1.1];
    let any = augmenter(AugmentConfig { speeds: speeds.clone(), ..AugmentConfig::default() });
    for speed in speeds {
        assert!((0..50).any(|epoch| any.change_samples(epoch, "u", RATE_HZ, &mut tone(100, 440.0)) == speed));
    }
}

#[test]
fn noise_lies_in_the_range_and_comes_as_often_as_asked() {
    let config = NoiseConfig { probability: 0.5, min_snr_db: 5.0, max_snr_db: 20.0 };
    let noisy = augmenter(AugmentConfig { noise: Some(config), ..AugmentConfig::default() });
    let clean = tone(8000, 300.0);
    let mut n_noisy = 0;
    for epoch in 0..200 {
        let mut samples = clean.clone();
        noisy.change_samples(epoch, "u", RATE_HZ, &mut samples);
        if samples != clean {
            n_noisy += 1;
            let difference: Vec<f32> = samples.iter().zip(&clean).map(|(a, b)| a - b).collect();
            let snr_db = 10.0 * (noise::power(&clean) / noise::power(&difference)).log10();
            assert!((4.99..20.01).contains(&snr_db), "{snr_db}");
        }
    }
    // Binomial with standard deviation 7: four of them.
    assert!((72..=128).contains(&n_noisy), "{n_noisy}");
}

#[test]
fn a_telephone_keeps_low_tones_and_loses_high_ones() {
    let narrow = augmenter(AugmentConfig { telephone: 1.0, ..AugmentConfig::default() });
    let power_left = |frequency_hz: f32| {
        let mut samples = tone(16_000, frequency_hz);
        narrow.change_samples(1, "u", RATE_HZ, &mut samples);
        assert_eq!(samples.len(), 16_000);
        noise::power(&samples) / noise::power(&tone(16_000, frequency_hz))
    };
    assert!((0.95..1.05).contains(&power_left(1000.0)), "{}", power_left(1000.0));
    assert!(power_left(6000.0) < 1e-3, "{}", power_left(6000.0));
}

#[test]
fn a_room_sounds_on_after_a_click_and_then_falls_silent() {
    let config = RoomsConfig { probability: 1.0, min_t60_s: 0.3, max_t60_s: 0.3 };
    let room = augmenter(AugmentConfig { rooms: Some(config), ..AugmentConfig::default() });
    let mut samples = vec![0.0; 16_000];
    samples[1000] = 1000.0;
    room.change_samples(1, "u", RATE_HZ, &mut samples);
    assert_eq!(samples.len(), 16_000);
    assert!(samples[..1000].iter().all(|sample| *sample == 0.0));
    let power_of =
        |from_s: f32, to_s: f32| noise::power(&samples[1000 + (from_s * 16e3) as usize..1000 + (to_s * 16e3) as usize]);
    let (early, late) = (power_of(0.001, 0.05), power_of(0.2, 0.25));
    // 60 dB in 0.3 s are 40 dB from the middle of the first stretch to that of the second; 400 echoes a second are random.
    let fall_db = 10.0 * (early / late).log10();
    assert!((30.0..50.0).contains(&fall_db), "{fall_db}");
    assert!(samples[1000 + 4801..].iter().all(|sample| *sample == 0.0));
}

#[test]
fn bad_settings_are_named() {
    let check = |json: &str| serde_json::from_str::<AugmentConfig>(json).unwrap().validate().unwrap_err().to_string();
    assert_eq!(check(r#"{"speeds": [3]}"#), "`training.augment.speeds` is 3, expected speeds from 0.5 to 2");
    let rooms = r#"{"rooms": {"probability": 1, "min_t60_s": 0.5, "max_t60_s": 0.1}}"#;
    let expected = "`training.augment.rooms.min_t60_s` is 0.5 with a longest time of 0.1, expected two times from 0.01 to \
                    5 s, the shorter first";
    assert_eq!(check(rooms), expected);
    assert_eq!(check(r#"{"telephone": 2}"#), "`training.augment.telephone` is 2, expected 0 to 1");
    let noise = r#"{"noise": {"probability": 2, "min_snr_db": 0, "max_snr_db": 1}}"#;
    assert_eq!(check(noise), "`training.augment.noise.probability` is 2, expected 0 to 1");
    let noise = r#"{"noise": {"probability": 1, "min_snr_db": 9, "max_snr_db": 1}}"#;
    let expected =
        "`training.augment.noise.min_snr_db` is 9 with a largest ratio of 1, expected two numbers, the smaller first";
    assert_eq!(check(noise), expected);
    assert!(serde_json::from_str::<AugmentConfig>(r#"{"speed": [1]}"#).is_err());
}

proptest! {
    #[test]
    fn masks_keep_to_their_limits(
        n_frames in 0usize..80, epoch in any::<u64>(), id in "\\PC{0,9}", max_bins in 0usize..60, max_percent in 0usize..=100,
    ) {
        let (n_bins, n_orders) = (41, 3);
        let config = MaskConfig { n_bands: 1, max_bins, n_stretches: 1, max_frames: 30, max_percent };
        let masking = augmenter(AugmentConfig { masks: Some(config), ..AugmentConfig::default() });
        let mut features = vec![1.0; n_frames * n_orders * n_bins];
        masking.mask_features(epoch, &id, &mut features, n_bins, n_orders);
        let frames: Vec<&[f32]> = features.chunks_exact(n_orders * n_bins).collect();
        let is_silent = |frame: &&&[f32]| frame.iter().all(|value| *value == 0.0);
        let n_silent = frames.iter().filter(is_silent).count();
        let n_masked_bins = frames.iter().find(|frame| !is_silent(frame)).map_or(0, |frame| frame.iter().filter(|v| **v == 0.0).count());
        prop_assert!(n_masked_bins <= max_bins.min(n_bins) * n_orders && n_masked_bins.is_multiple_of(n_orders));
        prop_assert!(n_masked_bins == n_bins * n_orders || n_silent <= 30.min(n_frames * max_percent / 100) || max_bins >= n_bins);

        let mut again = vec![1.0; n_frames * n_orders * n_bins];
        masking.mask_features(epoch, &id, &mut again, n_bins, n_orders);
        prop_assert_eq!(again, features);
    }

    #[test]
    fn samples_depend_on_epoch_and_utterance_alone(epoch in any::<u64>(), id in "\\PC{0,9}") {
        let noise = NoiseConfig { probability: 1.0, min_snr_db: 5.0, max_snr_db: 20.0 };
        let config = AugmentConfig { speeds: vec![0.9, 1.1], noise: Some(noise), ..AugmentConfig::default() };
        let changed = |epoch, id: &str| {
            let mut samples = tone(500, 440.0);
            augmenter(config.clone()).change_samples(epoch, id, RATE_HZ, &mut samples);
            samples
        };
        prop_assert_eq!(changed(epoch, &id), changed(epoch, &id));
        prop_assert_ne!(changed(epoch, &id), changed(epoch ^ 1, &id));
        prop_assert_ne!(changed(epoch, &id), changed(epoch, &format!("{id}x")));
    }
}
