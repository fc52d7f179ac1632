//! The figures of the paper's analysis: couplings at a time, a grid of them over times and models, and the softmax where
//! an utterance starts and ends.

use super::Analysis;
use super::routes::{Layer, Routes, largest};
use crate::draw::{
    ANSWER, Anchor, Area, BAR, Color, DISTINCT, FAINT, INK, LINE, Picture, REFERENCE, RankScale, fitted, short,
    text_width, with_room,
};

/// Margins of a map: left, top, right.
const MAP: (f64, f64, f64) = (74.0, 62.0, 84.0);
const BARS: f64 = 90.0;
const GAP: f64 = 18.0;
const NAME_SIZE: f64 = 10.5;
/// Values written over bars.
const N_VALUES: usize = 3;

/// The couplings of the last layer of model `model` at `time_s`: rows are capsules, columns classes.
///
/// The padding class gets nothing and is left out. The reference is circled, the most probable class is blue.
#[track_caller]
pub fn couplings(analysis: &Analysis, model: usize, time_s: f64) -> Picture {
    let routes = &analysis.models[model];
    let layer = routes.layers.last().expect("couplings are drawn of routes with layers");
    let slice = routes.slice_at(time_s);
    let values = layer.couplings(slice);
    let scale = RankScale::new(values.iter().copied());
    let map = map_area(layer);
    let names_height = routes.classes.iter().map(|name| text_width(name, NAME_SIZE)).fold(0.0, f64::max).min(120.0);
    let height = map.y + map.height + GAP + BARS + names_height + 34.0;
    let mut picture = Picture::new(map.x + map.width + MAP.2, height);
    heading(&mut picture, analysis, routes, slice, map.width + MAP.2);
    picture.map(map, values.iter().map(|value| scale.shade(*value)), layer.n_out);
    picture.frame(map, FAINT);
    rows(&mut picture, layer, map);
    let key_area = Area { x: map.x + map.width + 22.0, width: 12.0, height: map.height.min(160.0), ..map };
    scale.draw_key(&mut picture, key_area, "c");
    let bars = Area { y: map.y + map.height + GAP, height: BARS, ..map };
    let reference = analysis.reference_at(routes.time_s(slice));
    masses(&mut picture, routes, slice, reference, bars);
    picture
}

/// Where the map is: cells that can be told apart, in a picture that fits a screen.
fn map_area(layer: &Layer) -> Area {
    let width = (13.0 * layer.n_out as f64).clamp(240.0, 860.0);
    let height = (9.0 * layer.n_in() as f64).clamp(150.0, 540.0);
    Area { x: MAP.0, y: MAP.1, width, height }
}

fn heading(picture: &mut Picture, analysis: &Analysis, routes: &Routes, slice: usize, width: f64) {
    let time_s = routes.time_s(slice);
    let title = format!("Coupling coefficients c at t = {slice} ({time_s:.2} s)");
    picture.text((MAP.0, 16.0), title, 14.0, INK, Anchor::Start);
    let name = |class: usize| &routes.classes[class];
    let reference = analysis.reference_at(time_s).map_or_else(String::new, |label| format!(", reference {label}"));
    let line = format!(
        "{} · {} · most probable {}, most coupled {}{reference}",
        routes.model,
        analysis.id,
        name(largest(routes.probabilities_at(slice))),
        name(largest(routes.masses_at(slice))),
    );
    picture.text((MAP.0, 35.0), fitted(&line, 11.0, width), 11.0, FAINT, Anchor::Start);
}

