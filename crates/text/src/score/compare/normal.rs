//! The normal and the binomial distribution, as coarse as NIST's tables.

/// The share of a normal distribution below `z`, for `z` of at least 0.
///
/// NIST looks `z` up in a table with steps of 0.01 that ends at 5.14, and takes the lower entry.
pub(super) fn below(z: f64) -> f64 {
    let z = ((z * 100.0 + 1e-9).floor() / 100.0).min(5.14);
    1.0 - 0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

/// How likely a value at least as far from 0 as `z` is.
pub(super) fn two_tailed(z: f64) -> f64 {
    1.0 - 2.0 * (below(z.abs()) - 0.5)
}

/// How likely at most `n_heads` heads are in `n` throws of a coin; a normal distribution beyond 20 throws.
pub(super) fn at_most(n_heads: usize, n: usize) -> f64 {
    if n <= 20 {
        let ways = (0..=n_heads).map(|k| ways(n, k)).sum::<f64>();
        return ways * 0.5_f64.powi(n as i32);
    }
    let (mean, deviation) = (n as f64 * 0.5, (n as f64 * 0.25).sqrt());
    let z = (n_heads as f64 + 0.5 - mean) / deviation;
    if z < 0.0 { 1.0 - below(-z) } else { below(z) }
}

/// How many ways there are to choose `k` of `n`.
fn ways(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64)
}

/// Two-tailed test of a fair coin that fell `a` times on one side and `b` times on the other.
pub(super) fn fair_coin(a: usize, b: usize) -> f64 {
    if a == b { 1.0 } else { (2.0 * at_most(a.min(b), a + b)).min(1.0) }
}
