//! Curves and dots on axes with round numbers: figures for pages, and frames for other drawings.
//!
//! The figure is SVG inside HTML and needs nothing but the style and the script of [`crate::page`]: colors follow the
//! reader's theme, and the script shows the values under the pointer. Without the script it is still a figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Anchor, Area, Color, DISTINCT, FAINT, INK, LINE, Picture, fitted, text_width};
use crate::page::escape;

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it is called in the legend.
    pub name: String,
    /// Horizontal and vertical values, from left to right; a value that is not finite is a gap.
    pub points: Vec<(f64, f64)>,
    /// Whether it is dashed.
    pub is_dashed: bool,
}

impl Series {
    /// A curve through `points`.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), is_dashed: false }
    }

    /// The same with at most `n_points`: neighbours are replaced by their mean.
    #[must_use]
    pub fn thinned(mut self, n_points: usize) -> Self {
        let n_together = self.points.len().div_ceil(n_points.max(1)).max(1);
        if n_together > 1 {
            self.points = self.points.chunks(n_together).map(mean_point).collect();
        }
        self
    }

    fn last_value(&self) -> Option<f64> {
        self.points.last().map(|(_, value)| *value).filter(|value| value.is_finite())
    }
}

fn mean_point(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / n, sum.1 / n)
}

/// How the colors of curves differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colors {
    /// As much as possible.
    #[default]
    Different,
    /// From one end of a scale to the other, for curves that have an order, such as layers.
    Ordered,
}

/// A figure with one or more curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// A note below it; may be empty.
    pub note: String,
    /// The name of the horizontal axis.
    pub x_name: String,
    /// Unit after values, such as `%`; may be empty.
    pub unit: String,
    /// How values are spread.
    pub scale: Scale,
    /// The smallest and largest value shown; by default the data decide.
    pub bounds: Option<(f64, f64)>,
    /// Whether the vertical axis starts at zero.
    pub starts_at_zero: bool,
    /// How colors differ.
    pub colors: Colors,
    /// The curves.
    pub series: Vec<Series>,
}

// In points; shown about that large, on a phone a little smaller.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 230.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;
const RIGHT: f64 = 14.0;
const TEXT: f64 = 12.0;

/// The rectangle that values are drawn in, and its axes.
pub(crate) struct Frame {
    pub(crate) area: Area,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Frame {
    fn of(chart: &Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let x = Axis::new(points().map(|point| point.0), Scale::Linear, true);
        let zero = chart.starts_at_zero.then_some(0.0);
        let y = match chart.bounds {
            Some((low, high)) => Axis::between(low, high),
            None => Axis::new(points().map(|point| point.1).chain(zero), chart.scale, false),
        };
        let left = 12.0 + y.widest_name(&chart.unit);
        let area = Area { x: left, y: TOP, width: WIDTH - RIGHT - left, height: HEIGHT - BOTTOM - TOP };
        Self { area, x, y }
    }

    fn across(&self, value: f64) -> Option<f64> {
        Some(self.area.x + self.x.place(value)? * self.area.width)
    }

    /// Upwards; what is beyond the bounds is shown at them.
    fn up(&self, value: f64) -> Option<f64> {
        Some(self.area.y + (1.0 - self.y.place(value)?.clamp(0.0, 1.0)) * self.area.height)
    }

    pub(crate) fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.up(y)?))
    }

    /// Grid, ticks and the name of the horizontal axis.
    pub(crate) fn draw(&self, picture: &mut Picture, x_name: &str, unit: &str) {
        let Area { x: left, y: top, width, height } = self.area;
        let (right, floor) = (left + width, top + height);
        for (value, name) in &self.y.ticks {
            let Some(y) = self.up(*value) else { continue };
            picture.line(vec![(left, y), (right, y)], LINE, 1.0);
            picture.text((left - 6.0, y), format!("{name}{unit}"), TEXT, FAINT, Anchor::End);
        }
        picture.line(vec![(left, floor), (right, floor)], FAINT, 1.0);
        for (value, name) in &self.x.ticks {
            let Some(x) = self.across(*value) else { continue };
            picture.line(vec![(x, floor), (x, floor + 4.0)], FAINT, 1.0);
            picture.text((x, floor + 13.0), name, TEXT, FAINT, Anchor::Middle);
        }
        picture.text((left + width / 2.0, floor + 30.0), x_name, TEXT, FAINT, Anchor::Middle);
    }

    /// A line through the mean of the values at each place.
    pub(crate) fn draw_means(&self, picture: &mut Picture, points: &[(f64, f64)], color: Color) {
        let mut sums: BTreeMap<u64, (f64, f64, f64)> = BTreeMap::new();
        for (x, y) in points {
            // Places are counts, so their bits are in order.
            let sum = sums.entry(x.to_bits()).or_insert((*x, 0.0, 0.0));
            (sum.1, sum.2) = (sum.1 + y, sum.2 + 1.0);
        }
        let line = sums.into_values().filter_map(|(x, sum, n)| self.at(x, sum / n)).collect();
        picture.line(line, color, 1.6);
    }
}

