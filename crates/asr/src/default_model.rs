//! The model that is used if none is named.

use std::env;
use std::path::{Path, PathBuf};

/// The variable that names a model directory.
const VARIABLE: &str = "SRF_MODEL";

/// The name of the model that is used if none is named.
pub const DEFAULT_MODEL: &str = "en";

/// Where models are below the current directory, next to the program, or above it in a source tree.
const PLACES: &[&str] = &["models", "share/srf/models"];

/// How far above the program: `target/release/srf` is three below its source tree.
const MAX_ABOVE: usize = 3;

/// No model was named and none was found.
///
/// ```no_run
/// use srf::{NoModelError, Recognizer, default_model};
///
/// match default_model() {
///     Ok(dir) => println!("{}", Recognizer::open(dir)?.transcribe("talk.flac")?.text()),
///     Err(error @ NoModelError { .. }) => eprintln!("{error}; {}", error.hint().unwrap_or_default()),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no model: `SRF_MODEL` is not set, and there is none at {}", tried.join(", "))]
pub struct NoModelError {
    /// Where it was looked for.
    pub tried: Vec<String>,
}

impl NoModelError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some("name one with `--model DIR`, or train one: `srf train --help`".to_owned())
    }
}

/// The directory that `SRF_MODEL` names, otherwise one here, otherwise one next to the program.
///
/// See [`NoModelError`] for an example.
pub fn default_model() -> Result<PathBuf, NoModelError> {
    if let Some(named) = env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(named.into());
    }
    find(Path::new("."), env::current_exe().ok().as_deref())
}

/// Where models are installed: `SRF_MODELS`, or `srf/models` in the user's data directory.
///
/// ```
/// println!("models by name are in {}", srf::models_home().display());
/// println!("the default is {}", srf::DEFAULT_MODEL);
/// ```
pub fn models_home() -> PathBuf {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || {
        let system = variable("XDG_DATA_HOME").or_else(|| variable("LOCALAPPDATA"));
        let data = system.or_else(|| variable("HOME").map(|home| home.join(".local/share")));
        data.unwrap_or_else(env::temp_dir).join("srf/models")
    };
    variable("SRF_MODELS").unwrap_or_else(data)
}

fn find(here: &Path, program: Option<&Path>) -> Result<PathBuf, NoModelError> {
    let above = program.into_iter().flat_map(|program| program.ancestors().skip(1).take(MAX_ABOVE));
    let dirs = std::iter::once(here).chain(above);
    let named = |place: &&str| Path::new(place).join(DEFAULT_MODEL);
    let candidates: Vec<PathBuf> = dirs
        .flat_map(|dir| std::iter::once("model".into()).chain(PLACES.iter().map(named)).map(move |name| dir.join(name)))
        .collect();
    let is_model = |dir: &&PathBuf| dir.join("config.toml").is_file();
    match candidates.iter().find(is_model) {
        Some(dir) => Ok(dir.clone()),
        None => Err(NoModelError { tried: shown(&candidates, here) }),
    }
}

/// The first few places, enough to see the idea.
fn shown(candidates: &[PathBuf], here: &Path) -> Vec<String> {
    let name = |path: &PathBuf| format!("`{}`", path.strip_prefix(here).unwrap_or(path).display());
    candidates.iter().take(3).map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn model(dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("config.toml"), "").unwrap();
    }

    #[test]
    fn a_model_here_comes_before_one_next_to_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("target/release/srf");
        let here = dir.path().join("work");
        let error = find(&here, Some(&program)).unwrap_err();
        assert!(error.to_string().starts_with("no model: `SRF_MODEL` is not set, and there is none at `model`, "));
        let far = dir.path().join("models/en");
        model(&far);
        assert_eq!(find(&here, Some(&program)).unwrap(), far);
        model(&here.join("models/en"));
        assert_eq!(find(&here, Some(&program)).unwrap(), here.join("models/en"));
        model(&here.join("model"));
        assert_eq!(find(&here, Some(&program)).unwrap(), here.join("model"));
        assert!(find(Path::new("/no/such/place"), None).is_err());
    }
}
