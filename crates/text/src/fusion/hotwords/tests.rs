//! What a prefix earns against counting phrases in it, the cost of ten thousand phrases, and lists of them.

use proptest::prelude::*;

use super::super::ReadListError;
use super::{Automaton, Hotword};
use crate::labels::{LabelSet, Units};

fn phones() -> LabelSet {
    LabelSet::new(Units::Phones, ["a", "b", "c"]).unwrap()
}

fn chars() -> LabelSet {
    LabelSet::new(Units::Chars, [" ", "A", "B"]).unwrap()
}

fn automaton(set: &LabelSet, phrases: &[(Vec<usize>, f32)]) -> Automaton {
    let weighted = |(classes, score): &(Vec<usize>, f32)| {
        classes.iter().map(|class| (*class as u32, f64::from(*score))).collect::<Vec<_>>()
    };
    let space = if set.units() == Units::Chars { set.class(" ").map(|class| class as u32) } else { None };
    Automaton::new(space, &phrases.iter().map(weighted).collect::<Vec<_>>())
}

fn total(automaton: &Automaton, classes: &[usize]) -> f64 {
    let mut state = automaton.start();
    let mut sum = 0.0;
    for class in classes {
        let step = automaton.step(state, *class as u32);
        assert!(step.gain <= automaton.max_gain() + 1e-9);
        (state, sum) = (step.state, sum + step.gain);
    }
    sum + automaton.end(state)
}

fn phrases() -> impl Strategy<Value = Vec<(Vec<usize>, f32)>> {
    proptest::collection::vec((proptest::collection::vec(1usize..=3, 1..5), -2.0f32..3.0), 0..8)
}

proptest! {
    #[test]
    fn every_phrase_earns_its_score_as_often_as_it_is_said(
        phrases in phrases(), said in proptest::collection::vec(1usize..=3, 0..20)
    ) {
        let automaton = automaton(&phones(), &phrases);
        let count = |phrase: &[usize]| said.windows(phrase.len()).filter(|part| *part == phrase).count();
        let earned = |(phrase, score): &(Vec<usize>, f32)| f64::from(*score) * (phrase.len() * count(phrase)) as f64;
        let expected: f64 = phrases.iter().map(earned).sum();
        prop_assert!((total(&automaton, &said) - expected).abs() < 1e-9);
    }
}

#[test]
fn phrases_of_characters_begin_and_end_with_words() {
    let set = chars();
    let encode = |text: &str| set.encode(text).unwrap();
    let automaton = automaton(&set, &[(encode("A B"), 2.0)]);
    for (said, expected) in
        [("A B", 6.0), ("B A B B", 6.0), ("BA B", 0.0), ("A BB", 0.0), ("A", 0.0), ("A B A B", 12.0)]
    {
        assert!((total(&automaton, &encode(said)) - expected).abs() < 1e-9, "{said}");
    }
}

#[test]
fn a_step_costs_no_more_with_ten_thousand_phrases() {
    let set = LabelSet::new(Units::Phones, (0..60).map(|phone| format!("p{phone}"))).unwrap();
    let mut random = 5u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let phrases: Vec<(Vec<usize>, f32)> =
        (0..10_000).map(|_| ((0..3 + next(6)).map(|_| 1 + next(60) as usize).collect(), 1.0)).collect();
    let said: Vec<u32> = (0..20_000).map(|_| 1 + next(60) as u32).collect();
    let cost = |phrases: &[(Vec<usize>, f32)]| {
        let automaton = automaton(&set, phrases);
        let mut state = automaton.start();
        let mut costs = Vec::new();
        for label in &said {
            let step = automaton.step(state, *label);
            state = step.state;
            costs.push(step.n_lookups);
        }
        (costs.iter().sum::<u32>(), costs.into_iter().max().unwrap())
    };
    // At most one edge is looked for at each label of the longest phrase, and on average two, however many phrases.
    let (sum, largest) = cost(&phrases);
    assert!(largest <= 9, "{largest}");
    assert!(sum as usize <= 2 * said.len(), "{sum}");
    let (sum_of_few, _) = cost(&phrases[..100]);
    assert!(sum_of_few as usize >= said.len());
}

#[test]
fn lists_have_scores_after_colons_or_tabs() {
    let list = "# names\nNEW YORK\nBOSTON :2.5\nO'HARE\t-3\n\n";
    let found = Hotword::parse_list(list, 1.5).unwrap();
    let pairs: Vec<(&str, f32)> = found.iter().map(|h| (h.phrase.as_str(), h.score)).collect();
    assert_eq!(pairs, [("NEW YORK", 1.5), ("BOSTON", 2.5), ("O'HARE", -3.0)]);
    let error = |list: &str| Hotword::parse_list(list, 1.5).unwrap_err().to_string();
    assert_eq!(error("A\nB :x"), "line 2: the score is `x`, expected a number from -100 to 100");
    assert_eq!(error("A :nan"), "line 1: the score is `nan`, expected a number from -100 to 100");
    assert_eq!(Hotword::parse_list(":3", 1.5), Err(ReadListError::NoPhrase { line: 1 }));
    assert_eq!(error(&"A".repeat(2000)), "line 1: a phrase of 2000 characters, at most 1000 are allowed");
}
