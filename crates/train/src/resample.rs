//! Stand-in until `audio` resamples: linear interpolation.
pub(crate) fn resample(samples: &[f32], from_hz: u32, to_hz: u32) -> Vec<f32> {
    let n = (samples.len() as u64 * u64::from(to_hz)).div_ceil(u64::from(from_hz)) as usize;
    let step = f64::from(from_hz) / f64::from(to_hz);
    (0..n)
        .map(|i| {
            let at = i as f64 * step;
            let k = at as usize;
            let f = (at - k as f64) as f32;
            let a = samples.get(k).copied().unwrap_or(0.0);
            let b = samples.get(k + 1).copied().unwrap_or(a);
            a + f * (b - a)
        })
        .collect()
}
