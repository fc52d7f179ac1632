//! Scores words with times against words with times (two `ctm` files).
//!
//! A channel is cut into stretches of about fifty words where no word of either side crosses the cut.

use super::{PairError, PairOptions, lossy};
use crate::align::{Alignment, Pair, Verdict, align};
use crate::formats::{Ctm, CtmWord, ReadTranscriptError, Source, parse_ctm};
use crate::network::{Network, Reading};
use crate::system::{Heading, ScoredUtterance, System, Traits};
use crate::word::Text;

const WORDS_TO_A_STRETCH: i64 = 50;
const NEVER_S: f64 = 999_999.99;

struct Scorer<'a> {
    reference: &'a Ctm,
    hypothesis: &'a Ctm,
    sources: (&'a Source, &'a Source),
    options: &'a PairOptions,
    system: System,
    sequence: &'a mut usize,
}

/// A scored system, and the recordings in their order.
#[allow(missing_docs, reason = "the names say it")]
pub struct TimeScores {
    pub system: System,
    pub files: Vec<String>,
}

/// Scores every channel of every file; both sides must have the same files in the same order.
pub fn score_by_time(
    reference: &Source,
    hypothesis: &Source,
    heading: Heading,
    options: &PairOptions,
    sequence: &mut usize,
) -> Result<TimeScores, PairError> {
    let encoding = options.reading.encoding;
    let sources = (reference, hypothesis);
    let reference = &parse_ctm(reference, encoding, options.is_case_sensitive)?;
    let hypothesis = &parse_ctm(hypothesis, encoding, options.is_case_sensitive)?;
    let system = System::new(heading);
    let mut scorer = Scorer { reference, hypothesis, sources, options, system, sequence };
    let mut files = Vec::new();
    let (mut next_r, mut next_h) = (1, 1);
    while next_r <= reference.words.len() || next_h <= hypothesis.words.len() {
        let (end_r, end_h) = scorer.score_file(next_r, next_h)?;
        files.push(lossy(&reference.words[next_r - 1].file));
        (next_r, next_h) = (end_r + 1, end_h + 1);
    }
    Ok(TimeScores { system: scorer.system, files })
}

/// The last word from `start` on with the file, and the channel where asked, of word `start`.
fn end_of_run(ctm: &Ctm, start: usize, by_channel: bool) -> usize {
    let Some(first) = ctm.get(start) else { return ctm.words.len() };
    let is_same = |w: &&CtmWord| w.file == first.file && (!by_channel || w.channel == first.channel);
    start - 1 + ctm.words[start - 1..].iter().take_while(is_same).count()
}

/// The end of the second channel of the file, if there is one.
fn second_channel(ctm: &Ctm, start: usize, end_of_first: usize) -> Option<usize> {
    let next = ctm.get(end_of_first + 1)?;
    // A second channel of one single word at the very end of the file is ignored.
    let is_there = end_of_first + 1 < ctm.words.len() && next.file == ctm.get(start)?.file;
    is_there.then(|| end_of_run(ctm, end_of_first + 1, true))
}

