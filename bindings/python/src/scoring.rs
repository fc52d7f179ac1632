//! Error rates and significance tests of transcripts.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use pyo3::prelude::*;
use serde_json::json;
use srf_score::compare::{Bootstrap, Interval, Outcome, Paired, Side, bootstrap, mapsswe, mcnemar, sign, wilcoxon};
use srf_score::files::{self, FileOptions, Missing, Unit};
use srf_score::formats::{Source, id_name};
use srf_score::report::alignments::count_words;
use srf_score::{Counts, Pair, System, Verdict, Word};
use srf_text::labels::fold::Folding;
use srf_text::labels::timit::PhoneSet;

use crate::errors::compute;

/// A transcript: a file, or ids and texts.
#[derive(FromPyObject)]
pub(crate) enum Texts {
    File(PathBuf),
    Pairs(Vec<(String, String)>),
}

impl Texts {
    fn source(self, name: &str) -> anyhow::Result<Source> {
        let pairs = match self {
            Self::File(path) => return Ok(Source::load(&path)?),
            Self::Pairs(pairs) => pairs,
        };
        ensure!(!pairs.is_empty(), "the {name} has no text");
        let mut bytes = Vec::new();
        for (id, text) in &pairs {
            ensure!(!text.contains(['\n', '\r']), "`{id}` of the {name} has a line break, expected one line");
            let is_id = !id.is_empty() && !id.contains(|c: char| c.is_whitespace() || c == '(' || c == ')');
            ensure!(is_id, "`{id}` is an id of the {name}, expected one word without brackets");
            bytes.extend_from_slice(format!(" {text} ({id})\n").as_bytes());
        }
        Ok(Source { path: name.into(), bytes })
    }
}

/// How texts are compared: unit, missing utterances, classes that phones are folded to, and three switches (upper and
/// lower case differ, words in brackets are optional, fragments match).
type Rules = (String, String, Option<u8>, [bool; 3]);

fn system(reference: Texts, hypothesis: Texts, name: &str, rules: &Rules) -> anyhow::Result<(System, Unit)> {
    let (unit, missing, fold, [is_case_sensitive, optional_words, fragments]) = rules;
    let (is_case_sensitive, optional_words, fragments) = (*is_case_sensitive, *optional_words, *fragments);
    let set = match fold {
        None => None,
        Some(48) => Some(PhoneSet::Train48),
        Some(39) => Some(PhoneSet::Score39),
        Some(other) => bail!("fold is {other}, expected 48 or 39"),
    };
    let folding = set.map(|set| Folding { set, merges_silences: false });
    let fold = |line: &str| folding.map_or_else(|| line.to_owned(), |folding| folding.apply(line));
    let unit = match unit.as_str() {
        _ if set.is_some() => Unit::Phone,
        "word" => Unit::Word,
        "char" => Unit::Character,
        "phone" => Unit::Phone,
        other => bail!("unit is `{other}`, expected word, char or phone"),
    };
    let missing = match missing.as_str() {
        "strict" => Missing::Refuse,
        "all" => Missing::Count,
        "present" => Missing::Skip,
        other => bail!("missing is `{other}`, expected strict, all or present"),
    };
    let rewrite: Option<&dyn Fn(&str) -> String> = if set.is_some() { Some(&fold) } else { None };
    let options = FileOptions { unit, rewrite, missing, is_case_sensitive, optional_words, fragments };
    let (reference, hypothesis) = (reference.source("reference")?, hypothesis.source(name)?);
    let title = hypothesis.path.display().to_string();
    Ok((files::score(&reference, &hypothesis, &title, options)?.system, unit))
}

/// Scores texts.
#[pyfunction]
pub(crate) fn score(py: Python<'_>, reference: Texts, hypothesis: Texts, rules: Rules) -> PyResult<Score> {
    compute(py, || {
        let (system, unit) = system(reference, hypothesis, "hypothesis", &rules)?;
        let unit = match unit {
            Unit::Word => "WER",
            Unit::Character => "CER",
            Unit::Phone => "PER",
        };
        Ok(Score { counts: system.counts(), system: Arc::new(system), measure: unit })
    })
}

/// Tests whether one of two systems is better; the result is JSON.
#[pyfunction]
pub(crate) fn compare(
    py: Python<'_>,
    reference: (Texts, Texts),
    hypotheses: (Texts, Texts),
    rules: Rules,
    n_replications: usize,
    seed: u64,
) -> PyResult<String> {
    compute(py, || {
        let (first, _) = system(reference.0, hypotheses.0, "first hypothesis", &rules)?;
        let (second, _) = system(reference.1, hypotheses.1, "second hypothesis", &rules)?;
        let paired = Paired::new(&first, &second);
        ensure!(!paired.utterances.is_empty(), "the two hypotheses have no utterance in common");
        let tests = [
            ("mapsswe", mapsswe(&paired)),
            ("mcnemar", mcnemar(&paired)),
            ("sign", sign(&paired)),
            ("wilcoxon", wilcoxon(&paired)),
        ];
        let tests: serde_json::Map<_, _> =
            tests.iter().map(|(name, test)| ((*name).to_owned(), outcome(test))).collect();
        let Bootstrap { first, second, difference, probability_of_improvement } =
            bootstrap(&paired, n_replications, seed);
        Ok(json!({
            "rate_a": interval(&first),
            "rate_b": interval(&second),
            "difference": interval(&difference),
            "probability_of_improvement": probability_of_improvement,
            "tests": tests,
        })
        .to_string())
    })
}

