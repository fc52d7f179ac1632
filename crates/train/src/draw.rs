//! Drawings: a list of marks that becomes SVG for pages and files, and PNG for figures that are exported.
//!
//! Lengths are in points, from the upper left corner. Colors have names of the page style's variables, so that a
//! drawing inside a page follows the reader's theme; elsewhere they are those of the light theme.
//! [`chart`] draws curves and dots on axes; `raster` makes pixels with letters from inside the program.

pub mod chart;
mod raster;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use srf_base::files::write_atomically;
use srf_score::report::html::escape;

pub(crate) use raster::text_width;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// A color, and how a page may change it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Color {
    /// A variable of the page style, with its value in the light theme.
    Theme(&'static str, Rgb),
    /// A hue of equal lightness with others, in degrees.
    Hue(f64),
}

pub(crate) const INK: Color = Color::Theme("text", [31, 35, 40]);
pub(crate) const FAINT: Color = Color::Theme("faint", [89, 99, 110]);
pub(crate) const LINE: Color = Color::Theme("line", [216, 222, 228]);
pub(crate) const BAR: Color = Color::Theme("bar", [140, 149, 159]);
/// What the reference says; not the color of errors.
pub(crate) const REFERENCE: Color = Color::Theme("reference", [130, 80, 223]);
/// What the model says.
pub(crate) const ANSWER: Color = Color::Theme("extra", [9, 105, 218]);

/// Colors that are easy to tell apart, for curves.
pub(crate) const DISTINCT: [Color; 8] = [
    Color::Theme("curve-0", [9, 105, 218]),
    Color::Theme("curve-1", [188, 76, 0]),
    Color::Theme("curve-2", [26, 127, 55]),
    Color::Theme("curve-3", [130, 80, 223]),
    Color::Theme("curve-4", [207, 34, 46]),
    Color::Theme("curve-5", [14, 116, 144]),
    Color::Theme("curve-6", [154, 103, 0]),
    Color::Theme("curve-7", [191, 57, 137]),
];

impl Color {
    fn css(self) -> String {
        match self {
            Self::Theme(name, [r, g, b]) => format!("var(--{name},#{r:02x}{g:02x}{b:02x})"),
            Self::Hue(hue) => format!("hsl({hue:.0} 65% var(--lightness,44%))"),
        }
    }

    pub(crate) fn rgb(self) -> Rgb {
        match self {
            Self::Theme(_, rgb) => rgb,
            // Saturation 65 %, lightness 44 %.
            Self::Hue(hue) => [0.0, 8.0, 4.0].map(|offset: f64| {
                let k = (offset + hue / 30.0).rem_euclid(12.0);
                (255.0 * (0.44 - 0.65 * 0.44 * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0))).round() as u8
            }),
        }
    }
}

/// A rectangle: left, top, width, height.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Where a text is with respect to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug, PartialEq)]
enum Mark {
    Rect {
        area: Area,
        color: Color,
        opacity: f64,
    },
    Line {
        points: Vec<(f64, f64)>,
        color: Color,
        width: f64,
        is_dashed: bool,
    },
    Dot {
        center: (f64, f64),
        radius: f64,
        color: Color,
    },
    Ring {
        center: (f64, f64),
        radius: f64,
        color: Color,
    },
    /// Its height is centred on the point.
    Text {
        at: (f64, f64),
        letters: String,
        size: f64,
        color: Color,
        anchor: Anchor,
        is_turned: bool,
    },
    /// Cells of many colors: one image, so that an SVG stays small.
    Map {
        area: Area,
        n_columns: usize,
        pixels: Vec<Rgb>,
    },
}

/// A drawing under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    width: f64,
    height: f64,
    marks: Vec<Mark>,
}

impl Picture {
    pub(crate) fn new(width: f64, height: f64) -> Self {
        Self { width, height, marks: Vec::new() }
    }

    pub(crate) fn rect(&mut self, area: Area, color: Color) {
        self.marks.push(Mark::Rect { area, color, opacity: 1.0 });
    }

    pub(crate) fn faint_rect(&mut self, area: Area, color: Color) {
        self.marks.push(Mark::Rect { area, color, opacity: 0.12 });
    }

    pub(crate) fn line(&mut self, points: Vec<(f64, f64)>, color: Color, width: f64) {
        self.marks.push(Mark::Line { points, color, width, is_dashed: false });
    }

    fn curve(&mut self, points: Vec<(f64, f64)>, color: Color, is_dashed: bool) {
        self.marks.push(Mark::Line { points, color, width: 2.0, is_dashed });
    }

