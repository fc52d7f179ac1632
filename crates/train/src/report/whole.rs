//! One page from training to routing: what a run told, what its model is worth, some recordings and the routing of one
//! of them in; HTML that needs no network out.

use std::collections::HashSet;

use srf_audio::Samples;
use srf_score::report::html;

use super::page::{Page, escape, table, tiles};
use super::sections::{self, ALIGNMENT_KEY};
use super::{best_epoch, duration, epoch_s, number};
use crate::analyze::Analysis;
use crate::analyze::page as routing;
use crate::evaluate::{Evaluation, Rate};
use crate::events::log::History;

/// What the page shows.
pub struct Whole<'a> {
    /// The heading.
    pub title: &'a str,
    /// What the run told.
    pub history: &'a History,
    /// What its model is worth.
    pub evaluation: &'a Evaluation,
    /// Recordings to listen to.
    pub examples: &'a [Example],
    /// What the capsules do with one of them.
    pub routing: Option<&'a Analysis>,
}

/// A recording to listen to.
pub struct Example {
    /// Which answer of the evaluation it belongs to.
    pub answer: usize,
    /// What is said, in words.
    pub sentence: String,
    /// How it sounds.
    pub sound: Samples,
}

/// The first answer of each speaker, of at most `n` speakers: chosen by who speaks, not by how well it went.
pub fn choose(evaluation: &Evaluation, n: usize) -> Vec<usize> {
    let mut speakers = HashSet::new();
    let is_first = |at: &usize| speakers.insert(evaluation.answers[*at].speaker.as_str());
    (0..evaluation.answers.len()).filter(is_first).take(n).collect()
}

/// The page.
pub fn page(whole: &Whole<'_>) -> Page {
    let Whole { title, history, evaluation, examples, routing } = *whole;
    let line = "Trained on speech that the program made itself, and measured on speakers it was not trained on.";
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
        (format!("{} of speakers never heard before", rate.measure.name()), percent(rate.system.counts().error_rate())),
        ("95 % interval".to_owned(), interval),
        ("utterances without an error".to_owned(), format!("{} of {n}", n - n_wrong)),
    ];
    if let Some(factor) = evaluation.real_time_factor().filter(|factor| 0.0 < *factor) {
        shown.push(("recognised, times faster than speech".to_owned(), number(1.0 / factor)));
    }
    if let Some((_, errors)) = best_epoch(history) {
        shown.push((format!("best {} on dev while training", errors.measure), percent(errors.rate())));
    }
    shown.push(("training".to_owned(), duration(history.epochs().map(epoch_s).sum())));
    if let Some(start) = history.start() {
        shown.push(("parameters".to_owned(), number(start.n_parameters as f64)));
    }
    tiles(&shown)
}

fn recordings(evaluation: &Evaluation, examples: &[Example]) -> String {
    let system = &evaluation.rate().system;
    let mut html = format!("<p class=\"note\">The first of each speaker. {ALIGNMENT_KEY}</p>\n");
    for Example { answer, sentence, sound } in examples {
        let Some(utterance) = system.utterances().find(|utterance| utterance.sequence == *answer) else { continue };
        let extra = format!(
            "<p class=\"note\">{}</p><audio controls preload=\"none\" src=\"{}\"></audio>",
            escape(sentence),
            routing::address(sound)
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
