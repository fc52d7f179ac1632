//! Parts that several pictures share: columns of names that do not run into each other, and the key of the shades.

use super::sheet::{Anchor, Colour, FAINT, INK, Picture, Place, Text, text_width};

/// Room that a turned name needs across, in points.
const NAME_WIDTH: f64 = 9.5;

/// Which of `n` columns of some width have room for their names, those first in `order` served first.
pub(super) fn with_room(n: usize, column_width: f64, order: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut kept: Vec<usize> = Vec::new();
    if NAME_WIDTH <= column_width {
        return (0..n).collect();
    }
    let n_apart = (NAME_WIDTH / column_width).ceil() as usize;
    for column in order.filter(|column| *column < n) {
        if kept.iter().all(|other| n_apart <= other.abs_diff(column)) {
            kept.push(column);
        }
    }
    kept.sort_unstable();
    kept
}

/// The columns with the largest values first.
pub(super) fn by_size(values: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
    order
}

/// The key of the shades: a bar from the smallest to the largest value.
pub(super) fn key(picture: &mut Picture, place: Place, name: &str, (low, high): (f32, f32)) {
    let steps: Vec<f32> = (0..64).rev().map(|step| step as f32 / 63.0).collect();
    picture.map(place, &steps, 1, (0.0, 1.0));
    picture.frame(place, FAINT);
    let right = place.x + place.width + 5.0;
    let names =
        if low < high { vec![(1.0, high), (0.5, f32::midpoint(low, high)), (0.0, low)] } else { vec![(0.5, low)] };
    for (share, value) in names {
        let y = place.y + (1.0 - share) * place.height;
        picture.text((right, y), short(value), 10.0, INK, Anchor::Start);
    }
    picture.text((place.x, place.y - 12.0), name, 10.0, FAINT, Anchor::Start);
}

/// A coefficient in few characters.
pub(super) fn short(value: f32) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.001 => format!("{v:.0e}"),
        v if v < 0.1 => format!("{v:.3}"),
        v => format!("{v:.2}"),
    }
}

/// A name that runs upwards and ends at a place.
pub(super) fn turned(picture: &mut Picture, at: (f64, f64), text: &str, size: f64, colour: Colour) {
    write_upwards(picture, at, text, size, colour, Anchor::End);
}

/// A name that runs upwards and has its middle at a place.
pub(super) fn turned_middle(picture: &mut Picture, at: (f64, f64), text: &str, size: f64, colour: Colour) {
    write_upwards(picture, at, text, size, colour, Anchor::Middle);
}

fn write_upwards(picture: &mut Picture, (x, y): (f64, f64), text: &str, size: f64, colour: Colour, anchor: Anchor) {
    picture.write(Text { x, y, letters: text.to_owned(), size, colour, anchor, is_turned: true });
}

/// A text cut to a width, with an ellipsis where something is missing.
pub(super) fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut cut: String = text.to_owned();
    while !cut.is_empty() && width < text_width(&format!("{cut}…"), size) {
        cut.pop();
    }
    cut + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_have_no_room_give_way_to_larger_ones() {
        assert_eq!(with_room(3, 10.0, [2, 0, 1].into_iter()), [0, 1, 2]);
        assert_eq!(with_room(6, 4.0, [3, 2, 1, 0, 5, 4].into_iter()), [0, 3]);
        assert_eq!(by_size(&[0.1, 0.7, 0.2]), [1, 2, 0]);
    }

    #[test]
    fn a_long_name_is_cut_to_its_room() {
        assert_eq!(fitted("short", 10.0, 200.0), "short");
        let cut = fitted("a rather long name", 10.0, 50.0);
        assert!(cut.ends_with('…') && text_width(&cut, 10.0) <= 50.0, "{cut}");
    }
}
