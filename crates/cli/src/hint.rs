//! Hints: what the user can do about an error.

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use srf::align::AlignError;
use srf::directory::{InvalidParts, ReadModelError};
use srf::words::WordsError;
use srf::{AcceptError, NoModelError, StartStreamError, TranscribeError};
use srf_audio::ReadAudioError;
use srf_audio::convert::ConvertError;
use srf_base::names::nearest;
use srf_lm::EstimateError;
use srf_model::config::OverrideError;
use srf_model::weights::LoadWeightsError;
use srf_score::files::ScoreFilesError;
use srf_score::formats::ReadTranscriptError;
use srf_score::pairing::PairError;
use srf_text::fusion::FusionError;
use srf_text::lm::LoadArpaError;
use srf_train::analyze::AnalyzeError;
use srf_train::analyze::windows::ReadTableError;
use srf_train::builtin::layout::WriteCorpusError;
use srf_train::corpus::prepare::PrepareError;
use srf_train::evaluate::tune::TuneError;
use srf_train::recipes;
use srf_train::reproduce::ReproduceError;
use srf_train::runs::LoadRunError;
use srf_train::trainer::TrainError;
use srf_train::trainer::average::AverageError;
use srf_train::trainer::prepared::LoadPreparedError;

use crate::commands::demo::ClaimError;
use crate::commands::models;
use crate::commands::recognition::WordsForPhonesError;

/// Entries of a folder that are compared with a misspelt name.
const MAX_ENTRIES: usize = 10_000;

/// Advice on an error, from the first of its causes that has some.
///
/// Library errors say what is wrong; those that know what to do about it have a `hint` method.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    if has_kind(error, io::ErrorKind::PermissionDenied) {
        // Whatever was being done, this is the reason.
        return Some("check the permissions of the file and its folder, or choose another path".to_owned());
    }
    let is_missing = has_kind(error, io::ErrorKind::NotFound) || error.chain().any(is_missing_model);
    let suggestion = if is_missing { nearest_argument(std::env::args_os(), &format!("{error:#}")) } else { None };
    suggestion.or_else(|| error.chain().find_map(advice))
}

fn is_missing_model(cause: &(dyn Error + 'static)) -> bool {
    matches!(cause.downcast_ref(), Some(ReadModelError::NotADirectory { .. }))
}

fn has_kind(error: &anyhow::Error, kind: io::ErrorKind) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|error| error.kind() == kind)
}

/// A suggestion for the argument that `error` names and that is no existing file: a file, a model or a recipe with a
/// similar name.
fn nearest_argument(args: impl Iterator<Item = OsString>, error: &str) -> Option<String> {
    // The error may name a file in the folder that was given.
    let is_named = |path: &PathBuf| ['`', '/'].iter().any(|end| error.contains(&format!("`{}{end}", path.display())));
    let missing = args.skip(2).filter_map(path_of).find(|path| is_named(path) && !path.exists())?;
    nearest_path(&missing).or_else(|| nearest_bundled(&missing))
}

/// A suggestion for the first argument that can only be a path, names no file, and is similar to the name of one.
pub(crate) fn misspelt_path(args: impl Iterator<Item = OsString>) -> Option<String> {
    // `model.layers=2` changes a recipe.
    let is_change = |path: &PathBuf| path.to_string_lossy().contains('=');
    let is_path = |path: &PathBuf| !is_change(path) && (path.extension().is_some() || 1 < path.components().count());
    let mut missing = args.skip(2).filter_map(path_of).filter(|path| is_path(path) && !path.exists());
    missing.find_map(|path| nearest_path(&path))
}

/// The model or recipe inside the program with the most similar name.
fn nearest_bundled(path: &Path) -> Option<String> {
    let names = models::bundled().chain(recipes::ALL.iter().map(|(name, _)| *name));
    nearest(path.to_str()?, names).map(|name| format!("did you mean `{name}`?"))
}

/// The path in an argument: the argument itself, or the value of `--option=value`.
fn path_of(arg: OsString) -> Option<PathBuf> {
    match arg.to_str() {
        Some(option) if option.starts_with('-') => option.split_once('=').map(|(_, value)| PathBuf::from(value)),
        _ => Some(PathBuf::from(arg)),
    }
}

