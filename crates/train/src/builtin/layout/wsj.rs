//! The built-in corpus as WSJ discs: `<disc>/wsj{0,1}/.../<speaker>/<utterance>.wv1` with lists and transcripts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Slot, WriteCorpusError, make_all, samples_of, writing};
use crate::builtin::speaker::Sex;
use crate::builtin::{Recording, Speakers, Voices};
use crate::corpus::Watcher;

/// A list of the discs: where it lies, where its recordings lie, and how their speakers are named.
struct List {
    ndx: &'static str,
    disc: &'static str,
    folder: &'static str,
    dots: &'static str,
    first_letter: char,
    /// Speakers in the complete corpora.
    n_speakers: usize,
    /// What the list calls the disc, where it is wrong.
    said_disc: Option<&'static str>,
}

#[rustfmt::skip]
const LISTS: [List; 5] = [
    list("11-13.1/wsj0/doc/indices/train/tr_s_wv1.ndx", "11-1.1", "wsj0/si_tr_s", "11-13.1/wsj0/transcrp/dots/si_tr_s", '0', 84),
    list("13-34.1/wsj1/doc/indices/si_tr_s.ndx", "13-1.1", "wsj1/si_tr_s", "13-34.1/wsj1/trans/wsj1/si_tr_s", '2', 200),
    list("13-34.1/wsj1/doc/indices/h1_p0.ndx", "13-16.1", "wsj1/si_dt_20", "13-34.1/wsj1/trans/wsj1/si_dt_20", '5', 10),
    list("11-13.1/wsj0/doc/indices/test/nvp/si_et_20.ndx", "11-14.1", "wsj0/si_et_20", "11-14.1/wsj0/transcrp/dots/si_et_20", '4', 8),
    List { said_disc: Some("13_32_1"), ..list("13-32.1/wsj1/doc/indices/wsj1/eval/h1_p0.ndx", "13-33.1", "wsj1/si_et_h1", "13-33.1/wsj1/si_et_h1", '6', 10) },
];

const fn list(
    ndx: &'static str,
    disc: &'static str,
    folder: &'static str,
    dots: &'static str,
    first_letter: char,
    n_speakers: usize,
) -> List {
    List { ndx, disc, folder, dots, first_letter, n_speakers, said_disc: None }
}

const N_SPEAKERS: usize = 312;
/// Utterances a session: as many as two digits count.
const SESSION: usize = 99;

/// Utterances a speaker: as many sessions as two digits count.
pub const MAX_EACH: usize = SESSION * 99;

/// A recording to be made and its list and id.
struct Job {
    slot: Slot,
    list: usize,
    id: String,
}

/// Writes discs with `n_speakers` of `n_each` utterances below `out` and says how many utterances they have.
pub fn write(
    seed: u64,
    n_speakers: usize,
    n_each: usize,
    out: &Path,
    watcher: &dyn Watcher,
) -> Result<usize, WriteCorpusError> {
    let names = speaker_names(n_speakers)?;
    let sexes = (0..n_speakers).map(|index| if index % 2 == 0 { Sex::Female } else { Sex::Male });
    let speakers = Speakers::new(seed, sexes, Voices::Flite);
    let jobs = names.iter().enumerate().flat_map(|(speaker, (list, name))| {
        (0..n_each).map(move |index| Job {
            slot: Slot { speaker, index },
            list: *list,
            id: utterance_name(name, index),
        })
    });
    let jobs: Vec<Job> = jobs.collect();
    for job in &jobs {
        let dir = recording_path(out, job).with_file_name("");
        fs::create_dir_all(&dir).map_err(writing(&dir))?;
    }
    watcher.begin("speaking", jobs.len());
    let texts =
        make_all(&speakers, &jobs, watcher, |job| (job.slot, None), |job, recording| save(out, job, recording))?;
    write_lists(out, &jobs)?;
    write_transcripts(out, &jobs, &texts)?;
    Ok(jobs.len())
}

