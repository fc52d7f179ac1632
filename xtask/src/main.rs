//! Development tasks: `cargo xtask api | c [--write] | ci | clients | deep [STEP...] | examples | golden FILE... | licences | lines | outside | python | tidy | web [build]`.

mod api;
mod c;
mod ci;
mod clients;
mod deep;
mod examples;
mod licences;
mod lines;
mod outside;
mod python;
mod tidy;
mod tools;
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("api") => api::write(&root()),
        Some("c") => c::run(&root(), &rest),
        Some("ci") => ci::run(&root()),
        Some("clients") => clients::run(&root()),
        Some("deep") => deep::run(&root(), &args[1..]),
        Some("examples") => examples::check(&root()),
        Some("golden") => {
            cargo(&root(), &[&["run", "--quiet", "-p", "srf-model", "--example", "golden", "--"], &rest[..]].concat())
        }
        Some("licences") => licences::run(&root()),
        Some("lines") => lines::run(&root()),
        Some("outside") => outside::run(&root()),
        Some("python") => python::run(&root()),
        Some("tidy") => tidy::run(&root()),
        Some("web") => web::run(&root(), rest == ["build"]),
        _ => Err(anyhow::anyhow!(
            "expected `api`, `c`, `ci`, `clients`, `deep`, `examples`, `golden`, `licences`, `lines`, `outside`, `python`, \
             `tidy` or `web`, found `{}`",
            args.join(" ")
        )),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies below the root").to_owned()
}

/// Whether this is continuous integration, where nothing may be left out.
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "0" && value != "false")
}

/// The folders of all crates, sorted.
fn crates(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut crates: Vec<PathBuf> =
        std::fs::read_dir(root.join("crates"))?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    crates.sort();
    Ok(crates)
}

/// All source files below a folder but those of tests, sorted.
fn sources(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|stem| stem == "tests" || stem == "testing") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Builds the command `srf` as tests use it; its path. Chosen together with the Python package it has the dependencies
/// of the whole workspace, so that nothing is compiled twice.
fn build_srf(root: &Path) -> anyhow::Result<PathBuf> {
    cargo(root, &["build", "--locked", "-p", "srf-cli", "-p", "srf-python", "--bin", "srf"])?;
    Ok(root.join("target/debug").join(format!("srf{}", std::env::consts::EXE_SUFFIX)))
}

/// Runs cargo in the workspace; fails if it does.
fn cargo(root: &Path, args: &[&str]) -> anyhow::Result<()> {
    let command = || format!("cargo {}", args.join(" "));
    let status = Command::new(env!("CARGO")).args(args).current_dir(root).env("RUSTDOCFLAGS", "-D warnings").status();
    let status = status.with_context(|| format!("could not start `{}`", command()))?;
    if status.success() { Ok(()) } else { bail!("`{}` failed", command()) }
}