/// The path with its first missing component replaced by the most similar name in the folder.
fn nearest_path(path: &Path) -> Option<String> {
    let missing =
        path.ancestors().take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists()).last()?;
    let name = missing.file_name()?.to_string_lossy();
    let folder = missing.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).ok()?.flatten().take(MAX_ENTRIES);
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let nearest = nearest(&name, names.iter().map(String::as_str))?;
    // Joining an empty rest would add a slash.
    let rest = path.strip_prefix(missing).ok().filter(|rest| !rest.as_os_str().is_empty());
    let replaced = missing.with_file_name(nearest);
    let suggested = rest.map_or(replaced.clone(), |rest| replaced.join(rest));
    suggested.exists().then(|| format!("did you mean `{}`?", suggested.display()))
}

fn advice(cause: &(dyn Error + 'static)) -> Option<String> {
    /// The hint of `$cause` if it is one of these types.
    macro_rules! first_hint {
        ($($type:ty),+ $(,)?) => {
            None$(.or_else(|| cause.downcast_ref::<$type>().and_then(<$type>::hint)))+
        };
    }
    first_hint!(
        AcceptError,
        AlignError,
        AnalyzeError,
        AverageError,
        ClaimError,
        ConvertError,
        EstimateError,
        FusionError,
        InvalidParts,
        LoadArpaError,
        LoadPreparedError,
        LoadRunError,
        LoadWeightsError,
        NoModelError,
        OverrideError,
        PairError,
        PrepareError,
        ReadAudioError,
        ReadModelError,
        ReadTableError,
        ReadTranscriptError,
        ReproduceError,
        ScoreFilesError,
        StartStreamError,
        TrainError,
        TranscribeError,
        TuneError,
        WordsError,
        WordsForPhonesError,
        WriteCorpusError,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestion(folder: &Path, name: &str) -> Option<String> {
        let path = folder.join(name);
        let args = ["srf", "info"].into_iter().map(OsString::from).chain([path.clone().into_os_string()]);
        nearest_argument(args, &format!("could not read `{}`", path.display()))
    }

    #[test]
    fn names_inside_the_program_are_suggested_and_words_that_are_no_paths_are_not() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>().into_iter();
        let given = args(&["srf", "transcribe", "-m", "en-phons", "a.wav"]);
        let error = "`en-phons` is not a directory";
        assert_eq!(nearest_argument(given, error).as_deref(), Some("did you mean `en-phones`?"));
        let given = args(&["srf", "train", "own/srv", "--data", "x"]);
        assert_eq!(nearest_argument(given, "could not read `own/srv`").as_deref(), Some("did you mean `own/srf`?"));
        let given = args(&["srf", "train", "a.toml", "--data", "tets"]);
        let error = "could not read `tets/labels.txt`";
        assert_eq!(nearest_argument(given, error).as_deref(), Some("did you mean `tests`?"));
        // `src` is a folder here; the kind of a corpus is no misspelt path.
        assert_eq!(misspelt_path(args(&["srf", "prepare", "srf", "out"])), None);
        assert_eq!(
            misspelt_path(args(&["srf", "convert", "Cargo.tml"])).as_deref(),
            Some("did you mean `Cargo.toml`?")
        );
    }

    #[test]
    fn a_misspelt_path_suggests_the_nearest_one() {
        let dir = tempfile::tempdir().expect("there is a place for temporary files");
        std::fs::write(dir.path().join("srf-7l.toml"), "").expect("the directory is ours");
        let expected = format!("did you mean `{}`?", dir.path().join("srf-7l.toml").display());
        assert_eq!(suggestion(dir.path(), "srf-7L.tml"), Some(expected));
        assert_eq!(suggestion(dir.path(), "quite-different"), None);
        std::fs::create_dir(dir.path().join("models")).expect("the directory is ours");
        std::fs::write(dir.path().join("models/en.txt"), "").expect("the directory is ours");
        let expected = format!("did you mean `{}`?", dir.path().join("models/en.txt").display());
        assert_eq!(suggestion(dir.path(), "modles/en.txt"), Some(expected));
        assert_eq!(suggestion(dir.path(), "srf-7l.toml"), None);
    }

    #[test]
    fn a_denied_permission_is_the_reason_whatever_was_being_done() {
        let error = anyhow::Error::new(io::Error::from(io::ErrorKind::PermissionDenied)).context("could not write `a`");
        assert_eq!(
            hint(&error).as_deref(),
            Some("check the permissions of the file and its folder, or choose another path")
        );
    }
}
