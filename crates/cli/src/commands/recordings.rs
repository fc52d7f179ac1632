//! The recordings below a directory, distinguished from other files by content.

use std::path::{Path, PathBuf};

use srf_audio::ReadAudioError;

use crate::printer::Printer;

/// Says that recordings have a sample rate below that of the model.
pub(crate) fn note_low_rate(n_recordings: usize, model_hz: u32, out: &Printer) {
    if 0 < n_recordings {
        out.note(format_args!(
            "{n_recordings} recordings have a sample rate below the model's {model_hz} Hz: expect more errors"
        ));
    }
}

/// All recordings below `dir`, and what is wrong with files that only look like one.
///
/// Files of other kinds (transcripts, tables) are passed over.
pub(crate) fn below(dir: &Path) -> (Vec<PathBuf>, Vec<ReadAudioError>) {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()),
            Err(cause) => {
                problems.push(ReadAudioError::Io { name: dir.display().to_string(), cause });
                continue;
            }
        };
        for path in entries {
            // A link to a directory could lead back up.
            if path.is_dir() && !path.is_symlink() {
                pending.push(path);
            } else if path.is_file() {
                match srf_audio::probe(&path) {
                    Ok(_) => found.push(path),
                    Err(ReadAudioError::Unknown { .. } | ReadAudioError::Empty { .. }) => {}
                    Err(problem) => problems.push(problem),
                }
            }
        }
    }
    found.sort();
    problems.sort_by_key(ToString::to_string);
    (found, problems)
}
