//! Tables in the layout of NIST's reports.
//!
//! A row has a format such as `l|cc|cc`: `l`, `c` and `r` are columns and their alignment, `a` joins a column to the
//! previous one, `|` and `=` draw single and double rules. One sheet serves several reports in turn and is not cleared
//! in between: a joined column keeps its text from the previous report, which counts for its width, as in NIST's files.

use std::fmt::Write as _;

use super::round;

const PAGE_WIDTH: usize = 80;

/// A sheet on which tables are laid out, one after the other.
///
/// ```
/// let mut sheet = srf_score::report::Sheet::default();
/// sheet.erase();
/// sheet.centre();
/// sheet.line_before('=');
/// sheet.row("l|c", &["speaker", "errors"]);
/// sheet.line_after('-');
/// sheet.row("l|c", &["ann", "3"]);
/// assert!(sheet.render(1).contains("ann"));
/// ```
#[derive(Default)]
pub struct Sheet {
    formats: Vec<Format>,
    n_formats: usize,
    rows: Vec<TableRow>,
    /// The last text of each column and row, by any report.
    cells: Vec<Vec<String>>,
    before_next: String,
    after_next: String,
    /// Whether tables are centred on the page.
    is_centred: bool,
}

#[derive(Clone, Default)]
struct Format {
    text: String,
    columns: Vec<char>,
    /// What is drawn after each column; older formats show through after the last.
    rules: Vec<char>,
    n_double_rules: usize,
}

struct TableRow {
    format: usize,
    before: String,
    after: String,
}

impl Format {
    fn parse(text: &str, old_rules: &[char]) -> Self {
        let mut format = Self { text: text.to_owned(), rules: old_rules.to_vec(), ..Self::default() };
        let mut chars = text.chars().peekable();
        while let Some(column) = chars.next() {
            let rule = chars.next_if(|c| matches!(c, '|' | '=')).unwrap_or(' ');
            format.n_double_rules += usize::from(rule == '=');
            let at = format.columns.len();
            if format.rules.len() <= at {
                format.rules.resize(at + 1, '\0');
            }
            format.rules[at] = rule;
            format.columns.push(column);
        }
        format
    }

    fn rule(&self, column: usize) -> char {
        self.rules.get(column).copied().unwrap_or('\0')
    }

    fn is_joined(&self, column: usize) -> bool {
        self.columns.get(column) == Some(&'a')
    }

    /// How many columns are joined to `column`.
    fn n_joined(&self, column: usize) -> usize {
        (column + 1..self.columns.len()).take_while(|c| self.is_joined(*c)).count()
    }

    fn is_last(&self, column: usize) -> bool {
        column + self.n_joined(column) + 1 == self.columns.len()
    }
}

/// How wide a cell of a row is, and how wide its text may be.
#[derive(Clone, Copy, Default)]
struct Width {
    whole: usize,
    text: usize,
}

impl Sheet {
    /// Begins a new table.
    pub fn erase(&mut self) {
        self.n_formats = 0;
        self.rows.clear();
        self.before_next.clear();
        self.after_next.clear();
    }

    /// Centres all following tables on the page.
    pub fn centre(&mut self) {
        self.is_centred = true;
    }

    /// Draws a line of `rule` above the next row.
    pub fn line_before(&mut self, rule: char) {
        self.before_next.push(rule);
    }

    /// Draws a line of `rule` below the next row.
    pub fn line_after(&mut self, rule: char) {
        self.after_next.push(rule);
    }

    /// Adds a row: a value for each column that is not joined; missing ones stay empty.
    pub fn row<S: AsRef<str>>(&mut self, format: &str, values: &[S]) {
        let format = self.find_format(format);
        let at = self.rows.len();
        let mut values = values.iter();
        for column in 0..self.formats[format].columns.len() {
            if !self.formats[format].is_joined(column) {
                let value = values.next().map_or("", |value| value.as_ref());
                value.clone_into(self.cell_mut(column, at));
            }
        }
        let (before, after) = (std::mem::take(&mut self.before_next), std::mem::take(&mut self.after_next));
        self.rows.push(TableRow { format, before, after });
    }

    fn find_format(&mut self, text: &str) -> usize {
        if let Some(found) = self.formats[..self.n_formats].iter().position(|format| format.text == text) {
            return found;
        }
        let at = self.n_formats;
        if at == self.formats.len() {
            self.formats.push(Format::default());
        }
        self.formats[at] = Format::parse(text, &self.formats[at].rules);
        self.n_formats += 1;
        at
    }

