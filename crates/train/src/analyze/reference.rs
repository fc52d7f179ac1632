//! What was said: a manifest or a file of labels in, labels with times out.

use std::path::Path;

use srf_text::labels::Units;

use crate::corpus::{Problem, Timed, Utterance, folder};

/// The labels of an utterance in the units of a model; empty where their times are not known.
pub fn of(utterance: &Utterance, units: Units) -> Vec<Timed> {
    match units {
        Units::Phones => utterance.phones.clone(),
        // Characters have no times of their own: their words are the nearest thing.
        Units::Words | Units::Chars => utterance.words.clone(),
    }
}

/// The labels that a file (`.phn`, `.wrd`, `.lab`, `.TextGrid`) has for a recording.
pub fn load(path: &Path, recording: &Path) -> (Utterance, Vec<Problem>) {
    folder::labels_of(path, recording)
}
