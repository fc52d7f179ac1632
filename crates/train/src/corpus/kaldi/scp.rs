//! The values of `wav.scp`: a path or a command in, a file that can be read out.
//!
//! A command is somebody else's program. `sph2pipe ... file |` is understood and its file decoded here; any other
//! is refused, unless the user allows commands to run, and then its output is kept as a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::problem::Fault;

/// What a value of `wav.scp` means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file to be decoded.
    File(PathBuf),
    /// Something for a shell.
    Command(String),
}

/// Reads a value of `wav.scp`.
pub fn parse_source(value: &str) -> Source {
    let Some(command) = value.trim().strip_suffix('|') else {
        return Source::File(PathBuf::from(value.trim()));
    };
    match sph2pipe_file(command) {
        Some(file) => Source::File(file),
        None => Source::Command(command.trim().to_owned()),
    }
}

/// The file of `sph2pipe -f wav -p -c 1 FILE`, and of nothing more elaborate than that.
fn sph2pipe_file(command: &str) -> Option<PathBuf> {
    let mut words = command.split_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name()? != "sph2pipe" || command.contains(['|', ';', '&', '$', '`', '<', '>']) {
        return None;
    }
    let mut file = None;
    while let Some(word) = words.next() {
        match word {
            "-f" => {
                words.next()?;
            }
            // The samples are the same whatever form they are piped in.
            "-p" | "-wav" | "-rif" | "-raw" => {}
            _ if word.starts_with('-') || file.is_some() => return None,
            _ => file = Some(PathBuf::from(word.trim_matches(['"', '\'']))),
        }
    }
    file
}

/// Whether commands may run, and where their output is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commands {
    /// They may not.
    Refused,
    /// They may; a recording is kept as `<its id>.wav` in this folder.
    KeptIn(PathBuf),
}

impl Commands {
    pub(super) fn file_of(&self, id: &str, source: &Source) -> Result<PathBuf, Fault> {
        match (source, self) {
            (Source::File(path), _) => Ok(path.clone()),
            (Source::Command(command), Commands::Refused) => Err(Fault::Command { command: command.clone() }),
            (Source::Command(command), Commands::KeptIn(dir)) => run(command, dir, id),
        }
    }
}

fn run(command: &str, dir: &Path, id: &str) -> Result<PathBuf, Fault> {
    fs::create_dir_all(dir)?;
    let path = dir.join(format!("{}.wav", id.replace(['/', '\\'], "_")));
    let status =
        Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).stdout(File::create(&path)?).status()?;
    if status.success() {
        Ok(path)
    } else {
        Err(Fault::CommandFailed { command: command.to_owned(), reason: status.to_string() })
    }
}
