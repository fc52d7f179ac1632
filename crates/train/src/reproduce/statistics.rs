//! Statistics of the tables: means, intervals, correlations and the test of equivalence.

/// The share of a distribution that an interval covers.
const COVERED: f64 = 0.95;
/// So many standard deviations to either side cover it, where the distribution is normal.
const NORMAL_95: f64 = 1.959_964;

/// The mean; `None` of nothing.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Half of Student's 95 % interval around the mean of two values or more.
pub(super) fn half_interval(values: &[f64]) -> Option<f64> {
    let n = values.len();
    let mean = mean(values).filter(|_| 2 <= n)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (n - 1) as f64).sqrt();
    Some(student_quantile(n - 1) * deviation / (n as f64).sqrt())
}

/// How far from 0 the middle 95 % of Student's distribution with `n_free` degrees of freedom reach.
fn student_quantile(n_free: usize) -> f64 {
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if student_within(middle, n_free) < COVERED { low = middle } else { high = middle }
    }
    low
}

/// The share of Student's distribution between -t and t.
///
/// With θ = atan(t / √ν) it is a finite sum: sin θ (1 + 1/2 cos² θ + 1·3/(2·4) cos⁴ θ + ...) up to cos^(ν-2) for even ν,
/// and 2/π (θ + sin θ (cos θ + 2/3 cos³ θ + ...)) up to the same power for odd ν.
fn student_within(t: f64, n_free: usize) -> f64 {
    let (sine, cosine) = (t / (n_free as f64).sqrt()).atan().sin_cos();
    let is_odd = n_free % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = 0.0;
    let mut power = usize::from(is_odd);
    while power + 2 <= n_free {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    if is_odd { std::f64::consts::FRAC_2_PI * (sine.asin() + sine * sum) } else { sine * sum }
}

/// Pearson's correlation; `None` for fewer than two pairs, or where one side does not vary.
pub(super) fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let (sum_x, sum_y) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    let centred = pairs.iter().map(|(x, y)| (x - sum_x / n, y - sum_y / n));
    let (xx, yy, xy) = centred.fold((0.0, 0.0, 0.0), |sum, (x, y)| (sum.0 + x * x, sum.1 + y * y, sum.2 + x * y));
    (0.0 < xx && 0.0 < yy).then(|| (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0))
}

/// Fisher's 95 % interval of a correlation over `n` pairs; `None` for fewer than four.
pub(super) fn correlation_interval(r: f64, n: usize) -> Option<(f64, f64)> {
    let half = (4 <= n).then(|| NORMAL_95 / (n as f64 - 3.0).sqrt())?;
    Some(((r.atanh() - half).tanh(), (r.atanh() + half).tanh()))
}

/// Whether two systems make about as many errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Equivalence {
    /// The p of two one-sided tests: small where the difference is certainly within the margin.
    pub(super) p: f64,
    /// The margin in points of the error rate.
    pub(super) margin: f64,
}

