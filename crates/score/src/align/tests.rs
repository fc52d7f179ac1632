//! The alignment against a recursion, against plain edit distances, and its laws.

use proptest::prelude::*;

use super::*;
use crate::network::Reading;
use crate::system::Counts;

fn words(text: &str) -> Network {
    Network::parse(text.as_bytes(), Reading::default()).unwrap()
}

fn counts(reference: &str, hypothesis: &str) -> Counts {
    Counts::from(&align(&words(reference), &words(hypothesis), Cost::Spelling).unwrap())
}

/// The cost of an alignment, by its counts.
fn cost(counts: &Counts) -> usize {
    4 * counts.substitutions + 3 * (counts.deletions + counts.insertions)
}

/// The least cost by definition: try everything.
fn recursion(reference: &[&str], hypothesis: &[&str]) -> usize {
    match (reference, hypothesis) {
        ([], rest) | (rest, []) => 3 * rest.len(),
        ([a, reference @ ..], [b, hypothesis @ ..]) => {
            let pair = recursion(reference, hypothesis) + if a == b { 0 } else { 4 };
            let skip = recursion(reference, [&[*b], hypothesis].concat().as_slice()) + 3;
            let insert = recursion([&[*a], reference].concat().as_slice(), hypothesis) + 3;
            pair.min(skip).min(insert)
        }
    }
}

/// The usual table, costs only.
fn edit_distance(reference: &[&str], hypothesis: &[&str]) -> usize {
    let mut row: Vec<usize> = (0..=hypothesis.len()).map(|n| 3 * n).collect();
    for (i, a) in reference.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], 3 * (i + 1));
        for (j, b) in hypothesis.iter().enumerate() {
            let pair = diagonal + if a == b { 0 } else { 4 };
            diagonal = row[j + 1];
            row[j + 1] = pair.min(row[j] + 3).min(diagonal + 3);
        }
    }
    row[hypothesis.len()]
}

fn sentence(max_words: usize) -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 0..=max_words)
}

#[test]
fn a_missing_beside_an_extra_word_is_cheaper_than_two_wrong_ones() {
    assert_eq!(counts("a b", "b c"), Counts { correct: 1, deletions: 1, insertions: 1, ..Counts::default() });
    assert_eq!(counts("a b", "c d"), Counts { substitutions: 2, ..Counts::default() });
}

#[test]
fn alternatives_take_the_nearest_reading() {
    assert_eq!(counts("so { um / uh / @ } what", "so uh what").correct, 3);
    assert_eq!(counts("so { um / uh / @ } what", "so what"), Counts { correct: 2, ..Counts::default() });
    assert_eq!(counts("{ i am / i'm } here", "i am here").correct, 3);
}

#[test]
fn an_optional_word_left_out_is_correct() {
    let reading = Reading { optional_words: true, ..Reading::default() };
    let network = |text: &str| Network::parse(text.as_bytes(), reading).unwrap();
    let alignment = align(&network("a (uh) b"), &network("a b"), Cost::Spelling).unwrap();
    assert_eq!(Counts::from(&alignment), Counts { correct: 3, ..Counts::default() });
    assert!(alignment.pairs[1].hypothesis.as_ref().unwrap().text.is_empty());
}

#[test]
fn times_decide_when_asked_to() {
    let at = |text: &str, start_s| Word::new(text.as_bytes()).at(start_s, 1.0);
    let reference = Network::linear(vec![at("a", 0.0), at("b", 10.0)]);
    let hypothesis = Network::linear(vec![at("a", 10.0)]);
    let verdicts = |cost| -> Vec<Verdict> {
        align(&reference, &hypothesis, cost).unwrap().pairs.iter().map(|pair| pair.verdict).collect()
    };
    assert_eq!(verdicts(Cost::Spelling), [Verdict::Correct, Verdict::Deletion]);
    assert_eq!(verdicts(Cost::Times), [Verdict::Deletion, Verdict::Substitution]);
}

#[test]
fn what_does_not_fit_in_memory_is_refused() {
    let long = || Network::linear(vec![Word::new(*b"a"); 40_000]);
    let error = align(&long(), &long(), Cost::Spelling).unwrap_err();
    assert_eq!(error.n_reference, 40_000);
}

proptest! {
    #[test]
    fn the_cost_is_that_of_the_recursion(a in sentence(5), b in sentence(5)) {
        prop_assert_eq!(cost(&counts(&a.join(" "), &b.join(" "))), recursion(&a, &b));
    }

    #[test]
    fn the_cost_is_that_of_a_plain_edit_distance(a in sentence(40), b in sentence(40)) {
        prop_assert_eq!(cost(&counts(&a.join(" "), &b.join(" "))), edit_distance(&a, &b));
    }

    #[test]
    fn a_text_has_no_errors_against_itself(a in sentence(40)) {
        let counts = counts(&a.join(" "), &a.join(" "));
        prop_assert_eq!(counts, Counts { correct: a.len(), ..Counts::default() });
    }

    #[test]
    fn missing_and_extra_words_change_places_with_the_sides(a in sentence(20), b in sentence(20)) {
        let (there, back) = (counts(&a.join(" "), &b.join(" ")), counts(&b.join(" "), &a.join(" ")));
        prop_assert_eq!(cost(&there), cost(&back));
        prop_assert_eq!(there.n_reference(), back.n_hypothesis());
        prop_assert_eq!(there.deletions + b.len(), there.insertions + a.len());
    }

    #[test]
    fn all_words_come_back_in_their_order(a in sentence(20), b in sentence(20)) {
        let alignment = align(&words(&a.join(" ")), &words(&b.join(" ")), Cost::Spelling).unwrap();
        let said: Vec<_> = alignment.pairs.iter().filter_map(|p| p.reference.as_ref()).map(|w| w.text.to_vec()).collect();
        let heard: Vec<_> = alignment.pairs.iter().filter_map(|p| p.hypothesis.as_ref()).map(|w| w.text.to_vec()).collect();
        prop_assert_eq!(said, a.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>());
        prop_assert_eq!(heard, b.iter().map(|w| w.as_bytes().to_vec()).collect::<Vec<_>>());
    }

    #[test]
    fn a_choice_costs_as_much_as_its_best_reading(
        before in sentence(4), first in sentence(3), second in sentence(3), after in sentence(4), b in sentence(10),
    ) {
        let or_nothing = |words: &[&str]| if words.is_empty() { "@".to_owned() } else { words.join(" ") };
        let text = format!(
            "{} {{ {} / {} }} {}",
            before.join(" "), or_nothing(&first), or_nothing(&second), after.join(" ")
        );
        let best = [first, second].iter().map(|middle| {
            edit_distance(&[&before[..], middle, &after].concat(), &b)
        }).min();
        prop_assert_eq!(Some(cost(&counts(&text, &b.join(" ")))), best);
    }
}
