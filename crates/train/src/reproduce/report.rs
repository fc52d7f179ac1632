//! A table as it came out: rows and verdicts from the files of a reproduction, as JSON, Markdown and a page.

use std::fmt::Write as _;

use serde::Serialize;
use srf_model::config::{ModelConfig, Recipe};

use super::paper::{Column, Figure, Quantity, TableRow};
use super::results::{Interval, Measured, Over, Results};
use super::statistics::mean;
use super::verdicts::{ALIKE_WITHIN, Compared, JudgedClaim, Verdict, judge};
use crate::analyze::Picture;
use crate::analyze::windows::{self, WindowResult};
use crate::draw::chart::{Dot, DotPlot};
use crate::page::{self, Page, escape};
use crate::report::{duration, grouped};

/// What is not known, or does not exist.
const NONE: &str = "—";
/// Must be shown wherever figures of a smoke test are.
const SMOKE: &str = "smoke: figures mean nothing";

/// What is common to all rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Circumstances {
    pub is_smoke: bool,
    pub corpus: String,
    pub units: String,
    /// `PER` or `WER`.
    pub measure: &'static str,
    pub mapping: Option<String>,
    pub search: String,
    pub budget: String,
    pub changes: Vec<String>,
    pub command: String,
    /// Processor and threads.
    pub machine: String,
    pub version: &'static str,
    /// What else a reader should know.
    pub remarks: Vec<String>,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Report {
    pub table: &'static str,
    pub number: &'static str,
    pub title: &'static str,
    pub n_seeds: u64,
    #[serde(flatten)]
    pub circumstances: Circumstances,
    pub rows: Vec<RowReport>,
    pub claims: Vec<JudgedClaim>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct RowReport {
    pub name: &'static str,
    pub title: &'static str,
    pub recipe: &'static str,
    /// Parameters of the model, with the classes of this corpus.
    pub n_parameters: u64,
    pub paper_millions: f64,
    /// Look-ahead in frames; `None` if the network needs the whole utterance.
    pub look_ahead_frames: Option<usize>,
    pub delay_ms: Option<f64>,
    /// Slices before and after the current one that the first capsule layer sees; `None` without capsules.
    pub window: Option<[usize; 2]>,
    pub n_seeds: usize,
    pub n_epochs: Option<usize>,
    /// How long training took, the mean of the seeds.
    pub training_s: Option<f64>,
    /// How long the recognition of the last part took, the mean of the seeds.
    pub recognition_s: Option<f64>,
    /// The figures, in the order of the columns.
    pub cells: Vec<Cell>,
}

/// A figure in the paper and here.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Cell {
    pub quantity: Quantity,
    pub part: &'static str,
    pub paper: Option<Figure>,
    pub ours: Option<Measured>,
}

