//! The page of `srf demo`: training, evaluation, some recordings and the routing of one of them.

use std::collections::HashSet;

use srf_audio::Samples;
use srf_score::report::html;

use super::sections::{self, ALIGNMENT_KEY};
use super::{duration, epoch_s, number};
use crate::analyze::Analysis;
use crate::analyze::page as routing;
use crate::evaluate::{Evaluation, Rate};
use crate::events::log::History;
use crate::page::{Page, escape, table, tiles};

/// What the page shows.
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Demo<'a> {
    pub title: &'a str,
    pub history: &'a History,
    pub evaluation: &'a Evaluation,
    pub examples: &'a [Example],
    pub routing: Option<&'a Analysis>,
}

/// A recording to listen to.
#[allow(missing_docs, reason = "the names of the fields say what they are")]
pub struct Example {
    pub answer: usize,
    pub sentence: String,
    pub sound: Samples,
}

/// The first answer of each speaker, of at most `n` speakers: chosen by speaker, not by result.
pub fn choose(evaluation: &Evaluation, n: usize) -> Vec<usize> {
    let mut speakers = HashSet::new();
    let is_first = |at: &usize| speakers.insert(evaluation.answers[*at].speaker.as_str());
    (0..evaluation.answers.len()).filter(is_first).take(n).collect()
}

/// The page.
pub fn page(demo: &Demo<'_>) -> Page {
    let Demo { title, history, evaluation, examples, routing } = *demo;
    let line = "Trained on synthetic speech, and evaluated on synthetic voices it was not trained on.";
    let mut page = Page::new(title, line);
    page.section("Result", &result(history, evaluation));
    page.section("Recordings", &recordings(evaluation, examples));
    if let Some(analysis) = routing {
        let heading = format!("Routing of {}", analysis.id);
        page.section(&heading, &routing::fragment(analysis));
    }
    page.section("Confusions", &html::confusions(&evaluation.rate().system));
    page.section("Speakers", &speakers(evaluation.rate()));
    page.section("Training", &sections::progress(history));
    page.section("Capsules", &sections::health(history));
    page.section("Speed", &sections::speed(history));
    page.section("Left out", &sections::skipped(history));
    page.section("Run", &sections::facts(history));
    page
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate))
}

fn result(history: &History, evaluation: &Evaluation) -> String {
    let rate = evaluation.rate();
    let (n_wrong, n) = (rate.system.n_wrong(), rate.system.n_utterances());
    let interval = format!("{:.1}–{:.1} %", 100.0 * rate.interval.low, 100.0 * rate.interval.high);
    let mut shown = vec![
        (
            format!("{} on all of test, {n} utterances of new voices", rate.measure.name()),
            percent(rate.system.counts().error_rate()),
        ),
        ("95 % interval".to_owned(), interval),
        ("utterances without an error".to_owned(), format!("{} of {n}", n - n_wrong)),
    ];
    if let Some(factor) = evaluation.real_time_factor().filter(|factor| 0.0 < *factor) {
        shown.push(("times faster than real time".to_owned(), number(1.0 / factor)));
    }
    shown.push(("training".to_owned(), duration(history.epochs().map(epoch_s).sum())));
    if let Some(start) = history.start() {
        shown.push(("parameters".to_owned(), number(start.n_parameters as f64)));
    }
    tiles(&shown)
}

fn recordings(evaluation: &Evaluation, examples: &[Example]) -> String {
    let system = &evaluation.rate().system;
    let mut html = format!("<p class=\"note\">The first utterance of each speaker. {ALIGNMENT_KEY}</p>\n");
    for Example { answer, sentence, sound } in examples {
        let Some(utterance) = system.utterances().find(|utterance| utterance.sequence == *answer) else { continue };
        let extra = format!(
            "<p class=\"note\">{}</p><audio controls preload=\"none\" src=\"{}\"></audio>",
            escape(sentence),
            routing::data_url(sound)
        );
        html.push_str(&sections::example(&evaluation.answers[*answer].id, &extra, &utterance.alignment));
    }
    if examples.is_empty() { String::new() } else { html }
}

fn speakers(rate: &Rate) -> String {
    let rows: Vec<Vec<String>> = rate
        .system
        .speakers
        .iter()
        .map(|speaker| {
            let counts = speaker.counts;
            vec![
                String::from_utf8_lossy(&speaker.name).into_owned(),
                speaker.utterances.len().to_string(),
                counts.n_reference().to_string(),
                counts.substitutions.to_string(),
                counts.deletions.to_string(),
                counts.insertions.to_string(),
                percent(counts.error_rate()),
            ]
        })
        .collect();
    table(&["speaker", "utterances", "labels", "sub", "del", "ins", rate.measure.name()], &rows)
}

#[cfg(test)]
mod tests;
