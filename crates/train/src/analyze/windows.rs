//! Error against the window, and how often the end of a sentence is found against what a slice sees of the future.
//!
//! In: rows of measured systems, from JSON or CSV. Out: the two charts side by side.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ramp::DISTINCT;
use super::scale::turned_middle;
use super::sheet::{Anchor, Colour, FAINT, INK, LINE, Picture, Place, text_width};

const MAX_TABLE_BYTES: u64 = 1 << 20;
const PANEL: (f64, f64) = (380.0, 260.0);
const LEFT: f64 = 62.0;
const TOP: f64 = 74.0;

/// One system on one set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Slices before the current one (ω_L).
    pub left: usize,
    /// Slices after it (ω_R).
    pub right: usize,
    /// What it was measured on.
    pub set: String,
    /// The error rate in percent.
    pub error: f64,
    /// Sentences whose end was found, in percent, where that was measured.
    #[serde(default)]
    pub eos: Option<f64>,
}

/// Why there is no table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadTableError {
    /// The file itself.
    #[error("could not read `{path}`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What stands in it.
    #[error("{path}:{line}: {found}, expected {expected}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What stands there.
        found: String,
        /// What should.
        expected: &'static str,
    },
}

const CSV_HEAD: &str = "left,right,set,error,eos";

impl ReadTableError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        matches!(self, Self::Line { .. })
            .then(|| format!("write CSV under the head `{CSV_HEAD}`, or a JSON list of objects with these keys"))
    }
}

/// Reads a table: JSON where the file begins with `[`, otherwise CSV.
pub fn load(path: &Path) -> Result<Vec<Row>, ReadTableError> {
    let io = |source| ReadTableError::Io { path: path.to_owned(), source };
    let mut text = String::new();
    File::open(path).map_err(io)?.take(MAX_TABLE_BYTES).read_to_string(&mut text).map_err(io)?;
    let wrong = |(line, found, expected)| ReadTableError::Line { path: path.to_owned(), line, found, expected };
    let rows = parse(&text).map_err(wrong)?;
    match rows.iter().position(|row| !row.error.is_finite() || row.eos.is_some_and(|eos| !eos.is_finite())) {
        Some(at) => Err(wrong((at + 1, "a rate that is no number".to_owned(), "percentages"))),
        None if rows.is_empty() => Err(wrong((1, "no rows".to_owned(), "at least one"))),
        None => Ok(rows),
    }
}

type Wrong = (usize, String, &'static str);

fn parse(text: &str) -> Result<Vec<Row>, Wrong> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text)
            .map_err(|error| (error.line(), error.to_string(), "objects with left, right, set, error and eos"));
    }
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let head: String =
        lines.next().map_or("", |(_, line)| line).split(',').map(str::trim).collect::<Vec<_>>().join(",");
    if head != CSV_HEAD {
        return Err((
            1,
            format!("`{}`", head.chars().take(60).collect::<String>()),
            "the head `left,right,set,error,eos`",
        ));
    }
    lines
        .map(|(at, line)| parse_row(line).ok_or_else(|| (at + 1, format!("`{line}`"), "left,right,set,error,eos")))
        .collect()
}

fn parse_row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [left, right, set, error, eos] = fields[..] else { return None };
    Some(Row {
        left: left.parse().ok()?,
        right: right.parse().ok()?,
        set: set.to_owned(),
        error: error.parse().ok()?,
        eos: if eos.is_empty() { None } else { Some(eos.parse().ok()?) },
    })
}

/// Both charts.
pub fn picture(rows: &[Row]) -> Picture {
    let has_eos = rows.iter().any(|row| row.eos.is_some());
    let n_panels = if has_eos { 2.0 } else { 1.0 };
    let mut picture = Picture::new(n_panels * (LEFT + PANEL.0 + 30.0), TOP + PANEL.1 + 64.0);
    let place = Place { x: LEFT, y: TOP, width: PANEL.0, height: PANEL.1 };
    picture.text((LEFT, 16.0), "Error rate against the window ω", 14.0, INK, Anchor::Start);
    picture.text((LEFT, 35.0), "numbers at points: (ω_L, ω_R); the line is their mean", 11.0, FAINT, Anchor::Start);
    error_chart(&mut picture, rows, place);
    if has_eos {
        let place = Place { x: 2.0 * LEFT + PANEL.0 + 30.0, ..place };
        picture.text((place.x, 16.0), "Ends of sentences found against ω_R", 14.0, INK, Anchor::Start);
        picture.text((place.x, 35.0), "the line is the mean of all sets", 11.0, FAINT, Anchor::Start);
        eos_chart(&mut picture, rows, place);
    }
    picture
}

