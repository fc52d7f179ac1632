//! Curves: series of points in, a figure for a page out.
//!
//! The picture is SVG inside HTML and needs nothing but the style and the script of [`mod@super::page`]: colours follow
//! the reader's theme, and the values under the pointer are shown beside it. Without the script it is still a picture.

use std::fmt::Write as _;

use super::page::escape;
use super::ticks::{Axis, number};

pub use super::ticks::Scale;

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it is called in the legend.
    pub name: String,
    /// Places and values, from left to right; a value that is not finite is a gap.
    pub points: Vec<(f64, f64)>,
    /// Whether it is dashed.
    pub is_dashed: bool,
}

impl Series {
    /// A curve through `points`.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), is_dashed: false }
    }

    /// The same, of at most `n_points`: neighbours are replaced by their mean.
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

/// How the colours of curves differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// As much as they can.
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
    /// What is below it; may be empty.
    pub note: String,
    /// The name of the horizontal axis.
    pub x_name: String,
    /// Unit behind values, such as `%`; may be empty.
    pub unit: String,
    /// How values are spread.
    pub scale: Scale,
    /// The least and the largest value shown, where the data do not decide.
    pub bounds: Option<(f64, f64)>,
    /// Whether the vertical axis starts at zero.
    pub starts_at_zero: bool,
    /// How colours differ.
    pub colours: Colours,
    /// The curves.
    pub series: Vec<Series>,
}

// All lengths are in units of the picture; it is shown about that large, on a phone a little smaller.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 230.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;
const RIGHT: f64 = 14.0;
const CHARACTER_WIDTH: f64 = 7.0;
/// Colours that the style has for curves without an order.
const N_COLOURS: usize = 8;

/// The rectangle of the curves and its axes.
struct Frame {
    left: f64,
    x: Axis,
    y: Axis,
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
        let longest = y.ticks.iter().map(|(_, name)| name.len()).max().unwrap_or(0) + chart.unit.len();
        Self { left: 12.0 + CHARACTER_WIDTH * longest as f64, x, y }
    }

    fn across(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.place(value)? * (WIDTH - RIGHT - self.left))
    }

    /// Upwards; what lies beyond the bounds is shown at them.
    fn up(&self, value: f64) -> Option<f64> {
        Some(TOP + (1.0 - self.y.place(value)?.clamp(0.0, 1.0)) * (HEIGHT - BOTTOM - TOP))
    }
}

impl Chart {
    /// The figure as HTML; nothing where no curve has a point.
    pub fn html(&self) -> String {
        let has_points = |series: &Series| series.points.iter().any(|point| point.1.is_finite());
        let shown = Self { series: self.series.iter().filter(|s| has_points(s)).cloned().collect(), ..self.clone() };
        if shown.series.is_empty() { String::new() } else { shown.figure() }
    }

    fn figure(&self) -> String {
        let frame = Frame::of(self);
        let mut html = format!("<figure class=\"chart\"><figcaption><b>{}</b>", escape(&self.title));
        for (at, series) in self.series.iter().enumerate() {
            html.push_str(&self.legend(at, series));
        }
        html.push_str("</figcaption>\n");
        let (title, values) = (escape(&self.title), escape(&self.hover_values(&frame).to_string()));
        let _ = writeln!(
            html,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\" data-values=\"{values}\">"
        );
        self.draw_axes(&frame, &mut html);
        for (at, series) in self.series.iter().enumerate() {
            draw_series(&frame, series, &self.colour(at), &mut html);
        }
        html.push_str("<line class=\"cursor\"/></svg>\n");
        if !self.note.is_empty() {
            let _ = writeln!(html, "<p class=\"note\">{}</p>", escape(&self.note));
        }
        html + "</figure>\n"
    }

    fn colour(&self, at: usize) -> String {
        match self.colours {
            Colours::Different => format!("var(--curve-{})", at % N_COLOURS),
            Colours::Ordered => {
                let share = at as f64 / (self.series.len() - 1).max(1) as f64;
                format!("hsl({:.0} 65% var(--lightness))", 265.0 - 235.0 * share)
            }
        }
    }

    fn legend(&self, at: usize, series: &Series) -> String {
        let last = series.last_value().map_or_else(String::new, |value| format!(" {}{}", number(value), self.unit));
        let (colour, dashed) = (self.colour(at), if series.is_dashed { " dashed" } else { "" });
        let name = escape(&series.name);
        format!(" <span class=\"key{dashed}\" style=\"--colour:{colour}\">{name}<small>{last}</small></span>")
    }

    fn draw_axes(&self, frame: &Frame, svg: &mut String) {
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, name) in &frame.y.ticks {
            let Some(y) = frame.up(*value) else { continue };
            let (left, name) = (frame.left, escape(&format!("{name}{}", self.unit)));
            let _ = writeln!(svg, "<line class=\"grid\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>");
            let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{name}</text>", left - 6.0, y + 4.0);
        }
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{:.1}\" y1=\"{floor}\" x2=\"{right}\" y2=\"{floor}\"/>",
            frame.left
        );
        for (value, name) in &frame.x.ticks {
            let Some(x) = frame.across(*value) else { continue };
            let _ = writeln!(
                svg,
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"{floor}\" x2=\"{x:.1}\" y2=\"{}\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" class=\"middle\">{name}</text>",
                floor + 4.0,
                floor + 17.0
            );
        }
        let middle = f64::midpoint(frame.left, right);
        let name = escape(&self.x_name);
        let _ = writeln!(svg, "<text x=\"{middle:.1}\" y=\"{}\" class=\"middle name\">{name}</text>", HEIGHT - 6.0);
    }

    /// What the script needs to tell the values under the pointer: places in the picture, and what to write there.
    fn hover_values(&self, frame: &Frame) -> serde_json::Value {
        let place = |value: f64| (value * 10.0).round() / 10.0;
        let series = self.series.iter().enumerate().map(|(at, series)| {
            let points = series.points.iter().filter_map(|(x, y)| {
                let shown = format!("{}{}", number(*y), self.unit);
                Some(serde_json::json!([place(frame.across(*x)?), number(*x), shown]))
            });
            serde_json::json!({
                "name": series.name, "colour": self.colour(at), "points": points.collect::<Vec<_>>(),
            })
        });
        serde_json::json!({
            "x": self.x_name, "top": TOP, "bottom": HEIGHT - BOTTOM, "width": WIDTH,
            "series": series.collect::<Vec<_>>(),
        })
    }
}

fn draw_series(frame: &Frame, series: &Series, colour: &str, svg: &mut String) {
    let places: Vec<Option<(f64, f64)>> =
        series.points.iter().map(|(x, y)| Some((frame.across(*x)?, frame.up(*y)?))).collect();
    let dashed = if series.is_dashed { " dashed" } else { "" };
    for stretch in places.split(Option::is_none).filter(|stretch| !stretch.is_empty()) {
        let points: Vec<(f64, f64)> = stretch.iter().flatten().copied().collect();
        if let [(x, y)] = points[..] {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" style=\"fill:{colour}\"/>");
            continue;
        }
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let path = path.join(" ");
        let _ = writeln!(svg, "<polyline class=\"curve{dashed}\" style=\"stroke:{colour}\" points=\"{path}\"/>");
    }
}

#[cfg(test)]
mod tests;
