//! The table as Markdown: a report in, a page of text out.

use std::fmt::Write as _;

use super::cells::{self, CLAIMS_HEAD, SMOKE};
use super::result::Report;

/// The whole page.
pub fn format(report: &Report) -> String {
    let mut page = format!("# {}\n\n", cells::title(report));
    if report.circumstances.is_smoke {
        let _ = writeln!(page, "**{SMOKE}**\n");
    }
    page += &table(&cells::head(report), &cells::rows(report));
    paragraph(&mut page, &cells::legend(report));
    if !report.claims.is_empty() {
        let _ = writeln!(page, "\n## What the paper claims\n");
        page += &table(&CLAIMS_HEAD.map(str::to_owned), &cells::claims(report));
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

fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    rows.iter().fold(line(head) + &rule, |table, row| table + &line(row))
}
