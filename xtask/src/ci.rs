//! The steps of continuous integration, the fastest first.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

use crate::{api, licences, tidy};

const STEPS: &[(&str, &[&str])] = &[
    ("formatting", &["fmt", "--all", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "--locked"]),
    ("documentation", &["doc", "--workspace", "--no-deps", "--locked"]),
];

/// Runs all steps and prints how long each took; stops at the first that fails.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    tidy::run(root)?;
    licences::run(root)?;
    api::check(root)?;
    for (name, args) in STEPS {
        let start = Instant::now();
        let status = Command::new(env!("CARGO"))
            .args(*args)
            .current_dir(root)
            .env("RUSTDOCFLAGS", "-D warnings")
            .status()
            .with_context(|| format!("could not start cargo for {name}"))?;
        if !status.success() {
            bail!("{name} failed: cargo {}", args.join(" "));
        }
        eprintln!("{name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}
