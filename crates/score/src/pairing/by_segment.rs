//! Scores words with times (`ctm`) against segments (`stm`).
//!
//! A word belongs to the first segment of its channel that ends after the middle of the word; the remaining words
//! belong to the last segment. Files must have the same order on both sides.

use super::{PairError, PairOptions, lossy, parse_network};
use crate::align::align;
use crate::formats::{Ctm, CtmWord, Mark, ReadTranscriptError, Source, StmSegment, parse_ctm, parse_stm};
use crate::network::Network;
use crate::system::{Heading, ScoredUtterance, System, Traits};

/// A scored system, and what NIST's scorer prints while it works.
pub struct SegmentScores {
    /// The scored system.
    pub system: System,
    /// Messages on channels of the reference that the hypothesis lacks.
    pub notes: Vec<String>,
    /// The same channels as `file channel`.
    pub missing: Vec<String>,
    /// The progress of each channel.
    pub channels: Vec<ChannelProgress>,
}

/// What NIST's scorer prints on a channel.
#[allow(missing_docs, reason = "the names say it")]
pub struct ChannelProgress {
    pub file: String,
    pub segments: Vec<SegmentProgress>,
}

/// What NIST's scorer prints on a segment: its progress, and what it prints even when asked to be silent.
#[allow(missing_docs, reason = "the names say it")]
pub struct SegmentProgress {
    pub progress: String,
    pub forced: String,
}

/// A channel of the reference, and the words of the hypothesis from the first to the last, counted from 1.
struct Channel<'a> {
    segments: &'a [StmSegment],
    words: (usize, usize),
}

struct Scorer<'a> {
    sources: (&'a Source, &'a Source),
    options: &'a PairOptions,
    system: System,
    sequence: &'a mut usize,
}

/// Scores every segment of `reference`.
pub fn score_by_segment(
    reference: &Source,
    hypothesis: &Source,
    heading: Heading,
    options: &PairOptions,
    sequence: &mut usize,
) -> Result<SegmentScores, PairError> {
    let encoding = options.reading.encoding;
    let segments = parse_stm(reference, encoding, options.is_case_sensitive)?;
    let mut words = parse_ctm(hypothesis, encoding, options.is_case_sensitive)?;
    if segments.is_empty() {
        return Err(ReadTranscriptError::Empty { path: reference.path.clone() }.into());
    }
    let (channels, lacking) = pair_channels(&segments, &words, hypothesis)?;
    let mut scorer = Scorer { sources: (reference, hypothesis), options, system: System::new(heading), sequence };
    let mut progress = Vec::with_capacity(channels.len());
    for channel in &channels {
        progress.push(scorer.score_channel(channel, &mut words)?);
    }
    let mut system = scorer.system;
    system.labels.add(reference);
    system.labels.add(hypothesis);
    let (missing, notes) = lacking.into_iter().unzip();
    Ok(SegmentScores { system, notes, missing, channels: progress })
}

/// A channel the hypothesis lacks, and what NIST's scorer says of it.
type Lacking = (String, String);

/// Walks both files channel by channel; a channel the hypothesis lacks is scored against nothing.
fn pair_channels<'a>(
    segments: &'a [StmSegment],
    words: &Ctm,
    hypothesis: &Source,
) -> Result<(Vec<Channel<'a>>, Vec<Lacking>), PairError> {
    let mut lacking = Vec::new();
    let mut channels = Vec::new();
    let (mut next_segment, mut next_word) = (0, 1);
    let is_same = |a: &StmSegment, b: &StmSegment| a.file == b.file && a.channel == b.channel;
    while next_segment < segments.len() {
        let first = &segments[next_segment];
        let n_segments = segments[next_segment..].iter().take_while(|s| is_same(first, s)).count();
        let (file, channel) = (lossy(&first.file), lossy(&first.channel));
        let mut n_words = 0;
        let lacks = match words.get(next_word) {
            Some(word) if word.file == first.file && word.channel == first.channel => {
                let is_here = |w: &&CtmWord| w.file == word.file && w.channel == word.channel;
                n_words = words.words[next_word - 1..].iter().take_while(is_here).count();
                None
            }
            None => Some(format!(
                "align_ctm_to_stm: Hyp files ends before ref but continuing for ref file/channel '{file}' '{channel}'."
            )),
            Some(word) => Some(format!(
                "align_ctm_to_stm: File identifiers do not match but continuing. \
                 ref file/channel '{file}' '{channel}', next hyp '{}' '{}'.",
                lossy(&word.file),
                lossy(&word.channel)
            )),
        };
        lacking.extend(lacks.map(|note| (format!("{file} {channel}"), note)));
        channels.push(Channel {
            segments: &segments[next_segment..next_segment + n_segments],
            words: (next_word, next_word + n_words - 1),
        });
        (next_segment, next_word) = (next_segment + n_segments, next_word + n_words);
    }
    match words.get(next_word) {
        None => Ok((channels, lacking)),
        Some(word) => Err(PairError::MoreHypothesis {
            path: hypothesis.path.clone(),
            line: word.line,
            file: lossy(&word.file),
            channel: lossy(&word.channel),
        }),
    }
}

