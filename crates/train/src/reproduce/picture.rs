//! The picture of a table about windows: a report in, error rates and ends found by window out.

use super::result::{Report, RowReport};
use super::table::Quantity;
use crate::analyze::{Picture, windows};

/// The picture; none of other tables, and none before something was measured.
pub(super) fn windows(report: &Report) -> Option<Picture> {
    let is_of_windows = |row: &RowReport| row.cells.iter().any(|cell| cell.quantity == Quantity::EndsFound);
    let rows: Vec<windows::Row> = report.rows.iter().filter(|row| is_of_windows(row)).flat_map(points).collect();
    (!rows.is_empty()).then(|| windows::picture(&rows))
}

/// A point for each part that the row was measured on.
fn points(row: &RowReport) -> impl Iterator<Item = windows::Row> + '_ {
    let ours = |quantity: Quantity, part: &str| {
        let cell = row.cells.iter().find(|cell| cell.quantity == quantity && cell.part == part)?;
        cell.ours.as_ref().map(|ours| ours.mean)
    };
    let errors = row.cells.iter().filter(|cell| cell.quantity == Quantity::Error);
    errors.filter_map(move |cell| {
        let [left, right] = row.window?;
        let (error, eos) = (ours(Quantity::Error, cell.part)?, ours(Quantity::EndsFound, cell.part));
        Some(windows::Row { left, right, set: cell.part.to_owned(), error, eos })
    })
}
