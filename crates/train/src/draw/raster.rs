//! Pixels: marks become polygons, polygons are filled with smooth edges, and the result is a PNG file.

use std::collections::HashMap;
use std::f64::consts::TAU;
use std::sync::LazyLock;

use super::{Anchor, Area, BASELINE, Mark, Picture, Rgb};

/// Pixels per point.
pub(crate) const SCALE: f64 = 2.0;
/// Lines of samples per line of pixels.
const N_SAMPLES: usize = 4;
/// Units of a glyph's outline per size of the font.
const UNITS: f64 = 512.0;
/// Shown for characters that the font does not have.
const MISSING: char = '?';

type Point = (f64, f64);
type Contour = Vec<Point>;

struct Glyph {
    advance: f64,
    contours: Vec<Contour>,
}

static GLYPHS: LazyLock<HashMap<char, Glyph>> = LazyLock::new(|| {
    let lines = include_str!("glyphs.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(parse_glyph).collect()
});

/// A line of `glyphs.txt`: code point, advance and outline.
fn parse_glyph(line: &str) -> Option<(char, Glyph)> {
    let mut words = line.split(' ');
    let letter = char::from_u32(u32::from_str_radix(words.next()?, 16).ok()?)?;
    let advance = words.next()?.parse().ok()?;
    let mut contours: Vec<Contour> = Vec::new();
    while let Some(command) = words.next() {
        let mut point = || Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?));
        match command {
            "M" => contours.push(vec![point()?]),
            "L" => contours.last_mut()?.push(point()?),
            _ => {
                let (control, end) = (point()?, point()?);
                let start = *contours.last()?.last()?;
                contours.last_mut()?.extend((1..=4).map(|k| curve(start, control, end, f64::from(k) / 4.0)));
            }
        }
    }
    Some((letter, Glyph { advance, contours }))
}

/// A point of a quadratic Bézier curve.
fn curve(start: Point, control: Point, end: Point, t: f64) -> Point {
    let mix = |a: f64, b: f64, c: f64| (1.0 - t) * ((1.0 - t) * a + 2.0 * t * b) + t * t * c;
    (mix(start.0, control.0, end.0), mix(start.1, control.1, end.1))
}

fn glyph(letter: char) -> &'static Glyph {
    GLYPHS.get(&letter).unwrap_or_else(|| &GLYPHS[&MISSING])
}

/// How wide a text is, in points.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(|letter| glyph(letter).advance).sum::<f64>() * size / UNITS
}

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Rgb>,
}

impl Picture {
    /// The drawing as a PNG file.
    pub fn png(&self) -> Vec<u8> {
        let [width, height] = [self.width, self.height].map(|length| (length * SCALE).round() as usize);
        let mut canvas = Canvas { width, height, pixels: vec![[255; 3]; width * height] };
        self.marks.iter().for_each(|mark| canvas.draw(mark));
        encode_png(canvas.pixels.as_flattened(), width, height)
    }
}

impl Canvas {
    fn draw(&mut self, mark: &Mark) {
        match mark {
            Mark::Rect { area, color, opacity } => self.fill(&[corners(*area)], color.rgb(), *opacity),
            Mark::Line { points, color, width, .. } => self.fill(&stroke(points, *width), color.rgb(), 1.0),
            Mark::Dot { center, radius, color } => self.fill(&[circle(*center, *radius)], color.rgb(), 1.0),
            Mark::Ring { center, radius, color } => {
                let mut points = circle(*center, *radius);
                points.push(points[0]);
                self.fill(&stroke(&points, 1.0), color.rgb(), 1.0);
            }
            Mark::Text { at, letters, size, color, anchor, is_turned } => {
                self.fill(&text(*at, letters, *size, *anchor, *is_turned), color.rgb(), 1.0);
            }
            Mark::Map { area, n_columns, pixels } => self.paint(*area, *n_columns, pixels),
        }
    }