fn error_chart(picture: &mut Picture, rows: &[Row], place: Place) {
    let errors = || rows.iter().map(|row| row.error);
    let (low, high) = (errors().fold(f64::INFINITY, f64::min).floor(), errors().fold(0.0, f64::max).ceil());
    let largest = rows.iter().map(window).max().unwrap_or(1);
    let axes = Axes { place, x: (1, largest), y: (low, if low < high { high } else { low + 1.0 }) };
    axes.draw(picture, "window ω (slices)", "error rate (%)");
    for (set, colour) in sets(rows).iter().zip(DISTINCT) {
        let of_set: Vec<&Row> = rows.iter().filter(|row| row.set == **set).collect();
        axes.means(picture, of_set.iter().map(|row| (window(row), row.error)), colour);
        for row in &of_set {
            picture.dot(axes.at(window(row), row.error), 3.0, colour);
        }
    }
    // The windows are the same on every set: one set of names, beside the topmost points.
    for row in rows.iter().filter(|row| !rows.iter().any(|other| is_same_window(row, other) && row.error < other.error))
    {
        let (x, y) = axes.at(window(row), row.error);
        picture.text((x + 6.0, y - 7.0), format!("{},{}", row.left, row.right), 9.5, FAINT, Anchor::Start);
    }
    legend(picture, &sets(rows), place);
}

fn eos_chart(picture: &mut Picture, rows: &[Row], place: Place) {
    let found: Vec<(usize, f64, &str)> =
        rows.iter().filter_map(|row| Some((row.right, row.eos?, row.set.as_str()))).collect();
    let largest = found.iter().map(|(right, ..)| *right).max().unwrap_or(0);
    let axes = Axes { place, x: (0, largest), y: (0.0, 100.0) };
    axes.draw(picture, "right context ω_R (slices)", "sentences whose end is found (%)");
    for (set, colour) in sets(rows).iter().zip(DISTINCT) {
        for (right, eos, _) in found.iter().filter(|(.., of)| of == set) {
            picture.dot(axes.at(*right, *eos), 3.0, colour);
        }
    }
    axes.means(picture, found.iter().map(|(right, eos, _)| (*right, *eos)), INK);
    legend(picture, &sets(rows), place);
}

fn window(row: &Row) -> usize {
    row.left + 1 + row.right
}

fn is_same_window(a: &Row, b: &Row) -> bool {
    a.left == b.left && a.right == b.right
}

fn sets(rows: &[Row]) -> Vec<&str> {
    let mut sets: Vec<&str> = Vec::new();
    for row in rows {
        if !sets.contains(&row.set.as_str()) {
            sets.push(&row.set);
        }
    }
    sets
}

fn legend(picture: &mut Picture, sets: &[&str], place: Place) {
    let mut x = place.x;
    for (set, colour) in sets.iter().zip(DISTINCT) {
        picture.dot((x + 4.0, place.y - 16.0), 3.5, colour);
        picture.text((x + 12.0, place.y - 16.0), *set, 11.0, INK, Anchor::Start);
        x += 30.0 + text_width(set, 11.0);
    }
}

/// Whole numbers across, percentages up.
struct Axes {
    place: Place,
    x: (usize, usize),
    y: (f64, f64),
}

impl Axes {
    fn at(&self, x: usize, y: f64) -> (f64, f64) {
        let across = (x - self.x.0) as f64 / (self.x.1 - self.x.0).max(1) as f64;
        let up = (y - self.y.0) / (self.y.1 - self.y.0);
        // A little room to either side, so that no point lies on the frame.
        let Place { x, y, width, height } = self.place;
        (x + 20.0 + across * (width - 50.0), y + (1.0 - up) * (height - 16.0) + 10.0)
    }

