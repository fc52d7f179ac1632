//! What is known beside the sound: a label behind a prefix in, whether it may stand there and what it adds out.

use crate::decode::NONE;

/// Where a prefix stands in everything that is fused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct State {
    x: u32,
}

/// One way in which a prefix goes on with a label.
pub(crate) struct Extension {
    /// The word that ends before the label.
    pub(crate) word: u32,
    /// What is added to the score.
    pub(crate) gain: f64,
    /// Where the longer prefix stands.
    pub(crate) state: State,
}

/// How an utterance ends behind a prefix.
pub(crate) struct Ending {
    /// The word that ends with it.
    pub(crate) word: u32,
    /// What is added to the score.
    pub(crate) gain: f64,
}

impl Default for Ending {
    fn default() -> Self {
        Self { word: NONE, gain: 0.0 }
    }
}

/// All that is fused.
#[derive(Debug)]
pub struct Fusion {}

impl Fusion {
    pub(crate) fn start(&self) -> State {
        State::default()
    }
    pub(crate) fn max_gain(&self, _: &State) -> f64 {
        0.0
    }
    pub(crate) fn extend(&self, state: &State, _class: u32, out: &mut Vec<Extension>) {
        out.push(Extension { word: NONE, gain: 0.0, state: *state });
    }
    pub(crate) fn end(&self, _: &State) -> Option<Ending> {
        Some(Ending::default())
    }
    pub(crate) fn is_phrase_bound(&self) -> bool {
        false
    }
    pub(crate) fn has_words(&self) -> bool {
        false
    }
    pub(crate) fn is_between(&self, _class: u32) -> bool {
        false
    }
}
