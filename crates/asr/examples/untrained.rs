//! A recipe in, a model directory with random weights out: `untrained RECIPE DIR`.
//!
//! What it recognises is nonsense; how fast it does is not.
#![allow(clippy::print_stderr, clippy::exit, reason = "a program")]

use std::path::Path;

use srf::directory::{ModelParts, write};
use srf_model::config::{Cmvn, Recipe};
use srf_text::labels::{LabelSet, Units};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [recipe, dir] = args.as_slice() else {
        eprintln!("usage: untrained RECIPE DIR");
        std::process::exit(2);
    };
    let Recipe { model, mut features, .. } = Recipe::load(Path::new(recipe))?;
    // So that a live stream can be measured too.
    features.cmvn = Cmvn::Online;
    let labels = LabelSet::new(Units::Phones, (2..model.n_classes()).map(|class| format!("p{class}")))?;
    let card = "# Untrained\nRandom weights, to measure speed with.\n".to_owned();
    write(Path::new(dir), &ModelParts { card, ..ModelParts::untrained(model, features, labels, 0) })?;
    Ok(())
}
