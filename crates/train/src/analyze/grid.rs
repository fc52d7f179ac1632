//! Many maps at once: a column for each time, a row for each model, all in the same shades.

use super::couplings::range;
use super::routes::{Layer, Routes, largest};
use super::scale::{fitted, key, turned_middle};
use super::sheet::{ANSWER, Anchor, FAINT, INK, LINE, Picture, Place, TRUTH};
use super::{Analysis, trajectories};

const LEFT: f64 = 40.0;
const TOP: f64 = 78.0;
const RIGHT: f64 = 76.0;
const CELL: (f64, f64) = (190.0, 150.0);
const BARS: f64 = 30.0;
/// From the top of one row of maps to the next: map, bars and a line of names.
const STEP: (f64, f64) = (CELL.0 + 14.0, CELL.1 + BARS + 42.0);

/// The couplings of every model's last layer at `times_s`, with the mass of each class in bars beneath each map.
#[track_caller]
pub fn picture(analysis: &Analysis, times_s: &[f64]) -> Picture {
    let (n_columns, n_rows) = (times_s.len() as f64, analysis.models.len() as f64);
    let bottom = if analysis.reference.is_empty() { 10.0 } else { 42.0 };
    let width = LEFT + n_columns * STEP.0 + RIGHT;
    let mut picture = Picture::new(width, TOP + n_rows * STEP.1 + bottom);
    picture.text((LEFT, 16.0), "Coupling coefficients c over time", 14.0, INK, Anchor::Start);
    let line = format!(
        "{} · rows of a map are capsules, columns classes; bars are Σ c, the likeliest class blue; names blue where right",
        analysis.id
    );
    picture.text((LEFT, 35.0), fitted(&line, 11.0, width - LEFT), 11.0, FAINT, Anchor::Start);
    let range = common_range(analysis, times_s);
    for (row, routes) in analysis.models.iter().enumerate() {
        let y = TOP + row as f64 * STEP.1;
        let name = fitted(&routes.model, 12.0, CELL.1 + BARS);
        turned_middle(&mut picture, (18.0, y + CELL.1 / 2.0), &name, 12.0, INK);
        for (column, time_s) in times_s.iter().enumerate() {
            let place = Place { x: LEFT + column as f64 * STEP.0, y, width: CELL.0, height: CELL.1 };
            cell(&mut picture, analysis, routes, *time_s, range, place);
        }
    }
    let key_place = Place { x: width - RIGHT + 12.0, y: TOP, width: 12.0, height: CELL.1 };
    key(&mut picture, key_place, "c", range);
    reference(&mut picture, analysis, times_s, TOP + n_rows * STEP.1 + 6.0, width - RIGHT);
    picture
}

fn last_layer(routes: &Routes) -> &Layer {
    routes.layers.last().expect("couplings are drawn of routes with layers")
}

fn common_range(analysis: &Analysis, times_s: &[f64]) -> (f32, f32) {
    let maps = analysis.models.iter().flat_map(|routes| times_s.iter().map(move |time_s| (routes, *time_s)));
    let ranges = maps.map(|(routes, time_s)| range(&last_layer(routes).couplings(routes.slice_at(time_s))));
    ranges.fold((f32::INFINITY, f32::NEG_INFINITY), |all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// One map with its time above, its bars and its winners beneath.
fn cell(picture: &mut Picture, analysis: &Analysis, routes: &Routes, time_s: f64, range: (f32, f32), map: Place) {
    let slice = routes.slice_at(time_s);
    let layer = last_layer(routes);
    picture.map(map, &layer.couplings(slice), layer.n_out, range);
    picture.frame(map, LINE);
    let middle = map.x + map.width / 2.0;
    let heading = format!("t = {slice} ({:.2} s)", routes.time_s(slice));
    picture.text((middle, map.y - 10.0), heading, 11.0, INK, Anchor::Middle);
    let masses = routes.masses_at(slice);
    let (heaviest, likeliest) = (largest(masses), largest(routes.probabilities_at(slice)));
    let column = map.width / masses.len() as f64;
    let floor = map.y + map.height + BARS;
    for (class, mass) in masses.iter().enumerate() {
        let height = f64::from(mass / masses[heaviest].max(f32::MIN_POSITIVE)) * (BARS - 4.0);
        let x = map.x + column * class as f64;
        let bar = Place { x, y: floor - height, width: (0.8 * column).max(0.5), height };
        picture.rect(bar, if class == likeliest { ANSWER } else { [140, 149, 159] });
    }
    picture.line(vec![(map.x, floor), (map.x + map.width, floor)], FAINT, 0.6);
    let winners = format!("Σ c: {}   softmax: {}", routes.classes[heaviest], routes.classes[likeliest]);
    let is_right = analysis.said_at(routes.time_s(slice)).is_some_and(|said| said == routes.classes[likeliest]);
    let colour = if is_right { ANSWER } else { INK };
    picture.text((middle, floor + 11.0), fitted(&winners, 10.0, map.width), 10.0, colour, Anchor::Middle);
}

/// What was said, on a line of time, with the times of the columns.
fn reference(picture: &mut Picture, analysis: &Analysis, times_s: &[f64], y: f64, right: f64) {
    if analysis.reference.is_empty() {
        return;
    }
    let strip = Place { x: LEFT, y, width: right - LEFT - (STEP.0 - CELL.0), height: 16.0 };
    trajectories::reference_strip(picture, analysis, (0.0, analysis.duration_s), strip);
    for time_s in times_s {
        let x = strip.x + strip.width * (time_s / analysis.duration_s).min(1.0);
        picture.line(vec![(x, y - 4.0), (x, y + 20.0)], TRUTH, 1.4);
    }
    picture.text((LEFT, y + 27.0), "reference, with the times of the columns in red", 9.5, FAINT, Anchor::Start);
}

#[cfg(test)]
mod tests {
    use super::super::testing::{analysis, inked, routes, texts};
    use super::*;

    #[test]
    fn there_is_a_map_for_each_time_of_each_model() {
        let rows = [0.7, 0.2, 0.1, 0.1, 0.1, 0.8, 0.2, 0.6, 0.2];
        let mut other = routes(&["a", "b"], &rows, &rows);
        other.model = "other".to_owned();
        let analysis = analysis(vec![routes(&["a", "b"], &rows, &rows), other]);
        let times_s: Vec<f64> = (0..3).map(|slice| analysis.models[0].time_s(slice)).collect();
        let picture = picture(&analysis, &times_s);
        let svg = picture.svg();
        assert_eq!(svg.matches("<image").count(), 2 * 3 + 1, "maps and the key");
        let texts = texts(&svg);
        for expected in ["toy", "other", "t = 0 (0.01 s)", "t = 2 (0.09 s)", "Σ c: a   softmax: a", "a", "b"] {
            assert!(texts.contains(&expected), "`{expected}` is not in {texts:?}");
        }
        assert!(inked(&picture.png()) > 0.1);
    }
}
