//! Error rate by window, and how often the end of a sentence is found by right context: a table, and two charts of it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use srf_base::files::read_text_at_most;

use crate::draw::chart::{Axis, Frame, Scale};
use crate::draw::{Anchor, Area, DISTINCT, FAINT, INK, Picture, text_width};

const MAX_TABLE_BYTES: u64 = 1 << 20;
/// Slices to one side; no network has as many.
const MAX_WINDOW: usize = 10_000;
const PANEL: (f64, f64) = (380.0, 260.0);
const LEFT: f64 = 62.0;
const TOP: f64 = 74.0;

/// One system on one set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowResult {
    /// Slices before the current one (ω_L).
    pub left: usize,
    /// Slices after it (ω_R).
    pub right: usize,
    /// The part of the corpus.
    pub set: String,
    /// The error rate in percent.
    pub error: f64,
    /// Utterances whose last label is the end of a sentence, in percent, where that was measured.
    #[serde(default)]
    pub eos: Option<f64>,
}

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ReadTableError {
    #[error("could not read `{path}`")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}: {found}, expected {expected}")]
    Line { path: PathBuf, line: usize, found: String, expected: &'static str },
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
pub fn load(path: &Path) -> Result<Vec<WindowResult>, ReadTableError> {
    let io = |source| ReadTableError::Io { path: path.to_owned(), source };
    let wrong = |(line, found, expected)| ReadTableError::Line { path: path.to_owned(), line, found, expected };
    let Some(text) = read_text_at_most(path, MAX_TABLE_BYTES).map_err(io)? else {
        return Err(wrong((1, format!("more than {MAX_TABLE_BYTES} bytes"), "a table of windows")));
    };
    let rows = parse(&text).map_err(wrong)?;
    match rows.iter().position(|row| !row.error.is_finite() || row.eos.is_some_and(|eos| !eos.is_finite())) {
        Some(at) => Err(wrong((at + 1, "a rate that is not a number".to_owned(), "percentages"))),
        None if rows.iter().any(|row| MAX_WINDOW < row.left.max(row.right)) => {
            Err(wrong((1, format!("a window of more than {MAX_WINDOW} slices"), "smaller ones")))
        }
        None if rows.is_empty() => Err(wrong((1, "no rows".to_owned(), "at least one"))),
        None => Ok(rows),
    }
}

type Wrong = (usize, String, &'static str);

fn parse(text: &str) -> Result<Vec<WindowResult>, Wrong> {
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

fn parse_row(line: &str) -> Option<WindowResult> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [left, right, set, error, eos] = fields[..] else { return None };
    Some(WindowResult {
        left: left.parse().ok()?,
        right: right.parse().ok()?,
        set: set.to_owned(),
        error: error.parse().ok()?,
        eos: if eos.is_empty() { None } else { Some(eos.parse().ok()?) },
    })
}

/// Both charts.
pub fn picture(results: &[WindowResult]) -> Picture {
    let has_eos = results.iter().any(|result| result.eos.is_some());
    let n_panels = if has_eos { 2.0 } else { 1.0 };
    let mut picture = Picture::new(n_panels * (LEFT + PANEL.0 + 30.0), TOP + PANEL.1 + 46.0);
    let area = Area { x: LEFT, y: TOP, width: PANEL.0, height: PANEL.1 };
    picture.text((LEFT, 16.0), "Error rate by window ω", 14.0, INK, Anchor::Start);
    picture.text((LEFT, 35.0), "numbers at points: (ω_L, ω_R); the line is their mean", 11.0, FAINT, Anchor::Start);
    error_chart(&mut picture, results, area);
    if has_eos {
        let area = Area { x: 2.0 * LEFT + PANEL.0 + 30.0, ..area };
        picture.text((area.x, 16.0), "Ends of sentences found by ω_R", 14.0, INK, Anchor::Start);
        picture.text((area.x, 35.0), "the line is the mean of all parts", 11.0, FAINT, Anchor::Start);
        eos_chart(&mut picture, results, area);
    }
    picture
}

fn error_chart(picture: &mut Picture, results: &[WindowResult], area: Area) {
    let frame = Frame {
        area,
        x: Axis::new(results.iter().map(window), Scale::Linear, true),
        y: Axis::new(results.iter().map(|result| result.error), Scale::Linear, false),
    };
    frame.draw(picture, "window ω (slices)", "");
    picture.text_upwards((area.x - 44.0, area.y + area.height / 2.0), "error rate (%)", 11.5, INK, Anchor::Middle);
    for (part, color) in parts(results).iter().zip(DISTINCT) {
        let points: Vec<(f64, f64)> =
            results.iter().filter(|result| result.set == **part).map(|result| (window(result), result.error)).collect();
        frame.draw_means(picture, &points, color);
        points.iter().filter_map(|(x, y)| frame.at(*x, *y)).for_each(|at| picture.dot(at, 3.0, color));
    }
    // The windows are the same on every part: one set of names, next to the topmost points.
    let is_above = |a: &WindowResult, b: &WindowResult| (a.left, a.right) == (b.left, b.right) && b.error < a.error;
    for result in results.iter().filter(|result| !results.iter().any(|other| is_above(other, result))) {
        let Some((x, y)) = frame.at(window(result), result.error) else { continue };
        let name = format!("{},{}", result.left, result.right);
        picture.text((x + 6.0, y - 7.0), name, 9.5, FAINT, Anchor::Start);
    }
    legend(picture, &parts(results), area);
}

fn eos_chart(picture: &mut Picture, results: &[WindowResult], area: Area) {
    let found: Vec<(f64, f64, &str)> =
        results.iter().filter_map(|result| Some((result.right as f64, result.eos?, result.set.as_str()))).collect();
    let frame = Frame {
        area,
        x: Axis::new(found.iter().map(|(right, ..)| *right), Scale::Linear, true),
        y: Axis::between(0.0, 100.0),
    };
    frame.draw(picture, "right context ω_R (slices)", "");
    let name = "sentences whose end is found (%)";
    picture.text_upwards((area.x - 44.0, area.y + area.height / 2.0), name, 11.5, INK, Anchor::Middle);
    for (part, color) in parts(results).iter().zip(DISTINCT) {
        let points = found.iter().filter(|(.., of)| of == part).filter_map(|(right, eos, _)| frame.at(*right, *eos));
        points.for_each(|at| picture.dot(at, 3.0, color));
    }
    let points: Vec<(f64, f64)> = found.iter().map(|(right, eos, _)| (*right, *eos)).collect();
    frame.draw_means(picture, &points, INK);
    legend(picture, &parts(results), area);
}

fn window(result: &WindowResult) -> f64 {
    (result.left + 1 + result.right) as f64
}

fn parts(results: &[WindowResult]) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for result in results {
        if !parts.contains(&result.set.as_str()) {
            parts.push(&result.set);
        }
    }
    parts
}

fn legend(picture: &mut Picture, parts: &[&str], area: Area) {
    let mut x = area.x;
    for (part, color) in parts.iter().zip(DISTINCT) {
        picture.dot((x + 4.0, area.y - 16.0), 3.5, color);
        picture.text((x + 12.0, area.y - 16.0), *part, 11.0, INK, Anchor::Start);
        x += 30.0 + text_width(part, 11.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{decode, texts};
    use super::*;

    const CSV: &str = "left,right,set,error,eos\n0,0,dev,24.4,52.8\n2,2, dev ,20.2,99.8\n2,2,test,21.7,\n";

    fn loaded(text: &str) -> Result<Vec<WindowResult>, ReadTableError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        std::fs::write(&path, text).unwrap();
        load(&path)
    }

    #[test]
    fn csv_and_json_say_the_same() {
        let rows = loaded(CSV).unwrap();
        assert_eq!(rows[1], WindowResult { left: 2, right: 2, set: "dev".to_owned(), error: 20.2, eos: Some(99.8) });
        assert_eq!(rows[2].eos, None);
        assert_eq!(loaded(&serde_json::to_string(&rows).unwrap()).unwrap(), rows);
    }

    #[test]
    fn bad_tables_are_reported_in_one_line() {
        let message = |text: &str| {
            let message = loaded(text).unwrap_err().to_string();
            assert!(!message.contains('\n'));
            message.split_once("/t:").unwrap().1.to_owned()
        };
        assert_eq!(message("a,b\n"), "1: `a,b`, expected the head `left,right,set,error,eos`");
        assert_eq!(
            message("left,right,set,error,eos\n1,x,dev,3,4\n"),
            "2: `1,x,dev,3,4`, expected left,right,set,error,eos"
        );
        assert_eq!(message("left,right,set,error,eos\n"), "1: no rows, expected at least one");
        assert!(message("[{\"left\": 1}]").contains("missing field"));
        assert!(message("left,right,set,error,eos\n1,1,dev,nan,4\n").contains("not a number"));
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
        // The second dot is in the color of the test part.
        let center = svg.split("<circle").nth(3).unwrap();
        let number = |key: &str| -> f64 {
            center.split(&format!("{key}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let (x, y) = (number("cx"), number("cy"));
        let at = (2.0 * y) as usize * width + (2.0 * x) as usize;
        assert_eq!(pixels[at], [188, 76, 0], "the point of the test part");
    }

    #[test]
    fn a_window_of_any_size_is_refused_or_drawn_in_little_memory() {
        let table = |right: usize| format!("left,right,set,error,eos\n0,{right},dev,24.4,52.8\n0,0,dev,20,\n");
        assert!(loaded(&table(100_000_000)).unwrap_err().to_string().contains("more than 10000 slices"));
        let svg = picture(&loaded(&table(10_000)).unwrap()).svg();
        assert!(svg.len() < 20_000, "{}", svg.len());
    }
}