fn outcome(outcome: &Outcome) -> serde_json::Value {
    let side = |side: Option<Side>| side.map(|side| if side == Side::First { "a" } else { "b" });
    let Outcome { p, z, better, n_compared } = *outcome;
    json!({ "p": p, "z": z, "compared": n_compared, "better": side(better), "winner": side(outcome.winner()) })
}

fn interval(interval: &Interval) -> serde_json::Value {
    json!({ "measured": interval.measured, "low": interval.low, "high": interval.high })
}

/// Counts, alignments and error rate of recognised text.
#[pyclass(frozen, module = "srf")]
pub(crate) struct Score {
    system: Arc<System>,
    counts: Counts,
    /// WER, CER or PER.
    #[pyo3(get)]
    measure: &'static str,
}

fn text(word: Option<&Word>) -> Option<String> {
    word.map(|word| String::from_utf8_lossy(&word.text).into_owned())
}

/// Reference and hypothesis of a pair, and what it is.
type Aligned = (Option<String>, Option<String>, &'static str);

fn aligned(pair: &Pair) -> Aligned {
    let verdict = match pair.verdict {
        Verdict::Correct => "correct",
        Verdict::Substitution => "substitution",
        Verdict::Deletion => "deletion",
        Verdict::Insertion => "insertion",
    };
    (text(pair.reference.as_ref()), text(pair.hypothesis.as_ref()), verdict)
}

#[pymethods]
impl Score {
    /// Errors per unit of the reference; None if the reference is empty.
    #[getter]
    fn rate(&self) -> Option<f64> {
        self.counts.error_rate()
    }

    #[getter]
    fn n_reference(&self) -> usize {
        self.counts.n_reference()
    }

    #[getter]
    fn n_errors(&self) -> usize {
        self.counts.n_errors()
    }

    #[getter]
    fn correct(&self) -> usize {
        self.counts.correct
    }

    #[getter]
    fn substitutions(&self) -> usize {
        self.counts.substitutions
    }

    #[getter]
    fn deletions(&self) -> usize {
        self.counts.deletions
    }

    #[getter]
    fn insertions(&self) -> usize {
        self.counts.insertions
    }

    #[getter]
    fn n_utterances(&self) -> usize {
        self.system.n_utterances()
    }

    /// Utterances with an error.
    #[getter]
    fn n_wrong(&self) -> usize {
        self.system.n_wrong()
    }

    /// The middle 95 % of the error rates of bootstrap draws: low, high.
    #[pyo3(signature = (replications = 10_000, seed = 0))]
    fn interval(&self, py: Python<'_>, replications: usize, seed: u64) -> PyResult<(f64, f64)> {
        compute(py, || {
            let drawn = bootstrap(&Paired::new(&self.system, &self.system), replications, seed);
            Ok((drawn.first.low, drawn.first.high))
        })
    }

    /// For each utterance, in the order of the hypotheses: its id and its (reference, hypothesis, verdict) pairs.
    fn alignments(&self, py: Python<'_>) -> PyResult<Vec<(String, Vec<Aligned>)>> {
        compute(py, || {
            let utterances = self.system.in_sequence().into_iter().map(|(_, _, utterance)| utterance);
            let of = |utterance: &srf_score::ScoredUtterance| {
                (id_name(&utterance.id).into_owned(), utterance.alignment.pairs.iter().map(aligned).collect())
            };
            Ok(utterances.map(of).collect())
        })
    }

    /// For each speaker its errors and the size of its reference.
    fn speakers(&self) -> Vec<(String, usize, usize)> {
        let of = |speaker: &srf_score::Speaker| {
            let name = String::from_utf8_lossy(&speaker.name).into_owned();
            (name, speaker.counts.n_errors(), speaker.counts.n_reference())
        };
        self.system.speakers.iter().map(of).collect()
    }

    /// The most frequent substitutions: reference, hypothesis, count.
    #[pyo3(signature = (n = 10))]
    fn confusions(&self, py: Python<'_>, n: usize) -> PyResult<Vec<(String, String, usize)>> {
        /// Between the two words of a confusion; no word has it.
        const BETWEEN: &str = "\u{1f}";
        compute(py, || {
            let speakers: Vec<_> = self.system.speakers.iter().collect();
            let name = |pair: &Pair| match (&pair.reference, &pair.hypothesis) {
                (Some(reference), Some(hypothesis)) if pair.verdict == Verdict::Substitution => {
                    Some([&*reference.text, BETWEEN.as_bytes(), &*hypothesis.text].concat())
                }
                _ => None,
            };
            let split = |(name, count): &(Vec<u8>, usize)| {
                let name = String::from_utf8_lossy(name).into_owned();
                let (reference, hypothesis) = name.split_once(BETWEEN).context("a confusion is a pair")?;
                anyhow::Ok((reference.to_owned(), hypothesis.to_owned(), *count))
            };
            count_words(&speakers, name).iter().take(n).map(split).collect()
        })
    }

    /// The error rate in the form of Kaldi's `compute-wer`.
    fn __str__(&self) -> String {
        let rate = self.rate().map_or_else(|| "undefined".to_owned(), |rate| format!("{:.2}", 100.0 * rate));
        let Counts { substitutions, deletions, insertions, .. } = self.counts;
        format!(
            "%{} {rate} [ {} / {}, {insertions} ins, {deletions} del, {substitutions} sub ]",
            self.measure,
            self.n_errors(),
            self.n_reference()
        )
    }

    fn __repr__(&self) -> String {
        format!("<Score {}>", self.__str__())
    }
}
