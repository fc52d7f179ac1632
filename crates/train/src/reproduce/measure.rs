//! Measuring a trained run: evaluations, decoding times and distances, each written next to the run and made once.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;
use srf::{Recognizer, StreamOptions};
use srf_audio::features::cmvn::CmvnStats;
use srf_base::files::partial_path;
use srf_text::decode::DecoderConfig;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::timit::{Folded, PhoneSet};
use srf_text::labels::{LabelSet, Units};

use super::ReproduceError;
use super::job::{Job, Part};
use super::paper::{Quantity, TableRow};
use super::results::{Decoding, UtteranceDistance, UtteranceTime, read_json, write_json};
use crate::analyze::distance::Distance;
use crate::analyze::{Detail, Routes, unused_labels};
use crate::corpus::{Utterance, Watcher};
use crate::evaluate::summary::{self, Subject, Summary};
use crate::evaluate::{DEFAULT_REPLICATIONS, EvaluateOptions, Scoring, evaluate, files};
use crate::trainer::TrainWatcher;

/// Each utterance is recognised so often, and the fastest time counts: other programs only ever slow it down.
const N_PASSES: usize = 2;

/// TIMIT's phones are scored in their set of 39, as in the paper; others as they are.
pub(super) fn mapping(labels: &LabelSet) -> Option<PhoneMapping> {
    let is_timit = |label: &String| PhoneSet::Score39.fold(label) != Folded::Unknown;
    let are_phones = labels.units() == Units::Phones && labels.symbols().iter().all(is_timit);
    are_phones.then_some(PhoneMapping::Timit39)
}

impl Job {
    /// Measures everything the table needs of a run. Returns the number of utterances that could not be recognised.
    pub(super) fn measure(
        &self,
        row: &TableRow,
        seed: u64,
        watcher: &dyn TrainWatcher,
    ) -> Result<usize, ReproduceError> {
        let run = Measuring { job: self, row, seed, watcher, model: self.paths.run(row, seed).join("model") };
        let mut n_problems = 0;
        for part in &self.parts {
            if self.table.measures(&[Quantity::Error, Quantity::EosRate]) {
                n_problems += run.evaluate(part)?;
            }
            if self.table.measures(&[Quantity::Distance]) {
                n_problems += run.distance(part)?;
            }
        }
        if let (true, Some(part)) = (self.table.measures(&[Quantity::DecodingTime]), self.parts.last()) {
            run.decoding(part)?;
        }
        Ok(n_problems)
    }

    pub(super) fn subject(&self, model: &Path, part: &Part) -> Subject {
        Subject::new(model, &part.manifest, &self.decoder, mapping(&self.data.labels))
    }
}

/// A run whose model is measured.
struct Measuring<'a> {
    job: &'a Job,
    row: &'a TableRow,
    seed: u64,
    watcher: &'a dyn TrainWatcher,
    model: PathBuf,
}

