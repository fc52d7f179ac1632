//! Any text as the options of a stream, as bindings pass them.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use srf::directory::ModelParts;
use srf::{LabelSet, Recognizer, Units, options};
use srf_model::config::{FeaturesConfig, Recipe};

static RECOGNIZER: LazyLock<Recognizer> = LazyLock::new(|| {
    let recipe = "[model]\narchitecture = \"srf\"\nclasses = 4\nlayers = 1\nfilters = 2\nprimary_height = 2\n";
    let model = Recipe::parse(recipe, "fuzz".as_ref()).expect("the recipe is ours").model;
    let labels = LabelSet::new(Units::Phones, ["aa", "b"]).expect("two phones are a set");
    let parts = ModelParts::untrained(model, FeaturesConfig::default(), labels, 0);
    Recognizer::from_parts(parts).expect("the parts fit")
});

fuzz_target!(|text: &str| {
    // Files that an option names are not read here.
    if !text.contains(['/', '.']) {
        let _ = options::from_json(text, &RECOGNIZER);
    }
});
