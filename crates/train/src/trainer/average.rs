//! The mean of models: weights and moving statistics of several in, one model out.

/// The mean of each number, summed in double precision in the order given.
///
/// # Panics
/// Without any model, or with models of different sizes.
pub fn mean(models: &[&[f32]]) -> Vec<f32> {
    let n_values = models.first().expect("the mean of at least one model").len();
    assert!(models.iter().all(|model| model.len() == n_values), "the mean of models of one size");
    let n = models.len() as f64;
    (0..n_values).map(|at| (models.iter().map(|model| f64::from(model[at])).sum::<f64>() / n) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_arithmetic_mean() {
        assert_eq!(mean(&[&[1.0, -2.0], &[2.0, 0.0], &[6.0, 2.0]]), [3.0, 0.0]);
        // In single precision the sum would lose the small one.
        assert_eq!(mean(&[&[1e8], &[1.0], &[-1e8], &[1.0]]), [0.5]);
    }

    #[test]
    fn the_mean_of_one_model_is_that_model_to_the_bit() {
        let model: Vec<f32> = (0..1000).map(|n| (n as f32).sin() * 1e-3).collect();
        assert_eq!(mean(&[&model]), model);
        assert_eq!(mean(&[&model, &model, &model]), model);
    }
}
