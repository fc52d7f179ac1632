//! How the capsules are: figures by layer and epoch in, curves and what is alarming about them out.

use std::path::Path;

use srf_model::config::{ModelConfig, Recipe, Routing, SrfConfig};

use crate::events::log::History;
use crate::events::{Health, LayerHealth};
use crate::report::chart::{Chart, Colours, Series};
use crate::report::page::{escape, gallery};

/// A layer that has lost this share of its capsules is collapsing.
const ALARMING_DEAD_SHARE: f64 = 0.25;
/// Couplings this close to all equal do not route.
const ALARMING_ENTROPY: f64 = 0.995;

pub(in crate::report) fn health(history: &History) -> String {
    let looks: Vec<&Health> = history.health().collect();
    let Some(last) = looks.last() else { return String::new() };
    let charts = [
        Chart {
            note: "Of the couplings of an input capsule: 1 where every output gets the same, 0 where one gets all."
                .to_owned(),
            bounds: Some((0.0, 1.0)),
            ..chart("Routing entropy", &looks, |layer| layer.entropy)
        },
        Chart {
            note: "Output capsules that get less than a tenth of an equal share.".to_owned(),
            unit: "%".to_owned(),
            bounds: Some((0.0, 100.0)),
            ..chart("Dead capsules", &looks, |layer| 100.0 * dead_share(layer))
        },
        Chart {
            note: "Slices in which the class that most couplings go to is also the likeliest.".to_owned(),
            unit: "%".to_owned(),
            bounds: Some((0.0, 100.0)),
            ..chart("Agreement", &looks, |layer| layer.agreement.map_or(f64::NAN, |share| 100.0 * share))
        },
    ];
    // Every run starts with equal couplings, so the first look says nothing.
    let must_route = 1 < looks.len() && !is_even_by_design(history);
    verdict(last, must_route) + &gallery(charts.iter().map(Chart::html))
}

fn chart(title: &str, looks: &[&Health], value: impl Fn(&LayerHealth) -> f64) -> Chart {
    let n_layers = looks.iter().map(|look| look.layers.len()).max().unwrap_or(0);
    let points = |at: usize| looks.iter().filter_map(move |look| Some((look.epoch as f64, look.layers.get(at)?)));
    let series = (0..n_layers).map(|at| {
        let name = looks.iter().find_map(|look| look.layers.get(at)).map_or("", |layer| &layer.name);
        Series::new(name, points(at).map(|(epoch, layer)| (epoch, value(layer))))
    });
    let series = series.collect();
    Chart { title: title.to_owned(), x_name: "epoch".to_owned(), colours: Colours::Ordered, series, ..Chart::default() }
}

fn dead_share(layer: &LayerHealth) -> f64 {
    layer.n_dead as f64 / layer.n_capsules.max(1) as f64
}

/// Whether the network couples evenly whatever it learns: dynamic routing that never looks at what it has routed.
fn is_even_by_design(history: &History) -> bool {
    let recipe = history.start().and_then(|start| Recipe::parse(&start.recipe, Path::new(&start.recipe_name)).ok());
    recipe.is_some_and(|recipe| {
        matches!(recipe.model, ModelConfig::Srf(SrfConfig { routing: Routing::Dr, iterations: 1, .. }))
    })
}

/// A line for every layer that has collapsed, or one that none has.
fn verdict(last: &Health, must_route: bool) -> String {
    let alarms: String = last.layers.iter().flat_map(|layer| alarms(layer, must_route)).collect();
    let epoch = last.epoch;
    if alarms.is_empty() {
        format!("<p class=\"good\">No layer has collapsed after epoch {epoch}.</p>\n")
    } else {
        alarms
    }
}

fn alarms(layer: &LayerHealth, must_route: bool) -> Vec<String> {
    let LayerHealth { name, entropy, n_dead, n_capsules, .. } = layer;
    let mut alarms = Vec::new();
    // Most capsules of the last layer are classes that are rarely said, so few couplings are no alarm there.
    let is_last = layer.agreement.is_some();
    if dead_share(layer) >= ALARMING_DEAD_SHARE && !is_last {
        alarms.push(format!("{name}: {n_dead} of {n_capsules} capsules are dead"));
    }
    if *entropy >= ALARMING_ENTROPY && must_route {
        alarms.push(format!("{name}: couplings are all but equal (entropy {entropy:.4}), so it does not route"));
    }
    if !entropy.is_finite() {
        alarms.push(format!("{name}: couplings are not numbers"));
    }
    alarms.iter().map(|alarm| format!("<p class=\"alarm\">{}</p>\n", escape(alarm))).collect()
}
