//! Playing samples at another speed: what a faster tape does to a voice, its length, pitch and formants at once.

/// `samples` played at `played_hz`, recorded again at `rate_hz`.
///
/// # Panics
/// At rates that no recording has.
pub(crate) fn play(samples: Vec<f32>, played_hz: u32, rate_hz: u32) -> Vec<f32> {
    let played = srf_audio::Samples { rate_hz: played_hz, values: samples };
    srf_audio::resample::resample(played, rate_hz).expect("both rates lie near one of a recording").values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_click_lands_where_its_time_says() {
        for played_hz in [14_400, 15_100, 16_000, 17_700, 19_500] {
            for at in [300, 4001, 9000] {
                let mut samples = vec![0.0; 10_000];
                samples[at] = 1000.0;
                let played = play(samples, played_hz, 16_000);
                assert_eq!(played.len() as u64, (10_000 * 16_000u64).div_ceil(u64::from(played_hz)), "{played_hz}");
                let loudest = (0..played.len()).max_by(|a, b| played[*a].abs().total_cmp(&played[*b].abs())).unwrap();
                let expected = at as f64 * 16_000.0 / f64::from(played_hz);
                assert!((loudest as f64 - expected).abs() <= 0.51, "{played_hz}: {loudest}, {expected}");
            }
        }
    }
}
