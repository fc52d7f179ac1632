//! Pages for a browser that need no network: a title and sections in, one HTML file out.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

pub use srf_score::report::html::escape;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/hover.js");

/// A page under construction.
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page with a title and, as HTML, a line below it.
    pub fn new(title: &str, line: &str) -> Self {
        let body = format!("<header><h1>{}</h1>\n<p class=\"line\">{line}</p></header>\n", escape(title));
        Self { title: title.to_owned(), body }
    }

    /// Adds HTML under a heading; a section without content is left out.
    pub fn section(&mut self, heading: &str, html: &str) {
        if !html.is_empty() {
            let _ = writeln!(self.body, "<section><h2>{}</h2>\n{html}</section>", escape(heading));
        }
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let Self { title, body } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
             <style>{STYLE}</style></head>\n<body>\n{body}<script>{SCRIPT}</script>\n</body></html>\n",
            escape(title)
        )
    }

    /// Writes the page beside `path` and renames it, so that whoever looks sees the old page or the new one.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("html.part");
        let mut file = File::create(&beside)?;
        file.write_all(self.html().as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    }
}

/// Charts side by side, as many as there is room for.
pub fn gallery(charts: impl IntoIterator<Item = String>) -> String {
    let charts: String = charts.into_iter().collect();
    if charts.is_empty() { charts } else { format!("<div class=\"gallery\">{charts}</div>\n") }
}

/// Figures that matter, large, each with what it is.
pub fn tiles(tiles: &[(String, String)]) -> String {
    let tile = |(name, value): &(String, String)| {
        format!("<div class=\"tile\"><b>{}</b><span>{}</span></div>", escape(value), escape(name))
    };
    format!("<div class=\"tiles\">{}</div>\n", tiles.iter().map(tile).collect::<String>())
}

/// Names and values, one pair to a row; empty values are left out.
pub fn facts(facts: &[(&str, String)]) -> String {
    let row = |(name, value): &(&str, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value))
    };
    let rows: String = facts.iter().filter(|(_, value)| !value.is_empty()).map(row).collect();
    format!("<table class=\"facts\"><tbody>\n{rows}</tbody></table>\n")
}

/// A table with a head; cells are text.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: String = head.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
    let row = |cells: &Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.iter().map(row).collect();
    format!("<div class=\"wide\"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>\n")
}