    fn cell_mut(&mut self, column: usize, row: usize) -> &mut String {
        if self.cells.len() <= column {
            self.cells.resize_with(column + 1, Vec::new);
        }
        let cells = &mut self.cells[column];
        if cells.len() <= row {
            cells.resize_with(row + 1, String::new);
        }
        &mut cells[row]
    }

    fn cell(&self, column: usize, row: usize) -> &str {
        self.cells.get(column).and_then(|cells| cells.get(row)).map_or("", String::as_str)
    }

    /// The table as text, with `n_pad` blanks on both sides of every cell.
    pub fn render(&self, n_pad: usize) -> String {
        let sizes = self.column_sizes(n_pad);
        let min_widths: Vec<usize> =
            self.formats[..self.n_formats].iter().map(|f| min_width(f, &sizes, n_pad)).collect();
        let width = min_widths.iter().copied().max().unwrap_or(0);
        let margin = if self.is_centred && width < PAGE_WIDTH { (PAGE_WIDTH - width) / 2 } else { 0 };
        let margin = " ".repeat(margin);
        let bar = "-".repeat(width.saturating_sub(2));
        let mut out = format!("{margin},{bar}.\n");
        for (at, row) in self.rows.iter().enumerate() {
            let format = &self.formats[row.format];
            let widths = row_widths(format, &sizes, n_pad, width - min_widths[row.format]);
            let above = at.checked_sub(1).map(|above| &self.formats[self.rows[above].format]);
            for rule in row.before.chars() {
                line_above(&mut out, &margin, format, above, &widths, rule);
            }
            self.render_row(&mut out, &margin, at, &widths);
            for rule in row.after.chars() {
                line_below(&mut out, &margin, format, above, &widths, rule);
            }
        }
        let _ = writeln!(out, "{margin}`{bar}'");
        out
    }

    /// The widest text of each column, separately for each number of columns.
    fn column_sizes(&self, n_pad: usize) -> Vec<Vec<usize>> {
        let most = self.formats.iter().map(|format| format.columns.len()).max().unwrap_or(0);
        let mut sizes = vec![vec![0; most + 1]; most + 1];
        for (at, row) in self.rows.iter().enumerate() {
            let format = &self.formats[row.format];
            for column in (0..format.columns.len()).filter(|c| !format.is_joined(c + 1)) {
                let size = &mut sizes[format.columns.len()][column];
                *size = (*size).max(text_size(self.cell(column, at)));
            }
        }
        for (at, row) in self.rows.iter().enumerate() {
            let format = &self.formats[row.format];
            let sizes = &mut sizes[format.columns.len()];
            let mut column = 0;
            while column < format.columns.len() {
                let last = column + format.n_joined(column);
                if last > column {
                    widen(&mut sizes[column..=last], text_size(self.cell(column, at)), n_pad);
                }
                column = last + 1;
            }
        }
        sizes
    }

    fn render_row(&self, out: &mut String, margin: &str, at: usize, widths: &[Width]) {
        let format = &self.formats[self.rows[at].format];
        let mut rest: Vec<&str> =
            (0..format.columns.len()).map(|c| if format.is_joined(c) { "" } else { self.cell(c, at) }).collect();
        loop {
            let _ = write!(out, "{margin}|");
            for (column, rest) in rest.iter_mut().enumerate().filter(|(c, _)| !format.is_joined(*c)) {
                let Width { whole, text } = widths[column];
                let value = next_line(rest, text);
                // Counted in bytes, not in characters.
                let (blanks, free) = (whole - text, text.saturating_sub(value.len()));
                let left = match format.columns[column] {
                    'l' => 0,
                    'r' => free,
                    _ => free / 2,
                };
                let (left, right) = (blanks / 2 + left, blanks - blanks / 2 + free - left);
                let _ = write!(out, "{:left$}{value}{:right$}", "", "");
                if !format.is_last(column) {
                    out.push_str(match format.rule(column + format.n_joined(column)) {
                        '=' => "||",
                        '|' => "|",
                        _ => " ",
                    });
                }
            }
            out.push_str("|\n");
            if rest.iter().all(|rest| rest.is_empty()) {
                return;
            }
        }
    }
}

