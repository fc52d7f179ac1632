//! `srf compare`: significance tests between two or more hypotheses.

use std::path::PathBuf;

use anyhow::ensure;
use serde_json::json;
use srf_score::System;
use srf_score::compare::{
    Bootstrap, FEWEST_SEGMENTS, Interval, Outcome, Paired, Side, bootstrap, mapsswe, mcnemar, sign, wilcoxon,
};
use srf_score::files::{self, FileOptions, Missing, Unit};
use srf_score::formats::Source;

use crate::Exit;
use crate::printer::Printer;

/// Test whether one recogniser is significantly better than another
#[derive(clap::Args)]
#[command(after_help = "\
The tests are those of NIST's sc_stats, two-tailed: matched pairs of segments (MAPSSWE), McNemar on
utterances, sign and Wilcoxon on speakers. p is the probability of a difference this large between equally good systems.

Examples:
  srf compare ref.trn baseline.trn mine.trn
  srf compare ref.stm a.ctm b.ctm c.ctm --json")]
pub(crate) struct Args {
    /// The reference transcript
    reference: PathBuf,

    /// The recognised text of two or more systems
    #[arg(required = true, num_args = 2.., value_name = "HYPOTHESIS")]
    hypotheses: Vec<PathBuf>,

    /// Compare characters instead of words
    #[arg(long)]
    chars: bool,

    /// Distinguish upper and lower case
    #[arg(long)]
    case_sensitive: bool,

    /// Number of bootstrap draws
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    replications: u32,

    /// Seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The tests of a pair of systems.
struct Comparison {
    first: usize,
    second: usize,
    tests: [(&'static str, Outcome); 4],
    bootstrap: Bootstrap,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { reference, hypotheses, chars, case_sensitive, replications, seed, json } = args;
    let options = FileOptions {
        unit: if chars { Unit::Character } else { Unit::Word },
        missing: Missing::Refuse,
        is_case_sensitive: case_sensitive,
        ..FileOptions::default()
    };
    let reference = Source::load(&reference)?;
    let mut systems = Vec::new();
    for path in &hypotheses {
        systems.push(files::score(&reference, &Source::load(path)?, &path.display().to_string(), options)?.system);
    }
    let mut comparisons = Vec::new();
    for second in 1..systems.len() {
        for first in 0..second {
            comparisons.push(compare(&systems, first, second, replications as usize, seed)?);
        }
    }
    if json {
        out.line(serde_json::to_string_pretty(&as_json(&systems, &comparisons))?)?;
    } else {
        show(&systems, &comparisons, out)?;
    }
    Ok(Exit::Done)
}

fn compare(systems: &[System], first: usize, second: usize, n: usize, seed: u64) -> anyhow::Result<Comparison> {
    let paired = Paired::new(&systems[first], &systems[second]);
    ensure!(
        !paired.utterances.is_empty(),
        "`{}` and `{}` have no utterance in common",
        systems[first].heading.title,
        systems[second].heading.title
    );
    let tests = [
        ("MAPSSWE", mapsswe(&paired)),
        ("McNemar", mcnemar(&paired)),
        ("sign", sign(&paired)),
        ("Wilcoxon", wilcoxon(&paired)),
    ];
    Ok(Comparison { first, second, tests, bootstrap: bootstrap(&paired, n, seed) })
}

fn rate(interval: &Interval) -> String {
    let Interval { measured, low, high } = *interval;
    format!("{:.2} [{:.2}, {:.2}]", 100.0 * measured, 100.0 * low, 100.0 * high)
}

fn show(systems: &[System], comparisons: &[Comparison], out: &Printer) -> std::io::Result<()> {
    for comparison in comparisons {
        let name = |index: usize| &systems[index].heading.title;
        let (a, b) = (name(comparison.first), name(comparison.second));
        let Bootstrap { first, second, difference, probability_of_improvement } = &comparison.bootstrap;
        out.line(format_args!("A: {a}\nB: {b}\n"))?;
        out.line("             measured [95 % of the bootstrap]")?;
        out.line(format_args!("error rate A {}", rate(first)))?;
        out.line(format_args!("error rate B {}", rate(second)))?;
        out.line(format_args!("B minus A    {}", rate(difference)))?;
        out.line(format_args!("P(B better)  {:.2} %\n", 100.0 * probability_of_improvement))?;
        out.line("test         compared       p  better")?;
        for (test, outcome) in &comparison.tests {
            let winner = match outcome.winner() {
                Some(Side::First) => "A",
                Some(Side::Second) => "B",
                None => "~",
            };
            out.line(format_args!("{test:<12} {:>8} {:>7}  {winner}", outcome.n_compared, p_value(outcome.p)))?;
        }
        out.line(format_args!("\n{}\n", sentence(comparison, a, b)))?;
    }
    Ok(())
}

fn p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}

/// The tests in one sentence; MAPSSWE decides, as it does at NIST.
fn sentence(comparison: &Comparison, a: &str, b: &str) -> String {
    let Bootstrap { first, second, .. } = &comparison.bootstrap;
    let (_, decisive) = &comparison.tests[0];
    let n_agreeing =
        comparison.tests.iter().filter(|(_, o)| o.winner().is_some() && o.winner() == decisive.winner()).count();
    let p = if decisive.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", decisive.p) };
    match decisive.winner() {
        _ if decisive.n_compared < FEWEST_SEGMENTS => {
            let n = decisive.n_compared;
            format!("Between {a} and {b} there are only {n} segments with errors, too few to decide which is better.")
        }
        None => format!("The difference between {a} and {b} may well be chance ({p}): not decided which is better."),
        Some(side) => {
            let (better, worse, change) = match side {
                Side::First => (a, b, relative(second, first)),
                Side::Second => (b, a, relative(first, second)),
            };
            format!(
                "{better} makes {change} fewer errors than {worse} ({p}); \
                 {n_agreeing} of 4 tests find that significant at 0.05."
            )
        }
    }
}

fn relative(worse: &Interval, better: &Interval) -> String {
    format!("{:.1} %", 100.0 * (worse.measured - better.measured) / worse.measured)
}

fn as_json(systems: &[System], comparisons: &[Comparison]) -> serde_json::Value {
    let interval = |i: &Interval| json!({ "measured": i.measured, "low": i.low, "high": i.high });
    let side = |side: Option<Side>| side.map(|side| if side == Side::First { "a" } else { "b" });
    let of = |comparison: &Comparison| {
        let tests = comparison.tests.iter().map(|(name, o)| {
            json!({ "test": name, "p": o.p, "z": o.z, "compared": o.n_compared, "better": side(o.better), "winner": side(o.winner()) })
        });
        let Bootstrap { first, second, difference, probability_of_improvement } = &comparison.bootstrap;
        json!({
            "a": systems[comparison.first].heading.title,
            "b": systems[comparison.second].heading.title,
            "tests": tests.collect::<Vec<_>>(),
            "rate_a": interval(first),
            "rate_b": interval(second),
            "difference": interval(difference),
            "probability_of_improvement": probability_of_improvement,
        })
    };
    json!({ "comparisons": comparisons.iter().map(of).collect::<Vec<_>>() })
}
