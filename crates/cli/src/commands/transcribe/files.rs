//! Results to stdout or to files: transcripts in, one after the other, in the format asked for.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use srf::{Recognizer, StreamOptions};
use srf_text::output::{Format, SubtitleOptions, Transcript};

use super::channels::Channels;
use crate::Exit;
use crate::commands::inputs::{self, Inputs};
use crate::hint::hint;
use crate::printer::Printer;

/// Where transcripts go.
pub(crate) struct Sink<'a> {
    format: Format,
    subtitles: SubtitleOptions,
    dir: Option<PathBuf>,
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

    /// Says how many recordings will come.
    pub(crate) fn expect(&mut self, n_recordings: usize) -> anyhow::Result<()> {
        let is_one_a_file = matches!(self.format, Format::Srt | Format::Vtt | Format::TextGrid);
        if is_one_a_file && self.dir.is_none() && 1 < n_recordings {
            bail!("a file of format {} holds one recording, found {n_recordings}; add `--out DIR`", self.format);
        }
        self.n_recordings = n_recordings;
        self.has_ids |= 1 < n_recordings;
        Ok(())
    }

    /// Writes ids even if there is only one recording: what was given is a directory or a list.
    pub(crate) fn write_ids(&mut self, inputs: &[PathBuf]) {
        let is_list = |input: &PathBuf| {
            let extension = input.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
            input.is_dir() || ["json", "jsonl", "scp"].contains(&extension.as_str())
        };
        self.has_ids |= inputs.iter().any(is_list);
    }

    /// Whether every segment is a line on stdout by itself, to be shown as soon as it ends.
    pub(crate) fn shows_lines(&self) -> bool {
        self.format == Format::Text && self.dir.is_none() && !self.has_ids
    }

    /// Writes one transcript; an error if it is of a recording that was cut off.
    pub(crate) fn write(&mut self, transcript: &Transcript) -> anyhow::Result<()> {
        self.n_empty += usize::from(transcript.text().trim().is_empty());
        let Some(dir) = &self.dir else { return self.print(transcript) };
        let path = dir.join(format!("{}.{}", file_name(&transcript.id), self.format.extension()));
        if !self.written.insert(path.clone()) {
            bail!("`{}` was already written for another recording of that name", path.display());
        }
        let text = transcript.format_with(self.format, &self.subtitles);
        fs::write(&path, text).with_context(|| format!("could not write `{}`", path.display()))?;
        complete(transcript)
    }

    fn print(&mut self, transcript: &Transcript) -> anyhow::Result<()> {
        let text = match self.format {
            // As Kaldi writes transcripts of many.
            Format::Text if self.has_ids => format!("{} {}\n", transcript.id, transcript.text()),
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

/// An id as the name of a file: it may come from a manifest, and must not lead out of the directory.
fn file_name(id: &str) -> String {
    let name: String = id.chars().map(|c| if matches!(c, '/' | '\\' | '\0') { '_' } else { c }).collect();
    if name.starts_with('.') { format!("_{name}") } else { name }
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
    let Inputs { utterances, mut n_problems } = inputs::gather(inputs, out);
    if utterances.is_empty() {
        bail!("there is no recording in what was given");
    }
    let utterances = channels.apply(utterances, recognizer, out);
    sink.expect(utterances.len())?;
    sink.write_ids(inputs);
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
    transcript.incomplete.as_ref().map_or(Ok(()), |missing| bail!("{missing}; the rest was transcribed"))
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
    use super::file_name;

    #[test]
    fn an_id_cannot_lead_out_of_the_directory() {
        assert_eq!(file_name("a-b c"), "a-b c");
        assert_eq!(file_name("../../etc/passwd"), "_.._.._etc_passwd");
        assert_eq!(file_name(".."), "_..");
    }
}
