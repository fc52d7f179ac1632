//! What a language model costs: seconds and memory to load a million n-grams, nanoseconds a query.
//!
//! `cargo bench -p text --bench lm`

#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::fmt::Write as _;
use std::time::Instant;

use srf_text::lm::NgramModel;

const N_WORDS: usize = 50_000;
const N_PAIRS: usize = 400_000;
const N_TRIPLES: usize = 550_000;

/// A file of a million n-grams: every word, and random pairs and triples, each triple behind one of the pairs.
fn arpa() -> String {
    let mut random = 3u64;
    let mut below = |n: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % n
    };
    let mut pairs: Vec<(usize, usize)> = (0..N_PAIRS * 2).map(|_| (below(N_WORDS), below(N_WORDS))).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.truncate(N_PAIRS);
    let mut triples: Vec<(usize, usize, usize)> =
        (0..N_TRIPLES + 1000).map(|_| (pairs[below(N_PAIRS)], below(N_WORDS))).map(|((a, b), c)| (a, b, c)).collect();
    triples.sort_unstable();
    triples.dedup();
    triples.truncate(N_TRIPLES);
    let mut text = format!("\\data\\\nngram 1={N_WORDS}\nngram 2={N_PAIRS}\nngram 3={N_TRIPLES}\n\n\\1-grams:\n");
    (0..N_WORDS).for_each(|a| writeln!(text, "-{}.25\tword{a}\t-0.{}", a % 6, a % 97).expect("a string grows"));
    text += "\n\\2-grams:\n";
    pairs.iter().for_each(|(a, b)| writeln!(text, "-1.{b}\tword{a} word{b}\t-0.3").expect("a string grows"));
    text += "\n\\3-grams:\n";
    triples.iter().for_each(|(a, b, c)| writeln!(text, "-0.{c}\tword{a} word{b} word{c}").expect("a string grows"));
    text + "\n\\end\\\n"
}

/// Memory of this process in MB, where the system tells it.
fn memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}

fn main() {
    let dir = tempfile::tempdir().expect("a place for the file");
    let path = dir.path().join("million.arpa");
    std::fs::write(&path, arpa()).expect("room for the file");
    let (before, start) = (memory_mb(), Instant::now());
    let model = NgramModel::load(&path).expect("the file is whole");
    let load_s = start.elapsed().as_secs_f64();
    let grown = memory_mb().zip(before).map_or(f64::NAN, |(after, before)| after - before);
    println!("{} n-grams: {load_s:.2} s, {grown:.0} MB more", model.n_ngrams());

    let ids: Vec<_> = (0..N_WORDS).filter_map(|a| model.word(&format!("word{a}"))).collect();
    let start = Instant::now();
    let mut context = model.start();
    let mut sum = 0.0;
    for query in 0..1_000_000usize {
        let (next, log_prob) = model.next(context, ids[query.wrapping_mul(7919) % ids.len()]);
        (context, sum) = (next, sum + log_prob);
    }
    println!("{:.0} ns a query (sum {sum:.1})", start.elapsed().as_secs_f64() * 1e3);
}
