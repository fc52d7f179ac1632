//! Verdicts on made-up results, written as runs leave them.

use std::fmt::Write as _;
use std::fs;

use srf_score::compare::Side;

use super::*;
use crate::corpus::TEST;
use crate::evaluate::summary::{self, RateSummary, Summary};
use crate::reproduce::paper::Table;
use crate::reproduce::results::{Decoding, Over, Paths, UtteranceDistance, UtteranceTime, write_json};

const N_UTTERANCES: usize = 200;

/// Results that were never measured.
struct Bench {
    _dir: tempfile::TempDir,
    paths: Paths,
    table: &'static Table,
    n_seeds: u64,
}

impl Bench {
    fn new(table: &str, n_seeds: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { out: dir.path().to_owned() };
        Self { _dir: dir, paths, table: Table::find(table).unwrap(), n_seeds }
    }

    fn results(&self) -> Results<'_> {
        Results { paths: &self.paths, table: self.table, n_seeds: self.n_seeds }
    }

    /// An evaluation in which the utterances for which `is_wrong` have one error in ten words, and the same ones lack
    /// their end.
    fn put(&self, name: &str, seed: u64, is_wrong: impl Fn(usize) -> bool) {
        let dir = self.paths.evaluation(self.table.row(name).unwrap(), seed, TEST);
        fs::create_dir_all(&dir).unwrap();
        let [mut reference, mut hypothesis, mut lines] = [(); 3].map(|()| String::new());
        for n in 0..N_UTTERANCES {
            let reference_text = "a b c d e f g h i h#";
            let result = if is_wrong(n) { "a b c d x f g h i" } else { reference_text };
            let _ = writeln!(reference, "a b c d e f g h i j (u{n})");
            let _ = writeln!(hypothesis, "a b c d {} f g h i j (u{n})", if is_wrong(n) { "x" } else { "e" });
            let line = serde_json::json!({ "id": format!("u{n}"), "text": reference_text, "pred_text": result });
            let _ = writeln!(lines, "{line}");
        }
        fs::write(dir.join("ref.trn"), reference).unwrap();
        fs::write(dir.join("hyp.trn"), hypothesis).unwrap();
        fs::write(dir.join("hyp.jsonl"), lines).unwrap();
        let rate = (0..N_UTTERANCES).filter(|n| is_wrong(*n)).count() as f64 / (10 * N_UTTERANCES) as f64;
        let rate = RateSummary { rate: Some(rate), low: rate / 2.0, high: rate * 2.0, ..RateSummary::default() };
        write_json(&dir.join(summary::FILE_NAME), &Summary { rates: vec![rate], ..Summary::default() }).unwrap();
    }

    fn judge(&self, says: &str) -> JudgedClaim {
        let claim = self.table.claims.iter().find(|claim| claim.says == says).unwrap();
        judge(claim, TEST, &self.results())
    }
}

const FALLS: &str = "errors fall with depth (2 to 4)";

#[test]
fn fewer_errors_hold_more_do_not_and_chance_decides_nothing() {
    let cases: [(usize, usize, Verdict); 4] = [
        (150, 60, Verdict::Holds),
        (60, 150, Verdict::DoesNotHold),
        (100, 97, Verdict::NotDecided),
        // Segments without an error of either are not compared: too few are left.
        (30, 2, Verdict::NotDecided),
    ];
    for (two, four, expected) in cases {
        let bench = Bench::new("depth", 1);
        bench.put("depth-2", 1, |n| n * 7 % N_UTTERANCES < two);
        bench.put("depth-4", 1, |n| n * 13 % N_UTTERANCES < four);
        let judged = bench.judge(FALLS);
        assert_eq!(judged.verdict, expected, "{two} {four}: {judged:?}");
        let difference = (two as f64 - four as f64) / 20.0;
        assert!((judged.ours.unwrap() - difference).abs() < 1e-9, "{judged:?}");
        assert!((judged.paper.unwrap() - 2.9).abs() < 1e-9);
    }
}

#[test]
fn what_was_not_measured_is_not_decided() {
    let bench = Bench::new("depth", 2);
    bench.put("depth-2", 1, |_| true);
    let judged = bench.judge(FALLS);
    assert_eq!((judged.verdict, judged.ours, judged.p, judged.n_seeds), (Verdict::NotDecided, None, None, 0));
}

#[test]
fn of_several_seeds_the_middle_one_counts_with_twice_its_p() {
    let bench = Bench::new("depth", 3);
    // Clear, by a little, and the other way round.
    for (seed, two, four) in [(1, 180, 40), (2, 120, 90), (3, 60, 100)] {
        bench.put("depth-2", seed, |n| n * 7 % N_UTTERANCES < two);
        bench.put("depth-4", seed, |n| n * 13 % N_UTTERANCES < four);
    }
    let judged = bench.judge(FALLS);
    let [low, high] = ["depth-4", "depth-2"].map(|name| bench.table.row(name).unwrap());
    let tests = bench.results().tests([low, high], Column { quantity: Quantity::Error, part: TEST });
    assert_eq!(tests.len(), 3);
    assert_eq!((judged.n_seeds, judged.p), (3, Some(2.0 * tests[1].p)));
    assert_eq!(judged.verdict, if 2.0 * tests[1].p < SIGNIFICANT { Verdict::Holds } else { Verdict::NotDecided });
    let measured = bench.results().figure(high, Column { quantity: Quantity::Error, part: TEST }).unwrap();
    assert_eq!((measured.each.len(), measured.interval.unwrap().over), (3, Over::Seeds));
}

