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

/// Names of the columns.
pub(super) fn head(report: &Report) -> Vec<String> {
    let cells = report.rows.first().map_or(&[][..], |row| &row.cells);
    let figures = cells.iter().flat_map(|cell| {
        let name = heading(report, cell);
        [format!("{name}, paper"), format!("{name}, ours")]
    });
    let facts =
        ["parameters", "parameters, paper", "look-ahead", "delay", "seeds", "epochs", "training", "recognition"];
    std::iter::once("row".to_owned()).chain(figures).chain(facts.map(str::to_owned)).collect()
}

fn heading(report: &Report, cell: &Cell) -> String {
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

/// The cells of all rows.
pub(super) fn rows(report: &Report) -> Vec<Vec<String>> {
    report.rows.iter().map(row).collect()
}

fn row(row: &RowReport) -> Vec<String> {
    let figures = row.cells.iter().flat_map(|cell| [paper(cell), ours(cell)]);
    let seconds = |time_s: Option<f64>| time_s.map_or_else(none, duration);
    let facts = [
        grouped(row.n_parameters),
        format!("{:.2} M", row.paper_millions),
        row.look_ahead_frames.map_or_else(|| "all".to_owned(), |frames| format!("{frames} frames")),
        row.delay_ms.map_or_else(|| "all".to_owned(), |ms| format!("{ms:.1} ms")),
        row.n_seeds.to_string(),
        row.n_epochs.map_or_else(none, |n| n.to_string()),
        seconds(row.training_s),
        seconds(row.recognition_s),
    ];
    std::iter::once(row.title.to_owned()).chain(figures).chain(facts).collect()
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

/// Names of the columns of claims.
pub(super) const CLAIMS_HEAD: [&str; 6] = ["claim", "paper", "here", "p", "pairs", "verdict"];

/// The cells of all claims.
pub(super) fn claims(report: &Report) -> Vec<Vec<String>> {
    report.claims.iter().map(claim).collect()
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
        "A claim holds, or does not, where p < 0.05: the difference is then hardly chance. Times and sizes are taken as measured.".to_owned(),
        "p is that of matched pairs: segments between errors (MAPSSWE, as in `srf compare`) for error rates, utterances for ends and distances.".to_owned(),
    ];
    if report.has_means() {
        legend.push(
            "Over several seeds it is twice the p of the seed in the middle, which holds however much the seeds have in common.".to_owned(),
        );
    }
    legend
}

/// Under what circumstances the figures came about, by name.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let circumstances = report.circumstances.clone();
    vec![
        ("corpus", format!("{} ({})", circumstances.corpus, circumstances.units)),
        ("search", circumstances.search),
        ("seeds", report.n_seeds.to_string()),
        ("budget", circumstances.budget),
        ("changes to recipes", circumstances.changes.join(" ")),
        ("command", circumstances.command),
        ("machine", circumstances.machine),
        ("version", circumstances.version.to_owned()),
    ]
}
