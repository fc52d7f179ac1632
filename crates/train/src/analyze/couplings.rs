//! The couplings at a time: a heat map of capsules and classes with the mass of every class in bars beneath.

use super::Analysis;
use super::routes::{Layer, Routes, largest};
use super::scale::{by_size, fitted, key, short, turned, turned_middle, with_room};
use super::sheet::{ANSWER, Anchor, FAINT, INK, LINE, PAPER, Picture, Place, TRUTH, text_width};

const LEFT: f64 = 74.0;
const TOP: f64 = 62.0;
const RIGHT: f64 = 84.0;
const BARS: f64 = 90.0;
const GAP: f64 = 18.0;
const NAME_SIZE: f64 = 10.5;
/// Values written over bars.
const N_VALUES: usize = 3;

/// The couplings of the last layer of model `model` at `time_s`: rows are capsules, columns classes.
///
/// The padding class gets nothing and is left out. What was said is circled in red, what is likeliest is blue.
#[track_caller]
pub fn picture(analysis: &Analysis, model: usize, time_s: f64) -> Picture {
    let routes = &analysis.models[model];
    let layer = routes.layers.last().expect("couplings are drawn of routes with layers");
    let slice = routes.slice_at(time_s);
    let values = layer.couplings(slice);
    let range = range(&values);
    let map = place(layer);
    let names_height = routes.classes.iter().map(|name| text_width(name, NAME_SIZE)).fold(0.0, f64::max).min(120.0);
    let height = map.y + map.height + GAP + BARS + names_height + 34.0;
    let mut picture = Picture::new(map.x + map.width + RIGHT, height);
    heading(&mut picture, analysis, routes, slice, map.width + RIGHT);
    picture.map(map, &values, layer.n_out, range);
    picture.frame(map, FAINT);
    rows(&mut picture, layer, map);
    let key_place = Place { x: map.x + map.width + 22.0, width: 12.0, height: map.height.min(160.0), ..map };
    key(&mut picture, key_place, "c", range);
    let bars = Place { y: map.y + map.height + GAP, height: BARS, ..map };
    let said = analysis.said_at(routes.time_s(slice));
    masses(&mut picture, routes, slice, said, bars);
    picture
}

