//! Transcripts by utterance ids: two `trn` files in, a scored system out.

use std::collections::HashMap;

use rayon::prelude::*;

use super::{Options, PairError, SpeakerId, lossy};
use crate::align::{Alignment, align};
use crate::network::Network;
use crate::read::{ReadTranscriptError, Source};
use crate::system::{Heading, System, Traits, Utterance};
use crate::trn::{self, TrnUtterance};
use crate::word::Text;

/// Scores every utterance of `hypothesis`; those only the reference has are not looked at.
pub fn score(
    reference: &Source,
    hypothesis: &Source,
    heading: Heading,
    trn_options: trn::TrnOptions,
    options: &Options,
    sequence: &mut usize,
) -> Result<System, PairError> {
    let hypotheses = trn::parse(hypothesis, trn_options)?;
    let references = trn::parse(reference, trn_options)?;
    score_utterances((reference, &references), (hypothesis, &hypotheses), heading, options, sequence)
}

/// The same with utterances that were already read.
pub fn score_utterances(
    (reference, references): (&Source, &[TrnUtterance]),
    (hypothesis, hypotheses): (&Source, &[TrnUtterance]),
    heading: Heading,
    options: &Options,
    sequence: &mut usize,
) -> Result<System, PairError> {
    trn::check_unique(hypothesis, hypotheses)?;
    let references = find_references(reference, references, hypothesis, hypotheses)?;
    let mut system = System::new(heading);
    system.labels.add(hypothesis);
    system.labels.add(reference);
    let scored: Vec<_> = hypotheses
        .par_iter()
        .zip(&references)
        .map(|(h, r)| {
            let speaker = speaker(hypothesis, h, options.speaker_id)?;
            Ok((speaker, align_texts((reference, r), (hypothesis, h), options)?))
        })
        .collect::<Result<_, PairError>>()?;
    let traits = Traits {
        characters: options.reading.characters.is_some(),
        case_sensitive: options.is_case_sensitive,
        ..Traits::default()
    };
    for (utterance, (speaker, alignment)) in hypotheses.iter().zip(scored) {
        let id = utterance.id.clone();
        system.add(&speaker, Utterance { id, sequence: *sequence, traits, alignment, ..Utterance::default() });
        *sequence += 1;
    }
    Ok(system)
}

/// The reference of each hypothesis.
fn find_references<'a>(
    reference: &Source,
    references: &'a [TrnUtterance],
    hypothesis: &Source,
    hypotheses: &[TrnUtterance],
) -> Result<Vec<&'a TrnUtterance>, PairError> {
    let wanted: std::collections::HashSet<&[u8]> = hypotheses.iter().map(|h| &*h.id).collect();
    let mut by_id: HashMap<&[u8], &TrnUtterance> = HashMap::with_capacity(references.len());
    for utterance in references.iter().filter(|r| wanted.contains(&*r.id)) {
        let first = *by_id.entry(&utterance.id).or_insert(utterance);
        // NIST's scorer compares as far as the later text goes.
        if !first.text.starts_with(&utterance.text) {
            let (path, id) = (reference.path.clone(), trn::name(&utterance.id).into_owned());
            return Err(PairError::TwoReferences { path, line: utterance.line, id, first_line: first.line });
        }
    }
    let find = |h: &TrnUtterance| {
        by_id.get(&*h.id).copied().ok_or_else(|| PairError::NoReference {
            path: hypothesis.path.clone(),
            line: h.line,
            id: trn::name(&h.id).into_owned(),
            reference: reference.path.clone(),
        })
    };
    hypotheses.iter().map(find).collect()
}

fn align_texts(
    (reference, r): (&Source, &TrnUtterance),
    (hypothesis, h): (&Source, &TrnUtterance),
    options: &Options,
) -> Result<Alignment, ReadTranscriptError> {
    let r_network = network(reference, r.line, &r.text, options)?;
    let h_network = network(hypothesis, h.line, &h.text, options)?;
    align(&r_network, &h_network, options.cost).map_err(|source| ReadTranscriptError::TooLong {
        path: hypothesis.path.clone(),
        line: h.line,
        source,
    })
}

pub(super) fn network(
    file: &Source,
    line: usize,
    text: &[u8],
    options: &Options,
) -> Result<Network, ReadTranscriptError> {
    Network::parse(text, options.reading).map_err(|source| ReadTranscriptError::Alternatives {
        path: file.path.clone(),
        line,
        source,
    })
}

/// Who speaks, as the id says.
pub fn speaker(file: &Source, utterance: &TrnUtterance, place: SpeakerId) -> Result<Text, ReadTranscriptError> {
    let id = &*utterance.id;
    let inside = &id[1..];
    match place {
        SpeakerId::Whole => Ok(id.into()),
        SpeakerId::FirstThree => Ok(inside[..inside.len().min(3)].into()),
        SpeakerId::BeforeSeparator => {
            let end = [b'-', b'_'].iter().find_map(|separator| inside.iter().position(|b| b == separator));
            end.map(|end| Text::from(&inside[..end])).ok_or_else(|| ReadTranscriptError::NoSpeaker {
                path: file.path.clone(),
                line: utterance.line,
                id: lossy(id),
            })
        }
    }
}
