//! Random sentences for the built-in corpus, from the rules in `grammar.txt`.
//!
//! The words are chosen so that every phone of English occurs often, also the rare ones (*measure*, *noise*, *cook*,
//! *thick*).

use std::collections::HashMap;
use std::sync::LazyLock;

use fastrand::Rng;

/// A few words to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// With the punctuation that guides the voice.
    pub spoken: String,
}

impl Sentence {
    /// Any sentence of the grammar.
    pub fn random(rng: &mut Rng) -> Self {
        Self::of_rule("sentence", rng)
    }

    /// A sentence that everyone says: the two that TIMIT calls `SA1` and `SA2` have their counterparts here.
    pub fn shared(index: usize) -> Self {
        const SHARED: [&str; 2] = [
            "the busy cook would measure the thick soup, before the boys enjoyed it.",
            "please catch the yellow ball behind the old garage.",
        ];
        Self { spoken: SHARED[index % SHARED.len()].to_owned() }
    }

    /// The words alone.
    pub fn text(&self) -> String {
        self.spoken.replace([',', '.', '?'], "")
    }

    fn of_rule(rule: &str, rng: &mut Rng) -> Self {
        let mut spoken = String::new();
        expand(rule, rng, &mut spoken);
        let is_question =
            ["what ", "where ", "when ", "who ", "did ", "can ", "is "].iter().any(|w| spoken.starts_with(w));
        spoken.push(if is_question { '?' } else { '.' });
        Self { spoken }
    }
}

fn expand(rule: &str, rng: &mut Rng, out: &mut String) {
    let ways = RULES.get(rule).expect("rules name rules: a test reads them all");
    let mut rest = ways[rng.usize(..ways.len())];
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, after) = after.split_once('}').expect("rules close their braces: a test reads them all");
        expand(name, rng, out);
        rest = after;
    }
    out.push_str(rest);
}

/// Every rule of `grammar.txt`: its name and the ways to write it.
static RULES: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let rules = include_str!("grammar.txt").lines().filter(|line| !line.starts_with('#'));
    let rules = rules.filter_map(|line| line.split_once(" = "));
    rules.map(|(name, ways)| (name, ways.split(" | ").collect())).collect()
});

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_names_rules_and_is_used() {
        let mut used = HashSet::from(["sentence"]);
        for ways in RULES.values() {
            for way in ways {
                assert_eq!(way.matches('{').count(), way.matches('}').count(), "{way}");
                for part in way.split('{').skip(1) {
                    let name = part.split_once('}').unwrap().0;
                    assert!(RULES.contains_key(name), "{name}");
                    used.insert(name);
                }
            }
        }
        assert_eq!(used.len(), RULES.len());
    }

    #[test]
    fn sentences_are_lower_case_words_of_varied_length() {
        let mut rng = Rng::with_seed(1);
        let texts: Vec<String> = (0..2000).map(|_| Sentence::random(&mut rng).text()).collect();
        for text in &texts {
            assert!(text.chars().all(|c| c.is_ascii_lowercase() || c == ' ' || c == '\''), "{text}");
        }
        let n_words: HashSet<usize> = texts.iter().map(|text| text.split(' ').count()).collect();
        assert!(n_words.contains(&1) && n_words.iter().any(|n| 12 <= *n), "{n_words:?}");
        let words: HashSet<&str> = texts.iter().flat_map(|text| text.split(' ')).collect();
        assert!(350 < words.len() && words.len() < 600, "{}", words.len());
    }
}