impl Report {
    /// Everything that is known so far of `rows`; a recipe for each.
    pub(super) fn of(
        results: &Results,
        rows: &[(&'static TableRow, Recipe)],
        claims_on: &'static str,
        circumstances: Circumstances,
    ) -> Self {
        let has = |name: &str| rows.iter().any(|(row, _)| row.name() == name);
        let mut claims: Vec<JudgedClaim> =
            results.table.claims.iter().map(|claim| judge(claim, claims_on, results)).collect();
        claims.retain(|judged| judged.rows.iter().all(|name| has(name)));
        if circumstances.is_smoke {
            claims.iter_mut().for_each(|judged| judged.verdict = Verdict::NotDecided);
        }
        Self {
            table: &results.table.name,
            number: &results.table.number,
            title: &results.table.title,
            n_seeds: results.n_seeds,
            circumstances,
            rows: rows.iter().map(|(row, recipe)| RowReport::of(results, row, recipe)).collect(),
            claims,
        }
    }

    /// Whether some figure is the mean of several seeds.
    pub fn has_means(&self) -> bool {
        self.rows.iter().any(|row| 1 < row.n_seeds)
    }
}

impl RowReport {
    fn of(results: &Results, row: &'static TableRow, recipe: &Recipe) -> Self {
        let summary = recipe.summary();
        let runs: Vec<_> = (1..=results.n_seeds).filter_map(|seed| Some((seed, results.run(row, seed)?))).collect();
        let last_part = results.table.columns.last().map_or("", |column| column.part);
        let recognition: Vec<f64> =
            runs.iter().filter_map(|(seed, _)| Some(results.summary(row, *seed, last_part)?.recognition_s)).collect();
        let cell = |(column, paper): (&Column, Option<Figure>)| Cell {
            quantity: column.quantity,
            part: column.part,
            paper,
            ours: results.figure(row, *column),
        };
        Self {
            name: row.name(),
            title: &row.title,
            recipe: &row.recipe,
            n_parameters: summary.parameters.total,
            paper_millions: row.millions,
            look_ahead_frames: summary.look_ahead_frames,
            delay_ms: summary.delay_ms,
            window: window(&recipe.model),
            n_seeds: runs.iter().filter(|(_, run)| ["completed", "stopped early"].contains(&run.state)).count(),
            n_epochs: runs.first().map(|(_, run)| run.n_epochs),
            training_s: mean(&runs.iter().map(|(_, run)| run.time_s).collect::<Vec<_>>()),
            recognition_s: mean(&recognition),
            cells: results.table.columns.iter().zip(row.figures()).map(cell).collect(),
        }
    }
}

fn window(model: &ModelConfig) -> Option<[usize; 2]> {
    let ModelConfig::Srf(capsules) = model else { return None };
    let shape = capsules.capsule_shape(0);
    Some([shape.window_left, shape.window_right])
}

impl Report {
    fn heading(&self) -> String {
        format!("Table {} ({}): {}", self.number, self.table, self.title)
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", self.heading());
        if self.circumstances.is_smoke {
            let _ = writeln!(text, "**{SMOKE}**\n");
        }
        text += &figures(self).markdown();
        text += &paragraph(&legend(self));
        text += "\n## Models\n\n";
        text += &models(self).markdown();
        if !self.claims.is_empty() {
            text += "\n## What the paper claims\n\n";
            text += &claims(self).markdown();
            text += &paragraph(&claims_legend(self));
        }
        text += "\n## How it was made\n\n";
        for (name, value) in facts(self).iter().filter(|(_, value)| !value.is_empty()) {
            let _ = writeln!(text, "- {name}: {value}");
        }
        text
    }

    /// The table as a page, with a picture where it has one.
    pub(super) fn page(&self, picture: Option<&Picture>) -> Page {
        let smoke = if self.circumstances.is_smoke { format!("<b>{SMOKE}</b>; ") } else { String::new() };
        let line = format!("{smoke}{}; trained: {}", seeds(self), escape(&self.circumstances.budget));
        let mut page = Page::new(&self.heading(), &line);
        page.section("Paper and here", &(figures(self).html() + &notes(&legend(self))));
        page.section("Figures", &page::gallery(charts(self)));
        let inline = |p: &Picture| format!("<div class=\"picture\">{}</div>\n", p.svg_inline("errors by window"));
        page.section("Windows", &picture.map(inline).unwrap_or_default());
        if !self.claims.is_empty() {
            page.section("What the paper claims", &(claims(self).html() + &notes(&claims_legend(self))));
        }
        page.section("Models", &models(self).html());
        page.section("How it was made", &page::facts(&facts(self)));
        page
    }

    /// Error and EOS rates by window; `None` for other tables, and before something was measured.
    pub(super) fn windows_picture(&self) -> Option<Picture> {
        let is_of_windows = |row: &&RowReport| row.cells.iter().any(|cell| cell.quantity == Quantity::EosRate);
        let points: Vec<WindowResult> = self.rows.iter().filter(is_of_windows).flat_map(window_points).collect();
        (!points.is_empty()).then(|| windows::picture(&points))
    }
}

/// A point for each part that the row was measured on.
fn window_points(row: &RowReport) -> impl Iterator<Item = WindowResult> + '_ {
    let ours = |quantity: Quantity, part: &str| {
        let cell = row.cells.iter().find(|cell| cell.quantity == quantity && cell.part == part)?;
        cell.ours.as_ref().map(|ours| ours.mean)
    };
    let errors = row.cells.iter().filter(|cell| cell.quantity == Quantity::Error);
    errors.filter_map(move |cell| {
        let [left, right] = row.window?;
        let (error, eos) = (ours(Quantity::Error, cell.part)?, ours(Quantity::EosRate, cell.part));
        Some(WindowResult { left, right, set: cell.part.to_owned(), error, eos })
    })
}

/// Names of columns, and rows of as many cells.
struct Grid {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule = format!("|{}\n", "---|".repeat(self.head.len()));
        self.rows.iter().fold(line(&self.head) + &rule, |table, row| table + &line(row))
    }