impl Measuring<'_> {
    fn report_step(&self, what: &str, part: &Part) {
        self.watcher.remark(&format!("{}, seed {}: {what} {}", self.row.name(), self.seed, part.name));
    }

    /// Evaluates the model on a part, unless that was done. Returns the number of utterances left out.
    fn evaluate(&self, part: &Part) -> Result<usize, ReproduceError> {
        let dir = self.job.paths.evaluation(self.row, self.seed, part.name);
        let subject = self.job.subject(&self.model, part);
        if let Ok(done) = Summary::load(&dir.join(summary::FILE_NAME)) {
            if is_of(&done, &subject, part) {
                return Ok(done.left_out.len());
            }
            self.report_step("search, mapping or utterances have changed, evaluating again on", part);
        } else {
            self.report_step("evaluating on", part);
        }
        let recognizer = Recognizer::open(&self.model)?;
        let mapping = mapping(&self.job.data.labels);
        let scoring = Scoring { mapping, n_replications: DEFAULT_REPLICATIONS, seed: 1 };
        let options = EvaluateOptions { decoder: self.job.decoder.clone(), scoring };
        let evaluation = evaluate(&recognizer, &part.utterances, &options, self.watcher);
        for left_out in &evaluation.left_out {
            self.watcher.remark(&format!("problem: utterance `{}` is left out: {}", left_out.id, left_out.reason));
        }
        // A directory under its final name is complete.
        let partial = partial_path(&dir);
        let _ = fs::remove_dir_all(&partial);
        files::write(&partial, &evaluation, &Summary::of(&evaluation, &subject), &part.utterances, mapping)?;
        let _ = fs::remove_dir_all(&dir);
        fs::rename(&partial, &dir).map_err(ReproduceError::write(&dir))?;
        Ok(evaluation.left_out.len())
    }

    /// Compares routing and softmax on a part, unless that was done. Returns the number of utterances left out.
    fn distance(&self, part: &Part) -> Result<usize, ReproduceError> {
        let path = self.job.paths.distance(self.row, self.seed, part.name);
        if let Some(done) = read_json::<Vec<UtteranceDistance>>(&path) {
            return Ok(part.utterances.len() - done.len().min(part.utterances.len()));
        }
        self.report_step("comparing routing and softmax on", part);
        let recognizer = Recognizer::open(&self.model)?;
        let list: Vec<_> = part.utterances.iter().map(Utterance::to_be_heard).collect();
        let by_speaker = statistics(&recognizer, &list);
        let texts = self.job.data.train.iter().map(|utterance| utterance.text.as_str());
        let unused = unused_labels(recognizer.labels(), texts);
        self.watcher.begin("comparing", list.len());
        let compare = |utterance: &srf_audio::bulk::Utterance| {
            let statistics = by_speaker.get(utterance.speaker.as_str());
            let routes = Routes::compute(&recognizer, self.row.name(), utterance, statistics, Detail::Classes);
            self.watcher.advance();
            let distance = |routes: Routes| Distance::of(&routes.without(&unused));
            routes.map(|routes| UtteranceDistance { id: utterance.id.clone(), distance: distance(routes) })
        };
        let compared: Vec<_> = list.par_iter().map(compare).collect();
        let problems: Vec<String> =
            compared.iter().filter_map(|one| one.as_ref().err().map(ToString::to_string)).collect();
        problems.iter().for_each(|problem| self.watcher.remark(&format!("problem: {problem}")));
        let distances: Vec<UtteranceDistance> = compared.into_iter().flatten().collect();
        write_json(&path, &distances).map_err(ReproduceError::write(&path))?;
        Ok(problems.len())
    }

    /// Times the recognition of a part, unless that was done.
    fn decoding(&self, part: &Part) -> Result<(), ReproduceError> {
        let path = self.job.paths.decoding(self.row, self.seed);
        let search = self.job.subject(&self.model, part).search;
        if read_json::<Decoding>(&path).is_some_and(|done| done.search == search) {
            return Ok(());
        }
        self.report_step("timing the recognition of", part);
        let recognizer = Recognizer::open(&self.model)?;
        let search = (&self.job.decoder, search);
        let decoding = time_decoding(&recognizer, &part.utterances, search, self.watcher);
        write_json(&path, &decoding).map_err(ReproduceError::write(&path))
    }
}

/// Whether an evaluation is what a new one would be.
fn is_of(done: &Summary, subject: &Subject, part: &Part) -> bool {
    let n_utterances = done.n_utterances + done.left_out.len();
    done.search == subject.search && done.mapping == subject.mapping && n_utterances == part.utterances.len()
}

/// Recognises one utterance after the other on one thread.
///
/// Where the model normalises by speaker, the statistics are computed beforehand and are not in the times.
fn time_decoding(
    recognizer: &Recognizer,
    utterances: &[Utterance],
    (decoder, search): (&DecoderConfig, String),
    watcher: &dyn Watcher,
) -> Decoding {
    let list: Vec<_> = utterances.iter().map(Utterance::to_be_heard).collect();
    let by_speaker = statistics(recognizer, &list);
    watcher.begin("timing", list.len());
    let timed_utterances = list.iter().filter_map(|utterance| {
        let statistics = by_speaker.get(utterance.speaker.as_str()).cloned();
        let options =
            StreamOptions { decoder: Some(decoder.clone()), endpoint: None, statistics, ..StreamOptions::default() };
        let timed = (0..N_PASSES).filter_map(|_| {
            let start = Instant::now();
            let transcript = recognizer.transcribe_with(utterance, &options).ok()?;
            Some((start.elapsed().as_secs_f64(), transcript.duration_s))
        });
        let fastest = timed.min_by(|a, b| a.0.total_cmp(&b.0));
        watcher.advance();
        fastest.map(|(decoding_s, duration_s)| UtteranceTime { id: utterance.id.clone(), duration_s, decoding_s })
    });
    Decoding { search, utterances: timed_utterances.collect() }
}

/// The statistics of each speaker, where the model needs them.
fn statistics<'a>(recognizer: &Recognizer, list: &'a [srf_audio::bulk::Utterance]) -> HashMap<&'a str, CmvnStats> {
    if recognizer.is_by_speaker() { recognizer.speaker_statistics(list) } else { HashMap::new() }
}

#[cfg(test)]
mod tests {
    use srf_text::labels::mapping::CMU_PHONES;

    use super::*;

    #[test]
    fn only_timits_phones_are_mapped_whichever_set_they_are_of() {
        for set in [PhoneSet::All61, PhoneSet::Train48, PhoneSet::Score39] {
            assert_eq!(mapping(&set.labels()), Some(PhoneMapping::Timit39), "{set}");
        }
        assert_eq!(mapping(&LabelSet::new(Units::Phones, CMU_PHONES).unwrap()), None);
        // Letters that are phones of TIMIT's too.
        assert_eq!(mapping(&LabelSet::new(Units::Chars, ["b", "d"]).unwrap()), None);
    }
}
