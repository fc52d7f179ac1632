//! The steps of continuous integration, the fastest first.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;

use crate::{api, c, cargo, clients, examples, licences, python, tidy, web};

const LINTS: &[&str] = &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];

const STEPS: &[(&str, &[&str])] = &[
    ("formatting", &["fmt", "--all", "--check"]),
    ("lints", LINTS),
    ("tests", &["test", "--workspace", "--locked"]),
    ("documentation", &["doc", "--workspace", "--no-deps", "--locked"]),
];

/// Runs all steps and prints how long each took; stops at the first that fails.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    tidy::run(root)?;
    licences::run(root)?;
    api::check(root)?;
    examples::check(root)?;
    for (name, args) in STEPS {
        timed(name, || cargo(root, args))?;
    }
    // After the tests, whose builds they use again.
    timed("C", || c::run(root, &[]))?;
    timed("Python", || python::run(root))?;
    timed("web", || web::run(root, false))?;
    timed("clients", || clients::run(root))
}

fn timed(name: &str, step: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let start = Instant::now();
    step().with_context(|| format!("{name} failed"))?;
    eprintln!("{name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
