//! Fits the label timing of a recogniser to utterances with known times.
//!
//! Only utterances that are recognised without a mistake count, label by label.

use std::collections::HashMap;

use srf::Recognizer;
use srf_text::label_timing::{LabelTiming, Observed};
use srf_text::labels::Units;
use srf_text::output::TokenResult;

use crate::corpus::{Timed, Utterance, Watcher};
use crate::evaluate::{EvaluateOptions, evaluate};

/// The label timing of `recognizer`, which must not have one yet; `None` if too few utterances have times and are
/// recognised.
pub fn fit(recognizer: &Recognizer, utterances: &[Utterance], watcher: &dyn Watcher) -> Option<LabelTiming> {
    let labels = recognizer.labels();
    let with_times: Vec<Utterance> =
        utterances.iter().filter(|utterance| !timed(utterance, labels.units()).is_empty()).cloned().collect();
    if with_times.is_empty() {
        return None;
    }
    let evaluation = evaluate(recognizer, &with_times, &EvaluateOptions::default(), watcher);
    let by_id: HashMap<&str, &Utterance> =
        with_times.iter().map(|utterance| (utterance.id.as_str(), utterance)).collect();
    let mut observed = Vec::new();
    for (answer, transcript) in evaluation.answers.iter().zip(&evaluation.transcripts) {
        let utterance = by_id[answer.id.as_str()];
        let written: Vec<&TokenResult> = transcript.segments.iter().flat_map(|segment| &segment.tokens).collect();
        let said = timed(utterance, labels.units());
        if !is_right(&written, utterance, said) {
            continue;
        }
        for (token, said) in written.iter().zip(said) {
            let class = labels.class(&token.text)?;
            observed.push(Observed {
                class,
                emitted_s: [token.start_s, token.end_s],
                reference_s: [said.start_s, said.end_s],
            });
        }
    }
    LabelTiming::learn(labels.n_classes(), &observed)
}

/// The times of an utterance in the units of the labels.
fn timed(utterance: &Utterance, units: Units) -> &[Timed] {
    match units {
        Units::Phones => &utterance.phones,
        Units::Words => &utterance.words,
        // Nobody times characters or pieces.
        Units::Chars | Units::Pieces => &[],
    }
}

/// Whether the labels are those of the utterance, one for each of its times.
fn is_right(written: &[&TokenResult], utterance: &Utterance, said: &[Timed]) -> bool {
    let labels = utterance.text.split_whitespace();
    written.len() == said.len() && written.iter().map(|token| token.text.as_str()).eq(labels)
}