impl Scorer<'_> {
    fn score_file(&mut self, start_r: usize, start_h: usize) -> Result<(usize, usize), PairError> {
        let (reference, hypothesis) = (self.reference, self.hypothesis);
        let (Some(first_r), Some(first_h)) = (reference.get(start_r), hypothesis.get(start_h)) else {
            return Err(self.ends_early(start_r, start_h));
        };
        if first_r.file != first_h.file {
            let (r, h) = self.sources;
            return Err(PairError::OtherFile {
                path: h.path.clone(),
                line: first_h.line,
                found: lossy(&first_h.file),
                expected: lossy(&first_r.file),
                other: r.path.clone(),
            });
        }
        let end_r = end_of_run(reference, start_r, true);
        let end_h = end_of_run(hypothesis, start_h, true);
        let seconds = (second_channel(reference, start_r, end_r), second_channel(hypothesis, start_h, end_h));
        self.score_channel((start_r, end_r), (start_h, end_h))?;
        match seconds {
            (None, None) => {}
            (Some(second_r), Some(second_h)) => {
                self.score_channel((end_r + 1, second_r), (end_h + 1, second_h))?;
            }
            (has_r, _) => return Err(self.no_second_channel(has_r.is_some(), &first_r.file)),
        }
        Ok((end_of_run(reference, start_r, false), end_of_run(hypothesis, start_h, false)))
    }

    fn ends_early(&self, start_r: usize, start_h: usize) -> PairError {
        let (r, h) = self.sources;
        let (short, long, word) = match self.reference.get(start_r) {
            Some(word) => (h, r, Some(word)),
            None => (r, h, self.hypothesis.get(start_h)),
        };
        let file = word.map_or_else(String::new, |word| lossy(&word.file));
        PairError::EndsEarly { path: short.path.clone(), file, other: long.path.clone() }
    }

    fn no_second_channel(&self, reference_has: bool, file: &[u8]) -> PairError {
        let (r, h) = self.sources;
        let (lacks, has) = if reference_has { (h, r) } else { (r, h) };
        PairError::NoSecondChannel { path: lacks.path.clone(), file: lossy(file), other: has.path.clone() }
    }

    fn score_channel(&mut self, r: (usize, usize), h: (usize, usize)) -> Result<(), PairError> {
        let stretches = Stretches { reference: self.reference, hypothesis: self.hypothesis, ends: (r.1, h.1) };
        let (mut next_r, mut next_h) = (r.0, h.0);
        let mut number = 0;
        let mut owner = self.reference.get(next_r);
        while next_r <= r.1 || next_h <= h.1 {
            let (end_r, end_h) = stretches.next(next_r, next_h);
            // Where the reference is used up, the word after it names the stretch.
            owner = self.reference.get(next_r).or(owner);
            if let Some(word) = owner {
                self.score_stretch(word, number, (next_r, end_r), (next_h, end_h))?;
            }
            (next_r, next_h) = (end_r + 1, end_h + 1);
            number += 1;
        }
        Ok(())
    }

    fn score_stretch(
        &mut self,
        owner: &CtmWord,
        number: usize,
        r: (usize, usize),
        h: (usize, usize),
    ) -> Result<(), PairError> {
        // Characters are never compared here, whatever was asked.
        let reading = Reading { characters: None, ..self.options.reading };
        let r_network = Network::from_items(self.reference.items(r.0, r.1), reading);
        let h_network = Network::from_items(self.hypothesis.items(h.0, h.1), reading);
        let mut alignment = align(&r_network, &h_network, self.options.cost).map_err(|source| {
            let (path, line) = (self.sources.0.path.clone(), owner.line);
            ReadTranscriptError::TooLong { path, line, source }
        })?;
        sort_by_time(&mut alignment);
        let traits = Traits {
            case_sensitive: self.options.is_case_sensitive,
            reference_times: true,
            hypothesis_times: true,
            reference_confidences: self.reference.has_confidences,
            hypothesis_confidences: self.hypothesis.has_confidences,
            ..Traits::default()
        };
        let speaker: Text = [&*owner.file, b"-", &owner.channel].concat().into();
        let utterance = ScoredUtterance {
            id: [b"(", &*speaker, format!("-{number:04})").as_bytes()].concat().into(),
            file: Some(owner.file.clone()),
            channel: Some(owner.channel.clone()),
            sequence: *self.sequence,
            traits,
            alignment,
            ..ScoredUtterance::default()
        };
        *self.sequence += 1;
        self.system.add(&speaker, utterance);
        Ok(())
    }
}

/// Puts missing and extra words that stand side by side in the order of their times.
fn sort_by_time(alignment: &mut Alignment) {
    let is_gap = |pair: &Pair| matches!(pair.verdict, Verdict::Deletion | Verdict::Insertion);
    let start_s = |pair: &Pair| pair.reference.as_ref().or(pair.hypothesis.as_ref()).map_or(0.0, |w| w.start_s);
    for run in alignment.pairs.chunk_by_mut(|a, b| is_gap(a) && is_gap(b)) {
        if run.len() > 1 {
            run.sort_by(|a, b| start_s(a).total_cmp(&start_s(b)));
        }
    }
}

/// Finds the cuts of a channel. Indices may go one below a start, so they are signed.
struct Stretches<'a> {
    reference: &'a Ctm,
    hypothesis: &'a Ctm,
    ends: (usize, usize),
}

/// How long two spans lie over each other; below 0 where they do not.
fn overlap((a_start, a_end): (f64, f64), (b_start, b_end): (f64, f64)) -> f64 {
    match (a_start < b_start, a_end < b_end) {
        (true, true) => a_end - b_start,
        (true, false) => b_end - b_start,
        (false, true) => a_end - a_start,
        (false, false) => b_end - a_start,
    }
}

fn at(ctm: &Ctm, index: i64) -> Option<&CtmWord> {
    usize::try_from(index).ok().and_then(|index| ctm.get(index))
}

