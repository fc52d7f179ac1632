//! Bounds that the keys of several architectures share: values in, the first problem out.

use super::{InvalidConfig, MAX_PARAMETERS};
use crate::summary::ParameterCount;

pub(super) const MAX_FEATURES: usize = 4096;
pub(super) const MAX_CLASSES: usize = 1 << 16;
pub(super) const MAX_FILTERS: usize = 1024;
pub(super) const MAX_LAYERS: usize = 100;

/// The default of `features`: filterbank, energy and their first and second differences.
pub(super) fn default_features() -> usize {
    123
}

/// The default of `filters`.
pub(super) fn default_filters() -> usize {
    64
}

/// The keys that every architecture has.
pub(super) fn check_shared(
    features: usize,
    classes: usize,
    filters: usize,
    layers: usize,
) -> Result<(), InvalidConfig> {
    InvalidConfig::unless_within("model.features", features, 1, MAX_FEATURES)?;
    // Padding, blank and something to recognise.
    InvalidConfig::unless_within("model.classes", classes, 3, MAX_CLASSES)?;
    InvalidConfig::unless_within("model.filters", filters, 1, MAX_FILTERS)?;
    InvalidConfig::unless_within("model.layers", layers, 1, MAX_LAYERS)
}

/// Rates of dropout.
pub(super) fn check_rates<const N: usize>(rates: [(&str, f64); N]) -> Result<(), InvalidConfig> {
    rates.into_iter().try_for_each(|(key, rate)| {
        let key = format!("model.dropout.{key}");
        InvalidConfig::unless((0.0..1.0).contains(&rate), &key, rate, "at least 0 and less than 1")
    })
}

/// The size of the whole network.
pub(super) fn check_parameters(count: ParameterCount) -> Result<(), InvalidConfig> {
    let n_parameters = count.total;
    let expected = format_args!("sizes that make at most {MAX_PARAMETERS} parameters");
    let found = format_args!("a network of {n_parameters} parameters");
    InvalidConfig::unless(n_parameters <= MAX_PARAMETERS, "model", found, expected)
}

/// Frequencies at the input of the first strided convolution, between the two, and after the second.
pub(crate) fn conv_widths(features: usize) -> [usize; 3] {
    let first = features.div_ceil(2);
    [features, first, first.div_ceil(2)]
}
