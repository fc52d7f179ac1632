//! What to do about an error: an error in, a line of advice out.

use std::error::Error;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

use srf::align::AlignError;
use srf::directory::{InvalidParts, ReadModelError};
use srf::{AcceptError, NoModelError, StartStreamError};
use srf_audio::convert::ConvertError;
use srf_model::config::OverrideError;
use srf_model::weights::LoadWeightsError;
use srf_score::files::ScoreFilesError;
use srf_score::pairing::PairError;
use srf_score::read::ReadTranscriptError;
use srf_text::fusion::FusionError;
use srf_text::lm::LoadArpaError;
use srf_train::analyze::AnalyzeError;
use srf_train::analyze::windows::ReadTableError;
use srf_train::builtin::layout::WriteCorpusError;
use srf_train::corpus::prepare::PrepareError;
use srf_train::reproduce::ReproduceError;
use srf_train::runs::LoadRunError;
use srf_train::trainer::TrainError;
use srf_train::trainer::average::AverageError;
use srf_train::trainer::prepared::LoadPreparedError;

use crate::commands::demo::ClaimError;

/// How alike two names are, from 0 to 1, when one may be meant by the other.
const LIKE: f64 = 0.85;
/// Files that are looked at in a folder for a like name.
const MOST_ENTRIES: usize = 10_000;

/// The advice of the first error in the chain that has some.
///
/// Library errors say what is wrong; those that also know what to do have a `hint` method, asked here.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(advice).or_else(|| is_not_found(error).then(|| nearest_path(std::env::args_os()))?)
}

fn is_not_found(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::NotFound)
}

/// What may have been meant by the first argument that names nothing, if something beside it has a like name.
fn nearest_path(args: impl Iterator<Item = OsString>) -> Option<String> {
    let missing = args.skip(2).map(PathBuf::from).find(|path| is_missing(path))?;
    let name = missing.file_name()?.to_string_lossy().to_lowercase();
    let folder = missing.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).ok()?.flatten().take(MOST_ENTRIES);
    let likeness = |entry: &DirEntry| strsim::jaro_winkler(&name, &entry.file_name().to_string_lossy().to_lowercase());
    let nearest = entries.map(|entry| (likeness(&entry), entry)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (likeness, entry) = nearest;
    (likeness > LIKE).then(|| format!("did you mean `{}`?", missing.with_file_name(entry.file_name()).display()))
}

fn is_missing(path: &Path) -> bool {
    !path.as_os_str().as_encoded_bytes().starts_with(b"-") && !path.exists()
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
        ReadModelError,
        ReadTableError,
        ReadTranscriptError,
        ReproduceError,
        ScoreFilesError,
        StartStreamError,
        TrainError,
        WriteCorpusError,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(folder: &Path, name: &str) -> Option<String> {
        nearest_path(["srf", "info"].into_iter().map(OsString::from).chain([folder.join(name).into_os_string()]))
    }

    #[test]
    fn a_misspelt_path_suggests_the_one_beside_it() {
        let dir = tempfile::tempdir().expect("there is a place for temporary files");
        std::fs::write(dir.path().join("srf-7l.toml"), "").expect("the directory is ours");
        let expected = format!("did you mean `{}`?", dir.path().join("srf-7l.toml").display());
        assert_eq!(asked(dir.path(), "srf-7L.tml"), Some(expected));
        assert_eq!(asked(dir.path(), "quite-different"), None);
        assert_eq!(asked(dir.path(), "srf-7l.toml"), None);
    }
}