fn start_s(ctm: &Ctm, index: i64) -> f64 {
    at(ctm, index).map_or(0.0, |word| word.start_s)
}

fn span_s(ctm: &Ctm, index: i64) -> (f64, f64) {
    at(ctm, index).map_or((0.0, 0.0), |word| (word.start_s, word.start_s + word.duration_s))
}

/// When the silence after a word ends.
fn gap_end_s(ctm: &Ctm, index: i64, end: i64) -> f64 {
    if index == end { NEVER_S } else { start_s(ctm, index + 1) }
}

impl Stretches<'_> {
    /// The last words of the stretch that begins here.
    fn next(&self, start_r: usize, start_h: usize) -> (usize, usize) {
        let starts = (start_r as i64, start_h as i64);
        let mut max_words = WORDS_TO_A_STRETCH;
        loop {
            if let Some((r, h)) = self.cut(starts, max_words) {
                return (r as usize, h as usize);
            }
            max_words *= 2;
        }
    }

    fn are_apart(&self, r: i64, h: i64) -> bool {
        overlap(span_s(self.reference, r), span_s(self.hypothesis, h)) < 0.0
    }

    fn is_later(&self, r: i64, h: i64) -> bool {
        start_s(self.reference, r) > start_s(self.hypothesis, h)
    }

    fn is_earlier(&self, r: i64, h: i64) -> bool {
        start_s(self.reference, r) < start_s(self.hypothesis, h)
    }

    /// One word back in the reference, out of any alternatives; and whether there were any.
    fn back(&self, mut r: i64, start: i64) -> (i64, bool) {
        let before = r - 1;
        r = before;
        while r >= start && at(self.reference, r).is_some_and(|word| word.is_alternative) {
            r -= 1;
        }
        (r, r != before)
    }

    fn cut(&self, (start_r, start_h): (i64, i64), max_words: i64) -> Option<(i64, i64)> {
        let (end_r, end_h) = (self.ends.0 as i64, self.ends.1 as i64);
        if end_r - start_r < max_words && end_h - start_h < max_words {
            return Some((end_r, end_h));
        }
        let (mut r, mut h) = self.synchronise((start_r, start_h), max_words);
        while r > start_r && h > start_h {
            let gap_r = (span_s(self.reference, r).1, gap_end_s(self.reference, r, end_r));
            let gap_h = (span_s(self.hypothesis, h).1, gap_end_s(self.hypothesis, h, end_h));
            if overlap(gap_r, gap_h) >= 0.0 {
                return Some((r, h));
            }
            (r, h) = self.shift((r, h), (start_r, start_h));
        }
        (r > start_r || h > start_h).then_some((r, h))
    }

    /// The last candidates of both sides, brought near each other in time.
    fn synchronise(&self, (start_r, start_h): (i64, i64), max_words: i64) -> (i64, i64) {
        let mut r = (start_r + max_words).min(self.ends.0 as i64);
        let mut h = (start_h + max_words).min(self.ends.1 as i64);
        while r >= start_r && at(self.reference, r).is_some_and(|word| word.is_alternative) {
            r -= 1;
        }
        let mut has_skipped = true;
        while has_skipped {
            has_skipped = false;
            if self.is_later(r, h) {
                while !has_skipped && r >= start_r && self.is_later(r, h) && self.are_apart(r, h) {
                    (r, has_skipped) = self.back(r, start_r);
                }
            } else if self.is_earlier(r, h) {
                while h >= start_h && self.is_earlier(r, h) && self.are_apart(r, h) {
                    h -= 1;
                }
            }
        }
        (r, h)
    }

    /// The next candidates: the later side goes back, then the other follows.
    fn shift(&self, (mut r, mut h): (i64, i64), (start_r, start_h): (i64, i64)) -> (i64, i64) {
        let mut has_skipped = true;
        while has_skipped {
            has_skipped = false;
            if self.is_later(r, h) {
                if r > start_r {
                    (r, has_skipped) = self.back(r, start_r);
                }
                while !has_skipped && h >= start_h && self.is_earlier(r, h) && self.are_apart(r, h) {
                    h -= 1;
                }
            } else {
                if h > start_h {
                    h -= 1;
                }
                while !has_skipped && r >= start_r && self.is_later(r, h) && self.are_apart(r, h) {
                    (r, has_skipped) = self.back(r, start_r);
                }
            }
        }
        (r, h)
    }
}
