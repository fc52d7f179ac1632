//! Models and recipes by name: `srf models`, `srf recipes`, and how commands find what is named.
//!
//! Some models and all recipes are inside the program. A bundled model is written to the user's data directory when it is
//! first used, because all other commands work on model directories.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use srf::{DEFAULT_MODEL, Recognizer, Units, default_model, directory, models_home};
use srf_base::files::{partial_path, sync_folder_of};
use srf_base::names::nearest;
use srf_model::config::Recipe;
use srf_train::recipes;

use crate::Exit;
use crate::printer::Printer;

type Files = &'static [(&'static str, &'static [u8])];

macro_rules! model_files {
    ($name:literal: $($file:literal),+) => {
        ($name, &[$(($file, include_bytes!(concat!("../../models/", $name, "/", $file)).as_slice())),+])
    };
}

/// The models inside the program.
const BUNDLED: &[(&str, Files)] = &[
    model_files!("en": "config.toml", "labels.txt", "cmvn.json", "card.md", "weights.safetensors", "words.bin", "decoding.json"),
    model_files!("en-phones": "config.toml", "labels.txt", "cmvn.json", "times.json", "card.md", "weights.safetensors"),
    model_files!("en-digits": "config.toml", "labels.txt", "cmvn.json", "times.json", "card.md", "weights.safetensors"),
];

/// The names of the models inside the program.
pub(crate) fn bundled() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|(name, _)| *name)
}

/// List the models that can be used by name, or install one
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf models
  srf models install runs/mine/model --name mine
  srf transcribe -m mine talk.wav")]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    action: Option<ModelsAction>,
}

#[derive(clap::Subcommand)]
enum ModelsAction {
    /// Copy a model directory to where all commands find it by name
    Install {
        /// A model directory, or a run that contains one
        #[arg(value_name = "DIR")]
        path: PathBuf,

        /// The name to install it under [default: the name of the directory]
        #[arg(long)]
        name: Option<String>,
    },
}

/// List the recipes inside the program, or print one
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf recipes
  srf recipes own/srf > mine.toml
  srf train own/srf --data data/mine --out runs/mine")]
pub(crate) struct RecipesArgs {
    /// The recipe to print
    name: Option<String>,
}

pub(crate) fn run(args: ModelsArgs, out: &Printer) -> anyhow::Result<Exit> {
    match args.action {
        None => list(out)?,
        Some(ModelsAction::Install { path, name }) => install(&path, name, out)?,
    }
    Ok(Exit::Done)
}

pub(crate) fn run_recipes(args: RecipesArgs, out: &Printer) -> anyhow::Result<Exit> {
    if let Some(name) = args.name {
        let text = bundled_recipe(Path::new(&name)).with_context(|| unknown_recipe(&name))?;
        out.bytes(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    let width = recipes::ALL.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, text) in recipes::ALL {
        let title = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        out.line(format_args!("{name:width$}  {title}"))?;
    }
    Ok(Exit::Done)
}

fn unknown_recipe(name: &str) -> String {
    match nearest(name, recipes::ALL.iter().map(|(known, _)| *known)) {
        Some(nearest) => format!("there is no recipe `{name}`; did you mean `{nearest}`?"),
        None => format!("there is no recipe `{name}`; `srf recipes` lists them"),
    }
}

/// The text of the bundled recipe that `path` names, as in `own/srf` or `recipes/own/srf.toml`; `None` if there is such
/// a file, or no such recipe.
pub(crate) fn bundled_recipe(path: &Path) -> Option<&'static str> {
    if path.exists() {
        return None;
    }
    let name = path.to_str()?.trim_start_matches("recipes/").trim_end_matches(".toml");
    recipes::text(name)
}

/// Reads a recipe file, or the bundled recipe of that name.
pub(crate) fn load_recipe(path: &Path) -> anyhow::Result<Recipe> {
    Ok(match bundled_recipe(path) {
        Some(text) => Recipe::parse(text, path)?,
        None => Recipe::load(path)?,
    })
}

/// The directory of the model that is used if none is named.
pub(crate) fn default_directory() -> anyhow::Result<PathBuf> {
    match default_model() {
        Ok(dir) => Ok(dir),
        Err(error) => Ok(named(DEFAULT_MODEL)?.ok_or(error)?),
    }
}

/// The model directory that a user named: a directory, a run that contains one, or an installed or bundled model.
///
/// A path that is none of these is returned as it is, for the error message of the caller.
pub(crate) fn model_directory(path: PathBuf) -> anyhow::Result<PathBuf> {
    if path.exists() {
        return Ok(directory::resolve(&path));
    }
    let name = path.strip_prefix("models").unwrap_or(&path);
    let found = name.to_str().filter(|name| is_name(name)).map(named).transpose()?.flatten();
    Ok(found.unwrap_or(path))
}