/// The numbers of the capsules, and the slices of the window that they belong to.
fn rows(picture: &mut Picture, layer: &Layer, map: Area) {
    let row = map.height / layer.n_in() as f64;
    let every = [1, 2, 5, 10, 20, 50, 100, 1000].into_iter().find(|n| 10.0 <= *n as f64 * row).unwrap_or(1000);
    for (part, offset) in (-(layer.window[0] as i64)..=layer.window[1] as i64).enumerate() {
        let top = map.y + row * (part * layer.in_height) as f64;
        for capsule in (0..layer.in_height).step_by(every) {
            let y = top + row * (capsule as f64 + 0.5);
            picture.text((map.x - 5.0, y), capsule.to_string(), 9.0, FAINT, Anchor::End);
        }
        if 0 < part {
            picture.line(vec![(map.x, top), (map.x + map.width, top)], FAINT, 0.5);
        }
        if layer.window != [0, 0] {
            let name = if offset == 0 { "t".to_owned() } else { format!("t{offset:+}").replace('-', "−") };
            let middle = top + row * layer.in_height as f64 / 2.0;
            picture.text((map.x - 30.0, middle), name, 11.0, INK, Anchor::End);
        }
    }
    picture.text_upwards((12.0, map.y + map.height / 2.0), "capsule", 11.0, FAINT, Anchor::Middle);
}

/// Bars of the masses, with the names of the classes below them.
fn masses(picture: &mut Picture, routes: &Routes, slice: usize, reference: Option<&str>, area: Area) {
    let masses = routes.masses_at(slice);
    let most_probable = largest(routes.probabilities_at(slice));
    let reference = reference.and_then(|label| routes.classes.iter().position(|name| name == label));
    let top = masses.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let column = area.width / masses.len() as f64;
    let floor = area.y + area.height;
    let color = |class: usize| match class {
        class if Some(class) == reference => REFERENCE,
        class if class == most_probable => ANSWER,
        _ => INK,
    };
    let left_of = |class: usize| area.x + column * class as f64;
    for (class, mass) in masses.iter().enumerate() {
        let height = f64::from(mass / top) * (area.height - 12.0);
        let bar = Area { x: left_of(class) + 0.12 * column, y: floor - height, width: 0.76 * column, height };
        picture.rect(bar, if color(class) == INK { BAR } else { color(class) });
    }
    picture.line(vec![(area.x, floor), (area.x + area.width, floor)], FAINT, 1.0);
    picture.text((area.x - 5.0, area.y + 12.0), short(top), 10.0, FAINT, Anchor::End);
    picture.text((area.x - 5.0, floor), "0", 10.0, FAINT, Anchor::End);
    picture.text((area.x - 5.0, area.y + area.height / 2.0 + 6.0), "Σ c", 11.0, INK, Anchor::End);
    values(picture, masses, area, top);
    let first = reference.into_iter().chain([most_probable]).chain(by_size(masses));
    for class in with_room(masses.len(), column, first) {
        let at = (left_of(class) + column / 2.0, floor + 8.0);
        let name = fitted(&routes.classes[class], NAME_SIZE, 120.0);
        picture.text_upwards(at, &name, NAME_SIZE, color(class), Anchor::End);
        if Some(class) == reference {
            let half = text_width(&name, NAME_SIZE) / 2.0;
            picture.ring((at.0, at.1 + half), half.max(4.0) + 2.5, REFERENCE);
        }
    }
    picture.line(vec![(area.x, area.y - GAP / 2.0), (area.x + area.width, area.y - GAP / 2.0)], LINE, 0.5);
}

/// The largest masses over their bars.
fn values(picture: &mut Picture, masses: &[f32], area: Area, top: f32) {
    let column = area.width / masses.len() as f64;
    let mut written: Vec<f64> = Vec::new();
    for class in by_size(masses).into_iter().take(N_VALUES) {
        let x = area.x + column * (class as f64 + 0.5);
        let y = area.y + area.height - f64::from(masses[class] / top) * (area.height - 12.0) - 6.0;
        if written.iter().all(|other| 26.0 < (other - x).abs()) {
            picture.text((x, y), short(masses[class]), 9.0, INK, Anchor::Middle);
            written.push(x);
        }
    }
}

/// The classes with the largest values first.
fn by_size(values: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    order
}

/// Margins of a grid: left, top, right.
const GRID: (f64, f64, f64) = (40.0, 78.0, 76.0);
const CELL: (f64, f64) = (190.0, 150.0);
const CELL_BARS: f64 = 30.0;
/// From one map of a grid to the next: map, bars and a line of names.
const CELL_STEP: (f64, f64) = (CELL.0 + 14.0, CELL.1 + CELL_BARS + 42.0);