    fn html(&self) -> String {
        page::table(&self.head.iter().map(String::as_str).collect::<Vec<_>>(), &self.rows)
    }
}

fn paragraph(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

fn notes(lines: &[String]) -> String {
    lines.iter().map(|line| format!("<p class=\"note\">{}</p>\n", escape(line))).collect()
}

/// The figures of all rows, the paper's and ours side by side.
fn figures(report: &Report) -> Grid {
    let cells = report.rows.first().map_or(&[][..], |row| &row.cells);
    let names = cells.iter().map(|cell| heading(report, cell));
    let names = names.flat_map(|name| [format!("{name}, paper"), format!("{name}, here")]);
    let row = |row: &RowReport| {
        let figures = row.cells.iter().flat_map(|cell| [paper(cell), ours(cell)]);
        std::iter::once(row.title.to_owned()).chain(figures).collect()
    };
    Grid { head: std::iter::once("row".to_owned()).chain(names).collect(), rows: report.rows.iter().map(row).collect() }
}

/// Size, look-ahead and training of the models.
fn models(report: &Report) -> Grid {
    let head =
        ["row", "parameters", "parameters, paper", "look-ahead", "delay", "seeds", "epochs", "training", "recognition"];
    Grid { head: head.map(str::to_owned).to_vec(), rows: report.rows.iter().map(model).collect() }
}

fn model(row: &RowReport) -> Vec<String> {
    let seconds = |time_s: Option<f64>| time_s.map_or_else(none, duration);
    vec![
        row.title.to_owned(),
        grouped(row.n_parameters),
        format!("{:.2} M", row.paper_millions),
        row.look_ahead_frames.map_or_else(|| "all".to_owned(), |frames| format!("{frames} frames")),
        row.delay_ms.map_or_else(|| "all".to_owned(), |ms| format!("{ms:.1} ms")),
        row.n_seeds.to_string(),
        row.n_epochs.map_or_else(none, |n| n.to_string()),
        seconds(row.training_s),
        seconds(row.recognition_s),
    ]
}

/// The name of a column.
fn heading(report: &Report, cell: &Cell) -> String {
    let Cell { quantity, part, .. } = cell;
    match quantity {
        Quantity::Error => format!("{} {part} %", report.circumstances.measure),
        Quantity::EosRate => format!("EOS {part} %"),
        Quantity::Distance => format!("distance {part}"),
        Quantity::TrainingTime => "training s/epoch".to_owned(),
        Quantity::DecodingTime => "decoding s".to_owned(),
        Quantity::RealTimeFactor => "xRT".to_owned(),
        Quantity::Correlation => "r".to_owned(),
        Quantity::Parameters => "parameters".to_owned(),
    }
}

fn none() -> String {
    NONE.to_owned()
}

fn paper(cell: &Cell) -> String {
    let Some(figure) = cell.paper else { return none() };
    let spread = figure.spread.map_or_else(String::new, |spread| format!(" ± {spread}"));
    let digits = match cell.quantity {
        Quantity::Error | Quantity::EosRate => 1,
        Quantity::TrainingTime | Quantity::DecodingTime => 0,
        _ => 2,
    };
    format!("{:.digits$}{spread}", figure.value)
}

fn ours(cell: &Cell) -> String {
    let Some(Measured { mean, interval, .. }) = &cell.ours else { return none() };
    let digits = digits(cell.quantity);
    match interval {
        Some(Interval { high, over: Over::Seeds, .. }) => format!("{mean:.digits$} ± {:.digits$}", high - mean),
        Some(Interval { low, high, over: Over::Utterances }) => {
            format!("{mean:.digits$} [{low:.digits$}, {high:.digits$}]")
        }
        None => format!("{mean:.digits$}"),
    }
}

fn digits(quantity: Quantity) -> usize {
    match quantity {
        Quantity::EosRate => 1,
        Quantity::Distance | Quantity::Correlation => 3,
        Quantity::RealTimeFactor => 4,
        _ => 2,
    }
}

/// The paper's claims and their verdicts.
fn claims(report: &Report) -> Grid {
    let head = ["claim", "paper", "here", "p", "pairs", "verdict"].map(str::to_owned);
    Grid { head: head.to_vec(), rows: report.claims.iter().map(claim).collect() }
}

fn claim(judged: &JudgedClaim) -> Vec<String> {
    let shown = |value: Option<f64>| value.map_or_else(none, |value| between(judged, value));
    vec![
        judged.says.to_owned(),
        shown(judged.paper),
        shown(judged.ours),
        judged.p.map_or_else(none, |p| if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }),
        if judged.n_compared == 0 { none() } else { judged.n_compared.to_string() },
        judged.verdict.name().to_owned(),
    ]
}

