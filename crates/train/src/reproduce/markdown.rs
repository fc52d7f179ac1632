//! The table as Markdown: a report in, a page of text out.

use std::fmt::Write as _;

use super::cells::{self, Grid, SMOKE};
use super::result::Report;

/// The whole page.
pub fn format(report: &Report) -> String {
    let mut page = format!("# {}\n\n", cells::title(report));
    if report.circumstances.is_smoke {
        let _ = writeln!(page, "**{SMOKE}**\n");
    }
    page += &table(&cells::figures(report));
    paragraph(&mut page, &cells::legend(report));
    let _ = writeln!(page, "\n## Models\n");
    page += &table(&cells::models(report));
    if !report.claims.is_empty() {
        let _ = writeln!(page, "\n## What the paper claims\n");
        page += &table(&cells::claims(report));
        paragraph(&mut page, &cells::claims_legend(report));
    }
    let _ = writeln!(page, "\n## How it was made\n");
    for (name, value) in cells::facts(report).iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(page, "- {name}: {value}");
    }
    page
}

fn paragraph(page: &mut String, lines: &[String]) {
    if !lines.is_empty() {
        let _ = writeln!(page, "\n{}", lines.join("\n"));
    }
}

fn table(Grid { head, rows }: &Grid) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    rows.iter().fold(line(head) + &rule, |table, row| table + &line(row))
}
