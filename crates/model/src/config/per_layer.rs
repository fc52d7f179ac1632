//! A value for every layer: one number for all of them or a list of one each in, the layer's number out.

use std::fmt;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::InvalidConfig;

/// `30`, the same for all layers, or `[30, 20, 20]`, one for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PerLayer {
    /// One number for all layers.
    Same(usize),
    /// One number a layer, the lowest layer first.
    Each(Vec<usize>),
}

impl PerLayer {
    /// The number of the layer at `index`, from 0; a list is at least that long once the configuration is checked.
    pub fn at(&self, index: usize) -> usize {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values[index],
        }
    }

    /// A problem unless every number lies in `least..=most` and a list has `n_layers` of them.
    pub(super) fn check(&self, key: &str, n_layers: usize, least: usize, most: usize) -> Result<(), InvalidConfig> {
        match self {
            Self::Same(value) => InvalidConfig::unless_within(key, *value, least, most),
            Self::Each(values) => {
                let found = format_args!("a list of {}", values.len());
                let expected = format_args!("one number, or a list of {n_layers}, one for each layer it is for");
                InvalidConfig::unless(values.len() == n_layers, key, found, expected)?;
                values.iter().try_for_each(|&value| InvalidConfig::unless_within(key, value, least, most))
            }
        }
    }
}

// By hand, because what the derived form says of a wrong value helps nobody: that it matched no variant.
impl<'de> Deserialize<'de> for PerLayer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PerLayerVisitor)
    }
}

struct PerLayerVisitor;

impl<'de> Visitor<'de> for PerLayerVisitor {
    type Value = PerLayer;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number, 0 or more, or a list of them, one for each layer")
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<PerLayer, E> {
        usize::try_from(value).map(PerLayer::Same).map_err(|_| E::invalid_value(unsigned(value), &self))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<PerLayer, E> {
        usize::try_from(value).map(PerLayer::Same).map_err(|_| E::invalid_value(signed(value), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PerLayer, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element::<i64>()? {
            let value = usize::try_from(value).map_err(|_| A::Error::invalid_value(signed(value), &self))?;
            values.push(value);
        }
        Ok(PerLayer::Each(values))
    }
}

fn signed(value: i64) -> serde::de::Unexpected<'static> {
    serde::de::Unexpected::Signed(value)
}

fn unsigned(value: u64) -> serde::de::Unexpected<'static> {
    serde::de::Unexpected::Unsigned(value)
}