    pub(crate) fn dot(&mut self, center: (f64, f64), radius: f64, color: Color) {
        self.marks.push(Mark::Dot { center, radius, color });
    }

    pub(crate) fn ring(&mut self, center: (f64, f64), radius: f64, color: Color) {
        self.marks.push(Mark::Ring { center, radius, color });
    }

    pub(crate) fn frame(&mut self, area: Area, color: Color) {
        let Area { x, y, width, height } = area;
        let corners = vec![(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)];
        self.line(corners, color, 1.0);
    }

    pub(crate) fn text(&mut self, at: (f64, f64), text: impl Into<String>, size: f64, color: Color, anchor: Anchor) {
        self.marks.push(Mark::Text { at, letters: text.into(), size, color, anchor, is_turned: false });
    }

    /// A text that runs upwards.
    pub(crate) fn text_upwards(&mut self, at: (f64, f64), text: &str, size: f64, color: Color, anchor: Anchor) {
        self.marks.push(Mark::Text { at, letters: text.to_owned(), size, color, anchor, is_turned: true });
    }

    /// Cells of these shades (0 to 1), `n_columns` per row.
    pub(crate) fn map(&mut self, area: Area, shades: impl Iterator<Item = f32>, n_columns: usize) {
        self.marks.push(Mark::Map { area, n_columns, pixels: shades.map(shade).collect() });
    }

    /// The drawing as an SVG file.
    pub fn svg(&self) -> String {
        let paper = "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
        self.svg_element(&format!("xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\"", 2.0 * self.width), paper, "")
    }

    /// The drawing as an element of a page, in the colors of its theme.
    pub(crate) fn svg_inline(&self, title: &str) -> String {
        self.svg_element(&format!("role=\"img\" aria-label=\"{}\"", escape(title)), "", "")
    }

    fn svg_element(&self, attributes: &str, below: &str, above: &str) -> String {
        let (width, height) = (self.width, self.height);
        let marks: String = self.marks.iter().map(Mark::svg).collect();
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"system-ui, sans-serif\" {attributes}>\n\
             {below}{marks}{above}</svg>\n"
        )
    }

    /// Writes `STEM.png` and `STEM.svg` into `dir`.
    pub fn save(&self, dir: &Path, stem: &str) -> io::Result<()> {
        write_atomically(&dir.join(format!("{stem}.png")), &self.png())?;
        write_atomically(&dir.join(format!("{stem}.svg")), self.svg().as_bytes())
    }
}

/// How far below the middle of a line of text its baseline is, as a part of its size.
const BASELINE: f64 = 0.36;

impl Mark {
    fn svg(&self) -> String {
        let mut svg = String::new();
        let _ = match self {
            Self::Rect { area: Area { x, y, width, height }, color, opacity } => writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                 style=\"fill:{};fill-opacity:{opacity}\"/>",
                color.css()
            ),
            Self::Line { points, color, width, is_dashed } => {
                let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let dashes = if *is_dashed { " stroke-dasharray=\"5 4\"" } else { "" };
                writeln!(
                    svg,
                    "<polyline fill=\"none\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes} \
                     style=\"stroke:{}\" points=\"{}\"/>",
                    color.css(),
                    path.join(" ")
                )
            }
            Self::Dot { center: (x, y), radius, color } => {
                writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" style=\"fill:{}\"/>", color.css())
            }
            Self::Ring { center: (x, y), radius, color } => writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"none\" style=\"stroke:{}\"/>",
                color.css()
            ),
            Self::Text { at: (x, y), letters, size, color, anchor, is_turned } => {
                let (x, y) = if *is_turned { (x + BASELINE * size, *y) } else { (*x, y + BASELINE * size) };
                let anchor = ["start", "middle", "end"][*anchor as usize];
                let turn = if *is_turned { format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"") } else { String::new() };
                writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{turn} \
                     style=\"fill:{}\">{}</text>",
                    color.css(),
                    escape(letters)
                )
            }
            Self::Map { area: Area { x, y, width, height }, n_columns, pixels } => {
                let n_rows = pixels.len() / (*n_columns).max(1);
                let png = raster::encode_png(pixels.as_flattened(), *n_columns, n_rows);
                writeln!(
                    svg,
                    "<image x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                     preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" \
                     href=\"data:image/png;base64,{}\"/>",
                    STANDARD.encode(png)
                )
            }
        };
        svg
    }
}

/// From paper to ink through orange and purple, darker all the way, so that it also reads in grey and in print.
const STOPS: [Rgb; 6] = [[255, 252, 245], [254, 217, 160], [245, 148, 86], [210, 73, 88], [120, 28, 109], [24, 10, 44]];