/// The list and name of each speaker, in proportion to the complete corpora and at least one in each list.
fn speaker_names(n_speakers: usize) -> Result<Vec<(usize, String)>, WriteCorpusError> {
    if n_speakers < LISTS.len() {
        return Err(WriteCorpusError::TooFewSpeakers { found: n_speakers, expected: LISTS.len(), layout: "WSJ" });
    }
    let mut counts = LISTS.map(|list| (n_speakers * list.n_speakers / N_SPEAKERS).max(1));
    // What rounding leaves over (or takes too much of) is the largest list's.
    let n_others: usize = counts.iter().sum::<usize>() - counts[1];
    counts[1] = n_speakers - n_others;
    let named = counts
        .into_iter()
        .enumerate()
        .flat_map(|(list, count)| (0..count).map(move |index| (list, speaker_name(LISTS[list].first_letter, index))));
    Ok(named.collect())
}

/// Three characters, the first of which tells the list.
fn speaker_name(first: char, index: usize) -> String {
    let digit = |n: usize| char::from_digit((n % 36) as u32, 36).expect("a remainder of 36 is a digit");
    format!("{first}{}{}", digit(index / 36), digit(index))
}

/// Speaker, type, session and utterance: `01ic0203`.
fn utterance_name(speaker: &str, index: usize) -> String {
    format!("{speaker}c{:02}{:02}", 1 + index / SESSION, 1 + index % SESSION)
}

fn recording_path(out: &Path, job: &Job) -> PathBuf {
    let List { disc, folder, .. } = LISTS[job.list];
    out.join(disc).join(folder).join(&job.id[..3]).join(format!("{}.wv1", job.id))
}

fn save(out: &Path, job: &Job, recording: Recording) -> Result<String, WriteCorpusError> {
    let path = recording_path(out, job);
    let header = [("database_id", "srf built-in"), ("speaker_id", &job.id[..3]), ("utterance_id", &job.id)];
    srf_audio::sphere::save(&path, &samples_of(recording.speech.samples), &header).map_err(writing(&path))?;
    Ok(recording.sentence.text())
}

fn write_lists(out: &Path, jobs: &[Job]) -> Result<(), WriteCorpusError> {
    for (index, list) in LISTS.iter().enumerate() {
        let path = out.join(list.ndx);
        let disc = list.said_disc.map_or_else(|| list.disc.replace(['-', '.'], "_"), str::to_owned);
        let entries = jobs.iter().filter(|job| job.list == index);
        let lines = entries.map(|job| format!("{disc}:{}/{}/{}.wv1\n", list.folder, &job.id[..3], job.id));
        let text = format!("; recordings of the built-in corpus\n{}", lines.collect::<String>());
        create(&path, &text)?;
    }
    Ok(())
}

/// One file a session: `<speaker>c<session>00.dot`.
fn write_transcripts(out: &Path, jobs: &[Job], texts: &[String]) -> Result<(), WriteCorpusError> {
    let mut sessions: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (job, text) in jobs.iter().zip(texts) {
        let path = out.join(LISTS[job.list].dots).join(&job.id[..3]).join(format!("{}00.dot", &job.id[..6]));
        sessions.entry(path).or_default().extend([text, " . (", &job.id, ")\n"]);
    }
    sessions.iter().try_for_each(|(path, text)| create(path, text))
}

fn create(path: &Path, text: &str) -> Result<(), WriteCorpusError> {
    let dir = path.with_file_name("");
    fs::create_dir_all(&dir).map_err(writing(&dir))?;
    fs::write(path, text).map_err(writing(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_speakers_from_five_has_all_lists() {
        for n_speakers in 5..400 {
            let speakers = speaker_names(n_speakers).unwrap();
            assert_eq!(speakers.len(), n_speakers);
            for list in 0..LISTS.len() {
                assert!(speakers.iter().any(|(of, _)| *of == list), "{n_speakers} {list}");
            }
            let names: std::collections::HashSet<&String> = speakers.iter().map(|(_, name)| name).collect();
            assert_eq!(names.len(), n_speakers);
        }
        assert!(speaker_names(4).is_err());
    }
}
