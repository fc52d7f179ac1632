//! Results to stdout or to files: transcripts in, one after the other, in the format asked for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use srf::{Recognizer, StreamOptions};
use srf_base::{ids, shell};
use srf_text::output::{Format, SubtitleOptions, SubtitleStream, Transcript};

use super::channels::Channels;
use crate::Exit;
use crate::commands::inputs::{self, Inputs};
use crate::hint::hint;
use crate::printer::Printer;

/// What of a stream goes to stdout while it goes on.
pub(crate) enum Writing {
    /// Nothing: the format needs the whole recording, or files are written.
    AtTheEnd,
    /// A line of text per segment.
    Lines,
    /// A JSON object per partial result, per segment, and for the end.
    Events,
    /// Subtitles.
    Cues(SubtitleStream),
}

/// Where transcripts go.
pub(crate) struct Sink<'a> {
    format: Format,
    subtitles: SubtitleOptions,
    dir: Option<PathBuf>,
    /// The directories that were given: files keep their places in them.
    roots: Vec<PathBuf>,
    written: HashSet<PathBuf>,
    n_recordings: usize,
    /// Whether lines of text begin with the id of their recording.
    has_ids: bool,
    n_empty: usize,
    out: &'a Printer,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(format: Format, dir: Option<PathBuf>, out: &'a Printer) -> anyhow::Result<Self> {
        if let Some(dir) = &dir {
            fs::create_dir_all(dir).with_context(|| format!("could not make `{}`", dir.display()))?;
        }
        Ok(Self {
            format,
            subtitles: SubtitleOptions::default(),
            dir,
            roots: Vec::new(),
            written: HashSet::new(),
            n_recordings: 1,
            has_ids: false,
            n_empty: 0,
            out,
        })
    }

    /// Limits the length of subtitles.
    pub(crate) fn with_subtitles(mut self, subtitles: SubtitleOptions) -> Self {
        self.subtitles = subtitles;
        self
    }

    /// Says what was given and how many recordings it has.
    pub(crate) fn expect(&mut self, inputs: &[PathBuf], n_recordings: usize) -> anyhow::Result<()> {
        let is_one_a_file = matches!(self.format, Format::Srt | Format::Vtt | Format::TextGrid);
        if is_one_a_file && self.dir.is_none() && 1 < n_recordings {
            bail!("a file of format {} holds one recording, found {n_recordings}; add `--out DIR`", self.format);
        }
        self.n_recordings = n_recordings;
        self.roots = inputs.iter().filter(|input| input.is_dir()).cloned().collect();
        let is_list = |input: &PathBuf| {
            let extension = input.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            ["json", "jsonl", "scp"].contains(&extension.as_str())
        };
        // Text of a directory or a list has ids even if there is only one recording.
        self.has_ids = 1 < n_recordings || !self.roots.is_empty() || inputs.iter().any(is_list);
        Ok(())
    }

    /// What of a stream is written while it goes on.
    pub(crate) fn writing(&self) -> Writing {
        let cues = SubtitleStream::new(self.format, self.subtitles);
        match (self.format, cues) {
            _ if self.dir.is_some() => Writing::AtTheEnd,
            (_, Some(cues)) => Writing::Cues(cues),
            (Format::Text, _) if !self.has_ids => Writing::Lines,
            (Format::Json, _) => Writing::Events,
            _ => Writing::AtTheEnd,
        }
    }

    /// Writes one transcript; an error if it is of a recording that was cut off.
    pub(crate) fn write(&mut self, transcript: &Transcript) -> anyhow::Result<()> {
        self.n_empty += usize::from(transcript.text().trim().is_empty());
        let Some(dir) = &self.dir else { return self.print(transcript) };
        let path = dir.join(self.place(transcript));
        if !self.written.insert(path.clone()) {
            bail!("`{}` was not written: `{}` is the transcript of another one", transcript.id, path.display());
        }
        let text = transcript.format_with(self.format, &self.subtitles);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        made.and_then(|()| fs::write(&path, text)).with_context(|| format!("could not write `{}`", path.display()))?;
        complete(transcript)
    }

    /// Where the file of a transcript is inside the output directory: as its recording in the directory that was given,
    /// or as its id says.
    fn place(&self, transcript: &Transcript) -> PathBuf {
        let name = format!("{}.{}", transcript.id, self.format.extension());
        let recording = transcript.path.as_deref().unwrap_or(Path::new(""));
        let inside = self.roots.iter().find_map(|root| recording.strip_prefix(root).ok()?.parent());
        match inside {
            Some(folder) if !transcript.id.contains('/') => folder.join(file_path(&name)),
            _ => file_path(&name),
        }
    }

    fn print(&mut self, transcript: &Transcript) -> anyhow::Result<()> {
        let text = match self.format {
            // As Kaldi writes transcripts of many.
            Format::Text if self.has_ids => format!("{} {}\n", ids::encode(&transcript.id), transcript.text()),
            format => transcript.format_with(format, &self.subtitles),
        };
        let is_first = self.written.insert(PathBuf::new());
        let text = match text.split_once('\n') {
            Some((_heading, rows)) if self.format == Format::Csv && !is_first => rows,
            _ => &text,
        };
        self.out.bytes(text.as_bytes())?;
        complete(transcript)
    }
}

