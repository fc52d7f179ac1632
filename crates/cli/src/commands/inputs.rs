//! Gathers utterances from recordings, directories, Kaldi directories, manifests and `wav.scp` files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use srf_audio::bulk::Utterance;
use srf_train::corpus::kaldi::{self, Commands};
use srf_train::corpus::{self, Problem, manifest};

use crate::commands::{prepare, recordings};
use crate::printer::Printer;

/// All utterances, and how many lines or files could not become one (each was reported).
#[derive(Default)]
pub(crate) struct Inputs {
    pub(crate) utterances: Vec<Utterance>,
    pub(crate) n_problems: usize,
    /// Utterances that have no id but that of their file, and the directory in which it was found.
    files: Vec<(usize, Option<PathBuf>)>,
}

pub(crate) fn gather(paths: &[PathBuf], out: &Printer) -> Inputs {
    let mut inputs = Inputs::default();
    for path in paths {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if path.join("wav.scp").is_file() {
            let (corpus, problems) = kaldi::read(path, &Commands::Refused);
            let utterances = corpus.parts.into_iter().flat_map(|part| part.utterances);
            inputs.add(utterances, &problems, out);
        } else if path.is_dir() {
            let (found, problems) = recordings::below(path);
            inputs.n_problems += problems.len();
            for problem in problems {
                out.problem(problem);
            }
            found.into_iter().for_each(|file| inputs.add_file(file, Some(path)));
        } else if extension == "jsonl" || extension == "json" {
            let (lines, problems) = manifest::load(path);
            inputs.add(lines.into_iter().map(|line| line.utterance), &problems, out);
        } else if extension == "scp" {
            let (utterances, problems) = kaldi::read_scp(path);
            inputs.add(utterances.into_iter(), &problems, out);
        } else {
            inputs.add_file(path.clone(), None);
        }
    }
    inputs.distinguish();
    inputs
}

impl Inputs {
    fn add(&mut self, utterances: impl Iterator<Item = corpus::Utterance>, problems: &[Problem], out: &Printer) {
        self.utterances.extend(utterances.map(|utterance| utterance.to_be_heard()));
        self.n_problems += problems.len();
        prepare::problems(problems, out);
    }

    fn add_file(&mut self, path: PathBuf, root: Option<&Path>) {
        self.files.push((self.utterances.len(), root.map(Path::to_owned)));
        self.utterances.push(path.into());
    }

    /// Gives files of equal names longer ids: their paths inside the directory that was named, with the extension or
    /// with the directory where that does not suffice.
    fn distinguish(&mut self) {
        let inside: Detail = |path, root| path.strip_prefix(root).unwrap_or(path).with_extension("");
        let with_extension: Detail = |path, root| path.strip_prefix(root).unwrap_or(path).to_owned();
        let with_root: Detail = |path, _| path.to_owned();
        for detail in [inside, with_extension, with_root] {
            let mut n_uses: HashMap<String, usize> = HashMap::new();
            for utterance in &self.utterances {
                *n_uses.entry(utterance.id.clone()).or_default() += 1;
            }
            for (index, root) in &self.files {
                let utterance = &mut self.utterances[*index];
                if 1 < n_uses[&utterance.id] {
                    let path = detail(&utterance.path, root.as_deref().unwrap_or(Path::new("")));
                    utterance.id = id_of(&path);
                }
            }
        }
    }
}

/// The part of a path, found in a directory, that becomes an id.
type Detail = fn(&Path, &Path) -> PathBuf;

/// The same on every system: folders with slashes between them.
fn id_of(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids of these files, each with the directory in which it was found.
    fn ids(files: &[(&str, &str)]) -> Vec<String> {
        let mut inputs = Inputs::default();
        for (path, root) in files {
            inputs.add_file(path.into(), Some(Path::new(root)).filter(|root| !root.as_os_str().is_empty()));
        }
        inputs.distinguish();
        inputs.utterances.into_iter().map(|utterance| utterance.id).collect()
    }

    #[test]
    fn files_of_equal_names_have_ids_of_their_paths() {
        assert_eq!(ids(&[("t/a/x.wav", "t"), ("t/b/y.wav", "t")]), ["x", "y"]);
        assert_eq!(ids(&[("t/a/x.wav", "t"), ("t/b/x.wav", "t"), ("t/b/y.wav", "t")]), ["a/x", "b/x", "y"]);
        assert_eq!(ids(&[("t/a/x.wav", "t"), ("t/a/x.flac", "t")]), ["a/x.wav", "a/x.flac"]);
        assert_eq!(ids(&[("t/x.wav", "t"), ("u/x.wav", "u")]), ["t/x.wav", "u/x.wav"]);
        assert_eq!(ids(&[("t/x.wav", ""), ("u/x.wav", "")]), ["t/x", "u/x"]);
    }
}
