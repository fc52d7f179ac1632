//! The softmax over time: where an utterance starts and where it ends, a row for each model.
//!
//! Below each curve stand the greedy labels of the slices and, where it is known, what was said.

use super::Analysis;
use super::ramp::DISTINCT;
use super::routes::Routes;
use super::scale::{fitted, turned_middle};
use super::sheet::{Anchor, Colour, FAINT, INK, LINE, Picture, Place, TRUTH, text_width};

/// Slices shown at either end.
pub const N_SLICES: usize = 10;

const LEFT: f64 = 64.0;
const TOP: f64 = 76.0;
const PANEL: (f64, f64) = (400.0, 150.0);
const STEP: (f64, f64) = (PANEL.0 + 44.0, PANEL.1 + 82.0);
const LEGEND: f64 = 96.0;
/// A class that stays below this is not worth a curve.
const LEAST: f32 = 0.05;

/// The first and the last `n_slices` of every model.
pub fn picture(analysis: &Analysis, n_slices: usize) -> Picture {
    let n_rows = analysis.models.len() as f64;
    let mut picture = Picture::new(LEFT + 2.0 * STEP.0 + LEGEND, TOP + n_rows * STEP.1);
    picture.text((LEFT, 16.0), "Softmax at start and end", 14.0, INK, Anchor::Start);
    let line = format!("{} · horizontal: time in ms and greedy label, vertical: probability", analysis.id);
    picture.text((LEFT, 35.0), line, 11.0, FAINT, Anchor::Start);
    for (column, name) in ["start", "end"].into_iter().enumerate() {
        let x = LEFT + column as f64 * STEP.0;
        picture.text((x, TOP - 14.0), name, 12.0, INK, Anchor::Start);
    }
    let curves = shown_classes(analysis, n_slices);
    for (row, routes) in analysis.models.iter().enumerate() {
        let y = TOP + row as f64 * STEP.1;
        for (column, slices) in both_ends(routes.n_slices(), n_slices).into_iter().enumerate() {
            let place = Place { x: LEFT + column as f64 * STEP.0, y, width: PANEL.0, height: PANEL.1 };
            panel(&mut picture, analysis, routes, slices, &curves, place);
        }
        let name = fitted(&routes.model, 12.0, PANEL.1);
        turned_middle(&mut picture, (16.0, y + PANEL.1 / 2.0), &name, 12.0, INK);
    }
    legend(&mut picture, &curves);
    picture
}

/// The first and the last slices of an utterance.
fn both_ends(n_all: usize, n: usize) -> [std::ops::Range<usize>; 2] {
    [0..n.min(n_all), n_all.saturating_sub(n)..n_all]
}

