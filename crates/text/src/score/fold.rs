//! TIMIT phones in fewer classes: the 61 of the corpus in, the 48 of training or the 39 of scoring out.

/// How many classes are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhoneSet {
    /// The classes models are trained on.
    Training48,
    /// The classes results are reported on.
    Scoring39,
}

/// What is done to the phones of both sides before they are compared.
#[derive(Clone, Copy, Debug)]
pub struct Folding {
    /// The classes.
    pub set: PhoneSet,
    /// Whether silences side by side become one; most results are reported without this.
    pub merges_silences: bool,
}

const SILENCE: &str = "sil";

/// The class of one of the 61 phones among the 48; none for the glottal stop, which is dropped.
fn fold_to_48(phone: &str) -> Option<&str> {
    Some(match phone {
        "q" => return None,
        "ax-h" => "ax",
        "axr" => "er",
        "bcl" | "dcl" | "gcl" => "vcl",
        "pcl" | "tcl" | "kcl" => "cl",
        "em" => "m",
        "eng" => "ng",
        "h#" | "pau" => SILENCE,
        "hv" => "hh",
        "nx" => "n",
        "ux" => "uw",
        other => other,
    })
}

/// The class of one of the 48 phones among the 39.
fn fold_to_39(phone: &str) -> &str {
    match phone {
        "ao" => "aa",
        "ax" => "ah",
        "vcl" | "cl" | "epi" => SILENCE,
        "el" => "l",
        "en" => "n",
        "ix" => "ih",
        "zh" => "sh",
        other => other,
    }
}

/// The class of a phone; phones that are already folded stay as they are.
pub fn fold(phone: &str, set: PhoneSet) -> Option<&str> {
    let phone = fold_to_48(phone)?;
    Some(if set == PhoneSet::Scoring39 { fold_to_39(phone) } else { phone })
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

    const PHONES_61: &str = "aa ae ah ao aw ax ax-h axr ay b bcl ch d dcl dh dx eh el em en eng epi er ey f g gcl h# \
        hh hv ih ix iy jh k kcl l m n ng nx ow oy p pau pcl q r s sh t tcl th uh uw ux v w y z zh";

    #[test]
    fn the_sets_have_the_sizes_of_their_names() {
        let n_classes = |set| {
            let classes: std::collections::BTreeSet<_> =
                PHONES_61.split_whitespace().filter_map(|phone| fold(phone, set)).collect();
            classes.len()
        };
        assert_eq!(PHONES_61.split_whitespace().count(), 61);
        assert_eq!(n_classes(PhoneSet::Training48), 48);
        assert_eq!(n_classes(PhoneSet::Scoring39), 39);
    }

    #[test]
    fn folding_twice_changes_nothing() {
        for set in [PhoneSet::Training48, PhoneSet::Scoring39] {
            let folding = Folding { set, merges_silences: false };
            let once = folding.apply(PHONES_61);
            assert_eq!(folding.apply(&once), once);
        }
    }

    #[test]
    fn silences_are_merged_only_where_asked() {
        let folding = |merges_silences| Folding { set: PhoneSet::Scoring39, merges_silences };
        assert_eq!(folding(false).apply("h# pau q bcl b ao"), "sil sil sil b aa");
        assert_eq!(folding(true).apply("h# pau q bcl b ao"), "sil b aa");
    }
}