impl Scorer<'_> {
    fn score_channel(&mut self, channel: &Channel<'_>, words: &mut Ctm) -> Result<ChannelProgress, PairError> {
        let (first_word, last_word) = channel.words;
        let is_used = used_segments(channel, words, self.options.reduces_reference);
        let n_skipped_words = if self.options.reduces_hypothesis { ignore_words(channel, &is_used, words) } else { 0 };
        let mut progress = ChannelProgress { file: lossy(&channel.segments[0].file), segments: Vec::new() };
        let mut report = StepReport::new(channel, self.options, n_skipped_words);
        let (mut start, mut end) = (first_word, first_word - 1);
        for (index, segment) in channel.segments.iter().enumerate() {
            let mut shown = report.step(index, segment, is_used[index]);
            if !is_used[index] {
                progress.segments.push(SegmentProgress { progress: shown, forced: report.ignored(false) });
                continue;
            }
            let is_last = index + 1 == channel.segments.len();
            end = if is_last { last_word } else { end_of_segment(words, end, last_word, segment.end_s) };
            let is_ignored = segment.is_ignored;
            if is_ignored {
                report.n_ignored_segments += 1;
                report.n_ignored_words += (end + 1).saturating_sub(start);
            }
            shown.push_str(&report.ignored(true));
            progress.segments.push(SegmentProgress { progress: shown, forced: String::new() });
            if !is_ignored {
                self.score_segment(segment, words, (start, end))?;
            }
            start = end + 1;
        }
        Ok(progress)
    }

    fn score_segment(
        &mut self,
        segment: &StmSegment,
        words: &Ctm,
        (start, end): (usize, usize),
    ) -> Result<(), PairError> {
        let (reference, hypothesis) = self.sources;
        let r_network = parse_network(reference, segment.line, &segment.text, self.options)?;
        let h_network = Network::from_items(words.items(start, end), self.options.reading);
        let alignment = align(&r_network, &h_network, self.options.cost).map_err(|source| {
            let line = words.get(start).map_or(0, |word| word.line);
            ReadTranscriptError::TooLong { path: hypothesis.path.clone(), line, source }
        })?;
        let n_before = self.system.n_utterances_of(&segment.speaker);
        let number = format!("-{n_before:03})");
        let traits = Traits {
            characters: self.options.reading.characters.is_some(),
            case_sensitive: self.options.is_case_sensitive,
            hypothesis_times: true,
            hypothesis_confidences: words.has_confidences,
            ..Traits::default()
        };
        let utterance = ScoredUtterance {
            id: [b"(", &*segment.speaker, number.as_bytes()].concat().into(),
            labels: segment.labels.clone(),
            file: Some(segment.file.clone()),
            channel: Some(segment.channel.clone()),
            times_s: Some((segment.start_s, segment.end_s)),
            sequence: *self.sequence,
            traits,
            alignment,
        };
        *self.sequence += 1;
        self.system.add(&segment.speaker, utterance);
        Ok(())
    }
}

