//! Folds lines of TIMIT phones into fewer classes before they are compared.
//!
//! ```
//! use srf_text::labels::fold::Folding;
//! use srf_text::labels::timit::PhoneSet;
//!
//! let folding = Folding { set: PhoneSet::Score39, merges_silences: true };
//! assert_eq!(folding.apply("h# ix ux pcl p h#"), "sil ih uw sil p sil");
//! ```

use super::timit::{Folded, PhoneSet};

/// What is done to the phones of both sides before they are compared.
#[derive(Clone, Copy, Debug)]
pub struct Folding {
    /// The classes.
    pub set: PhoneSet,
    /// Whether silences side by side become one; most results are reported without this.
    pub merges_silences: bool,
}

const SILENCE: &str = "sil";

/// The class of a phone; what is none of TIMIT's phones stays as it is.
fn fold(phone: &str, set: PhoneSet) -> Option<&str> {
    match set.fold(phone) {
        Folded::To(class) => Some(class),
        Folded::Dropped => None,
        Folded::Unknown => Some(phone),
    }
}

impl Folding {
    /// Folds every phone of a line.
    pub fn apply(&self, line: &str) -> String {
        let mut folded: Vec<&str> = line.split_whitespace().filter_map(|phone| fold(phone, self.set)).collect();
        if self.merges_silences {
            folded.dedup_by(|a, b| *a == SILENCE && a == b);
        }
        folded.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::timit::PHONES_61;

    #[test]
    fn folding_twice_changes_nothing() {
        for set in [PhoneSet::Train48, PhoneSet::Score39] {
            let folding = Folding { set, merges_silences: false };
            let once = folding.apply(&PHONES_61.join(" "));
            assert_eq!(folding.apply(&once), once);
        }
    }

    #[test]
    fn silences_are_merged_only_where_asked() {
        let folding = |merges_silences| Folding { set: PhoneSet::Score39, merges_silences };
        assert_eq!(folding(false).apply("h# pau q bcl b ao"), "sil sil sil b aa");
        assert_eq!(folding(true).apply("h# pau q bcl b ao"), "sil b aa");
    }
}
