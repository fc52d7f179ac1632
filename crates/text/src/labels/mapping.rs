//! Maps phones of TIMIT and of CMU's dictionary to common sets.
//!
//! CMU's dictionary writes its 39 phones in capitals, vowels with a digit for their stress; TIMIT writes in small
//! letters. Folded, both have the same 37 phones, and TIMIT two more that the dictionary does not know: silence and
//! the flap. So a model of one can be scored on the other.
//!
//! ```
//! use srf_text::labels::mapping::{CMU_PHONES, PhoneMapping, UnknownMapping};
//! use srf_text::labels::timit::Folded;
//!
//! let mapping: PhoneMapping = "shared37".parse()?;
//! assert_eq!(mapping.map("AA"), mapping.map("aa"));
//! assert!(CMU_PHONES.iter().all(|phone| mapping.map(phone) != Folded::Unknown));
//! assert!(mapping.labels().n_classes() > 37);
//! assert_eq!("none".parse::<PhoneMapping>(), Err(UnknownMapping { found: "none".to_owned() }));
//! # Ok::<(), UnknownMapping>(())
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::timit::{Folded, PHONES_61, PhoneSet};
use super::{LabelSet, Units};

/// The phones of CMU's dictionary, without stress.
pub const CMU_PHONES: [&str; 39] = [
    "AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY", "JH", "K",
    "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y", "Z", "ZH",
];

/// A smaller set that phones are mapped to before they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhoneMapping {
    /// TIMIT's 48 phones.
    Timit48,
    /// TIMIT's 39 phones, those of CMU's dictionary among them.
    Timit39,
    /// The 37 phones that both have: silences are dropped and the flap is a `t`.
    Shared37,
}

const NAMES: [(&str, PhoneMapping); 3] =
    [("timit48", PhoneMapping::Timit48), ("timit39", PhoneMapping::Timit39), ("shared37", PhoneMapping::Shared37)];

impl fmt::Display for PhoneMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES.iter().find(|(_, mapping)| mapping == self).map_or("", |(name, _)| name))
    }
}

/// A name of a mapping that is none.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown mapping `{found}`, expected `timit48`, `timit39` or `shared37`")]
pub struct UnknownMapping {
    /// What was written.
    pub found: String,
}

impl FromStr for PhoneMapping {
    type Err = UnknownMapping;

    fn from_str(name: &str) -> Result<Self, UnknownMapping> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, mapping)| *mapping).ok_or_else(|| UnknownMapping { found: name.to_owned() })
    }
}

impl PhoneMapping {
    /// The labels of a model that writes what the mapping gives, in alphabetical order.
    pub fn labels(self) -> LabelSet {
        let phones: BTreeSet<&str> = PHONES_61.iter().filter_map(|phone| self.map(phone).written()).collect();
        LabelSet::new(Units::Phones, phones).expect("the phones are distinct words")
    }

    /// What becomes of `phone`.
    pub fn map(self, phone: &str) -> Folded {
        let set = if self == Self::Timit48 { PhoneSet::Train48 } else { PhoneSet::Score39 };
        let folded = match cmu_as_timit(phone) {
            Folded::To(timit) => set.fold(timit),
            Folded::Dropped | Folded::Unknown => set.fold(phone),
        };
        match folded {
            Folded::To("sil") if self == Self::Shared37 => Folded::Dropped,
            Folded::To("dx") if self == Self::Shared37 => Folded::To("t"),
            other => other,
        }
    }
}

/// A phone of CMU's dictionary, with or without stress, as TIMIT's 61 write it.
fn cmu_as_timit(phone: &str) -> Folded {
    let plain = phone.strip_suffix(['0', '1', '2']).unwrap_or(phone);
    if matches!(plain, "SIL" | "SP" | "SPN") {
        return Folded::To("pau");
    }
    if !CMU_PHONES.contains(&plain) {
        return Folded::Unknown;
    }
    let small = plain.to_ascii_lowercase();
    super::timit::PHONES_61.iter().find(|timit| **timit == small).map_or(Folded::Unknown, |timit| Folded::To(timit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(mapping: PhoneMapping, phones: &[&str]) -> BTreeSet<&'static str> {
        phones.iter().filter_map(|phone| mapping.map(phone).written()).collect()
    }

    #[test]
    fn timit_and_the_dictionary_share_37_phones() {
        let timit = image(PhoneMapping::Shared37, &PHONES_61);
        assert_eq!(timit.len(), 37);
        assert_eq!(image(PhoneMapping::Shared37, &CMU_PHONES), timit);
    }

    #[test]
    fn the_dictionary_lacks_only_silence_and_the_flap_of_the_39() {
        let timit = image(PhoneMapping::Timit39, &PHONES_61);
        let cmu = image(PhoneMapping::Timit39, &CMU_PHONES);
        assert!(cmu.is_subset(&timit));
        assert_eq!(timit.difference(&cmu).collect::<Vec<_>>(), [&"dx", &"sil"]);
    }

    #[test]
    fn labels_are_what_the_mapping_gives() {
        let labels = PhoneMapping::Shared37.labels();
        assert_eq!(labels.n_classes(), 37 + 2);
        assert_eq!(PhoneMapping::Timit39.labels(), PhoneSet::Score39.labels());
    }

    #[test]
    fn every_phone_of_both_sets_has_a_place() {
        for phone in CMU_PHONES.iter().chain(&PHONES_61) {
            for (name, mapping) in NAMES {
                assert_ne!(mapping.map(phone), Folded::Unknown, "{phone} {name}");
            }
        }
    }

    #[test]
    fn stress_does_not_matter_and_sounds_that_timit_merges_are_merged() {
        let map = |phone| PhoneMapping::Timit39.map(phone);
        assert_eq!([map("AH0"), map("AH1"), map("AH2"), map("AH")], [Folded::To("ah"); 4]);
        assert_eq!([map("AO1"), map("ZH"), map("ER0")], [Folded::To("aa"), Folded::To("sh"), Folded::To("er")]);
        assert_eq!(map("SIL"), Folded::To("sil"));
        assert_eq!([map("AH3"), map("Q"), map("<unk>"), map("")], [Folded::Unknown; 4]);
    }

    #[test]
    fn mapping_twice_is_mapping_once() {
        for (_, mapping) in NAMES {
            for phone in CMU_PHONES.iter().chain(&PHONES_61).filter_map(|phone| mapping.map(phone).written()) {
                assert_eq!(mapping.map(phone), Folded::To(phone));
            }
        }
    }

    #[test]
    fn the_39_are_those_of_the_phone_set() {
        for phone in PHONES_61 {
            assert_eq!(PhoneMapping::Timit39.map(phone), PhoneSet::Score39.fold(phone));
            assert_eq!(PhoneMapping::Timit48.map(phone), PhoneSet::Train48.fold(phone));
        }
    }

    #[test]
    fn names_are_read_back() {
        for (name, mapping) in NAMES {
            assert_eq!(mapping.to_string(), name);
            assert_eq!(name.parse(), Ok(mapping));
        }
        let error = "39".parse::<PhoneMapping>().unwrap_err().to_string();
        assert_eq!(error, "unknown mapping `39`, expected `timit48`, `timit39` or `shared37`");
    }
}