/// Names of the classes that have a curve, the likeliest first, each with its colour.
fn shown_classes(analysis: &Analysis, n_slices: usize) -> Vec<(String, Colour)> {
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

fn legend(picture: &mut Picture, curves: &[(String, Colour)]) {
    let x = LEFT + 2.0 * STEP.0 - 22.0;
    for (row, (name, colour)) in curves.iter().enumerate() {
        let y = TOP + 8.0 + 17.0 * row as f64;
        picture.line(vec![(x, y), (x + 20.0, y)], *colour, 2.0);
        picture.dot((x + 10.0, y), 2.4, *colour);
        picture.text((x + 27.0, y), fitted(name, 11.0, LEGEND - 30.0), 11.0, INK, Anchor::Start);
    }
}

/// Curves of some slices of a model.
fn panel(
    picture: &mut Picture,
    analysis: &Analysis,
    routes: &Routes,
    slices: std::ops::Range<usize>,
    curves: &[(String, Colour)],
    place: Place,
) {
    let n = slices.len().max(1);
    let column = place.width / n as f64;
    let x = |slice: usize| place.x + column * ((slice - slices.start) as f64 + 0.5);
    let y = |probability: f32| place.y + place.height * (1.0 - f64::from(probability));
    for share in [0.0, 0.25, 0.5, 0.75, 1.0_f32] {
        let ends = vec![(place.x, y(share)), (place.x + place.width, y(share))];
        picture.line(ends, if share == 0.0 { FAINT } else { LINE }, 0.5);
        picture.text((place.x - 5.0, y(share)), format!("{share}"), 9.5, FAINT, Anchor::End);
    }
    for (name, colour) in curves {
        let Some(class) = routes.classes.iter().position(|known| known == name) else { continue };
        let point = |slice: usize| (x(slice), y(routes.probabilities_at(slice)[class]));
        let points: Vec<(f64, f64)> = slices.clone().map(point).collect();
        points.iter().for_each(|point| picture.dot(*point, 2.0, *colour));
        picture.line(points, *colour, 1.6);
    }
    let likeliest = routes.likeliest();
    for slice in slices.clone() {
        let name = &routes.classes[likeliest[slice]];
        let colour = curves.iter().find(|(known, _)| known == name).map_or(INK, |(_, colour)| *colour);
        let floor = place.y + place.height;
        picture.text((x(slice), floor + 12.0), fitted(name, 11.0, column), 11.0, colour, Anchor::Middle);
        // Middles lie on half milliseconds: all are rounded up.
        let ms = format!("{:.0}", 1000.0 * routes.time_s(slice) + 0.01);
        picture.text((x(slice), floor + 26.0), ms, 9.0, FAINT, Anchor::Middle);
    }
    let half_s = routes.clock.slice_s / 2.0;
    let span_s = (routes.time_s(slices.start) - half_s, routes.time_s(slices.end.max(1) - 1) + half_s);
    reference_strip(picture, analysis, span_s, Place { y: place.y + place.height + 38.0, height: 15.0, ..place });
}

/// What was said within a span of time, as boxes on a line.
pub(super) fn reference_strip(picture: &mut Picture, analysis: &Analysis, span_s: (f64, f64), place: Place) {
    let x = |time_s: f64| place.x + place.width * ((time_s - span_s.0) / (span_s.1 - span_s.0)).clamp(0.0, 1.0);
    let within = analysis.reference.iter().filter(|label| span_s.0 < label.end_s && label.start_s < span_s.1);
    for label in within {
        let (left, right) = (x(label.start_s), x(label.end_s));
        picture.rect(Place { x: left, y: place.y, width: right - left, height: place.height }, [255, 241, 238]);
        for edge in [left, right] {
            picture.line(vec![(edge, place.y), (edge, place.y + place.height)], TRUTH, 0.7);
        }
        if text_width(&label.name, 10.0) < right - left {
            let middle = f64::midpoint(left, right);
            picture.text((middle, place.y + place.height / 2.0), label.name.clone(), 10.0, TRUTH, Anchor::Middle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{analysis, decode, routes, texts};
    use super::*;

    #[test]
    fn greedy_labels_times_and_what_was_said_are_written() {
        let row = |a: f32| [a, 0.02, 0.98 - a];
        let rows = (0..20).map(|t| row(if t < 5 { 0.9 } else { 0.1 })).collect::<Vec<_>>().concat();
        let analysis = analysis(vec![routes(&["a", "b"], &rows, &rows)]);
        let picture = picture(&analysis, 10);
        let svg = picture.svg();
        let texts = texts(&svg);
        // Five slices of `a` and five blanks, then ten blanks; each name also stands in the legend.
        assert_eq!(texts.iter().filter(|text| **text == "∅").count(), 15 + 1);
        assert_eq!(texts.iter().filter(|text| **text == "a").count(), 5 + 1 + 2, "and as what was said at both ends");
        assert!(texts.contains(&"13") && texts.contains(&"773"), "{texts:?}");
        assert_eq!(texts.iter().filter(|text| **text == "b").count(), 1, "`b` was said, but has no curve");
        let (_, pixels) = decode(&picture.png());
        for (name, colour) in shown_classes(&analysis, 10) {
            assert!(pixels.iter().filter(|pixel| **pixel == colour).count() > 100, "the curve of {name}");
        }
    }

    #[test]
    fn a_short_utterance_has_all_its_slices_at_both_ends() {
        assert_eq!(both_ends(3, 10), [0..3, 0..3]);
        assert_eq!(both_ends(25, 10), [0..10, 15..25]);
    }
}