/// Which segments touch the time between the first and the last word; all of them unless `reduces`.
fn used_segments(channel: &Channel<'_>, words: &Ctm, reduces: bool) -> Vec<bool> {
    let (first, last) = channel.words;
    let ends = words.get(first).zip(words.get(last)).filter(|_| reduces && first <= last);
    let is_used = |segment: &StmSegment| {
        ends.is_none_or(|(first, last)| {
            first.start_s < segment.end_s && last.start_s + last.duration_s > segment.start_s
        })
    };
    channel.segments.iter().map(is_used).collect()
}

/// Marks the words outside of all segments, and says how many; alternatives stay whole.
fn ignore_words(channel: &Channel<'_>, is_used: &[bool], words: &mut Ctm) -> usize {
    let used = || channel.segments.iter().zip(is_used).filter(|(_, used)| **used).map(|(segment, _)| segment);
    let begin_s = used().map(|s| s.start_s).fold(9_999_999.0, f64::min);
    let end_s = used().map(|s| s.end_s).fold(-999_999.0, f64::max);
    let (first, last) = channel.words;
    let words = &mut words.words[first - 1..last];
    for word in words.iter_mut().filter(|word| word.mark.is_none()) {
        word.is_ignored = word.start_s > end_s || word.start_s + word.duration_s < begin_s;
    }
    for start in 0..words.len() {
        if words[start].mark == Some(Mark::Begin) {
            let len = words[start..].iter().take_while(|word| word.mark != Some(Mark::End)).count();
            let alternatives = &mut words[start..start + len];
            let is_usable = alternatives.iter().any(|word| word.mark.is_none() && !word.is_ignored);
            for word in alternatives {
                word.is_ignored = !is_usable;
            }
        }
    }
    words.iter().filter(|word| word.is_ignored && word.mark.is_none()).count()
}

/// The last word after `end` whose middle lies before `end_s`.
fn end_of_segment(words: &Ctm, mut end: usize, last: usize, end_s: f64) -> usize {
    let middle = |word: &CtmWord| word.start_s + word.duration_s / 2.0;
    while end < last {
        let Some(word) = words.get(end + 1) else { break };
        let alternatives =
            || (end + 1..=last).map_while(|index| words.get(index)).take_while(|word| word.mark != Some(Mark::End));
        let middle_s = if word.is_alternative {
            alternatives().filter(|word| word.mark.is_none()).map(middle).fold(0.0, f64::max)
        } else {
            middle(word)
        };
        if middle_s >= end_s {
            break;
        }
        end += if word.is_alternative { alternatives().count() + 1 } else { 1 };
    }
    end.min(last)
}

/// What is printed while the segments of a channel are aligned.
struct StepReport<'a> {
    channel: &'a Channel<'a>,
    options: &'a PairOptions,
    n_skipped_segments: usize,
    n_skipped_words: usize,
    n_ignored_segments: usize,
    n_ignored_words: usize,
}

impl<'a> StepReport<'a> {
    fn new(channel: &'a Channel<'a>, options: &'a PairOptions, n_skipped_words: usize) -> Self {
        Self { channel, options, n_skipped_segments: 0, n_skipped_words, n_ignored_segments: 0, n_ignored_words: 0 }
    }

    fn step(&mut self, index: usize, segment: &StmSegment, is_used: bool) -> String {
        self.n_skipped_segments += usize::from(!is_used);
        let (number, n_segments) = (index + 1, self.channel.segments.len());
        let PairOptions { reduces_reference, reduces_hypothesis, .. } = *self.options;
        if !reduces_reference && !reduces_hypothesis {
            return format!("\r        {number} of {n_segments} Segments For Channel {}. ", lossy(&segment.channel));
        }
        let mut skipped = Vec::new();
        if reduces_reference {
            skipped.push(format!("{} skipped segs", self.n_skipped_segments));
        }
        if reduces_hypothesis {
            skipped.push(format!("{} skipped words", self.n_skipped_words));
        }
        format!("\r        {number} of {n_segments} Segments ({}) For Channel 1. ", skipped.join(", "))
    }

    fn ignored(&self, fills: bool) -> String {
        match self.n_ignored_segments {
            0 if fills => "    ".to_owned(),
            0 => String::new(),
            n => format!(" ({n} Ignored Segments, {} Ignored Hyp Words.)    ", self.n_ignored_words),
        }
    }
}