/// The color of a share between 0 and 1.
fn shade(share: f32) -> Rgb {
    let at = share * (STOPS.len() - 1) as f32;
    let below = (at as usize).min(STOPS.len() - 2);
    let part = at - below as f32;
    std::array::from_fn(|c| {
        let [from, to] = [STOPS[below][c], STOPS[below + 1][c]].map(f32::from);
        (from + part * (to - from)).round() as u8
    })
}

/// Shades by rank: as many cells of a map are lighter than a cell as have smaller values.
///
/// Couplings differ by little among most classes and by much to a few, so that on an even scale all but a few cells look
/// the same.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankScale {
    sorted: Vec<f32>,
    /// Values smaller than the largest one.
    n_smaller: usize,
}

impl RankScale {
    pub(crate) fn new(values: impl IntoIterator<Item = f32>) -> Self {
        let mut sorted: Vec<f32> = values.into_iter().collect();
        sorted.sort_unstable_by(f32::total_cmp);
        let n_smaller = sorted.last().map_or(0, |largest| sorted.partition_point(|value| value < largest));
        Self { sorted, n_smaller }
    }

    /// 0 for the smallest value, 1 for the largest; 0 where all are equal.
    pub(crate) fn shade(&self, value: f32) -> f32 {
        let n_below = self.sorted.partition_point(|known| *known < value);
        (n_below as f32 / self.n_smaller.max(1) as f32).min(1.0)
    }

    /// The value at a share of the ranks.
    fn value_at(&self, share: f64) -> f32 {
        let at = (share * self.n_smaller as f64).round() as usize;
        self.sorted.get(at).copied().unwrap_or(0.0)
    }

    /// Draws the key of the shades: a bar with the values at its quarters.
    pub(crate) fn draw_key(&self, picture: &mut Picture, area: Area, name: &str) {
        let steps = (0..64).rev().map(|step| step as f32 / 63.0);
        picture.map(area, steps, 1);
        picture.frame(area, FAINT);
        let shares = if self.n_smaller == 0 { &[0.0][..] } else { &[0.0, 0.25, 0.5, 0.75, 1.0] };
        for share in shares {
            let at = (area.x + area.width + 5.0, area.y + (1.0 - share) * area.height);
            picture.text(at, short(self.value_at(*share)), 10.0, INK, Anchor::Start);
        }
        picture.text((area.x, area.y - 12.0), name, 10.0, FAINT, Anchor::Start);
    }
}

/// A coefficient in few characters.
pub(crate) fn short(value: f32) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v < 0.001 => format!("{v:.0e}"),
        v if v < 0.1 => format!("{v:.3}"),
        v => format!("{v:.2}"),
    }
}

/// Width that a turned name needs.
const NAME_WIDTH: f64 = 9.5;

/// Which of `n` columns of some width have room for their names, those first in `order` served first.
pub(crate) fn with_room(n: usize, column_width: f64, order: impl Iterator<Item = usize>) -> Vec<usize> {
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

/// A text cut to a width, with an ellipsis where something is missing.
pub(crate) fn fitted(text: &str, size: f64, width: f64) -> String {
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
    fn shades_get_darker_all_the_way() {
        let light = |share: f32| {
            let [r, g, b] = shade(share).map(f32::from);
            0.299 * r + 0.587 * g + 0.114 * b
        };
        for step in 0..100 {
            let (before, after) = (light(step as f32 / 100.0), light((step + 1) as f32 / 100.0));
            assert!(after < before, "at {step} %: {after} is not below {before}");
        }
    }

    #[test]
    fn ranks_use_all_shades_whatever_the_values() {
        // One class that gets nearly everything does not make the others look the same.
        let scale = RankScale::new([0.010, 0.011, 0.012, 0.9]);
        assert_eq!([0.010, 0.011, 0.012, 0.9].map(|v| scale.shade(v)), [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]);
        let even = RankScale::new([0.25; 4]);
        assert_eq!((even.shade(0.25), even.value_at(0.0)), (0.0, 0.25));
    }

    #[test]
    fn names_that_have_no_room_give_way_to_larger_ones() {
        assert_eq!(with_room(3, 10.0, [2, 0, 1].into_iter()), [0, 1, 2]);
        assert_eq!(with_room(6, 4.0, [3, 2, 1, 0, 5, 4].into_iter()), [0, 3]);
    }

    #[test]
    fn a_long_name_is_cut_to_its_room() {
        assert_eq!(fitted("short", 10.0, 200.0), "short");
        let cut = fitted("a rather long name", 10.0, 50.0);
        assert!(cut.ends_with('…') && text_width(&cut, 10.0) <= 50.0, "{cut}");
    }
}