/// The couplings of every model's last layer at `times_s`, with the mass of each class in bars beneath each map.
#[track_caller]
pub fn grid(analysis: &Analysis, times_s: &[f64]) -> Picture {
    let (n_columns, n_rows) = (times_s.len() as f64, analysis.models.len() as f64);
    let bottom = if analysis.reference.is_empty() { 10.0 } else { 42.0 };
    let width = GRID.0 + n_columns * CELL_STEP.0 + GRID.2;
    let mut picture = Picture::new(width, GRID.1 + n_rows * CELL_STEP.1 + bottom);
    picture.text((GRID.0, 16.0), "Coupling coefficients c over time", 14.0, INK, Anchor::Start);
    let line = format!(
        "{} · rows of a map are capsules, columns classes; bars are Σ c, the most probable class blue; names blue where right",
        analysis.id
    );
    picture.text((GRID.0, 35.0), fitted(&line, 11.0, width - GRID.0), 11.0, FAINT, Anchor::Start);
    let scale = common_scale(analysis, times_s);
    for (row, routes) in analysis.models.iter().enumerate() {
        let y = GRID.1 + row as f64 * CELL_STEP.1;
        let name = fitted(&routes.model, 12.0, CELL.1 + CELL_BARS);
        picture.text_upwards((18.0, y + CELL.1 / 2.0), &name, 12.0, INK, Anchor::Middle);
        for (column, time_s) in times_s.iter().enumerate() {
            let area = Area { x: GRID.0 + column as f64 * CELL_STEP.0, y, width: CELL.0, height: CELL.1 };
            cell(&mut picture, analysis, routes, *time_s, &scale, area);
        }
    }
    let key_area = Area { x: width - GRID.2 + 12.0, y: GRID.1, width: 12.0, height: CELL.1 };
    scale.draw_key(&mut picture, key_area, "c");
    grid_reference(&mut picture, analysis, times_s, GRID.1 + n_rows * CELL_STEP.1 + 6.0, width - GRID.2);
    picture
}

fn last_layer(routes: &Routes) -> &Layer {
    routes.layers.last().expect("couplings are drawn of routes with layers")
}

/// One scale for all maps, so that they can be compared.
fn common_scale(analysis: &Analysis, times_s: &[f64]) -> RankScale {
    let maps = analysis.models.iter().flat_map(|routes| times_s.iter().map(move |time_s| (routes, *time_s)));
    RankScale::new(maps.flat_map(|(routes, time_s)| last_layer(routes).couplings(routes.slice_at(time_s))))
}

/// One map with its time above, its bars and its winners beneath.
fn cell(picture: &mut Picture, analysis: &Analysis, routes: &Routes, time_s: f64, scale: &RankScale, map: Area) {
    let slice = routes.slice_at(time_s);
    let layer = last_layer(routes);
    picture.map(map, layer.couplings(slice).into_iter().map(|value| scale.shade(value)), layer.n_out);
    picture.frame(map, LINE);
    let middle = map.x + map.width / 2.0;
    let heading = format!("t = {slice} ({:.2} s)", routes.time_s(slice));
    picture.text((middle, map.y - 10.0), heading, 11.0, INK, Anchor::Middle);
    let masses = routes.masses_at(slice);
    let (most_coupled, most_probable) = (largest(masses), largest(routes.probabilities_at(slice)));
    let column = map.width / masses.len() as f64;
    let floor = map.y + map.height + CELL_BARS;
    for (class, mass) in masses.iter().enumerate() {
        let height = f64::from(mass / masses[most_coupled].max(f32::MIN_POSITIVE)) * (CELL_BARS - 4.0);
        let x = map.x + column * class as f64;
        let bar = Area { x, y: floor - height, width: (0.8 * column).max(0.5), height };
        picture.rect(bar, if class == most_probable { ANSWER } else { BAR });
    }
    picture.line(vec![(map.x, floor), (map.x + map.width, floor)], FAINT, 0.6);
    let winners = format!("Σ c: {}   softmax: {}", routes.classes[most_coupled], routes.classes[most_probable]);
    let is_right =
        analysis.reference_at(routes.time_s(slice)).is_some_and(|label| label == routes.classes[most_probable]);
    let color = if is_right { ANSWER } else { INK };
    picture.text((middle, floor + 11.0), fitted(&winners, 10.0, map.width), 10.0, color, Anchor::Middle);
}

