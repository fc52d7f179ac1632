//! Writing a Kaldi data directory: utterances in, `wav.scp`, `text`, `utt2spk`, `spk2utt`, `utt2dur` and, where
//! recordings are cut, `segments` out, sorted as Kaldi's own checks demand.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use super::super::{Utterance, tree};

/// Writes `utterances` as the data directory `dir`.
///
/// Names are made valid: the speaker becomes a prefix of the utterance, joined by `-`, and characters that would
/// upset the order (or are blanks) become `_`. Rust compares strings byte by byte, which is the C locale.
pub fn save(dir: &Path, utterances: &[Utterance]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let rows: BTreeMap<String, Row> =
        utterances.iter().map(|utterance| (utterance_name(utterance), Row::of(utterance))).collect();
    let table = |value: &dyn Fn(&Row) -> String| -> String {
        rows.iter().map(|(id, row)| format!("{id} {}\n", value(row))).collect()
    };
    fs::write(dir.join("text"), table(&|row| row.text.to_owned()))?;
    fs::write(dir.join("utt2spk"), table(&|row| row.speaker.clone()))?;
    fs::write(dir.join("utt2dur"), table(&|row| row.utterance.audio.duration_s.unwrap_or(0.0).to_string()))?;
    fs::write(dir.join("spk2utt"), spk2utt(&rows))?;
    write_audio(dir, &rows)
}

struct Row<'a> {
    utterance: &'a Utterance,
    speaker: String,
    text: &'a str,
}

impl<'a> Row<'a> {
    fn of(utterance: &'a Utterance) -> Self {
        Self { utterance, speaker: name(&utterance.speaker), text: &utterance.text }
    }
}

/// A name without blanks and without characters that sort before the `-` that ends it.
fn name(name: &str) -> String {
    name.chars().map(|c| if c <= '-' || c.is_whitespace() { '_' } else { c }).collect()
}

fn utterance_name(utterance: &Utterance) -> String {
    let speaker = name(&utterance.speaker);
    let id = name(&utterance.id);
    let rest = id.strip_prefix(&speaker).filter(|rest| rest.starts_with('_')).map_or(id.as_str(), |rest| &rest[1..]);
    format!("{speaker}-{rest}")
}

fn spk2utt(rows: &BTreeMap<String, Row>) -> String {
    let mut by_speaker: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, row) in rows {
        by_speaker.entry(&row.speaker).or_default().push(id);
    }
    by_speaker.iter().map(|(speaker, ids)| format!("{speaker} {}\n", ids.join(" "))).collect()
}

/// `wav.scp` with one line an utterance, or, where any is a part of its recording, one line a recording and `segments`.
fn write_audio(dir: &Path, rows: &BTreeMap<String, Row>) -> io::Result<()> {
    if rows.values().all(|row| row.utterance.audio.offset_s.is_none()) {
        let scp: String =
            rows.iter().map(|(id, row)| format!("{id} {}\n", rxfilename(&row.utterance.audio.path))).collect();
        return fs::write(dir.join("wav.scp"), scp);
    }
    let names = recording_names(rows);
    let scp: BTreeMap<&str, &Path> = names.iter().map(|(path, name)| (name.as_str(), *path)).collect();
    let segment = |(id, row): (&String, &Row)| {
        let audio = &row.utterance.audio;
        let start_s = audio.offset_s.unwrap_or(0.0);
        let end_s = start_s + audio.duration_s.unwrap_or(0.0);
        format!("{id} {} {start_s} {end_s}\n", names[audio.path.as_path()])
    };
    fs::write(dir.join("segments"), rows.iter().map(segment).collect::<String>())?;
    fs::write(
        dir.join("wav.scp"),
        scp.iter().map(|(name, path)| format!("{name} {}\n", rxfilename(path))).collect::<String>(),
    )
}

/// A name for each recording: that of its file, with a number where two files share it.
fn recording_names<'a>(rows: &BTreeMap<String, Row<'a>>) -> HashMap<&'a Path, String> {
    let mut n_uses: HashMap<String, usize> = HashMap::new();
    let mut names = HashMap::new();
    for row in rows.values() {
        let path = row.utterance.audio.path.as_path();
        names.entry(path).or_insert_with(|| {
            let stem = name(&tree::stem(path));
            let n = n_uses.entry(stem.clone()).or_insert(0);
            *n += 1;
            if *n == 1 { stem } else { format!("{stem}.{n}") }
        });
    }
    names
}

/// How Kaldi reads a recording: WAV as a file, the rest through the usual programs.
fn rxfilename(path: &Path) -> String {
    let shown = path.display();
    match srf_audio::probe(path).map(|info| info.container) {
        Ok(srf_audio::Container::Sphere) => format!("sph2pipe -f wav {shown} |"),
        Ok(srf_audio::Container::Flac) => format!("flac -c -d -s {shown} |"),
        Ok(srf_audio::Container::Wav) | Err(_) => shown.to_string(),
        Ok(_) => format!("ffmpeg -v error -i {shown} -ac 1 -ar 16000 -f wav - |"),
    }
}