/// The directory of an installed model, or of a bundled one after writing it.
fn named(name: &str) -> anyhow::Result<Option<PathBuf>> {
    let home = models_home();
    let dir = home.join(name);
    let Some((_, files)) = BUNDLED.iter().find(|(bundled, _)| *bundled == name) else {
        return Ok(dir.join("config.toml").is_file().then_some(dir));
    };
    let Err(error) = write_bundled(&dir, files) else { return Ok(Some(dir)) };
    // Services often have no home.
    let temporary = std::env::temp_dir().join("srf-models").join(name);
    if write_bundled(&temporary, files).is_ok() {
        return Ok(Some(temporary));
    }
    Err(error).with_context(|| format!("could not write the bundled model to `{}`", dir.display()))
}

/// Writes the files of a bundled model unless they are there.
fn write_bundled(dir: &Path, files: Files) -> std::io::Result<()> {
    if files.iter().all(|(file, bytes)| fs::read(dir.join(file)).is_ok_and(|found| found == *bytes)) {
        return Ok(());
    }
    replace(dir, files.iter().map(|(file, bytes)| (OsStr::new(file), *bytes)))
}

/// Writes a folder of files under a temporary name and renames it to `dir`.
fn replace<'a>(dir: &Path, files: impl Iterator<Item = (&'a OsStr, &'a [u8])>) -> std::io::Result<()> {
    // Another process may be doing the same.
    let partial = partial_path(&dir.with_extension(std::process::id().to_string()));
    fs::create_dir_all(&partial)?;
    let write = || {
        files.into_iter().try_for_each(|(name, bytes)| fs::write(partial.join(name), bytes))?;
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::rename(&partial, dir)?;
        sync_folder_of(dir)
    };
    let result = write();
    if result.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    result
}

/// Whether `name` is one plain component of a path.
fn is_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(_)), None))
}

fn list(out: &Printer) -> anyhow::Result<()> {
    let home = models_home();
    let mut places: BTreeMap<String, String> =
        BUNDLED.iter().map(|(name, _)| ((*name).to_owned(), "bundled".to_owned())).collect();
    for entry in fs::read_dir(&home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().join("config.toml").is_file() {
            places.entry(name).or_insert_with(|| entry.path().display().to_string());
        }
    }
    for (name, place) in places {
        let description = match named(&name)?.map(Recognizer::open) {
            Some(Ok(model)) => describe(&model),
            Some(Err(error)) => format!("unusable: {error}"),
            None => continue,
        };
        let default = if name == DEFAULT_MODEL { ", the default" } else { "" };
        out.line(format_args!("{name:<16} {description} ({place}{default})"))?;
    }
    Ok(())
}

/// `37 phones, 16000 Hz: English phones`.
fn describe(model: &Recognizer) -> String {
    let title = model.card().lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("no card");
    let units = units_name(model.labels().units());
    format!("{} {units}, {} Hz: {title}", model.labels().n_classes() - 2, model.features().sample_rate_hz)
}

/// What the labels of a model are called.
pub(crate) fn units_name(units: Units) -> &'static str {
    match units {
        Units::Phones => "phones",
        Units::Chars => "characters",
        Units::Words => "words",
        Units::Pieces => "pieces of words",
    }
}

fn install(path: &Path, name: Option<String>, out: &Printer) -> anyhow::Result<()> {
    let source = model_directory(path.to_owned())?;
    // Refuses what is not a complete model.
    directory::read(&source)?;
    let from_path = || {
        let run = if source == path { source.as_path() } else { path };
        let folder = if run.ends_with("model") { run.parent() } else { Some(run) };
        folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
    };
    let name = name.or_else(from_path).context("the directory has no name; give `--name`")?;
    ensure!(is_name(&name), "`{name}` cannot be the name of a model, expected a plain name");
    if BUNDLED.iter().any(|(bundled, _)| *bundled == name) {
        bail!("`{name}` is the name of a bundled model; give another `--name`");
    }
    let dir = models_home().join(&name);
    let failed = || format!("could not install `{}` as `{}`", source.display(), dir.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&source).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if entry.path().is_file() {
            files.push((entry.file_name(), fs::read(entry.path()).with_context(failed)?));
        }
    }
    replace(&dir, files.iter().map(|(name, bytes)| (name.as_os_str(), bytes.as_slice()))).with_context(failed)?;
    out.note(format_args!("installed `{}`; use it with `-m {name}`", dir.display()));
    Ok(())
}
