//! What `srf analyze` looks at: paths as typed in, utterances of limited length and what is known of them out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use srf_audio::bulk::Utterance;
use srf_text::labels::Units;
use srf_train::analyze::reference;
use srf_train::corpus::{self, Problem, Timed, manifest};

use crate::commands::inputs::{self, Inputs};
use crate::printer::{Printer, human_duration};

/// Utterances and references.
pub(super) struct Sources {
    pub(super) utterances: Vec<Utterance>,
    pub(super) n_problems: usize,
    references: HashMap<String, corpus::Utterance>,
}

impl Sources {
    pub(super) fn gather(
        paths: &[PathBuf],
        labels: Option<&Path>,
        limit_s: f64,
        out: &Printer,
    ) -> anyhow::Result<Self> {
        let Inputs { mut utterances, mut n_problems } = inputs::gather(paths, out);
        if utterances.is_empty() {
            bail!("there is no recording in what was given");
        }
        let mut references = HashMap::new();
        for path in paths.iter().map(PathBuf::as_path).chain(labels).filter(|path| is_manifest(path)) {
            let (listed, problems) = manifest::load(path);
            // Those of the inputs have been told by whoever read them first.
            if Some(path) == labels {
                n_problems += tell(&problems, out);
            }
            references.extend(listed.into_iter().map(|line| (line.utterance.id.clone(), line.utterance)));
        }
        if let Some(labels) = labels.filter(|path| !is_manifest(path)) {
            ensure!(
                utterances.len() == 1,
                "`{}` is of one recording, but there are {}: give a manifest as --ref",
                labels.display(),
                utterances.len()
            );
            let (known, problems) = reference::load(labels, &utterances[0].path);
            n_problems += tell(&problems, out);
            let has_times = !known.phones.is_empty() || !known.words.is_empty();
            ensure!(
                has_times || !problems.is_empty(),
                "`{}` has no labels with times, expected a .phn, .wrd, .lab, .TextGrid or .jsonl file",
                labels.display()
            );
            references.insert(utterances[0].id.clone(), known);
        }
        for utterance in &mut utterances {
            limit(utterance, limit_s, out);
        }
        Ok(Self { utterances, n_problems, references })
    }

    /// What was said in an utterance, in a model's units; empty if nobody knows.
    pub(super) fn reference(&self, id: &str, units: Units) -> Vec<Timed> {
        self.references.get(id).map(|known| reference::of(known, units)).unwrap_or_default()
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jsonl"))
}

fn tell(problems: &[Problem], out: &Printer) -> usize {
    problems.iter().for_each(|problem| out.problem(problem));
    problems.len()
}

/// Cuts an utterance that is longer than `limit_s`, and says so.
fn limit(utterance: &mut Utterance, limit_s: f64, out: &Printer) {
    let start_s = utterance.selection.start_s;
    let measured_s = || srf_audio::probe(&utterance.path).ok().and_then(|info| info.duration_s());
    let end_s = utterance.selection.end_s.or_else(measured_s);
    if end_s.is_some_and(|end_s| end_s <= start_s + limit_s) {
        return;
    }
    if let Some(end_s) = end_s {
        out.note(format_args!(
            "`{}` is {} long, its first {} are looked at; see --seconds",
            utterance.id,
            human_duration(end_s - start_s),
            human_duration(limit_s)
        ));
    }
    utterance.selection.end_s = Some(start_s + limit_s);
}
