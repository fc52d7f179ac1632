//! Telling of a prepared corpus: a summary and problems in, a table and lines on stderr out.

use std::path::Path;

use srf_train::corpus::Problem;
use srf_train::corpus::summary::{PartSummary, Summary};

use crate::printer::Printer;

/// Problems beyond this many are counted, not shown: a wrong path in a list of a million is one mistake.
const MAX_SHOWN: usize = 100;
const MAX_FOREIGN: usize = 20;

pub(crate) fn problems(problems: &[Problem], out: &Printer) {
    for problem in problems.iter().take(MAX_SHOWN) {
        out.problem(problem);
    }
    if MAX_SHOWN < problems.len() {
        out.problem(format!("and {} more", problems.len() - MAX_SHOWN));
    }
}

pub(super) fn summary(summary: &Summary, dir: &Path, out: &Printer) {
    // Where the labels are words, one column says it.
    let unit = Some(summary.units.as_str()).filter(|units| *units != "words");
    let column = |labels: &str| unit.map_or_else(String::new, |_| format!(" {labels:>10}"));
    let (labels, words) = (column(unit.unwrap_or_default()), "words");
    out.note(format!("{:<12} {:>10} {:>8} {:>8}{labels} {words:>9}", "part", "utterances", "speakers", "hours"));
    for PartSummary { name, n_utterances, n_speakers, hours, n_labels, n_words } in &summary.parts {
        let labels = column(&n_labels.to_string());
        out.note(format!("{name:<12} {n_utterances:>10} {n_speakers:>8} {hours:>8.2}{labels} {n_words:>9}"));
    }
    let n_unused = summary.label_counts.values().filter(|count| **count == 0).count();
    let unused = if n_unused == 0 { String::new() } else { format!(", {n_unused} of them never used") };
    out.note(format!("{} classes: padding, {} labels{unused}, blank", summary.n_classes, summary.label_counts.len()));
    foreign(summary, out);
    checks(summary, out);
    out.note(format!("written to `{}`", dir.display()));
}

fn foreign(summary: &Summary, out: &Printer) {
    if summary.out_of_set.is_empty() {
        return;
    }
    let mut counts: Vec<(&String, &usize)> = summary.out_of_set.iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown: Vec<String> =
        counts.iter().take(MAX_FOREIGN).map(|(label, count)| format!("`{label}` {count}")).collect();
    let n_more = counts.len().saturating_sub(MAX_FOREIGN);
    let more = if n_more == 0 { String::new() } else { format!(" and {n_more} more") };
    out.note(format!("outside the label set: {}{more}", shown.join(", ")));
}

fn checks(summary: &Summary, out: &Printer) {
    if summary.checks.is_empty() {
        return;
    }
    let unmet: Vec<_> = summary.checks.iter().filter(|check| !check.is_met()).collect();
    if unmet.is_empty() {
        out.note("all counts are those of the complete corpus");
    }
    for check in unmet {
        let (part, what) = (&check.part, check.what);
        out.note(format!("{part}: {} {what}, the complete corpus has {}", check.found, check.expected));
    }
}
