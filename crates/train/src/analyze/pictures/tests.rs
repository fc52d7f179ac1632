//! Figures with known contents, read back from their pixels and letters.

use super::super::tests::{analysis, decode, inked, light, routes, texts};
use super::*;

/// Pixels per point of a PNG file.
const SCALE: f64 = 2.0;

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
    let map = map_area(&analysis.models[0].layers[0]);
    let (width, pixels) = decode(&couplings(&analysis, 0, time_s).png());
    let cell = |at: usize| {
        let (row, column) = ((at / 4) as f64, (at % 4) as f64);
        pixel(&pixels, width, (map.x + (column + 0.5) * map.width / 4.0, map.y + (row + 0.5) * map.height / 3.0))
    };
    let darkest = (0..12).min_by_key(|at| light(cell(*at)));
    assert_eq!(darkest, Some(6), "capsule 1, class 2");
    assert!((0..12).filter(|at| *at != 6).all(|at| light(cell(6)) + 50_000 < light(cell(at))));
}

#[test]
fn the_bar_of_the_largest_mass_is_the_tallest_and_that_of_the_most_probable_class_is_blue() {
    let mut analysis = known();
    analysis.reference.clear();
    let map = map_area(&analysis.models[0].layers[0]);
    let (width, pixels) = decode(&couplings(&analysis, 0, analysis.models[0].time_s(1)).png());
    let floor = map.y + map.height + GAP + BARS;
    let middle = |class: usize| map.x + (class as f64 + 0.5) * map.width / 4.0;
    let is_bar = |class: usize, above: f64| pixel(&pixels, width, (middle(class), floor - above)) != [255; 3];
    // The tallest is 78 points, the others 32.
    assert_eq!([0, 1, 2, 3].map(|class| is_bar(class, 70.0)), [false, false, true, false]);
    assert_eq!([0, 1, 2, 3].map(|class| is_bar(class, 25.0)), [true; 4]);
    assert_eq!(pixel(&pixels, width, (middle(0), floor - 10.0)), [9, 105, 218]);
}

#[test]
fn names_values_and_times_are_written() {
    let analysis = known();
    let picture = couplings(&analysis, 0, analysis.models[0].time_s(1));
    let svg = picture.svg();
    let texts = texts(&svg);
    for expected in ["a", "b", "c", "∅", "0", "1", "2", "1.35", "0.85", "0.050", "capsule"] {
        assert!(texts.contains(&expected), "`{expected}` is not in {texts:?}");
    }
    assert!(texts.iter().any(|text| text.starts_with("Coupling coefficients c at t = 1 (0.0")), "{texts:?}");
    assert!(texts.iter().any(|text| text.ends_with("most probable a, most coupled c, reference b")), "{texts:?}");
    assert!(inked(&picture.png()) > 0.1);
}

#[test]
fn many_classes_have_only_the_names_that_have_room() {
    let names: Vec<String> = (0..2000).map(|k| format!("w{k}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let row: Vec<f32> = (0..2001).map(|k| if k == 1234 { 0.9 } else { 1e-4 }).collect();
    let analysis = analysis(vec![routes(&names, &row, &row)]);
    let svg = couplings(&analysis, 0, 0.0).svg();
    let texts = texts(&svg);
    assert!(texts.contains(&"w1234"), "the class with the largest sum is named");
    assert!(texts.len() < 200, "{} names", texts.len());
}

#[test]
fn there_is_a_map_for_each_time_of_each_model() {
    let rows = [0.7, 0.2, 0.1, 0.1, 0.1, 0.8, 0.2, 0.6, 0.2];
    let mut other = routes(&["a", "b"], &rows, &rows);
    other.model = "other".to_owned();
    let analysis = analysis(vec![routes(&["a", "b"], &rows, &rows), other]);
    let times_s: Vec<f64> = (0..3).map(|slice| analysis.models[0].time_s(slice)).collect();
    let picture = grid(&analysis, &times_s);
    let svg = picture.svg();
    assert_eq!(svg.matches("<image").count(), 2 * 3 + 1, "maps and the key");
    let texts = texts(&svg);
    for expected in ["toy", "other", "t = 0 (0.01 s)", "t = 2 (0.09 s)", "Σ c: a   softmax: a", "a", "b"] {
        assert!(texts.contains(&expected), "`{expected}` is not in {texts:?}");
    }
    assert!(inked(&picture.png()) > 0.1);
}

#[test]
fn greedy_labels_times_and_references_are_written() {
    let row = |a: f32| [a, 0.02, 0.98 - a];
    let rows = (0..20).map(|t| row(if t < 5 { 0.9 } else { 0.1 })).collect::<Vec<_>>().concat();
    let analysis = analysis(vec![routes(&["a", "b"], &rows, &rows)]);
    let picture = softmax(&analysis, 10);
    let svg = picture.svg();
    let texts = texts(&svg);
    // Five slices of `a` and five blanks, then ten blanks; each name also stands in the legend.
    assert_eq!(texts.iter().filter(|text| **text == "∅").count(), 15 + 1);
    assert_eq!(texts.iter().filter(|text| **text == "a").count(), 5 + 1 + 2, "and as the reference at both ends");
    assert!(texts.contains(&"13") && texts.contains(&"773"), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| **text == "b").count(), 1, "`b` is in the reference, but has no curve");
    let (_, pixels) = decode(&picture.png());
    for (name, color) in shown_classes(&analysis, 10) {
        assert!(pixels.iter().filter(|pixel| **pixel == color.rgb()).count() > 100, "the curve of {name}");
    }
}

#[test]
fn a_short_utterance_has_all_its_slices_at_both_ends() {
    assert_eq!(both_ends(3, 10), [0..3, 0..3]);
    assert_eq!(both_ends(25, 10), [0..10, 15..25]);
}
