//! The sections of the page of a run, as HTML; empty where there is nothing to show.

use std::path::Path;

use srf_base::shell::command_line;
use srf_model::config::{ModelConfig, Recipe, Routing, SrfConfig};
use srf_score::report::html;
use srf_score::{Alignment, Counts, Verdict};

use crate::draw::chart::{Chart, Colors, Scale, Series, number};
use crate::evaluate::align_words;
use crate::events::log::History;
use crate::events::{
    DataPart, EndReason, EpochEnd, ErrorCounts, Event, Health, LayerHealth, Machine, Measured, RunStart, Steps,
};
use crate::page::{self, escape, gallery, tiles};

/// Most points of a curve; more do not fit on a screen.
const MAX_POINTS: usize = 400;
/// Most rows in the list of what was left out.
const MAX_SKIPPED: usize = 50;
/// From this ratio of the largest to the smallest loss, the scale is logarithmic.
const WIDE_RATIO: f64 = 20.0;

/// How to read alignments.
pub(super) const ALIGNMENT_KEY: &str = "Reference over <span class=\"words\"><span class=\"s\">substituted</span>, \
     <span class=\"d\">deleted</span>, <span class=\"n\">inserted</span></span> labels";

pub(super) fn title(history: &History) -> String {
    history.start().map_or_else(|| "Run".to_owned(), |start| start.recipe_name.clone())
}

/// The state of the run, as HTML.
pub(super) fn line(history: &History) -> String {
    let state = match history.end().map(|end| (end.reason, end.remark.as_str())) {
        None => "under way".to_owned(),
        Some((EndReason::Completed, _)) => "<span class=\"good\">completed</span>".to_owned(),
        Some((EndReason::StoppedEarly, remark)) => remarked("stopped early", remark),
        Some((EndReason::Interrupted, remark)) => remarked("interrupted, can be resumed", remark),
        Some((EndReason::Failed, remark)) => remarked("<span class=\"alarm\">failed</span>", remark),
    };
    match history.n_resumptions() {
        0 => state,
        1 => format!("{state}; resumed once"),
        n => format!("{state}; resumed {n} times"),
    }
}

/// A state, as HTML, with a remark.
fn remarked(state: &str, remark: &str) -> String {
    if remark.is_empty() { state.to_owned() } else { format!("{state}: {}", escape(remark)) }
}

pub(super) fn summary(history: &History) -> String {
    let n_epochs = history.start().map_or(0, |start| start.n_epochs);
    let Some(last) = history.epochs().last() else {
        return "<p>No epoch is complete yet.</p>\n".to_owned();
    };
    let mut shown = vec![("epochs".to_owned(), format!("{} of {n_epochs}", last.epoch))];
    if let Some(dev) = history.end().and_then(|end| end.dev.as_ref()) {
        // Epochs are measured on a part of dev; the figure of the model is on all of it.
        for errors in dev.errors.iter().chain(&dev.other_errors) {
            shown.push((format!("{} of the model, all of dev", errors.measure), percent(errors)));
        }
    } else if let Some((epoch, errors)) = best_epoch(history) {
        shown.push((format!("best validation {}, epoch {epoch}", errors.measure), percent(errors)));
        if let Some(errors) = last.validation.as_ref().and_then(|validation| validation.errors.as_ref()) {
            shown.push((format!("last validation {}", errors.measure), percent(errors)));
        }
    }
    shown.push(("last training loss".to_owned(), number(last.train.loss)));
    shown.push(("time".to_owned(), duration(history.epochs().map(epoch_s).sum())));
    shown.push(("frames per second".to_owned(), number(last.speed.frames_per_s())));
    if let Some(start) = history.start() {
        shown.push(("parameters".to_owned(), number(start.n_parameters as f64)));
    }
    tiles(&shown)
}

/// The epoch with the fewest validation errors.
pub(crate) fn best_epoch(history: &History) -> Option<(usize, &ErrorCounts)> {
    let rated = history.epochs().filter_map(|epoch| {
        let errors = epoch.validation.as_ref()?.errors.as_ref()?;
        Some((epoch.epoch, errors, errors.rate()?))
    });
    rated.min_by(|a, b| a.2.total_cmp(&b.2)).map(|(epoch, errors, _)| (epoch, errors))
}

