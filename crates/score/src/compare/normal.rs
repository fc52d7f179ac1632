//! The normal distribution, as coarse as NIST's table of it, and the binomial one.

/// The share of a normal distribution below `z`, for `z` of at least 0.
///
/// NIST looks `z` up in a table with steps of 0.01 that ends at 5.14, and takes the lower entry.
pub(super) fn below(z: f64) -> f64 {
    let step = |k: f64| k / 100.0;
    let nearest = (z * 100.0).round();
    let lower = if step(nearest) <= z { nearest } else { nearest - 1.0 };
    1.0 - 0.5 * libm::erfc(step(lower).min(5.14) / std::f64::consts::SQRT_2)
}

/// How likely a value at least as far from 0 as `z` is.
pub(super) fn two_tailed(z: f64) -> f64 {
    1.0 - 2.0 * (below(z.abs()) - 0.5)
}

/// How likely at most `n_heads` heads are in `n` throws of a coin.
pub(super) fn at_most(n_heads: usize, n: usize) -> f64 {
    let ln_all = n as f64 * std::f64::consts::LN_2;
    (0..=n_heads).map(|k| (ln_ways(n, k) - ln_all).exp()).sum()
}

/// The logarithm of the number of ways to choose `k` of `n`.
fn ln_ways(n: usize, k: usize) -> f64 {
    let ln_factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Two-tailed test of a fair coin that fell `a` times on one side and `b` times on the other.
pub(super) fn fair_coin(a: usize, b: usize) -> f64 {
    if a == b { 1.0 } else { (2.0 * at_most(a.min(b), a + b)).min(1.0) }
}