    /// Every pixel of the area takes the color of the cell it is in.
    fn paint(&mut self, area: Area, n_columns: usize, cells: &[Rgb]) {
        let [left, top, n_across, n_down] =
            [area.x, area.y, area.width, area.height].map(|length| (length * SCALE).round() as usize);
        let n_rows = cells.len() / n_columns.max(1);
        for down in 0..n_down.min(self.height.saturating_sub(top)) {
            let row = &cells[down * n_rows / n_down * n_columns..][..n_columns];
            for across in 0..n_across.min(self.width.saturating_sub(left)) {
                self.pixels[(top + down) * self.width + left + across] = row[across * n_columns / n_across];
            }
        }
    }

    /// Fills the inside of contours (where the winding number is not 0), given in points.
    fn fill(&mut self, contours: &[Contour], color: Rgb, opacity: f64) {
        let scaled = |(x, y): Point| (x * SCALE, y * SCALE);
        let edges: Vec<(Point, Point)> = contours
            .iter()
            .flat_map(|points| points.iter().zip(points.iter().cycle().skip(1)))
            .map(|(from, to)| (scaled(*from), scaled(*to)))
            .collect();
        let ys = || edges.iter().map(|(from, _)| from.1);
        let first = ys().fold(f64::INFINITY, f64::min).floor().max(0.0) as usize;
        let last = ys().fold(0.0, f64::max).ceil().min(self.height as f64) as usize;
        let mut coverage = vec![0.0; self.width];
        for row in first..last {
            coverage.fill(0.0);
            for sample in 0..N_SAMPLES {
                let y = row as f64 + (sample as f64 + 0.5) / N_SAMPLES as f64;
                spans(&edges, y).for_each(|(from, to)| cover(&mut coverage, from, to));
            }
            let pixels = &mut self.pixels[row * self.width..][..self.width];
            for (pixel, covered) in pixels.iter_mut().zip(&coverage).filter(|(_, covered)| **covered > 0.0) {
                let share = opacity * (covered / N_SAMPLES as f64).min(1.0);
                *pixel = std::array::from_fn(|c| {
                    (f64::from(pixel[c]) * (1.0 - share) + f64::from(color[c]) * share).round() as u8
                });
            }
        }
    }
}

/// Where a horizontal line is inside of closed contours.
fn spans(edges: &[(Point, Point)], y: f64) -> impl Iterator<Item = (f64, f64)> {
    let mut crossings: Vec<(f64, i32)> = Vec::new();
    for ((x0, y0), (x1, y1)) in edges {
        if (*y0 <= y) != (*y1 <= y) {
            crossings.push((x0 + (y - y0) / (y1 - y0) * (x1 - x0), if y0 < y1 { 1 } else { -1 }));
        }
    }
    crossings.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut winding = 0;
    let mut inside = Vec::new();
    for pair in crossings.windows(2) {
        winding += pair[0].1;
        if winding != 0 {
            inside.push((pair[0].0, pair[1].0));
        }
    }
    inside.into_iter()
}

/// Adds to each pixel the part of it that is between two places of a line.
fn cover(coverage: &mut [f64], from: f64, to: f64) {
    let (from, to) = (from.max(0.0), to.min(coverage.len() as f64));
    let end = to.ceil().max(0.0) as usize;
    for (x, pixel) in coverage.iter_mut().enumerate().take(end).skip(from as usize) {
        *pixel += (to.min(x as f64 + 1.0) - from.max(x as f64)).max(0.0);
    }
}

fn corners(Area { x, y, width, height }: Area) -> Contour {
    vec![(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
}

fn circle((x, y): Point, radius: f64) -> Contour {
    (0..24).map(|k| f64::from(k) / 24.0 * TAU).map(|a| (x + radius * a.cos(), y + radius * a.sin())).collect()
}

/// A line of some width: a rectangle for each stretch and a circle for each bend, all turning the same way.
fn stroke(points: &[Point], width: f64) -> Vec<Contour> {
    let half = width / 2.0;
    let stretch = |pair: &[Point]| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0).max(1e-9);
        let (dx, dy) = (half * (y1 - y0) / length, half * (x0 - x1) / length);
        vec![(x0 + dx, y0 + dy), (x1 + dx, y1 + dy), (x1 - dx, y1 - dy), (x0 - dx, y0 - dy)]
    };
    let bends = points.iter().skip(1).take(points.len().saturating_sub(2)).map(|point| circle(*point, half));
    points.windows(2).map(stretch).chain(bends).collect()
}