/// How long an epoch took, with validation.
pub(crate) fn epoch_s(epoch: &EpochEnd) -> f64 {
    epoch.speed.duration_s + epoch.validation_s
}

fn percent(errors: &ErrorCounts) -> String {
    errors.rate().map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

/// A duration in its two largest units: `12.3 s`, `4 min 05 s`, `3 h 20 min`.
pub fn duration(duration_s: f64) -> String {
    let whole_s = duration_s.max(0.0).round() as u64;
    match whole_s {
        0..60 => format!("{duration_s:.1} s"),
        60..3600 => format!("{} min {:02} s", whole_s / 60, whole_s % 60),
        _ => format!("{} h {:02} min", whole_s / 3600, whole_s / 60 % 60),
    }
}

fn by_epoch(history: &History, value: impl Fn(&EpochEnd) -> Option<f64>) -> Vec<(f64, f64)> {
    let point = |epoch: &EpochEnd| (epoch.epoch as f64, value(epoch).unwrap_or(f64::NAN));
    history.epochs().map(point).collect()
}

fn by_step(history: &History, value: impl Fn(&Steps) -> f64) -> Vec<(f64, f64)> {
    let point = |record: &crate::events::Record| match &record.event {
        Event::Steps(steps) => Some((record.step as f64, value(steps))),
        _ => None,
    };
    history.records.iter().filter_map(point).collect()
}

pub(super) fn progress(history: &History) -> String {
    gallery([loss(history).html(), errors(history).html(), step_loss(history).html(), rate(history).html()])
}

fn loss(history: &History) -> Chart {
    let validation = by_epoch(history, |epoch| Some(epoch.validation.as_ref()?.loss));
    let train = by_epoch(history, |epoch| Some(epoch.train.loss));
    let (scale, note) = (scale(train.iter().chain(&validation).map(|point| point.1)), "Mean per utterance.".to_owned());
    Chart { note, scale, ..train_and_validation("Loss", train, validation) }
}

/// Logarithmic where the values are positive and far apart.
fn scale(values: impl Iterator<Item = f64>) -> Scale {
    let (low, high) = values.filter(|v| v.is_finite()).fold((f64::MAX, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    if low > 0.0 && high / low > WIDE_RATIO { Scale::Logarithmic } else { Scale::Linear }
}

fn errors(history: &History) -> Chart {
    let rate = |measured: &Measured| Some(100.0 * measured.errors.as_ref()?.rate()?);
    let validation = by_epoch(history, |epoch| rate(epoch.validation.as_ref()?));
    let train = by_epoch(history, |epoch| rate(&epoch.train));
    let measure = best_epoch(history).map_or("Error rate", |(_, errors)| &errors.measure);
    let part = history.epochs().last().and_then(|epoch| epoch.validation.as_ref()?.part());
    let note =
        part.map_or_else(String::new, |[n, all]| format!("After each epoch, on {n} of the {all} utterances of dev."));
    Chart { unit: "%".to_owned(), starts_at_zero: true, note, ..train_and_validation(measure, train, validation) }
}

fn train_and_validation(title: &str, train: Vec<(f64, f64)>, validation: Vec<(f64, f64)>) -> Chart {
    Chart::new(title, "epoch", vec![Series::new("training", train), Series::new("validation", validation)])
}

fn step_loss(history: &History) -> Chart {
    let points = by_step(history, |steps| steps.loss);
    let scale = scale(points.iter().map(|point| point.1));
    Chart { scale, ..Chart::new("Loss by step", "step", vec![Series::new("training", points).thinned(MAX_POINTS)]) }
}

fn rate(history: &History) -> Chart {
    let mut points = by_step(history, |steps| steps.learning_rate);
    let mut x_name = "step";
    if points.is_empty() {
        (points, x_name) = (by_epoch(history, |epoch| Some(epoch.learning_rate)), "epoch");
    }
    let series = vec![Series::new("rate", points).thinned(MAX_POINTS)];
    Chart { starts_at_zero: true, ..Chart::new("Learning rate", x_name, series) }
}

pub(super) fn speed(history: &History) -> String {
    let frames = Series::new("training", by_epoch(history, |epoch| Some(epoch.speed.frames_per_s())));
    let waiting = Series::new("waiting", by_epoch(history, |epoch| Some(100.0 * epoch.speed.wait_share())));
    let norm = Series::new("norm", by_step(history, |steps| steps.gradient_norm)).thinned(MAX_POINTS);
    let frames = Chart {
        note: "Feature frames trained on, without padding.".to_owned(),
        starts_at_zero: true,
        ..Chart::new("Frames per second", "epoch", vec![frames])
    };
    let waiting = Chart {
        note: "Share of the time in which the trainer waited for a batch.".to_owned(),
        unit: "%".to_owned(),
        starts_at_zero: true,
        ..Chart::new("Waiting for data", "epoch", vec![waiting])
    };
    let norm = Chart {
        note: "Before clipping.".to_owned(),
        scale: Scale::Logarithmic,
        ..Chart::new("Gradient norm", "step", vec![norm])
    };
    gallery([frames.html(), waiting.html(), norm.html()])
}

pub(super) fn examples(history: &History) -> String {
    let Some(shown) = history.last_examples() else { return String::new() };
    let mut html = format!("<p class=\"note\">After epoch {}. {ALIGNMENT_KEY}</p>\n", shown.epoch);
    for example in &shown.examples {
        let Ok(alignment) = align_words(&example.reference, &example.hypothesis) else { continue };
        html.push_str(&self::example(&example.id, "", &alignment));
    }
    html
}

/// An utterance: its name, extra HTML, and the reference over what was recognised.
pub(super) fn example(name: &str, extra: &str, alignment: &Alignment) -> String {
    let counts = Counts::from(alignment);
    let is_right = alignment.pairs.iter().all(|pair| pair.verdict == Verdict::Correct);
    let mark = if is_right { " \u{2713}" } else { "" };
    format!(
        "<div class=\"example\"><h3>{} \u{2013} {} of {} wrong{mark}</h3>{extra}<div class=\"words\">{}</div></div>\n",
        escape(name),
        counts.n_errors(),
        counts.n_reference(),
        html::alignment(alignment)
    )
}

pub(super) fn skipped(history: &History) -> String {
    let batches: Vec<Vec<String>> = history
        .skipped_batches()
        .map(|batch| {
            vec![
                format!("batch {} of epoch {}", batch.batch, batch.epoch),
                batch.reason.clone(),
                batch.utterances.join(" "),
            ]
        })
        .collect();
    let utterances = history
        .skipped_utterances()
        .map(|utterance| vec![utterance.id.clone(), utterance.reason.clone(), String::new()]);
    let rows: Vec<Vec<String>> = batches.into_iter().chain(utterances).collect();
    if rows.is_empty() {
        return "<p>Every batch and every utterance was used.</p>\n".to_owned();
    }
    let shown = &rows[..rows.len().min(MAX_SKIPPED)];
    let more = match rows.len() - shown.len() {
        0 => String::new(),
        n => format!("<p class=\"note\">And {n} more in log.jsonl.</p>\n"),
    };
    page::table(&["what", "why", "utterances"], shown) + &more
}

pub(super) fn facts(history: &History) -> String {
    let Some(start) = history.start() else { return String::new() };
    let RunStart { recipe, command, seed, architecture, n_parameters, n_classes, units, from, .. } = start;
    let Machine { processor, n_threads, memory_gib, system, kernels } = &start.machine;
    let mut rows = vec![
        ("command", command_line(command)),
        ("version", start.version.clone()),
        ("model", format!("{architecture}, {n_parameters} parameters, {n_classes} classes ({units})")),
        ("started from", from.clone().unwrap_or_default()),
        ("seed", seed.to_string()),
        ("data fingerprint", start.data_fingerprint.clone()),
        ("machine", format!("{processor}, {n_threads} threads, {memory_gib:.1} GiB, {system}, kernels {kernels}")),
    ];
    rows.extend(start.data.iter().map(|part| ("data", data_part(part))));
    let recipe = escape(recipe);
    page::facts(&rows)
        + &format!("<details><summary>Recipe, with all overrides</summary><pre>{recipe}</pre></details>\n")
}

fn data_part(part: &DataPart) -> String {
    let DataPart { name, path, n_utterances, n_frames, duration_s } = part;
    format!("{name}: {n_utterances} utterances, {n_frames} frames, {} ({path})", duration(*duration_s))
}

/// A layer with this share of dead capsules is collapsing.
const ALARMING_DEAD_SHARE: f64 = 0.25;
/// Couplings this close to all equal carry no information. Short of it nothing is wrong: sequential routing with one
/// iteration, the paper's choice, works at an entropy of 0.999.
const ALARMING_ENTROPY: f64 = 1.0 - 1e-6;

pub(super) fn health(history: &History) -> String {
    let looks: Vec<&Health> = history.health().collect();
    let Some(last) = looks.last() else { return String::new() };
    let charts = [
        Chart {
            note: "Of the couplings of an input capsule: 1 where every output gets the same, 0 where one gets all. \
                   Values near 1 are usual: the paper's own networks are there."
                .to_owned(),
            bounds: Some((0.0, 1.0)),
            ..health_chart("Routing entropy", &looks, |layer| layer.entropy)
        },
        Chart {
            note: "Output capsules that get less than a tenth of an equal share.".to_owned(),
            unit: "%".to_owned(),
            bounds: Some((0.0, 100.0)),
            ..health_chart("Dead capsules", &looks, |layer| 100.0 * dead_share(layer))
        },
        Chart {
            note: "Slices in which the class with the largest sum of couplings is also the most probable one."
                .to_owned(),
            unit: "%".to_owned(),
            bounds: Some((0.0, 100.0)),
            ..health_chart("Agreement", &looks, |layer| layer.agreement.map_or(f64::NAN, |share| 100.0 * share))
        },
    ];
    // Every run starts with equal couplings, so the first look says nothing.
    let must_route = 1 < looks.len() && !is_even_by_design(history);
    verdict(last, must_route) + &gallery(charts.iter().map(Chart::html))
}

fn health_chart(title: &str, looks: &[&Health], value: impl Fn(&LayerHealth) -> f64) -> Chart {
    let n_layers = looks.iter().map(|look| look.layers.len()).max().unwrap_or(0);
    let points = |at: usize| looks.iter().filter_map(move |look| Some((look.epoch as f64, look.layers.get(at)?)));
    let series = (0..n_layers).map(|at| {
        let name = looks.iter().find_map(|look| look.layers.get(at)).map_or("", |layer| &layer.name);
        Series::new(name, points(at).map(|(epoch, layer)| (epoch, value(layer))))
    });
    Chart { colors: Colors::Ordered, ..Chart::new(title, "epoch", series.collect()) }
}

fn dead_share(layer: &LayerHealth) -> f64 {
    layer.n_dead as f64 / layer.n_capsules.max(1) as f64
}

/// Whether couplings are equal whatever the network learns: dynamic routing with one iteration never updates them.
fn is_even_by_design(history: &History) -> bool {
    let recipe = history.start().and_then(|start| Recipe::parse(&start.recipe, Path::new(&start.recipe_name)).ok());
    recipe.is_some_and(|recipe| {
        matches!(recipe.model, ModelConfig::Srf(SrfConfig { routing: Routing::Dr, iterations: 1, .. }))
    })
}

/// A line for each problem, or one that there is none.
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
    // Most capsules of the last layer are classes that rarely occur, so few couplings are no alarm there.
    let is_last = layer.agreement.is_some();
    if dead_share(layer) >= ALARMING_DEAD_SHARE && !is_last {
        alarms.push(format!("{name}: {n_dead} of {n_capsules} capsules are dead"));
    }
    if *entropy >= ALARMING_ENTROPY && must_route {
        alarms.push(format!("{name}: couplings are equal (entropy {entropy:.6}), so it does not route"));
    }
    if !entropy.is_finite() {
        alarms.push(format!("{name}: couplings are not numbers"));
    }
    alarms.iter().map(|alarm| format!("<p class=\"alarm\">{}</p>\n", escape(alarm))).collect()
}
