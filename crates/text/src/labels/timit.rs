//! TIMIT's phones: the 61 of the transcripts, folded to 48 for training and 39 for scoring; the glottal stop is dropped.
//!
//! ```
//! use srf_text::labels::timit::{Folded, PHONES_61, PhoneSet, UnknownPhoneSet};
//!
//! let set: PhoneSet = "39".parse()?;
//! assert_eq!(set.fold("ux"), Folded::To("uw"));
//! assert_eq!((set.fold("ux").written(), set.fold("q").written()), (Some("uw"), None));
//! assert_eq!(PhoneSet::All61.labels().symbols().len(), PHONES_61.len());
//! assert!("40".parse::<PhoneSet>().is_err_and(|UnknownPhoneSet { found }| found == "40"));
//! # Ok::<(), UnknownPhoneSet>(())
//! ```

use std::fmt;
use std::str::FromStr;

use super::{LabelSet, Units};

/// The phones of the transcripts, in alphabetical order: classes 1 to 61.
pub const PHONES_61: [&str; 61] = [
    "aa", "ae", "ah", "ao", "aw", "ax", "ax-h", "axr", "ay", "b", "bcl", "ch", "d", "dcl", "dh", "dx", "eh", "el",
    "em", "en", "eng", "epi", "er", "ey", "f", "g", "gcl", "h#", "hh", "hv", "ih", "ix", "iy", "jh", "k", "kcl", "l",
    "m", "n", "ng", "nx", "ow", "oy", "p", "pau", "pcl", "q", "r", "s", "sh", "t", "tcl", "th", "uh", "uw", "ux", "v",
    "w", "y", "z", "zh",
];

/// How many phones are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PhoneSet {
    /// As transcribed.
    All61,
    /// For training: closures, silences and allophones merged.
    Train48,
    /// For scoring.
    Score39,
}

impl fmt::Display for PhoneSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PhoneSet::All61 => "61",
            PhoneSet::Train48 => "48",
            PhoneSet::Score39 => "39",
        })
    }
}

/// A size that no phone set of TIMIT has.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("TIMIT has no set of `{found}` phones, expected 61, 48 or 39")]
pub struct UnknownPhoneSet {
    /// What was written.
    pub found: String,
}

impl FromStr for PhoneSet {
    type Err = UnknownPhoneSet;

    fn from_str(size: &str) -> Result<Self, UnknownPhoneSet> {
        match size {
            "61" => Ok(PhoneSet::All61),
            "48" => Ok(PhoneSet::Train48),
            "39" => Ok(PhoneSet::Score39),
            _ => Err(UnknownPhoneSet { found: size.to_owned() }),
        }
    }
}

/// What becomes of a phone in a smaller set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    /// It is written so.
    To(&'static str),
    /// It is not written: the glottal stop outside the 61.
    Dropped,
    /// It is none of the 61 (nor of the 48 or 39).
    Unknown,
}

impl PhoneSet {
    /// What `phone`, of any of the three sets, is called in this one.
    pub fn fold(self, phone: &str) -> Folded {
        match self {
            PhoneSet::All61 => known(&PHONES_61, phone),
            PhoneSet::Train48 => fold_to_48(phone),
            PhoneSet::Score39 => match fold_to_48(phone) {
                Folded::To(phone) => Folded::To(fold_48_to_39(phone)),
                other => other,
            },
        }
    }

    /// The labels of this set, in alphabetical order.
    pub fn labels(self) -> LabelSet {
        let mut phones: Vec<&str> = PHONES_61.iter().filter_map(|phone| self.fold(phone).written()).collect();
        phones.sort_unstable();
        phones.dedup();
        LabelSet::new(Units::Phones, phones).expect("the phones are distinct words")
    }
}

impl Folded {
    /// The phone, where one is written.
    pub fn written(self) -> Option<&'static str> {
        match self {
            Folded::To(phone) => Some(phone),
            Folded::Dropped | Folded::Unknown => None,
        }
    }
}

fn known(phones: &'static [&'static str], phone: &str) -> Folded {
    phones.iter().find(|known| **known == phone).map_or(Folded::Unknown, |known| Folded::To(known))
}

fn fold_to_48(phone: &str) -> Folded {
    Folded::To(match phone {
        "q" => return Folded::Dropped,
        "ax-h" => "ax",
        "axr" => "er",
        "bcl" | "dcl" | "gcl" | "vcl" => "vcl",
        "pcl" | "tcl" | "kcl" | "cl" => "cl",
        "em" => "m",
        "eng" => "ng",
        "h#" | "pau" | "sil" => "sil",
        "hv" => "hh",
        "nx" => "n",
        "ux" => "uw",
        _ => return known(&PHONES_61, phone),
    })
}

fn fold_48_to_39(phone: &'static str) -> &'static str {
    match phone {
        "ao" => "aa",
        "ax" => "ah",
        "vcl" | "cl" | "epi" => "sil",
        "el" => "l",
        "en" => "n",
        "ix" => "ih",
        "zh" => "sh",
        _ => phone,
    }
}