#[test]
fn the_middle_of_an_even_number_is_the_one_that_says_less() {
    let outcome = |(better, p)| Outcome { z: None, p, better: Some(better), n_compared: 100 };
    let combined = |tests: &[(Side, f64)]| {
        let outcomes: Vec<Outcome> = tests.iter().copied().map(outcome).collect();
        CombinedTest::of(&outcomes).map(|combined| (combined.less, combined.p))
    };
    let (first, second) = (Side::First, Side::Second);
    assert_eq!(combined(&[]), None);
    assert_eq!(combined(&[(first, 0.003)]), Some((Some(first), 0.003)));
    assert_eq!(combined(&[(first, 0.003), (first, 0.3)]), Some((Some(first), 0.6)));
    assert_eq!(combined(&[(second, 0.003), (first, 0.3)]), Some((Some(first), 0.6)));
    let four = [(first, 0.0), (second, 0.0), (first, 0.003), (first, 0.05)];
    assert_eq!(combined(&four), Some((Some(first), 0.1)));
    assert_eq!(combined(&[(second, 0.9), (second, 0.9)]), Some((Some(second), 1.0)));
}

#[test]
fn that_two_are_alike_needs_a_test_that_could_have_seen_a_difference() {
    let says = "the number of iterations does not matter to DR (1, 2)";
    // As many errors in other places is too weak a test; in the same places it is certain.
    let cases = [(13, 100, Verdict::NotDecided), (7, 100, Verdict::Holds), (13, 20, Verdict::DoesNotHold)];
    for (step, n_wrong, expected) in cases {
        let bench = Bench::new("routing", 1);
        bench.put("routing-dr-1", 1, |n| n * 7 % N_UTTERANCES < 100);
        bench.put("routing-dr-2", 1, |n| n * step % N_UTTERANCES < n_wrong);
        let judged = bench.judge(says);
        assert_eq!(judged.verdict, expected, "{judged:?}");
        // 3 % of the mean of 5 % and 5 or 1 %.
        let margin = 0.03 * (100 + n_wrong) as f64 / 40.0;
        assert!((judged.margin.unwrap() - margin).abs() < 1e-9, "{judged:?}");
    }
}

#[test]
fn of_several_seeds_the_median_equivalence_counts_with_twice_its_p() {
    let combined = |p: &[f64]| {
        let tests = p.iter().map(|p| Equivalence { p: *p, margin: 1.0 }).collect();
        combined_equivalence(tests).map(|test| test.p)
    };
    assert_eq!((combined(&[]), combined(&[0.04])), (None, Some(0.04)));
    assert_eq!((combined(&[0.5, 0.01, 0.02]), combined(&[0.01, 0.2])), (Some(0.04), Some(0.4)));
}

#[test]
fn end_labels_are_counted_and_compared_by_utterance() {
    let bench = Bench::new("windows", 1);
    bench.put("window-0-0", 1, |n| n % 2 == 0);
    bench.put("window-1-1", 1, |n| n % 4 == 0);
    let judged = bench.judge("more end labels are found with more right context (0-0, 1-1)");
    assert_eq!((judged.ours, judged.verdict, judged.n_compared), (Some(25.0), Verdict::Holds, N_UTTERANCES));
    let found = |name: &str| {
        let column = Column { quantity: Quantity::EosRate, part: TEST };
        bench.results().figure(bench.table.row(name).unwrap(), column).unwrap().mean
    };
    assert_eq!((found("window-0-0"), found("window-1-1")), (50.0, 75.0));
}

#[test]
fn distances_are_summed_over_slices_and_compared_by_utterance() {
    let bench = Bench::new("distance", 1);
    for (name, n_different) in [("routing-dr-2", 1), ("routing-dr-3", 2)] {
        let path = bench.paths.distance(bench.table.row(name).unwrap(), 1, TEST);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let distance = |n: usize| crate::analyze::distance::Distance { n_slices: 10, n_different: n_different + n % 2 };
        let distances: Vec<UtteranceDistance> =
            (0..60).map(|n| UtteranceDistance { id: format!("u{n}"), distance: distance(n) }).collect();
        write_json(&path, &distances).unwrap();
    }
    let judged = bench.judge("with DR the distance grows with iterations (2, 3)");
    assert!((judged.ours.unwrap() - 0.1).abs() < 1e-9);
    // As 60 tosses of a coin on one side: 2 / 2^60.
    assert!(judged.p.unwrap() < 1e-17, "{judged:?}");
    assert_eq!((judged.verdict, judged.n_compared), (Verdict::Holds, 60));
}

#[test]
fn times_are_taken_as_measured_and_correlations_with_their_interval() {
    let bench = Bench::new("times", 1);
    let put = |name: &str, time: &dyn Fn(usize) -> f64| {
        let path = bench.paths.decoding(bench.table.row(name).unwrap(), 1);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let decoded = |n: usize| UtteranceTime { id: format!("u{n}"), duration_s: 1.0, decoding_s: time(n) };
        let decoding = Decoding { search: String::new(), utterances: (0..40).map(decoded).collect() };
        write_json(&path, &decoding).unwrap();
    };
    put("srf-7l", &|n| 2.0 + n as f64);
    put("srf-5l", &|n| 1.0 + n as f64 / 2.0);
    put("tf-5l", &|n| (n * 17 % 40) as f64);
    let slower = bench.judge("decoding time grows with layers (5 to 7)");
    assert_eq!((slower.ours, slower.p, slower.verdict), (Some(2.0), None, Verdict::Holds));
    let correlated = bench.judge("r is at least 0.90 (SRF-5L)");
    assert_eq!((correlated.verdict, correlated.n_compared), (Verdict::Holds, 40));
    assert_eq!(bench.judge("r is at least 0.90 (TF-5L)").verdict, Verdict::DoesNotHold);
    assert_eq!(bench.judge("r is at least 0.90 (TF-10L)").verdict, Verdict::NotDecided);
}
