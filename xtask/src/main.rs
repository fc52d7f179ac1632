//! Development tasks: `cargo xtask api | ci | deep [STEP...] | tidy | licences | golden FILE...`.

mod api;
mod ci;
mod deep;
mod golden;
mod licences;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.first().map(String::as_str) {
        Some("api") => api::write(&root()),
        Some("ci") => ci::run(&root()),
        Some("deep") => deep::run(&root(), &args[1..]),
        Some("golden") => golden::run(&args[1..]),
        Some("licences") => licences::run(&root()),
        Some("tidy") => tidy::run(&root()),
        _ => Err(anyhow::anyhow!(
            "expected `api`, `ci`, `deep`, `golden`, `licences` or `tidy`, found `{}`",
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
