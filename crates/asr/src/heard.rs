//! What comes out of a stream: hypotheses of the decoder in, text with times, confidences and reasons out.

use srf_text::decode::{Hypothesis, Token};
use srf_text::fusion::Lexicon;
use srf_text::output::Segment;
use srf_text::words;

use crate::endpoint::EndReason;
use crate::recognizer::Shared;
use crate::record::Record;

/// What was said between two endpoints, or as much of it as is known so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    /// The text with its words, labels, times and alternatives.
    pub segment: Segment,
    /// The labels as classes of the model, the end of the sentence included where the model wrote it.
    pub classes: Vec<usize>,
    /// Natural logarithm of what hypotheses are ranked by.
    pub score: f64,
    /// Why it ended; none while it goes on.
    pub ended_by: Option<EndReason>,
}

impl Heard {
    /// The likeliest of `hypotheses`, with the others as alternatives; nothing if it is empty.
    pub(crate) fn new(
        hypotheses: &[Hypothesis],
        shared: &Shared,
        lexicon: Option<&Lexicon>,
        record: &Record,
        ended_by: Option<EndReason>,
    ) -> Option<Self> {
        let best = hypotheses.first().filter(|best| !best.tokens.is_empty())?;
        let mut segment = words::segment(&shared.labels, lexicon, hypotheses, record.clock(), &shared.label_timing);
        let is_written = |token: &&Token| Some(token.class) != shared.labels.end_of_sentence();
        for (result, token) in segment.tokens.iter_mut().zip(best.tokens.iter().filter(is_written)) {
            result.evidence = record.evidence(token, &shared.labels);
            result.delay = record.delay(token.start_slice);
        }
        begin_at(record.origin_s(), &mut segment);
        Some(Self { segment, classes: best.classes(), score: best.score, ended_by })
    }
}

/// The first slice of a network is centred on the first frame, so that it begins before the sound does, at `origin_s`.
pub(crate) fn begin_at(origin_s: f64, segment: &mut Segment) {
    let tokens = segment.tokens.iter_mut().map(|token| &mut token.start_s);
    let words = segment.words.iter_mut().map(|word| &mut word.start_s);
    let starts = tokens.chain(words).chain([&mut segment.start_s]);
    starts.for_each(|start_s| *start_s = start_s.max(origin_s));
}