/// Takes the next line of a cell: up to `//`, or as many words as fit.
fn next_line<'a>(rest: &mut &'a str, width: usize) -> &'a str {
    let text = *rest;
    let end = text.find("//").unwrap_or(text.len());
    if end <= width {
        *rest = text.get(end + 2..).unwrap_or("");
        return &text[..end];
    }
    let cut = (0..=width).rev().find(|at| text.as_bytes()[*at] == b' ');
    let (end, next) = cut.map_or((end, end), |cut| (cut, cut + 1));
    *rest = &text[next..];
    &text[..end]
}

/// The longest line of a cell, in bytes.
fn text_size(text: &str) -> usize {
    text.split("//").map(str::len).max().unwrap_or(0)
}

/// Spreads over joined columns what their common text needs beyond their widths.
fn widen(sizes: &mut [usize], needed: usize, n_pad: usize) {
    let n_columns = sizes.len();
    let mut has = sizes.iter().sum::<usize>() + (n_columns - 1) * (1 + 2 * n_pad);
    if needed <= has {
        return;
    }
    for (at, size) in sizes.iter_mut().enumerate() {
        let lacking = needed.saturating_sub(has) as f64;
        let is_last = at + 1 == n_columns;
        let add = if is_last { lacking as usize } else { (lacking / n_columns as f64 + 0.5) as usize };
        *size += add;
        has += add;
    }
}

fn min_width(format: &Format, sizes: &[Vec<usize>], n_pad: usize) -> usize {
    let n_columns = format.columns.len();
    let cells: usize = sizes[n_columns][..n_columns].iter().map(|size| size + 2 * n_pad).sum();
    2 + cells + format.n_double_rules + n_columns - 1
}

/// The widths of a row that has `spare` blanks to give away.
fn row_widths(format: &Format, sizes: &[Vec<usize>], n_pad: usize, spare: usize) -> Vec<Width> {
    let n_columns = format.columns.len();
    let sizes = &sizes[n_columns];
    let mut widths = vec![Width::default(); n_columns];
    let mut given = 0;
    for column in (0..n_columns).filter(|c| !format.is_joined(*c)) {
        let n_joined = format.n_joined(column);
        let is_last = column == n_columns - 1;
        let due = round(spare as f64 / n_columns as f64 * (column + n_joined + 1) as f64, 0) as usize;
        let add = if is_last { spare - given } else { due - given };
        given += if is_last { 0 } else { add };
        let mut width = Width { text: sizes[column], whole: sizes[column] + 2 * n_pad + add };
        for size in &sizes[column + 1..=column + n_joined] {
            let size = size + 2 * n_pad + 1;
            width.text += size;
            width.whole += size;
        }
        widths[column] = width;
    }
    widths
}

/// Draws a line of `rule` across a row; `crossing` says the character where it meets the rule after a column.
fn draw_line(
    out: &mut String,
    margin: &str,
    format: &Format,
    widths: &[Width],
    rule: char,
    crossing: impl Fn(usize, usize) -> (char, usize),
) {
    let _ = write!(out, "{margin}|");
    for column in (0..format.columns.len()).filter(|c| !format.is_joined(*c)) {
        out.extend(std::iter::repeat_n(rule, widths[column].whole));
        if !format.is_last(column) {
            let (drawn, n) = crossing(column, column + format.n_joined(column));
            out.extend(std::iter::repeat_n(drawn, n));
        }
    }
    out.push_str("|\n");
}

fn line_above(out: &mut String, margin: &str, format: &Format, above: Option<&Format>, widths: &[Width], rule: char) {
    draw_line(out, margin, format, widths, rule, |_, at| {
        let here = format.rule(at);
        let crosses = above.is_some_and(|above| matches!(above.rule(at), '|' | '='));
        let drawn = match here {
            '|' | '=' if rule == ' ' => '|',
            '|' | '=' if rule == '-' && crosses => '+',
            _ => rule,
        };
        (drawn, if here == '=' { 2 } else { 1 })
    });
}

fn line_below(out: &mut String, margin: &str, format: &Format, above: Option<&Format>, widths: &[Width], rule: char) {
    draw_line(out, margin, format, widths, rule, |column, at| {
        let here = format.rule(at);
        let crosses = above.is_some_and(|above| above.rule(at) == '|');
        let drawn = match rule {
            ' ' if here != ' ' => here,
            '-' if here != ' ' && format.rule(column) == '|' && crosses => '+',
            _ => rule,
        };
        (drawn, 1)
    });
}