/// The contours of a text whose height is centred on a point.
fn text((x, y): Point, letters: &str, size: f64, anchor: Anchor, is_turned: bool) -> Vec<Contour> {
    let scale = size / UNITS;
    let mut along = -text_width(letters, size) * [0.0, 0.5, 1.0][anchor as usize];
    let mut contours = Vec::new();
    for glyph in letters.chars().map(glyph) {
        let place = |(across, up): &Point| {
            let (across, down) = (along + across * scale, BASELINE * size - up * scale);
            if is_turned { (x + down, y - across) } else { (x + across, y + down) }
        };
        contours.extend(glyph.contours.iter().map(|contour| contour.iter().map(place).collect::<Contour>()));
        along += glyph.advance * scale;
    }
    contours
}

/// Pixels of three bytes as a PNG file.
pub(super) fn encode_png(rgb: &[u8], width: usize, height: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().expect("a picture has a width and a height");
    writer.write_image_data(rgb).expect("there are as many pixels as the header says");
    writer.finish().expect("writing to memory does not fail");
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canvas() -> Canvas {
        Canvas { width: 20, height: 20, pixels: vec![[255; 3]; 400] }
    }

    /// How much of the canvas is black, in pixels.
    fn ink(canvas: &Canvas) -> f64 {
        canvas.pixels.iter().map(|pixel| 1.0 - f64::from(pixel[0]) / 255.0).sum()
    }

    #[test]
    fn areas_are_filled_to_the_part_of_a_pixel() {
        let mut square = canvas();
        let area = Area { x: 1.1, y: 2.0, width: 3.0, height: 4.0 };
        square.fill(&[corners(area)], [0; 3], 1.0);
        // 6 by 8 pixels; a byte per pixel rounds.
        assert!((ink(&square) - 48.0).abs() < 0.1, "{}", ink(&square));
        let mut disc = canvas();
        disc.fill(&[circle((5.0, 5.0), 3.0)], [0; 3], 1.0);
        // A polygon of 24 corners instead of 36 pi.
        let area = 36.0 * 12.0 * (TAU / 24.0).sin();
        assert!((ink(&disc) - area).abs() < 0.5, "{} {area}", ink(&disc));
    }

    #[test]
    fn a_line_that_crosses_itself_has_no_holes() {
        let mut lines = canvas();
        lines.fill(&stroke(&[(1.0, 5.0), (9.0, 5.0), (5.0, 5.0)], 2.0), [0; 3], 1.0);
        assert_eq!(lines.pixels[10 * 20 + 12], [0; 3]);
        assert_eq!(lines.pixels[10 * 20 + 17], [0; 3]);
    }

    #[test]
    fn letters_have_their_holes_and_widths() {
        let mut o = canvas();
        o.fill(&text((5.0, 5.0), "O", 12.0, Anchor::Middle, false), [0; 3], 1.0);
        assert_eq!(o.pixels[10 * 20 + 10], [255; 3], "the middle of an O is empty");
        assert!(ink(&o) > 20.0);
        assert!(text_width("WWW", 10.0) > 3.0 * text_width("i", 10.0));
        assert_eq!(text_width("\u{4e00}", 10.0), text_width("?", 10.0));
    }

    #[test]
    fn what_lies_outside_of_the_picture_is_not_drawn() {
        let mut picture = canvas();
        picture.fill(&[circle((-3.0, 400.0), 50.0), circle((40.0, -2.0), 9.0)], [0; 3], 1.0);
        picture.paint(Area { x: 8.0, y: 8.0, width: 20.0, height: 20.0 }, 2, &[[0; 3]; 4]);
        assert!(ink(&picture) <= 16.0 + 20.0);
    }

    #[test]
    fn every_line_of_the_glyphs_is_a_glyph() {
        let n_lines = include_str!("glyphs.txt").lines().count() - 1;
        assert_eq!(GLYPHS.len(), n_lines);
    }
}