impl Drop for Sink<'_> {
    fn drop(&mut self) {
        if 0 < self.n_empty {
            let of = if 1 < self.n_recordings {
                format!(" in {} of {}", self.n_empty, self.n_recordings)
            } else {
                String::new()
            };
            self.out.note(format_args!(
                "nothing was recognised{of}: silence, a very quiet recording, another language or channel, or music?"
            ));
        }
    }
}

/// An id as the path of a file, different for different ids.
///
/// It may come from a manifest: what could lead out of the directory, hide the file or upset a terminal is encoded as `%`
/// and two hexadecimal digits per byte.
fn file_path(id: &str) -> PathBuf {
    id.split('/').map(file_name).collect()
}

fn file_name(part: &str) -> String {
    let mut name = String::with_capacity(part.len());
    for (at, c) in part.char_indices() {
        let is_control = matches!(shell::escape_controls(c.encode_utf8(&mut [0; 4])), Cow::Owned(_));
        if is_control || matches!(c, '\\' | '%') || (at, c) == (0, '.') {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(name, "%{byte:02X}");
            }
        } else {
            name.push(c);
        }
    }
    if name.is_empty() { "%".to_owned() } else { name }
}

/// Recognises all of `inputs`, on the threads of the pool this runs in.
pub(super) fn transcribe(
    recognizer: &Recognizer,
    inputs: &[PathBuf],
    options: &StreamOptions,
    channels: Channels,
    mut sink: Sink<'_>,
    out: &Printer,
) -> anyhow::Result<Exit> {
    let Inputs { utterances, mut n_problems, .. } = inputs::gather(inputs, out);
    if utterances.is_empty() {
        bail!("there is no recording in what was given");
    }
    let utterances = channels.apply(utterances, recognizer, out);
    sink.expect(inputs, utterances.len())?;
    let progress = out.progress("transcribe", utterances.len() as u64);
    for result in recognizer.transcripts(&utterances, options) {
        progress.inc(1);
        // Delays mean nothing for a file, which is read as fast as possible.
        let written = result
            .map_err(anyhow::Error::from)
            .and_then(|transcript| progress.suspend(|| sink.write(&without_delays(transcript))));
        keep_on(written, &mut n_problems, |problem| progress.suspend(|| out.problem(problem)))?;
    }
    progress.finish_and_clear();
    Ok(if n_problems == 0 { Exit::Done } else { Exit::Problems })
}

/// An error if the recording was cut off.
pub(crate) fn complete(transcript: &Transcript) -> anyhow::Result<()> {
    transcript.incomplete.as_ref().map_or(Ok(()), |missing| bail!("{missing}; what is there was transcribed"))
}

/// Reports a problem and goes on, unless the reader of our stdout is gone.
pub(crate) fn keep_on(
    result: anyhow::Result<()>,
    n_problems: &mut usize,
    tell: impl FnOnce(String),
) -> anyhow::Result<()> {
    match result {
        Err(error) if crate::printer::is_broken_pipe(&error) => Err(error),
        Err(error) => {
            *n_problems += 1;
            let hint = hint(&error).map_or_else(String::new, |hint| format!(" (hint: {hint})"));
            tell(format!("{error:#}{hint}"));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

pub(crate) fn without_delays(mut transcript: Transcript) -> Transcript {
    let tokens = transcript.segments.iter_mut().flat_map(|segment| &mut segment.tokens);
    tokens.for_each(|token| token.delay = None);
    transcript
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::file_path;

    #[test]
    fn an_id_cannot_lead_out_of_the_directory() {
        for (id, path) in [
            ("a-b c", "a-b c"),
            ("talks/a", "talks/a"),
            ("../../etc/passwd", "%2E./%2E./etc/passwd"),
            ("/etc//passwd", "%/etc/%/passwd"),
            ("..", "%2E."),
            ("a\\b%\n", "a%5Cb%25%0A"),
        ] {
            assert_eq!(file_path(id), Path::new(path), "{id}");
        }
    }
}
