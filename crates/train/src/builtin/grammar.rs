//! The sentences of the built-in corpus: random numbers in, a sentence out.
//!
//! A rule has a name and ways to write it; `{name}` inside a way stands for another rule. The words are chosen so
//! that every phone of English occurs often, the rare ones (as in *measure*, *noise*, *cook*, *thick*) included.

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
    let ways = ways(rule);
    let mut rest = ways[rng.usize(..ways.len())];
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, after) = after.split_once('}').expect("rules close their braces: a test reads them all");
        expand(name, rng, out);
        rest = after;
    }
    out.push_str(rest);
}

fn ways(rule: &str) -> &'static [&'static str] {
    RULES.iter().find(|(name, _)| *name == rule).expect("rules name rules: a test reads them all").1
}

const RULES: &[(&str, &[&str])] = &[
    (
        "sentence",
        &[
            "{story}",
            "{story}",
            "{story}",
            "{story}, because {story}",
            "{story}, while {story}",
            "{question}",
            "{command}",
            "{clock}",
            "{calendar}",
            "{digits}",
            "{shop}",
        ],
    ),
    (
        "story",
        &[
            "the {adjective} {person} {past} {thing} {place}",
            "{name} {past} {thing}, and the {person} {went} {place}",
            "{thing} {was} {adjective} this {daypart}",
            "my {relative} never {past} {thing}",
            "they {past} {thing} {place}, but we {went} away",
            "we {went} {place} {manner}",
            "a {adjective} {animal} {went} {place}",
            "she thought that {thing} {was} {manner} {made}",
            "his {relative} should have {made} {thing}",
            "you could hear the {animal} {place}",
        ],
    ),
    (
        "question",
        &[
            "where did {name} put {thing}",
            "what {was} the {person} doing {place}",
            "who {past} {thing}",
            "when will your {relative} leave",
            "did the {person} enjoy {thing}",
            "can you {act} {thing}",
            "is {thing} {place}",
        ],
    ),
    (
        "command",
        &[
            "turn {onoff} the {device}",
            "turn {onoff} the {device} in the {room}",
            "set the {device} to {number}",
            "{act} {thing}",
            "please {act} {thing} {place}",
            "call my {relative} {manner}",
            "play some {adjective} music",
            "stop",
            "go back {number} pages",
        ],
    ),
    (
        "clock",
        &[
            "it is {hour} {minute}",
            "wake me at {hour} {minute} in the morning",
            "the {vehicle} leaves at {hour} o'clock",
            "it is {past_to} {hour}",
            "we {went} {place} at {hour} {minute}",
        ],
    ),
    (
        "calendar",
        &[
            "the meeting is on {weekday}, {month} the {ordinal}",
            "{name} was born on the {ordinal} of {month}",
            "remind me on {weekday} {daypart}",
            "{month} {ordinal} is a {weekday}",
        ],
    ),
    (
        "digits",
        &[
            "{digit}",
            "{digit} {digit} {digit}",
            "{digit} {digit} {digit} {digit}",
            "{digit} {digit} {digit} {digit} {digit}",
            "my number is {digit} {digit} {digit}, {digit} {digit} {digit} {digit}",
            "dial {digit} {digit} {digit} {digit} {digit} {digit}",
        ],
    ),
    (
        "shop",
        &[
            "that costs {number} dollars",
            "{number} plus {number} is {number}",
            "i would like {number} {goods}, please",
            "she paid {number} dollars for the {goods}",
            "he sold {number} {goods} {place}",
        ],
    ),
    (
        "adjective",
        &[
            "young", "old", "small", "large", "yellow", "cheap", "quiet", "loud", "foolish", "thick", "thin", "royal",
            "gentle", "unusual", "strange", "cool", "warm", "heavy", "clever", "noisy", "wooden", "shy", "huge",
            "fresh", "smooth", "broad", "curious", "happy", "awful", "dirty", "rough", "blue",
        ],
    ),
    (
        "person",
        &[
            "teacher", "boy", "girl", "doctor", "farmer", "judge", "cook", "singer", "lawyer", "child", "nurse",
            "captain", "sailor", "thief", "neighbor", "woman", "author", "king",
        ],
    ),
    (
        "name",
        &["george", "alice", "joyce", "ruth", "victor", "charlie", "hugh", "megan", "zoe", "howard", "yvonne", "keith"],
    ),
    ("relative", &["mother", "father", "brother", "sister", "uncle", "cousin", "nephew", "daughter"]),
    ("animal", &["dog", "fox", "horse", "bird", "mouse", "sheep", "goose", "tiger", "fish", "puppy"]),
    (
        "thing",
        &[
            "the {adjective} {object}",
            "a {adjective} {object}",
            "the {object}",
            "the {object}",
            "both of the {goods}",
            "her {object}",
            "the {person}'s {object}",
            "our {object}",
        ],
    ),
    (
        "object",
        &[
            "key",
            "door",
            "book",
            "picture",
            "treasure",
            "television",
            "garage",
            "machine",
            "bicycle",
            "letter",
            "watch",
            "coin",
            "voice",
            "table",
            "garden",
            "chair",
            "boat",
            "jar",
            "cloth",
            "song",
            "beige jacket",
            "measure",
            "toy",
            "house",
            "mirror",
            "leather shoe",
            "bottle",
            "finger",
            "engine",
            "yacht",
            "vision",
            "wheel",
            "poem",
            "puddle",
            "bush",
            "hook",
        ],
    ),
    (
        "goods",
        &[
            "apples",
            "oranges",
            "sandwiches",
            "eggs",
            "cookies",
            "flowers",
            "books",
            "shirts",
            "bags",
            "toys",
            "matches",
            "pieces of cheese",
            "potatoes",
            "badges",
            "roses",
        ],
    ),
    (
        "past",
        &[
            "found",
            "took",
            "bought",
            "sold",
            "opened",
            "wanted",
            "enjoyed",
            "pushed",
            "pulled",
            "painted",
            "measured",
            "watched",
            "finished",
            "chose",
            "threw",
            "caught",
            "heard",
            "noticed",
            "destroyed",
            "loved",
            "used",
            "shook",
        ],
    ),
    ("made", &["made", "seen", "taken", "broken", "fixed", "forgotten", "judged", "chosen", "saved"]),
    (
        "act",
        &[
            "find", "open", "close", "bring", "show", "choose", "watch", "clean", "move", "hide", "push", "save",
            "bathe",
        ],
    ),
    ("went", &["went", "walked", "ran", "looked", "stood", "jumped", "rushed", "drove", "swam", "moved"]),
    ("was", &["was", "is", "would be", "had been"]),
    (
        "place",
        &[
            "behind the {object}",
            "in the {room}",
            "near the {place_name}",
            "under the {object}",
            "across the {place_name}",
            "through the {place_name}",
            "around the {place_name}",
            "beyond the {adjective} {place_name}",
            "at the {place_name}",
        ],
    ),
    ("room", &["kitchen", "bedroom", "bathroom", "hall", "office", "garage", "living room", "attic"]),
    (
        "place_name",
        &[
            "bridge",
            "river",
            "church",
            "village",
            "station",
            "school",
            "harbor",
            "beach",
            "forest",
            "city",
            "mountain",
            "north road",
            "castle",
        ],
    ),
    ("device", &["light", "radio", "heater", "television", "fan", "oven", "volume", "alarm"]),
    ("onoff", &["on", "off", "up", "down"]),
    ("vehicle", &["train", "bus", "ship", "plane", "ferry"]),
    (
        "manner",
        &[
            "quickly",
            "very slowly",
            "with pleasure",
            "without a noise",
            "as usual",
            "once again",
            "together",
            "far too soon",
        ],
    ),
    ("daypart", &["morning", "afternoon", "evening", "night"]),
    ("hour", &["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]),
    ("minute", &["fifteen", "thirty", "forty five", "twenty", "oh five", "ten", "fifty"]),
    ("past_to", &["quarter past", "half past", "ten to", "twenty past", "five to", "quarter to"]),
    ("weekday", &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]),
    (
        "month",
        &[
            "january",
            "february",
            "march",
            "april",
            "may",
            "june",
            "july",
            "august",
            "september",
            "october",
            "november",
            "december",
        ],
    ),
    (
        "ordinal",
        &[
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "twentieth",
            "twenty first",
            "thirtieth",
            "thirty first",
        ],
    ),
    ("digit", &["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]),
    (
        "number",
        &[
            "{digit}",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "sixteen",
            "eighteen",
            "{tens}",
            "{tens} {digit}",
            "one hundred",
            "{digit} hundred and {tens}",
        ],
    ),
    ("tens", &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_rule_names_rules_and_is_used() {
        let mut used = HashSet::from(["sentence"]);
        for (_, ways) in RULES {
            for way in *ways {
                assert_eq!(way.matches('{').count(), way.matches('}').count(), "{way}");
                for part in way.split('{').skip(1) {
                    let name = part.split_once('}').unwrap().0;
                    assert!(RULES.iter().any(|(rule, _)| *rule == name), "{name}");
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