impl Chart {
    /// Curves by `x_name`, on a scale that the data decide.
    pub fn new(title: &str, x_name: &str, series: Vec<Series>) -> Self {
        Self { title: title.to_owned(), x_name: x_name.to_owned(), series, ..Self::default() }
    }

    /// The figure as HTML; empty if no curve has a point.
    pub fn html(&self) -> String {
        let has_points = |series: &Series| series.points.iter().any(|point| point.1.is_finite());
        let shown = Self { series: self.series.iter().filter(|s| has_points(s)).cloned().collect(), ..self.clone() };
        if shown.series.is_empty() { String::new() } else { shown.figure() }
    }

    fn figure(&self) -> String {
        let frame = Frame::of(self);
        let mut picture = Picture::new(WIDTH, HEIGHT);
        frame.draw(&mut picture, &self.x_name, &self.unit);
        for (at, series) in self.series.iter().enumerate() {
            draw_series(&frame, series, self.color(at), &mut picture);
        }
        let values = escape(&self.hover_values(&frame).to_string());
        let attributes = format!("role=\"img\" aria-label=\"{}\" data-values=\"{values}\"", escape(&self.title));
        let svg = picture.svg_element(&attributes, "", "<line class=\"cursor\"/>");
        let keys = self.series.iter().enumerate().map(|(at, series)| {
            let last = series.last_value().map_or_else(String::new, |value| format!("{}{}", number(value), self.unit));
            (series.name.as_str(), last, self.color(at), series.is_dashed)
        });
        figure(&self.title, keys, &svg, &self.note)
    }

    fn color(&self, at: usize) -> Color {
        match self.colors {
            Colors::Different => DISTINCT[at % DISTINCT.len()],
            Colors::Ordered => Color::Hue(265.0 - 235.0 * at as f64 / (self.series.len() - 1).max(1) as f64),
        }
    }

    /// What the script needs to show the values under the pointer: places in the figure, and what to write there.
    fn hover_values(&self, frame: &Frame) -> serde_json::Value {
        let place = |value: f64| (value * 10.0).round() / 10.0;
        let series = self.series.iter().enumerate().map(|(at, series)| {
            let points = series.points.iter().filter_map(|(x, y)| {
                let shown = format!("{}{}", number(*y), self.unit);
                Some(serde_json::json!([place(frame.across(*x)?), number(*x), shown]))
            });
            serde_json::json!({
                "name": series.name, "color": self.color(at).css(), "points": points.collect::<Vec<_>>(),
            })
        });
        serde_json::json!({
            "x": self.x_name, "top": TOP, "bottom": HEIGHT - BOTTOM, "width": WIDTH,
            "series": series.collect::<Vec<_>>(),
        })
    }
}

/// A figure with its title and keys: name, last value, color, whether it is dashed.
fn figure<'a>(
    title: &str,
    keys: impl Iterator<Item = (&'a str, String, Color, bool)>,
    svg: &str,
    note: &str,
) -> String {
    let mut html = format!("<figure class=\"chart\"><figcaption><b>{}</b>", escape(title));
    for (name, last, color, is_dashed) in keys {
        let (dashed, css, name) = (if is_dashed { " dashed" } else { "" }, color.css(), escape(name));
        let _ =
            write!(html, " <span class=\"key{dashed}\" style=\"--color:{css}\">{name}<small> {last}</small></span>");
    }
    let _ = write!(html, "</figcaption>\n{svg}");
    if !note.is_empty() {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(note));
    }
    html + "</figure>\n"
}

