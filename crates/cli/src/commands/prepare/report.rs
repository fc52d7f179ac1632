//! Prints what came of preparing or checking a corpus: problems grouped by kind, and a table of the parts.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::path::Path;

use srf_train::corpus::summary::{PartSummary, Summary};
use srf_train::corpus::{Fault, Problem};

use crate::printer::Printer;

/// Problems of one kind that are printed; the rest is counted.
const MAX_ALIKE: usize = 3;
const MAX_LISTED: usize = 20;

/// Prints problems in their order, the first few of each kind in a file; the rest of a kind is counted.
pub(crate) fn problems(problems: &[Problem], out: &Printer) {
    let mut kinds: Vec<((&Path, Discriminant<Fault>), usize)> = Vec::new();
    for problem in problems {
        // Problems with recordings are alike whichever recording it is.
        let path = if problem.line.is_some() { problem.path.as_path() } else { Path::new("") };
        let kind = (path, discriminant(&problem.fault));
        let at = kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            kinds.push((kind, 0));
            kinds.len() - 1
        });
        kinds[at].1 += 1;
        if kinds[at].1 <= MAX_ALIKE {
            out.problem(problem);
        }
    }
    for ((path, _), n) in kinds.into_iter().filter(|(_, n)| MAX_ALIKE < *n) {
        let place = if path.as_os_str().is_empty() { String::new() } else { format!("{}: ", path.display()) };
        out.problem(format!("{place}{} more like the first {MAX_ALIKE}", n - MAX_ALIKE));
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
    counts("outside the label set", &summary.out_of_set, out);
    counts("dropped from the transcripts", &summary.dropped, out);
    if let Some(lexicon) = &summary.lexicon {
        let share = 100.0 * lexicon.n_by_rules as f64 / lexicon.n_words.max(1) as f64;
        out.note(format!(
            "{} of {} words ({share:.2} %, {} different ones) are not in the dictionary and were pronounced by rules",
            lexicon.n_by_rules, lexicon.n_words, lexicon.n_types_by_rules
        ));
        counts("the most frequent of them", &lexicon.most_frequent_by_rules, out);
    }
    if 0 < summary.n_without_speaker {
        let n = summary.n_without_speaker;
        out.note(format!(
            "{n} utterances do not say who speaks: each counts as a speaker of its own, so a voice may be in several \
             parts (`--speaker-from path:1` names speakers after folders)"
        ));
    }
    checks(summary, out);
    out.note(format!("written to `{}`", dir.display()));
}

/// The most frequent of some labels, characters or words.
fn counts(what: &str, counts: &BTreeMap<String, usize>, out: &Printer) {
    if counts.is_empty() {
        return;
    }
    let mut sorted: Vec<(&String, &usize)> = counts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown: Vec<String> =
        sorted.iter().take(MAX_LISTED).map(|(label, count)| format!("`{label}` {count}")).collect();
    let n_more = sorted.len().saturating_sub(MAX_LISTED);
    let more = if n_more == 0 { String::new() } else { format!(" and {n_more} more") };
    out.note(format!("{what}: {}{more}", shown.join(", ")));
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
