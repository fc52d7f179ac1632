//! Reads TIMIT's label files (`.PHN`, `.WRD`): lines `start end name`, the times in samples.

use std::io::BufRead;
use std::path::Path;

use super::Timed;
use super::files::{for_each_line, for_each_line_of};
use super::problem::{Fault, Problem, Problems};

/// Reads the label file at `path`, whose times are in samples of `rate_hz`.
pub(crate) fn load(path: &Path, rate_hz: f64, problems: &mut Problems) -> Vec<Timed> {
    let mut timed = Vec::new();
    for_each_line(path, problems, |line, text, problems| push(&mut timed, path, line, text, rate_hz, problems));
    timed
}

/// The same of anything that can be read.
pub fn read(reader: impl BufRead, path: &Path, rate_hz: f64) -> (Vec<Timed>, Vec<Problem>) {
    let mut problems = Problems::default();
    let mut timed = Vec::new();
    for_each_line_of(reader, path, &mut problems, |line, text, problems| {
        push(&mut timed, path, line, text, rate_hz, problems);
    });
    (timed, problems.0)
}

fn push(timed: &mut Vec<Timed>, path: &Path, line: usize, text: &str, rate_hz: f64, problems: &mut Problems) {
    if text.trim().is_empty() {
        return;
    }
    let Some((start, end, name)) = parse(text) else {
        problems.add(path, Some(line), Fault::shape(text, "`start end name`, the times in samples"));
        return;
    };
    let (start_s, end_s) = (start as f64 / rate_hz, end as f64 / rate_hz);
    let is_in_order = start < end && timed.last().is_none_or(|last| last.start_s <= start_s);
    if !is_in_order {
        let fault = Fault::Times { what: format!("`{name}`"), start: start as f64, end: end as f64 };
        problems.add(path, Some(line), fault);
        return;
    }
    timed.push(Timed { start_s, end_s, name: name.to_owned() });
}

fn parse(text: &str) -> Option<(u64, u64, &str)> {
    let mut fields = text.split_whitespace();
    let (start, end, name) = (fields.next()?, fields.next()?, fields.next()?);
    fields.next().is_none().then_some(())?;
    Some((start.parse().ok()?, end.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_seconds_and_bad_lines_are_told() {
        let text = "0 8000 h#\r\n8000 16000 sh\n16000 9000 iy\nx y z\n16000 24000\n\n16000 24000 iy\n";
        let (timed, problems) = read(text.as_bytes(), Path::new("a.PHN"), 16_000.0);
        let names: Vec<&str> = timed.iter().map(|timed| timed.name.as_str()).collect();
        assert_eq!(names, ["h#", "sh", "iy"]);
        assert_eq!((timed[1].start_s, timed[1].end_s), (0.5, 1.0));
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems[0], "a.PHN:3: `iy` from 16000 to 9000, expected an end after its start, in order");
        assert_eq!(problems[1], "a.PHN:4: found \"x y z\", expected `start end name`, the times in samples");
        assert_eq!(problems.len(), 3);
    }
}
