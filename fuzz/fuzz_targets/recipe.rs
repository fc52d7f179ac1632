//! Any text as a recipe; what is accepted must come back from its own text.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use srf_model::config::Recipe;

fuzz_target!(|text: &str| {
    let origin = Path::new("fuzz.toml");
    if let Ok(recipe) = Recipe::parse(text, origin) {
        Recipe::parse(&recipe.format(), origin).expect("the text of a valid recipe is valid");
    }
});