fn draw_series(frame: &Frame, series: &Series, color: Color, picture: &mut Picture) {
    let places: Vec<Option<(f64, f64)>> = series.points.iter().map(|(x, y)| frame.at(*x, *y)).collect();
    for stretch in places.split(Option::is_none).filter(|stretch| !stretch.is_empty()) {
        let points: Vec<(f64, f64)> = stretch.iter().flatten().copied().collect();
        match points[..] {
            [point] => picture.dot(point, 3.0, color),
            _ => picture.curve(points, color, series.is_dashed),
        }
    }
}

/// Figures of things without an order, such as the rows of a table: a dot for each, with its interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DotPlot {
    /// Its heading.
    pub title: String,
    /// What the dots of a row are called, in their order.
    pub keys: Vec<&'static str>,
    /// Names of the rows with their dots.
    pub rows: Vec<(String, Vec<Option<Dot>>)>,
}

/// A value, with the ends of its interval where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// The value.
    pub value: f64,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
}

/// Height of a row of dots.
const ROW: f64 = 24.0;

impl DotPlot {
    /// The figure as HTML; empty if there is no dot.
    pub fn html(&self) -> String {
        let dots = || self.rows.iter().flat_map(|(_, dots)| dots.iter().flatten());
        if dots().next().is_none() {
            return String::new();
        }
        let ends = |dot: &Dot| dot.interval.map_or([dot.value; 2], |(low, high)| [low, high]);
        let x = Axis::new(dots().flat_map(ends), Scale::Linear, false);
        let widest = self.rows.iter().map(|(name, _)| text_width(name, TEXT)).fold(0.0, f64::max);
        let (left, height) = (12.0 + widest.min(0.4 * WIDTH), ROW * self.rows.len() as f64);
        let frame = Frame {
            area: Area { x: left, y: TOP, width: WIDTH - RIGHT - left, height },
            x,
            y: Axis { ticks: Vec::new(), ..Axis::between(0.0, 1.0) },
        };
        let mut picture = Picture::new(WIDTH, TOP + height + 24.0);
        frame.draw(&mut picture, "", "");
        for (row, (name, dots)) in self.rows.iter().enumerate() {
            let y = TOP + ROW * (row as f64 + 0.5);
            picture.line(vec![(left, y), (WIDTH - RIGHT, y)], LINE, 0.6);
            picture.text((left - 6.0, y), fitted(name, TEXT, left - 8.0), TEXT, INK, Anchor::End);
            for (at, dot) in dots.iter().enumerate() {
                let Some(dot) = dot else { continue };
                let y = y + 5.0 * (at as f64 - (dots.len() - 1) as f64 / 2.0);
                if let Some([low, high]) = dot.interval.map(|(low, high)| [low, high].map(|end| frame.across(end))) {
                    picture.line([low, high].into_iter().flatten().map(|x| (x, y)).collect(), DISTINCT[at], 2.0);
                }
                frame.across(dot.value).into_iter().for_each(|x| picture.dot((x, y), 3.5, DISTINCT[at]));
            }
        }
        let keys = self.keys.iter().enumerate().map(|(at, name)| (*name, String::new(), DISTINCT[at], false));
        figure(&self.title, keys, &picture.svg_inline(&self.title), "")
    }
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal ratios; values that are not positive have no place.
    Logarithmic,
}

/// A range of values and where its ticks are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    ticks: Vec<(f64, String)>,
}

/// Most ticks that have room.
const MAX_TICKS: usize = 6;

impl Axis {
    /// An axis that holds all `values`, from round number to round number.
    pub(crate) fn new(values: impl Iterator<Item = f64>, scale: Scale, is_whole: bool) -> Self {
        let has_place = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let (low, high) = values
            .filter(has_place)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match scale {
            _ if low > high => Self::linear(0.0, 1.0, is_whole),
            Scale::Linear => Self::linear(low, high, is_whole),
            Scale::Logarithmic => Self::logarithmic(low, high),
        }
    }