/// Two one-sided Student tests (TOST) on the differences of errors by utterance: is the difference of the totals within
/// `share` of their mean? `None` for fewer than two utterances, or where nothing could be wrong.
pub(super) fn equivalence(errors: &[[f64; 2]], n_reference: usize, share: f64) -> Option<Equivalence> {
    let n = errors.len() as f64;
    let total: f64 = errors.iter().map(|[a, b]| a - b).sum();
    let margin = share * errors.iter().map(|[a, b]| f64::midpoint(*a, *b)).sum::<f64>();
    if errors.len() < 2 || n_reference == 0 {
        return None;
    }
    let squares: f64 = errors.iter().map(|[a, b]| (a - b - total / n).powi(2)).sum();
    let deviation = (n * squares / (n - 1.0)).sqrt();
    let room = margin - total.abs();
    let p = if deviation == 0.0 {
        f64::from(u8::from(room < 0.0))
    } else {
        let beyond = (1.0 - student_within(room.abs() / deviation, errors.len() - 1)) / 2.0;
        if room < 0.0 { 1.0 - beyond } else { beyond }
    };
    Some(Equivalence { p, margin: 100.0 * margin / n_reference as f64 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The density of Student's distribution, but for its constant.
    fn density(t: f64, n_free: usize) -> f64 {
        let n = n_free as f64;
        (1.0 + t * t / n).powf(-(n + 1.0) / 2.0)
    }

    /// By Simpson's rule on x in (-1, 1), with t = x / (1 - x²), so that the tails are within the grid.
    fn integral(bound: f64, n_free: usize) -> f64 {
        let at = |x: f64| {
            let rest = 1.0 - x * x;
            if rest <= 0.0 { 0.0 } else { density(x / rest, n_free) * (1.0 + x * x) / (rest * rest) }
        };
        let (n, step) = (200_000, bound / 100_000.0);
        let weight = |k: usize| {
            if k == 0 || k == n {
                1.0
            } else if k % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        (0..=n).map(|k| weight(k) * at(-bound + k as f64 * step)).sum::<f64>() * step / 3.0
    }

    #[test]
    fn students_distribution_is_the_integral_of_its_density() {
        for n_free in [3, 4, 5, 8, 21] {
            for t in [0.3, 1.0, 2.5, 7.0_f64] {
                // The x that belongs to t.
                let bound = ((1.0 + 4.0 * t * t).sqrt() - 1.0) / (2.0 * t);
                let expected = integral(bound, n_free) / integral(1.0, n_free);
                let found = student_within(t, n_free);
                // Simpson's error is of the order of step^4, far below this.
                assert!((found - expected).abs() < 1e-9, "{n_free} {t}: {found} {expected}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (n_free, expected) in
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (30, 2.042), (120, 1.980)]
        {
            let found = student_quantile(n_free);
            assert!((found - expected).abs() < 5.1e-4, "{n_free}: {found}");
        }
    }

    #[test]
    fn an_interval_needs_two_values() {
        assert_eq!((half_interval(&[]), half_interval(&[3.0]), mean(&[])), (None, None, None));
        let half = half_interval(&[1.0, 3.0]).unwrap();
        // Deviation √2, so 12.706 · √2 / √2.
        assert!((half - 12.706_204).abs() < 1e-5, "{half}");
    }

    #[test]
    fn the_interval_of_a_correlation_holds_it_and_narrows() {
        let (low, high) = correlation_interval(0.9, 30).unwrap();
        // Worked by hand: atanh 0.9 = 1.472219, 1.959964 / √27 = 0.377195.
        assert!((low - 0.798_7).abs() < 1e-4 && (high - 0.951_7).abs() < 1e-4, "{low} {high}");
        assert_eq!(correlation_interval(0.9, 3), None);
        assert_eq!(correlation_interval(1.0, 10), Some((1.0, 1.0)));
    }

    proptest! {
        #[test]
        fn correlation_is_that_of_the_definition(pairs in prop::collection::vec((-5.0..5.0f64, -5.0..5.0f64), 3..30)) {
            let n = pairs.len() as f64;
            let average = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
            let (x, y) = (average(&|p| p.0), average(&|p| p.1));
            let covariance = average(&|p| (p.0 - x) * (p.1 - y));
            let deviations = average(&|p| (p.0 - x).powi(2)).sqrt() * average(&|p| (p.1 - y).powi(2)).sqrt();
            prop_assume!(deviations > 1e-6);
            prop_assert!((correlation(&pairs).unwrap() - covariance / deviations).abs() < 1e-9);
        }

        #[test]
        fn what_lies_on_a_line_is_wholly_correlated(slope in 0.1..10.0f64, xs in prop::collection::vec(0.0..9.0f64, 3..9)) {
            prop_assume!(xs.iter().any(|x| (x - xs[0]).abs() > 1e-3));
            let up: Vec<(f64, f64)> = xs.iter().map(|x| (*x, slope * x + 1.0)).collect();
            let down: Vec<(f64, f64)> = xs.iter().map(|x| (*x, -slope * x)).collect();
            prop_assert!((correlation(&up).unwrap() - 1.0).abs() < 1e-9);
            prop_assert!((correlation(&down).unwrap() + 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn equivalence_needs_a_difference_that_is_small_beside_its_deviation_and_the_margin() {
        // Differences 1, -1, 1, -1, ...: total 0, deviation sqrt(40 * 40 / 39) = 6.405; 3 % of 1,000 errors are 30.
        let few: Vec<[f64; 2]> = (0..40).map(|n| [25.0 + f64::from(n % 2), 26.0 - f64::from(n % 2)]).collect();
        let found = equivalence(&few, 10_000, 0.03).unwrap();
        assert!((found.margin - 0.306).abs() < 1e-9 && found.p < 1e-4, "{found:?}");
        // By hand: margin 1.02 of 6.405 is t = 0.15926, of which Student's upper tail with 39 degrees is 0.4371.
        let weak = equivalence(&few, 10_000, 0.001).unwrap();
        assert!((weak.p - 0.4371).abs() < 1e-4, "{weak:?}");
        let apart: Vec<[f64; 2]> = few.iter().map(|[a, b]| [*a, b + 5.0]).collect();
        assert!(equivalence(&apart, 10_000, 0.03).unwrap().p > 0.999);
        assert_eq!(equivalence(&[[3.0, 3.0]; 60], 600, 0.03).unwrap().p, 0.0);
        assert_eq!(equivalence(&[[3.0, 3.0]], 600, 0.03), None);
    }

    #[test]
    fn what_does_not_vary_has_no_correlation() {
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(correlation(&[]), None);
    }
}
