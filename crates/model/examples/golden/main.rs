//! Golden vectors: compares this implementation with files of inputs, weights and results of another one:
//! `cargo run -p srf-model --example golden -- FILE...`, or `cargo xtask golden FILE...`.
//!
//! A file's metadata describes a model; its tensors are inputs (`in.*`), weights (`w.*`), results (`out.*`) and
//! gradients of the mean loss (`g.*`) as another implementation computed them.
//! An error is max |ours - theirs| / max |theirs|.
#![allow(clippy::print_stdout, reason = "a program")]

mod compare;
mod ctc;
mod file;
mod networks;

use std::path::Path;

use anyhow::{Context as _, bail};

use self::file::Golden;

/// The largest errors allowed: the other implementation is in single precision too, and an evaluation in double
/// precision agrees with it to a quarter, a fifth and a tenth of these.
const LOGITS: f64 = 1e-5;
const LOSSES: f64 = 1e-6;
const GRADIENTS: f64 = 5e-5;

/// One line of the report.
struct Finding {
    what: String,
    error: f64,
    allowed: f64,
}

impl Finding {
    fn new(what: impl Into<String>, error: f64, allowed: f64) -> Self {
        Self { what: what.into(), error, allowed }
    }

    /// NaN is not good.
    fn is_good(&self) -> bool {
        self.error <= self.allowed
    }
}

/// Checks every file and fails if any error is too large.
fn main() -> anyhow::Result<()> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        bail!("expected golden files");
    }
    let mut n_bad = 0;
    for path in &paths {
        let findings = check(Path::new(path)).with_context(|| format!("could not check `{path}`"))?;
        println!("{path}");
        for finding in &findings {
            let verdict = if finding.is_good() { "ok " } else { "BAD" };
            println!("  {verdict} {:<28} {:.1e} (at most {:.0e})", finding.what, finding.error, finding.allowed);
        }
        n_bad += findings.iter().filter(|finding| !finding.is_good()).count();
    }
    if n_bad > 0 {
        bail!("{n_bad} errors are too large");
    }
    Ok(())
}

/// What one file shows.
fn check(path: &Path) -> anyhow::Result<Vec<Finding>> {
    let golden = Golden::read(path)?;
    match golden.text("model") {
        Ok(model) => networks::check(&golden, model),
        Err(_) if golden.names().any(|name| name.starts_with("ctc.")) => ctc::check(&golden),
        Err(error) => Err(error),
    }
}

/// max |ours - theirs| / max |theirs|; NaN if any of ours is.
fn error(ours: impl IntoIterator<Item = f64>, theirs: impl IntoIterator<Item = f64>) -> f64 {
    let (mut worst, mut largest, mut is_nan) = (0.0f64, 0.0f64, false);
    let (mut ours, mut theirs) = (ours.into_iter(), theirs.into_iter());
    loop {
        match (ours.next(), theirs.next()) {
            (Some(a), Some(b)) => {
                is_nan |= a.is_nan() || b.is_nan();
                worst = worst.max((a - b).abs());
                largest = largest.max(b.abs());
            }
            (None, None) => break,
            _ => return f64::NAN,
        }
    }
    if is_nan { f64::NAN } else { worst / largest.max(f64::MIN_POSITIVE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_golden_file_of_the_project_is_reproduced() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let mut n_files = 0;
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            for finding in check(&path).unwrap() {
                assert!(finding.is_good(), "{}: {} is off by {:e}", path.display(), finding.what, finding.error);
            }
            n_files += 1;
        }
        assert!(n_files >= 15, "found {n_files} golden files");
    }

    #[test]
    fn a_wrong_number_is_noticed() {
        assert!(error([1.0, 2.0], [1.0, 2.1]) > 0.04);
        assert!(error([f64::NAN], [1.0]).is_nan());
        assert!(error([1.0], [1.0, 2.0]).is_nan());
        assert!(!Finding::new("", f64::NAN, 1.0).is_good());
    }
}