/// The reference on a line of time, with the times of the columns.
fn grid_reference(picture: &mut Picture, analysis: &Analysis, times_s: &[f64], y: f64, right: f64) {
    if analysis.reference.is_empty() {
        return;
    }
    let strip = Area { x: GRID.0, y, width: right - GRID.0 - (CELL_STEP.0 - CELL.0), height: 16.0 };
    reference_strip(picture, analysis, (0.0, analysis.duration_s), strip);
    for time_s in times_s {
        let x = strip.x + strip.width * (time_s / analysis.duration_s).min(1.0);
        picture.line(vec![(x, y - 4.0), (x, y + 20.0)], REFERENCE, 1.4);
    }
    picture.text((GRID.0, y + 27.0), "reference, with the times of the columns", 9.5, FAINT, Anchor::Start);
}

/// Slices shown at either end.
pub const N_SLICES: usize = 10;

/// Margins of the panels: left, top.
const PANELS: (f64, f64) = (64.0, 76.0);
const PANEL: (f64, f64) = (400.0, 150.0);
const PANEL_STEP: (f64, f64) = (PANEL.0 + 44.0, PANEL.1 + 82.0);
const LEGEND: f64 = 96.0;
/// A class that stays below this is not worth a curve.
const LEAST: f32 = 0.05;

/// The first and the last `n_slices` of every model.
pub fn softmax(analysis: &Analysis, n_slices: usize) -> Picture {
    let n_rows = analysis.models.len() as f64;
    let mut picture = Picture::new(PANELS.0 + 2.0 * PANEL_STEP.0 + LEGEND, PANELS.1 + n_rows * PANEL_STEP.1);
    picture.text((PANELS.0, 16.0), "Softmax at start and end", 14.0, INK, Anchor::Start);
    let line = format!("{} · horizontal: time in ms and greedy label, vertical: probability", analysis.id);
    picture.text((PANELS.0, 35.0), line, 11.0, FAINT, Anchor::Start);
    for (column, name) in ["start", "end"].into_iter().enumerate() {
        let x = PANELS.0 + column as f64 * PANEL_STEP.0;
        picture.text((x, PANELS.1 - 14.0), name, 12.0, INK, Anchor::Start);
    }
    let curves = shown_classes(analysis, n_slices);
    for (row, routes) in analysis.models.iter().enumerate() {
        let y = PANELS.1 + row as f64 * PANEL_STEP.1;
        for (column, slices) in both_ends(routes.n_slices(), n_slices).into_iter().enumerate() {
            let area = Area { x: PANELS.0 + column as f64 * PANEL_STEP.0, y, width: PANEL.0, height: PANEL.1 };
            panel(&mut picture, analysis, routes, slices, &curves, area);
        }
        let name = fitted(&routes.model, 12.0, PANEL.1);
        picture.text_upwards((16.0, y + PANEL.1 / 2.0), &name, 12.0, INK, Anchor::Middle);
    }
    legend(&mut picture, &curves);
    picture
}

/// The first and the last slices of an utterance.
fn both_ends(n_all: usize, n: usize) -> [std::ops::Range<usize>; 2] {
    [0..n.min(n_all), n_all.saturating_sub(n)..n_all]
}

/// Names of the classes that have a curve, the most probable first, each with its color.
fn shown_classes(analysis: &Analysis, n_slices: usize) -> Vec<(String, Color)> {
    let mut best: Vec<(f32, &str)> = Vec::new();
    for routes in &analysis.models {
        for (class, name) in routes.classes.iter().enumerate() {
            let slices = both_ends(routes.n_slices(), n_slices).into_iter().flatten();
            let peak = slices.map(|slice| routes.probabilities_at(slice)[class]).fold(0.0, f32::max);
            match best.iter_mut().find(|(_, known)| known == name) {
                Some((value, _)) => *value = value.max(peak),
                None => best.push((peak, name)),
            }
        }
    }
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shown = best.iter().filter(|(peak, _)| LEAST <= *peak).map(|(_, name)| (*name).to_owned());
    shown.zip(DISTINCT).collect()
}

