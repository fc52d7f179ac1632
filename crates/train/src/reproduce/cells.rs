//! What stands in a table, in words: a report in, the cells of its rows and claims out.

use super::claims::{Compared, Judged};
use super::result::{Cell, Report, RowReport};
use super::shelf::{Interval, Measured, Over};
use super::table::Quantity;
use crate::report::{duration, grouped};

/// What is not known, or does not exist.
const NONE: &str = "—";
/// What must stand wherever figures of a trial do.
pub(super) const SMOKE: &str = "smoke: figures mean nothing";

/// Heading of the table: its number and what it shows.
pub(super) fn title(report: &Report) -> String {
    format!("Table {} ({}): {}", report.number, report.table, report.title)
}

/// Names of columns, and rows of as many cells.
pub(super) struct Grid {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The figures of all rows, the paper's and ours side by side.
pub(super) fn figures(report: &Report) -> Grid {
    let cells = report.rows.first().map_or(&[][..], |row| &row.cells);
    let names = cells.iter().map(|cell| heading(report, cell));
    let names = names.flat_map(|name| [format!("{name}, paper"), format!("{name}, ours")]);
    let row = |row: &RowReport| {
        let figures = row.cells.iter().flat_map(|cell| [paper(cell), ours(cell)]);
        std::iter::once(row.title.to_owned()).chain(figures).collect()
    };
    Grid { head: std::iter::once("row".to_owned()).chain(names).collect(), rows: report.rows.iter().map(row).collect() }
}

/// What the models of all rows are, and what they took.
pub(super) fn models(report: &Report) -> Grid {
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
pub(super) fn heading(report: &Report, cell: &Cell) -> String {
    let Cell { quantity, part, .. } = cell;
    match quantity {
        Quantity::Error => format!("{} {part} %", report.circumstances.measure),
        Quantity::EndsFound => format!("EOS {part} %"),
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
        Quantity::Error | Quantity::EndsFound => 1,
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
        Quantity::EndsFound => 1,
        Quantity::Distance | Quantity::Correlation => 3,
        Quantity::RealTimeFactor => 4,
        _ => 2,
    }
}

/// The paper's claims and what became of them.
pub(super) fn claims(report: &Report) -> Grid {
    let head = ["claim", "paper", "here", "p", "pairs", "verdict"].map(str::to_owned);
    Grid { head: head.to_vec(), rows: report.claims.iter().map(claim).collect() }
}

fn claim(judged: &Judged) -> Vec<String> {
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

fn between(judged: &Judged, value: f64) -> String {
    match judged.compared {
        Compared::Difference => format!("{value:+.2}"),
        Compared::Ratio => format!("{value:.2} times"),
        Compared::Value => format!("{value:.3}"),
    }
}

/// How intervals and tests are to be read.
pub(super) fn legend(report: &Report) -> Vec<String> {
    let circumstances = &report.circumstances;
    let mut legend = Vec::new();
    if report.has_means() {
        legend.push("± is half of Student's 95 % interval of the mean over seeds.".to_owned());
    }
    let is_drawn = |cell: &Cell| {
        let interval = cell.ours.as_ref().and_then(|ours| ours.interval);
        interval.is_some_and(|interval| interval.over == Over::Utterances)
    };
    if report.rows.iter().any(|row| row.cells.iter().any(is_drawn)) {
        legend.push("[low, high] is the 95 % interval of the bootstrap over the utterances, of one seed.".to_owned());
    }
    let has_errors = |row: &RowReport| row.cells.iter().any(|cell| cell.quantity == Quantity::Error);
    if let Some(mapping) = circumstances.mapping.as_ref().filter(|_| report.rows.iter().any(has_errors)) {
        legend.push(format!("Phones were mapped to {mapping} before they were compared."));
    }
    legend.extend(circumstances.remarks.iter().cloned());
    legend
}

/// How claims were judged.
pub(super) fn claims_legend(report: &Report) -> Vec<String> {
    let mut legend = vec![
        "Differences are above 0, and ratios above 1, where they are as claimed. That one is better holds, or does not, where p < 0.05: the difference is then hardly chance; that two are alike holds where no such difference is seen. Times and sizes are taken as measured.".to_owned(),
        "p is that of matched pairs of segments (MAPSSWE, as in `srf compare`) for error rates, and of a sign test on utterances for ends and distances.".to_owned(),
    ];
    if report.has_means() {
        legend.push(
            "Over several seeds it is twice the p of the seed in the middle, which holds however much the seeds have in common.".to_owned(),
        );
    }
    legend
}

/// Which seeds were asked for.
pub(super) fn seeds(report: &Report) -> String {
    if report.n_seeds == 1 { "seed 1".to_owned() } else { format!("seeds 1 to {}", report.n_seeds) }
}

/// Under what circumstances the figures came about, by name.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, String)> {
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