    fn draw(&self, picture: &mut Picture, x_name: &str, y_name: &str) {
        let Place { x, y, width, height } = self.place;
        let step = step((self.y.1 - self.y.0) / 6.0);
        let first = (self.y.0 / step).ceil() as i64;
        for value in (first..).map(|k| k as f64 * step).take_while(|value| *value <= self.y.1 + 1e-9) {
            let (_, at) = self.at(self.x.0, value);
            picture.line(vec![(x, at), (x + width, at)], LINE, 0.5);
            picture.text((x - 6.0, at), format!("{value}"), 10.5, FAINT, Anchor::End);
        }
        picture.line(vec![(x, y), (x, y + height), (x + width, y + height)], FAINT, 1.0);
        for value in self.x.0..=self.x.1 {
            let (at, _) = self.at(value, self.y.0);
            picture.text((at, y + height + 13.0), value.to_string(), 10.5, FAINT, Anchor::Middle);
        }
        picture.text((x + width / 2.0, y + height + 34.0), x_name, 11.5, INK, Anchor::Middle);
        turned_middle(picture, (x - 44.0, y + height / 2.0), y_name, 11.5, INK);
    }

    /// A line through the mean of the values at each place.
    fn means(&self, picture: &mut Picture, points: impl Iterator<Item = (usize, f64)>, colour: Colour) {
        let points: Vec<(usize, f64)> = points.collect();
        let mean = |x: usize| {
            let here: Vec<f64> = points.iter().filter(|point| point.0 == x).map(|point| point.1).collect();
            (!here.is_empty()).then(|| self.at(x, here.iter().sum::<f64>() / here.len() as f64))
        };
        let line: Vec<(f64, f64)> = (self.x.0..=self.x.1).filter_map(mean).collect();
        picture.line(line, colour, 1.6);
    }
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `least`.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|digit| digit * power).find(|step| least <= *step).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{decode, texts};
    use super::*;

    const CSV: &str = "left,right,set,error,eos\n0,0,dev,24.4,52.8\n2,2, dev ,20.2,99.8\n2,2,test,21.7,\n";

    fn loaded(text: &str) -> Result<Vec<Row>, ReadTableError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        std::fs::write(&path, text).unwrap();
        load(&path)
    }

    #[test]
    fn csv_and_json_say_the_same() {
        let rows = loaded(CSV).unwrap();
        assert_eq!(rows[1], Row { left: 2, right: 2, set: "dev".to_owned(), error: 20.2, eos: Some(99.8) });
        assert_eq!(rows[2].eos, None);
        assert_eq!(loaded(&serde_json::to_string(&rows).unwrap()).unwrap(), rows);
    }

    #[test]
    fn bad_tables_are_told_in_one_line() {
        let told = |text: &str| {
            let told = loaded(text).unwrap_err().to_string();
            assert!(!told.contains('\n'));
            told.split_once("/t:").unwrap().1.to_owned()
        };
        assert_eq!(told("a,b\n"), "1: `a,b`, expected the head `left,right,set,error,eos`");
        assert_eq!(
            told("left,right,set,error,eos\n1,x,dev,3,4\n"),
            "2: `1,x,dev,3,4`, expected left,right,set,error,eos"
        );
        assert_eq!(told("left,right,set,error,eos\n"), "1: no rows, expected at least one");
        assert!(told("[{\"left\": 1}]").contains("missing field"));
        assert!(told("left,right,set,error,eos\n1,1,dev,nan,4\n").contains("no number"));
    }

    #[test]
    fn both_charts_have_their_points_and_names() {
        let rows = loaded(CSV).unwrap();
        let picture = picture(&rows);
        let svg = picture.svg();
        let texts = texts(&svg);
        for expected in
            ["dev", "test", "0,0", "2,2", "error rate (%)", "window ω (slices)", "sentences whose end is found (%)"]
        {
            assert!(texts.contains(&expected), "`{expected}` is not in {texts:?}");
        }
        let (width, pixels) = decode(&picture.png());
        let axes =
            Axes { place: Place { x: LEFT, y: TOP, width: PANEL.0, height: PANEL.1 }, x: (1, 5), y: (20.0, 25.0) };
        let (x, y) = axes.at(5, 21.7);
        let at = (y * super::super::sheet::SCALE) as usize * width + (x * super::super::sheet::SCALE) as usize;
        assert_eq!(pixels[at], DISTINCT[1], "the point of the test set");
    }
}