fn legend(picture: &mut Picture, curves: &[(String, Color)]) {
    let x = PANELS.0 + 2.0 * PANEL_STEP.0 - 22.0;
    for (row, (name, color)) in curves.iter().enumerate() {
        let y = PANELS.1 + 8.0 + 17.0 * row as f64;
        picture.line(vec![(x, y), (x + 20.0, y)], *color, 2.0);
        picture.dot((x + 10.0, y), 2.4, *color);
        picture.text((x + 27.0, y), fitted(name, 11.0, LEGEND - 30.0), 11.0, INK, Anchor::Start);
    }
}

/// Curves of some slices of a model.
fn panel(
    picture: &mut Picture,
    analysis: &Analysis,
    routes: &Routes,
    slices: std::ops::Range<usize>,
    curves: &[(String, Color)],
    area: Area,
) {
    let n = slices.len().max(1);
    let column = area.width / n as f64;
    let x = |slice: usize| area.x + column * ((slice - slices.start) as f64 + 0.5);
    let y = |probability: f32| area.y + area.height * (1.0 - f64::from(probability));
    for share in [0.0, 0.25, 0.5, 0.75, 1.0_f32] {
        let ends = vec![(area.x, y(share)), (area.x + area.width, y(share))];
        picture.line(ends, if share == 0.0 { FAINT } else { LINE }, 0.5);
        picture.text((area.x - 5.0, y(share)), format!("{share}"), 9.5, FAINT, Anchor::End);
    }
    for (name, color) in curves {
        let Some(class) = routes.classes.iter().position(|known| known == name) else { continue };
        let point = |slice: usize| (x(slice), y(routes.probabilities_at(slice)[class]));
        let points: Vec<(f64, f64)> = slices.clone().map(point).collect();
        points.iter().for_each(|point| picture.dot(*point, 2.0, *color));
        picture.line(points, *color, 1.6);
    }
    let most_probable = routes.most_probable();
    for slice in slices.clone() {
        let name = &routes.classes[most_probable[slice]];
        let color = curves.iter().find(|(known, _)| known == name).map_or(INK, |(_, color)| *color);
        let floor = area.y + area.height;
        picture.text((x(slice), floor + 12.0), fitted(name, 11.0, column), 11.0, color, Anchor::Middle);
        // Middles lie on half milliseconds: all are rounded up.
        let ms = format!("{:.0}", 1000.0 * routes.time_s(slice) + 0.01);
        picture.text((x(slice), floor + 26.0), ms, 9.0, FAINT, Anchor::Middle);
    }
    let half_s = routes.clock.slice_s / 2.0;
    let span_s = (routes.time_s(slices.start) - half_s, routes.time_s(slices.end.max(1) - 1) + half_s);
    reference_strip(picture, analysis, span_s, Area { y: area.y + area.height + 38.0, height: 15.0, ..area });
}

/// The reference within a span of time, as boxes on a line.
fn reference_strip(picture: &mut Picture, analysis: &Analysis, span_s: (f64, f64), area: Area) {
    let x = |time_s: f64| area.x + area.width * ((time_s - span_s.0) / (span_s.1 - span_s.0)).clamp(0.0, 1.0);
    let within = analysis.reference.iter().filter(|label| span_s.0 < label.end_s && label.start_s < span_s.1);
    for label in within {
        let (left, right) = (x(label.start_s), x(label.end_s));
        picture.faint_rect(Area { x: left, y: area.y, width: right - left, height: area.height }, REFERENCE);
        for edge in [left, right] {
            picture.line(vec![(edge, area.y), (edge, area.y + area.height)], REFERENCE, 0.7);
        }
        if text_width(&label.name, 10.0) < right - left {
            let middle = f64::midpoint(left, right);
            picture.text((middle, area.y + area.height / 2.0), label.name.clone(), 10.0, REFERENCE, Anchor::Middle);
        }
    }
}

#[cfg(test)]
mod tests;
