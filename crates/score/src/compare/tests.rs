//! The tests of significance on systems small enough to check by hand.

use super::*;
use crate::formats::Source;
use crate::pairing::{PairOptions, SpeakerId, score_by_id};
use crate::system::Heading;

fn source(lines: &[String]) -> Source {
    Source { path: "test.trn".into(), bytes: (lines.join("\n") + "\n").into_bytes() }
}

/// A system over utterances `(speaker, reference, hypothesis)`.
fn system(utterances: &[(&str, &str, &str)]) -> System {
    let line = |at: usize, speaker: &str, text: &str| format!("{text} ({speaker}-{at:03})");
    let side = |pick: fn(&(&str, &str, &str)) -> String| -> Vec<String> {
        utterances.iter().enumerate().map(|(at, u)| line(at, u.0, &pick(u))).collect()
    };
    let options = PairOptions { speaker_id: SpeakerId::BeforeSeparator, ..PairOptions::default() };
    let (r, h) = (source(&side(|u| u.1.to_owned())), source(&side(|u| u.2.to_owned())));
    score_by_id(&r, &h, Heading::default(), &options, &mut 0).unwrap()
}

#[test]
fn equal_systems_are_level_in_every_test() {
    let system = system(&[("a", "x y z", "x y"), ("b", "x y z", "x y z")]);
    let paired = Paired::new(&system, &system);
    for outcome in [mapsswe(&paired), mcnemar(&paired), sign(&paired), wilcoxon(&paired)] {
        assert_eq!(outcome.winner(), None);
    }
    assert_eq!(mcnemar(&paired).p, 1.0);
    assert_eq!(bootstrap(&paired, 100, 1).probability_of_improvement, 0.0);
}

#[test]
fn two_right_words_end_a_segment() {
    let first = system(&[("a", "p q r s t u v", "x q r s t y v")]);
    let second = system(&[("a", "p q r s t u v", "p q r s t u v")]);
    let outcome = mapsswe(&Paired::new(&first, &second));
    assert_eq!((outcome.n_compared, outcome.better), (2, Some(Side::Second)));
    let near = system(&[("a", "p q r", "x q y")]);
    let right = system(&[("a", "p q r", "p q r")]);
    assert_eq!(mapsswe(&Paired::new(&near, &right)).n_compared, 1);
}

#[test]
fn words_only_the_second_added_at_the_end_are_a_segment() {
    let first = system(&[("a", "p q r", "p q r")]);
    let second = system(&[("a", "p q r", "p q r s")]);
    let outcome = mapsswe(&Paired::new(&first, &second));
    assert_eq!((outcome.n_compared, outcome.better), (1, Some(Side::First)));
}

#[test]
fn mcnemar_is_the_binomial_test_of_utterances_only_one_got_right() {
    let reference: Vec<(&str, &str, &str)> = vec![("a", "x", "x"); 6];
    let mut worse = reference.clone();
    for utterance in &mut worse {
        utterance.2 = "y";
    }
    let outcome = mcnemar(&Paired::new(&system(&reference), &system(&worse)));
    assert_eq!(outcome.better, Some(Side::First));
    assert!((outcome.p - 2.0 / 64.0).abs() < 1e-12, "two sides of six equal throws, found {}", outcome.p);
}

#[test]
fn the_binomial_sums_to_one() {
    for n in [1, 7, 20, 21, 500] {
        assert!((at_most(n, n) - 1.0).abs() < 1e-9);
    }
    assert!((at_most(1, 3) - 0.5).abs() < 1e-12);
}

#[test]
fn the_normal_distribution_is_read_off_in_steps_of_a_hundredth() {
    assert!((normal_below(1.96) - 0.975_002_1).abs() < 1e-7);
    assert_eq!(normal_below(1.969), normal_below(1.96));
    assert_eq!(normal_below(9.0), normal_below(5.14));
    assert_eq!(two_tailed(0.0), 1.0);
}

#[test]
fn wilcoxon_ranks_differences_between_speakers() {
    let rows = |wrong: usize| -> Vec<(&'static str, &'static str, &'static str)> {
        ["a", "b", "c", "d", "e", "f", "g", "h"]
            .iter()
            .enumerate()
            .map(|(at, s)| (*s, "p q r s t u v w x y", ["p q r s t u v w x y", "p q r"][usize::from(at < wrong)]))
            .collect()
    };
    let outcome = wilcoxon(&Paired::new(&system(&rows(8)), &system(&rows(0))));
    assert_eq!((outcome.n_compared, outcome.better), (8, Some(Side::Second)));
    // W = 0, E = 18, variance 51: z = -2.52.
    assert!((outcome.z.unwrap() + 18.0 / 51_f64.sqrt()).abs() < 1e-12);
    let outcome = sign(&Paired::new(&system(&rows(8)), &system(&rows(0))));
    assert!((outcome.p - 2.0 / 256.0).abs() < 1e-12, "two sides of eight equal throws, found {}", outcome.p);
}

#[test]
fn the_bootstrap_depends_on_its_seed_only() {
    let first = system(&[("a", "x y z", "x y"), ("a", "x y", "x y"), ("b", "x y z", "z"), ("b", "x", "x")]);
    let second = system(&[("a", "x y z", "x y z"), ("a", "x y", "y"), ("b", "x y z", "x z"), ("b", "x", "x")]);
    let paired = Paired::new(&first, &second);
    let with_threads = |n| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
        pool.install(|| bootstrap(&paired, 1000, 7))
    };
    assert_eq!(with_threads(1), with_threads(2));
    assert_ne!(with_threads(1), bootstrap(&paired, 1000, 8));
    let Bootstrap { difference, .. } = with_threads(1);
    assert!(difference.low <= difference.measured && difference.measured <= difference.high);
}

/// Half of 400 single words are wrong, so a draw has a deviation of 0.5 / 20 and 95 % lie within 1.96 of them.
#[test]
fn the_bootstrap_spreads_as_independent_draws_do() {
    let rows: Vec<(&str, &str, &str)> = (0..400).map(|n| ("a", "x", if n % 2 == 0 { "x" } else { "y" })).collect();
    let system = system(&rows);
    for seed in 0..5 {
        let Interval { measured, low, high } = bootstrap(&Paired::new(&system, &system), 2000, seed).first;
        assert_eq!(measured, 0.5);
        // Ends are multiples of 1 / 400; of 2000 draws the end is known to about a tenth of a deviation.
        assert!((low - 0.451).abs() < 0.0075 && (high - 0.549).abs() < 0.0075, "seed {seed}: {low} to {high}");
    }
}

#[test]
fn utterances_of_one_system_only_are_named() {
    let first = system(&[("a", "x", "x"), ("a", "y", "y")]);
    let second = system(&[("a", "x", "x")]);
    assert_eq!(Paired::new(&first, &second).unmatched, ["a-001"]);
}
