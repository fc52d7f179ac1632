//! Pages for a browser that need no network: a title, sections and a list of contents in one HTML file.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use srf_base::files::write_atomically;
use srf_score::report::html::STYLE;
pub use srf_score::report::html::escape;

const SCRIPT: &str = include_str!("page/hover.js");
/// From this many sections on, a page has a list of contents.
const MIN_CONTENTS: usize = 4;

/// A page under construction.
#[derive(Clone, Debug, Default)]
pub struct Page {
    title: String,
    line: String,
    headings: Vec<String>,
    body: String,
    refresh_s: Option<u32>,
}

impl Page {
    /// A page with a title and, as HTML, a line below it.
    pub fn new(title: &str, line: &str) -> Self {
        Self { title: title.to_owned(), line: line.to_owned(), ..Self::default() }
    }

    /// Adds HTML under a heading; a section without content is left out.
    pub fn section(&mut self, heading: &str, html: &str) {
        if !html.is_empty() {
            self.headings.push(heading.to_owned());
            let (id, heading) = (self.headings.len(), escape(heading));
            let _ = writeln!(self.body, "<section id=\"s{id}\"><h2>{heading}</h2>\n{html}</section>");
        }
    }

    /// Adds HTML without a heading.
    pub fn push(&mut self, html: &str) {
        self.body.push_str(html);
    }

    /// Makes the page load itself again after this time, for things that are under way.
    pub fn refresh_every(&mut self, seconds: u32) {
        self.refresh_s = Some(seconds);
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let Self { title, line, headings, body, refresh_s } = self;
        let title = escape(title);
        let link = |(at, heading): (usize, &String)| format!("<a href=\"#s{}\">{}</a> ", at + 1, escape(heading));
        let contents = match headings.len() {
            0..MIN_CONTENTS => String::new(),
            _ => format!("<nav>{}</nav>\n", headings.iter().enumerate().map(link).collect::<String>()),
        };
        let refresh =
            refresh_s.map_or_else(String::new, |s| format!("\nsetTimeout(() => location.reload(), {});", 1000 * s));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style></head>\n<body>\n<header><h1>{title}</h1>\n<p class=\"line\">{line}</p></header>\n\
             {contents}{body}<script>{SCRIPT}{refresh}</script>\n</body></html>\n"
        )
    }

    /// Writes the page atomically, so that whoever looks sees the old page or the new one.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, self.html().as_bytes())
    }
}

/// Charts side by side, as many as there is room for.
pub fn gallery(charts: impl IntoIterator<Item = String>) -> String {
    let charts: String = charts.into_iter().collect();
    if charts.is_empty() { charts } else { format!("<div class=\"gallery\">{charts}</div>\n") }
}

/// The most important figures, large, each with what it is.
pub fn tiles(tiles: &[(String, String)]) -> String {
    let tile = |(name, value): &(String, String)| {
        format!("<div class=\"tile\"><b>{}</b><span>{}</span></div>", escape(value), escape(name))
    };
    format!("<div class=\"tiles\">{}</div>\n", tiles.iter().map(tile).collect::<String>())
}

/// Names and values, one pair per row; empty values are left out.
pub fn facts(facts: &[(&str, String)]) -> String {
    let row = |(name, value): &(&str, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value))
    };
    let rows: String = facts.iter().filter(|(_, value)| !value.is_empty()).map(row).collect();
    format!("<table class=\"facts\"><tbody>\n{rows}</tbody></table>\n")
}

/// A table with a head; cells are text, and columns of numbers are aligned to the right.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let class = |column: usize| {
        let has_number = rows.iter().any(|row| row.get(column).is_some_and(|cell| is_number(cell)));
        let is_all = rows.iter().filter_map(|row| row.get(column)).all(|cell| is_number(cell) || is_nothing(cell));
        if has_number && is_all { " class=\"number\"" } else { "" }
    };
    let classes: Vec<&str> = (0..head.len()).map(class).collect();
    let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        let cell = |(class, cell): (&&str, &str)| {
            let name = tag.split(' ').next().unwrap_or_default();
            format!("<{tag}{class}>{}</{name}>", escape(cell))
        };
        format!("<tr>{}</tr>\n", classes.iter().zip(cells).map(cell).collect::<String>())
    };
    let head = cells("th scope=\"col\"", &mut head.iter().copied());
    let rows: String = rows.iter().map(|row| cells("td", &mut row.iter().map(String::as_str))).collect();
    format!("<div class=\"wide\"><table><thead>{head}</thead><tbody>\n{rows}</tbody></table></div>\n")
}

/// Whether a cell is a figure, perhaps with a sign, an interval or a unit.
fn is_number(cell: &str) -> bool {
    cell.trim_start_matches(['+', '-', '<', ' ']).starts_with(|c: char| c.is_ascii_digit()) && cell.len() < 40
}

fn is_nothing(cell: &str) -> bool {
    matches!(cell, "" | "-" | "—")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_are_aligned_to_the_right_and_others_are_not() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", "25.6 ± 0.4", "3 < 4", "—"]), row(["b", "—", "x", "-"])];
        let html = table(&["row", "PER", "mixed", "nothing"], &rows);
        assert_eq!(html.matches("class=\"number\"").count(), 3, "{html}");
        assert!(html.contains("<th scope=\"col\" class=\"number\">PER</th>"), "{html}");
        assert!(html.starts_with("<div class=\"wide\">"), "tables scroll");
    }

    #[test]
    fn a_long_page_lists_its_contents_and_one_under_way_loads_itself_again() {
        let mut page = Page::new("t", "");
        (0..3).for_each(|n| page.section(&format!("part <{n}>"), "x"));
        page.section("nothing", "");
        assert!(!page.html().contains("<nav>") && !page.html().contains("reload"));
        page.section("last", "x");
        page.refresh_every(30);
        let html = page.html();
        assert!(html.contains("<a href=\"#s1\">part &lt;0&gt;</a>") && html.contains("<section id=\"s4\">"), "{html}");
        assert!(html.contains("location.reload(), 30000"));
    }
}