    /// An axis with these ends, whatever the data.
    pub(crate) fn between(low: f64, high: f64) -> Self {
        let step = round_step((high - low) / (MAX_TICKS - 1) as f64);
        Self { low, high, scale: Scale::Linear, ticks: ticks_between(low, high, step) }
    }

    /// Room for the names of the ticks with a unit.
    fn widest_name(&self, unit: &str) -> f64 {
        self.ticks.iter().map(|(_, name)| text_width(&format!("{name}{unit}"), TEXT)).fold(0.0, f64::max)
    }

    fn linear(low: f64, high: f64, is_whole: bool) -> Self {
        // All values are equal: leave a little room on either side.
        let room = if high > low { 0.0 } else { (low.abs() * 0.1).max(if is_whole { 1.0 } else { 1e-12 }) };
        let (low, high) = (low - room, high + room);
        let mut step = round_step((high - low) / (MAX_TICKS - 1) as f64);
        if is_whole {
            step = step.max(1.0).round();
            return Self { low, high, scale: Scale::Linear, ticks: ticks_between(low, high, step) };
        }
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high, scale: Scale::Linear, ticks: ticks_between(low, high, step) }
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        let (low, high) = if high > low { (low, high) } else { (low / 1.5, high * 1.5) };
        let n_decades = (high / low).log10();
        let digits: &[f64] = if n_decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (first, last) = (low.log10().floor() as i32 - 1, high.log10().ceil() as i32 + 1);
        let values: Vec<f64> = (first..=last).flat_map(|e| digits.iter().map(move |d| d * 10_f64.powi(e))).collect();
        let low = values.iter().copied().rfind(|value| *value <= low).unwrap_or(low);
        let high = values.iter().copied().find(|value| *value >= high).unwrap_or(high);
        let within: Vec<f64> = values.into_iter().filter(|value| (low..=high).contains(value)).collect();
        let every = within.len().div_ceil(MAX_TICKS + 1);
        let ticks = within.into_iter().step_by(every).map(|value| (value, number(value))).collect();
        Self { low, high, scale: Scale::Logarithmic, ticks }
    }

    /// Where `value` is: 0 at the low end and 1 at the high one; `None` for what has no place on it.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Logarithmic => return None,
        };
        share.is_finite().then_some(share)
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let digit = [1.0, 2.0, 2.5, 5.0].into_iter().find(|digit| digit * power >= step * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

fn ticks_between(low: f64, high: f64, step: f64) -> Vec<(f64, String)> {
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    let n_digits = digits_behind_point(step);
    (first..=last).map(|k| k as f64 * step).map(|value| (value, tick_name(value, n_digits))).collect()
}

/// Digits that tell multiples of `step` apart.
fn digits_behind_point(step: f64) -> usize {
    (0..12).find(|n| (step * 10_f64.powi(*n) - (step * 10_f64.powi(*n)).round()).abs() < 1e-6).unwrap_or(12) as usize
}

fn tick_name(value: f64, n_digits: usize) -> String {
    if value.abs() >= 10_000.0 || n_digits > 4 && value != 0.0 { number(value) } else { format!("{value:.n_digits$}") }
}

/// `1968922` as `1,968,922`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("digits are ASCII")).collect();
    groups.join(",")
}

/// A value in few characters: `0.0123`, `4.57`, `15,057`, `1.2e-7`, `2.5M`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match () {
        () if !value.is_finite() => "not a number".to_owned(),
        () if size == 0.0 => "0".to_owned(),
        () if size < 1e-3 => format!("{value:.1e}").replace(".0e", "e"),
        () if size < 1.0 => trimmed(format!("{value:.4}")),
        () if size < 10.0 => trimmed(format!("{value:.3}")),
        () if size < 100.0 => trimmed(format!("{value:.2}")),
        () if size < 10_000.0 => trimmed(format!("{value:.1}")),
        () if size < 1e6 => trimmed(format!("{:.1}", value / 1e3)) + "k",
        () if size < 1e9 => trimmed(format!("{:.2}", value / 1e6)) + "M",
        () => format!("{value:.2e}"),
    }
}

/// Without zeros at the end of a fraction.
fn trimmed(number: String) -> String {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number }
}

#[cfg(test)]
mod tests;
