//! Folders on disc: a root in, its files in a fixed order out.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::problem::Problems;

/// Every file below `root`, sorted; folders that cannot be read are told.
///
/// Links are followed, as collections of discs are made of them, but no folder is entered twice.
pub(crate) fn files(root: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entered = HashSet::new();
    let mut pending = vec![root.to_owned()];
    while let Some(dir) = pending.pop() {
        match fs::canonicalize(&dir).and_then(|real| Ok((real, fs::read_dir(&dir)?))) {
            Err(error) => problems.add(&dir, None, error),
            Ok((real, _)) if entered.contains(&real) => {}
            Ok((real, entries)) => {
                entered.insert(real);
                let (dirs, files): (Vec<_>, Vec<_>) =
                    entries.flatten().map(|entry| entry.path()).partition(|path| path.is_dir());
                pending.extend(dirs);
                found.extend(files);
            }
        }
    }
    found.sort();
    found
}

/// The extension in lower case; empty where there is none.
pub(crate) fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// The name without its last extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The name of the folder `n_up` levels above a file (1 is the one it lies in).
pub(crate) fn ancestor_name(path: &Path, n_up: usize) -> String {
    let ancestor = path.ancestors().nth(n_up).and_then(Path::file_name);
    ancestor.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Files by their folder and their stem in lower case: what lies beside a recording.
pub(crate) struct Siblings<'a>(HashMap<(PathBuf, String), Vec<&'a Path>>);

impl<'a> Siblings<'a> {
    pub(crate) fn new(files: &'a [PathBuf]) -> Self {
        let mut by_stem: HashMap<(PathBuf, String), Vec<&Path>> = HashMap::new();
        for path in files {
            by_stem.entry(key(path)).or_default().push(path);
        }
        Self(by_stem)
    }

    /// The file beside `path` with the first of `extensions` that there is, in any case.
    pub(crate) fn find(&self, path: &Path, extensions: &[&str]) -> Option<&'a Path> {
        let beside = self.0.get(&key(path))?;
        let with = |wanted: &&str| beside.iter().copied().find(|other| extension(other) == *wanted);
        extensions.iter().find_map(with)
    }
}

fn key(path: &Path) -> (PathBuf, String) {
    // `x.WAV.wav`, as some copies of TIMIT name the RIFF form of `x.WAV`, belongs to `x`.
    let stem = stem(path).to_lowercase();
    let stem = stem.strip_suffix(".wav").unwrap_or(&stem).to_owned();
    (path.parent().map(Path::to_owned).unwrap_or_default(), stem)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_back_up_ends() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/x.txt"), "").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/up")).unwrap();
        let mut problems = Problems::default();
        assert_eq!(files(dir.path(), &mut problems), [dir.path().join("a/x.txt")]);
        assert_eq!(problems.0.len(), 0);
    }
}
