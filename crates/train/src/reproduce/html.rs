//! The table as a page for a browser: a report in, one HTML page that needs nothing else out.

use super::cells::{self, Grid, SMOKE};
use super::result::{Cell, Report, RowReport};
use super::shelf::Interval;
use crate::analyze::Picture;
use crate::report::chart::{Chart, Series};
use crate::report::page::{self, Page, escape};

/// The page, with a picture of the table where it has one.
pub(super) fn page(report: &Report, picture: Option<&Picture>) -> Page {
    let trial = if report.circumstances.is_smoke { format!("<b>{SMOKE}</b>; ") } else { String::new() };
    let budget = escape(&report.circumstances.budget);
    let line = format!("{trial}{}; trained: {budget}", cells::seeds(report));
    let mut page = Page::new(&cells::title(report), &line);
    page.section("Paper and here", &(table(&cells::figures(report)) + &notes(&cells::legend(report))));
    page.section("Figures", &page::gallery(charts(report)));
    page.section("Picture", &picture.map(Picture::svg).unwrap_or_default());
    if !report.claims.is_empty() {
        let claims = table(&cells::claims(report)) + &notes(&cells::claims_legend(report));
        page.section("What the paper claims", &claims);
    }
    page.section("Models", &table(&cells::models(report)));
    page.section("How it was made", &page::facts(&cells::facts(report)));
    page
}

fn table(Grid { head, rows }: &Grid) -> String {
    page::table(&head.iter().map(String::as_str).collect::<Vec<_>>(), rows)
}

fn notes(lines: &[String]) -> String {
    lines.iter().map(|line| format!("<p class=\"note\">{}</p>\n", escape(line))).collect()
}

/// For each column the figures of all rows, the paper's and ours.
fn charts(report: &Report) -> Vec<String> {
    let columns = report.rows.first().map_or(&[][..], |row| &row.cells);
    columns.iter().enumerate().map(|(column, cell)| chart(report, cell, column).html()).collect()
}

fn chart(report: &Report, cell: &Cell, column: usize) -> Chart {
    let values = |of: &dyn Fn(&Cell) -> Option<f64>| {
        let value = |(at, row): (usize, &RowReport)| ((at + 1) as f64, of(&row.cells[column]).unwrap_or(f64::NAN));
        report.rows.iter().enumerate().map(value).collect::<Vec<_>>()
    };
    let bound = |of: fn(Interval) -> f64| values(&|cell| cell.ours.as_ref()?.interval.map(of));
    let is_dashed = |series: Series| Series { is_dashed: true, ..series };
    Chart {
        title: cells::heading(report, cell),
        x_name: "row of the table".to_owned(),
        series: vec![
            Series::new("paper", values(&|cell| cell.paper.map(|figure| figure.value))),
            Series::new("here", values(&|cell| cell.ours.as_ref().map(|ours| ours.mean))),
            is_dashed(Series::new("95 % from", bound(|interval| interval.low))),
            is_dashed(Series::new("95 % to", bound(|interval| interval.high))),
        ],
        ..Chart::default()
    }
}
