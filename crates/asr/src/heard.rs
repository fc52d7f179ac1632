//! What comes out of a stream: hypotheses of the decoder in, text with times, confidences and reasons out.

use text::decode::{Hypothesis, Token, WordSpan};
use text::fusion::Lexicon;
use text::labels::{END_OF_SENTENCE, Units};
use text::output::{Alternative, Segment, TokenResult, Word};

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
        let mut tokens: Vec<TokenResult> = best.tokens.iter().map(|token| result(token, shared, record)).collect();
        let words = words(best, &tokens, shared, lexicon);
        // The end of the sentence has no place in a text.
        tokens.retain(|token| token.text != END_OF_SENTENCE);
        let segment = Segment {
            text: text(best, shared, lexicon),
            start_s: tokens.first().map_or(0.0, |token| token.start_s),
            end_s: tokens.last().map_or(0.0, |token| token.end_s),
            confidence: mean_confidence(&tokens),
            words,
            tokens,
            alternatives: alternatives(hypotheses, shared, lexicon),
        };
        Some(Self { segment, classes: best.classes(), score: best.score, ended_by })
    }
}

/// The words of the lexicon, or what the labels spell.
fn text(hypothesis: &Hypothesis, shared: &Shared, lexicon: Option<&Lexicon>) -> String {
    match lexicon {
        Some(lexicon) => {
            hypothesis.words.iter().filter_map(|span| lexicon.word(span.word)).collect::<Vec<_>>().join(" ")
        }
        None => shared.labels.decode(&hypothesis.classes()),
    }
}

fn result(token: &Token, shared: &Shared, record: &Record) -> TokenResult {
    let (start_s, end_s) = record.span_s(token.start_slice, token.end_slice);
    TokenResult {
        text: shared.labels.symbol(token.class).unwrap_or_default().to_owned(),
        start_s,
        end_s,
        confidence: Some(token.confidence),
        evidence: record.evidence(token, &shared.labels),
        delay: record.delay(token.start_slice),
    }
}

/// The words of the lexicon; without one, what stands between two spaces, and every label of a model of words.
fn words(hypothesis: &Hypothesis, tokens: &[TokenResult], shared: &Shared, lexicon: Option<&Lexicon>) -> Vec<Word> {
    if let Some(lexicon) = lexicon {
        let spelled = |span: &WordSpan| {
            let found = word(tokens.get(span.first_token..span.end_token)?)?;
            Some(Word { text: lexicon.word(span.word)?.to_owned(), ..found })
        };
        return hypothesis.words.iter().filter_map(spelled).collect();
    }
    match shared.labels.units() {
        Units::Phones => Vec::new(),
        Units::Words => tokens.chunks(1).filter(|token| token[0].text != END_OF_SENTENCE).filter_map(word).collect(),
        Units::Chars => {
            tokens.split(|token| [" ", END_OF_SENTENCE].contains(&token.text.as_str())).filter_map(word).collect()
        }
    }
}

/// Some tokens as one word; nothing for none.
fn word(tokens: &[TokenResult]) -> Option<Word> {
    let (first, last) = (tokens.first()?, tokens.last()?);
    Some(Word {
        text: tokens.iter().map(|token| token.text.as_str()).collect(),
        start_s: first.start_s,
        end_s: last.end_s,
        confidence: mean_confidence(tokens),
    })
}

/// The geometric mean: one doubtful label makes its word doubtful.
fn mean_confidence(tokens: &[TokenResult]) -> Option<f32> {
    let logs: Vec<f32> =
        tokens.iter().filter_map(|token| token.confidence).map(|c| c.max(f32::MIN_POSITIVE).ln()).collect();
    let n = logs.len();
    (0 < n).then(|| (logs.iter().sum::<f32>() / n as f32).exp())
}

/// All but the first; each with its share among all.
fn alternatives(hypotheses: &[Hypothesis], shared: &Shared, lexicon: Option<&Lexicon>) -> Vec<Alternative> {
    let best = hypotheses.first().map_or(0.0, |best| best.score);
    let total: f64 = hypotheses.iter().map(|hypothesis| (hypothesis.score - best).exp()).sum();
    let alternative = |hypothesis: &Hypothesis| Alternative {
        text: text(hypothesis, shared, lexicon),
        confidence: ((hypothesis.score - best).exp() / total) as f32,
        score: hypothesis.score,
    };
    hypotheses.iter().skip(1).map(alternative).collect()
}