/// The smallest and the largest value.
pub(super) fn range(values: &[f32]) -> (f32, f32) {
    values.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// Where the map lies: cells that can be told apart, in a picture that fits a screen.
fn place(layer: &Layer) -> Place {
    let width = (13.0 * layer.n_out as f64).clamp(240.0, 860.0);
    let height = (9.0 * layer.n_in() as f64).clamp(150.0, 540.0);
    Place { x: LEFT, y: TOP, width, height }
}

fn heading(picture: &mut Picture, analysis: &Analysis, routes: &Routes, slice: usize, width: f64) {
    let time_s = routes.time_s(slice);
    let title = format!("Coupling coefficients c at t = {slice} ({time_s:.2} s)");
    picture.text((LEFT, 16.0), title, 14.0, INK, Anchor::Start);
    let name = |class: usize| &routes.classes[class];
    let said = analysis.said_at(time_s).map_or_else(String::new, |said| format!(", reference {said}"));
    let line = format!(
        "{} · {} · likeliest {}, most coupled {}{said}",
        routes.model,
        analysis.id,
        name(largest(routes.probabilities_at(slice))),
        name(largest(routes.masses_at(slice))),
    );
    picture.text((LEFT, 35.0), fitted(&line, 11.0, width), 11.0, FAINT, Anchor::Start);
}

/// The numbers of the capsules, and the slices of the window that they belong to.
fn rows(picture: &mut Picture, layer: &Layer, map: Place) {
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
    turned_middle(picture, (12.0, map.y + map.height / 2.0), "capsule", 11.0, FAINT);
}

/// Bars of the masses, with the names of the classes below them.
fn masses(picture: &mut Picture, routes: &Routes, slice: usize, said: Option<&str>, place: Place) {
    let masses = routes.masses_at(slice);
    let likeliest = largest(routes.probabilities_at(slice));
    let said = said.and_then(|said| routes.classes.iter().position(|name| name == said));
    let top = masses.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
    let column = place.width / masses.len() as f64;
    let floor = place.y + place.height;
    let colour = |class: usize| match class {
        class if Some(class) == said => TRUTH,
        class if class == likeliest => ANSWER,
        _ => INK,
    };
    picture.rect(place, PAPER);
    let left_of = |class: usize| place.x + column * class as f64;
    for (class, mass) in masses.iter().enumerate() {
        let height = f64::from(mass / top) * (place.height - 12.0);
        let bar = Place { x: left_of(class) + 0.12 * column, y: floor - height, width: 0.76 * column, height };
        picture.rect(bar, if colour(class) == INK { [140, 149, 159] } else { colour(class) });
    }
    picture.line(vec![(place.x, floor), (place.x + place.width, floor)], FAINT, 1.0);
    picture.text((place.x - 5.0, place.y + 12.0), short(top), 10.0, FAINT, Anchor::End);
    picture.text((place.x - 5.0, floor), "0", 10.0, FAINT, Anchor::End);
    picture.text((place.x - 5.0, place.y + place.height / 2.0 + 6.0), "Σ c", 11.0, INK, Anchor::End);
    values(picture, masses, place, top);
    let first = said.into_iter().chain([likeliest]).chain(by_size(masses));
    for class in with_room(masses.len(), column, first) {
        let at = (left_of(class) + column / 2.0, floor + 8.0);
        let name = fitted(&routes.classes[class], NAME_SIZE, 120.0);
        turned(picture, at, &name, NAME_SIZE, colour(class));
        if Some(class) == said {
            let half = text_width(&name, NAME_SIZE) / 2.0;
            picture.ring((at.0, at.1 + half), half.max(4.0) + 2.5, TRUTH);
        }
    }
    picture.line(vec![(place.x, place.y - GAP / 2.0), (place.x + place.width, place.y - GAP / 2.0)], LINE, 0.5);
}

/// The largest masses over their bars.
fn values(picture: &mut Picture, masses: &[f32], place: Place, top: f32) {
    let column = place.width / masses.len() as f64;
    let mut written: Vec<f64> = Vec::new();
    for class in by_size(masses).into_iter().take(N_VALUES) {
        let x = place.x + column * (class as f64 + 0.5);
        let y = place.y + place.height - f64::from(masses[class] / top) * (place.height - 12.0) - 6.0;
        if written.iter().all(|other| 26.0 < (other - x).abs()) {
            picture.text((x, y), short(masses[class]), 9.0, INK, Anchor::Middle);
            written.push(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sheet::SCALE;
    use super::super::testing::{analysis, decode, inked, light, routes, texts};
    use super::*;

    /// Two slices, three capsules, classes a, b, c and blank; in the second slice capsule 1 is routed to c.
    fn known() -> Analysis {
        let mut couplings = vec![0.25; 24];
        couplings[12 + 4..][..4].copy_from_slice(&[0.05, 0.05, 0.85, 0.05]);
        let masses = [0.75, 0.75, 0.75, 0.75, 0.55, 0.55, 1.35, 0.55];
        let probabilities = [0.1, 0.1, 0.1, 0.7, 0.6, 0.1, 0.2, 0.1];
        let mut routes = routes(&["a", "b", "c"], &masses, &probabilities);
        routes.layers = vec![Layer::new("caps1", 3, [0, 0], 4, &couplings)];
        analysis(vec![routes])
    }

    fn pixel(pixels: &[[u8; 3]], width: usize, (x, y): (f64, f64)) -> [u8; 3] {
        pixels[(y * SCALE) as usize * width + (x * SCALE) as usize]
    }

    #[test]
    fn the_largest_coefficient_is_the_darkest_cell() {
        let analysis = known();
        let time_s = analysis.models[0].time_s(1);
        let map = place(&analysis.models[0].layers[0]);
        let (width, pixels) = decode(&picture(&analysis, 0, time_s).png());
        let cell = |at: usize| {
            let (row, column) = ((at / 4) as f64, (at % 4) as f64);
            pixel(&pixels, width, (map.x + (column + 0.5) * map.width / 4.0, map.y + (row + 0.5) * map.height / 3.0))
        };
        let darkest = (0..12).min_by_key(|at| light(cell(*at)));
        assert_eq!(darkest, Some(6), "capsule 1, class 2");
        assert!((0..12).filter(|at| *at != 6).all(|at| light(cell(6)) + 50_000 < light(cell(at))));
    }

    #[test]
    fn the_bar_of_the_largest_mass_is_the_tallest_and_that_of_the_likeliest_class_is_blue() {
        let mut analysis = known();
        analysis.reference.clear();
        let map = place(&analysis.models[0].layers[0]);
        let (width, pixels) = decode(&picture(&analysis, 0, analysis.models[0].time_s(1)).png());
        let floor = map.y + map.height + GAP + BARS;
        let middle = |class: usize| map.x + (class as f64 + 0.5) * map.width / 4.0;
        let is_bar = |class: usize, above: f64| pixel(&pixels, width, (middle(class), floor - above)) != [255; 3];
        // The tallest is 78 points, the others 32.
        assert_eq!([0, 1, 2, 3].map(|class| is_bar(class, 70.0)), [false, false, true, false]);
        assert_eq!([0, 1, 2, 3].map(|class| is_bar(class, 25.0)), [true; 4]);
        assert_eq!(pixel(&pixels, width, (middle(0), floor - 10.0)), ANSWER);
    }

    #[test]
    fn names_values_and_times_are_written() {
        let analysis = known();
        let picture = picture(&analysis, 0, analysis.models[0].time_s(1));
        let svg = picture.svg();
        let texts = texts(&svg);
        for expected in ["a", "b", "c", "∅", "0", "1", "2", "1.35", "0.85", "0.050", "capsule"] {
            assert!(texts.contains(&expected), "`{expected}` is not in {texts:?}");
        }
        assert!(texts.iter().any(|text| text.starts_with("Coupling coefficients c at t = 1 (0.0")), "{texts:?}");
        assert!(texts.iter().any(|text| text.ends_with("likeliest a, most coupled c, reference b")), "{texts:?}");
        assert!(inked(&picture.png()) > 0.1);
    }

    #[test]
    fn many_classes_have_only_the_names_that_have_room() {
        let names: Vec<String> = (0..2000).map(|k| format!("w{k}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let row: Vec<f32> = (0..2001).map(|k| if k == 1234 { 0.9 } else { 1e-4 }).collect();
        let analysis = analysis(vec![routes(&names, &row, &row)]);
        let svg = picture(&analysis, 0, 0.0).svg();
        let texts = texts(&svg);
        assert!(texts.contains(&"w1234"), "the heaviest class is named");
        assert!(texts.len() < 200, "{} names", texts.len());
    }
}