fn between(judged: &JudgedClaim, value: f64) -> String {
    match judged.compared {
        Compared::Difference => format!("{value:+.2}"),
        Compared::Ratio => format!("{value:.2} times"),
        Compared::Value => format!("{value:.3}"),
    }
}

/// How to read figures and intervals.
fn legend(report: &Report) -> Vec<String> {
    let circumstances = &report.circumstances;
    let mut legend = Vec::new();
    if report.has_means() {
        legend.push("± is half of Student's 95 % interval of the mean over seeds.".to_owned());
    }
    let has_bootstrap = |cell: &Cell| {
        let interval = cell.ours.as_ref().and_then(|ours| ours.interval);
        interval.is_some_and(|interval| interval.over == Over::Utterances)
    };
    if report.rows.iter().any(|row| row.cells.iter().any(has_bootstrap)) {
        legend.push("[low, high] is the 95 % interval of a bootstrap over utterances, for one seed.".to_owned());
    }
    let has_errors = |row: &RowReport| row.cells.iter().any(|cell| cell.quantity == Quantity::Error);
    if let Some(mapping) = circumstances.mapping.as_ref().filter(|_| report.rows.iter().any(has_errors)) {
        legend.push(format!("Phones were mapped to {mapping} before they were compared."));
    }
    legend.extend(circumstances.remarks.iter().cloned());
    legend
}

/// How claims were judged.
fn claims_legend(report: &Report) -> Vec<String> {
    let mut legend = vec![
        "Differences are above 0, and ratios above 1, where they are as claimed. That one row is better holds, or does not, where p < 0.05. Times and sizes are taken as measured.".to_owned(),
        "p is that of matched pairs of segments (MAPSSWE, as in `srf compare`) for error rates, and of a sign test on utterances for EOS and distances.".to_owned(),
    ];
    if report.claims.iter().any(|judged| judged.margin.is_some()) {
        legend.push(format!(
            "That two rows are alike holds where two one-sided tests (TOST, Student's, on utterances) show with p < 0.05 that their error rates differ by less than {} % of their mean; it does not hold where they differ significantly and by more. Anything else is not decided.",
            100.0 * ALIKE_WITHIN
        ));
    }
    if report.has_means() {
        legend.push(
            "Over several seeds it is twice the median p, which is valid however dependent the seeds are.".to_owned(),
        );
    }
    legend
}

/// Which seeds were asked for.
fn seeds(report: &Report) -> String {
    if report.n_seeds == 1 { "seed 1".to_owned() } else { format!("seeds 1 to {}", report.n_seeds) }
}

/// How the figures were made, by name.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let circumstances = report.circumstances.clone();
    vec![
        ("corpus", format!("{} ({})", circumstances.corpus, circumstances.units)),
        ("search", circumstances.search),
        ("seeds", seeds(report)),
        ("budget", circumstances.budget),
        ("changes to recipes", circumstances.changes.join(" ")),
        ("command", circumstances.command),
        ("machine", circumstances.machine),
        ("version", circumstances.version.to_owned()),
    ]
}

/// For each column the figures of all rows, the paper's and ours.
fn charts(report: &Report) -> Vec<String> {
    let columns = report.rows.first().map_or(&[][..], |row| &row.cells);
    columns.iter().enumerate().map(|(column, cell)| chart(report, cell, column).html()).collect()
}

fn chart(report: &Report, cell: &Cell, column: usize) -> DotPlot {
    let dots = |row: &RowReport| {
        let cell = &row.cells[column];
        let paper = cell.paper.map(|figure| {
            let ends = |spread| (figure.value - spread, figure.value + spread);
            Dot { value: figure.value, interval: figure.spread.map(ends) }
        });
        let ours = cell.ours.as_ref().map(|ours| {
            let ends = |interval: Interval| (interval.low, interval.high);
            Dot { value: ours.mean, interval: ours.interval.map(ends) }
        });
        (row.title.to_owned(), vec![paper, ours])
    };
    let rows = report.rows.iter().map(dots).collect();
    DotPlot { title: heading(report, cell), keys: vec!["paper", "here"], rows }
}
