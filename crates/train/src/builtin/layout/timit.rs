//! The built-in corpus as a TIMIT disc: `TIMIT/{TRAIN,TEST}/DRn/<speaker>/<sentence>.{WAV,PHN,WRD,TXT}`.
//!
//! Ten sentences per speaker, two of them said by all, and 630 speakers in a complete corpus, of whom 24 are the core
//! test and 50 the development speakers under their published names.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Slot, WriteCorpusError, make_all, samples_of, writing};
use crate::builtin::grammar::Sentence;
use crate::builtin::speaker::Sex;
use crate::builtin::voice::Span;
use crate::builtin::{Recording, Speakers, Voices};
use crate::corpus::Watcher;
use crate::corpus::timit::{CORE_TEST_SPEAKERS, DEV_SPEAKERS};

/// The speakers of a complete corpus: in all, in the core test set, in the development set, in neither but not in
/// training.
const N_SPEAKERS: usize = 630;
const N_OTHER_TEST: usize = 94;
const N_SENTENCES: usize = 10;

/// A speaker and where its files lie.
struct Place {
    name: String,
    usage: &'static str,
}

/// Writes a corpus of `n_speakers` to `out/TIMIT` and says how many utterances it has.
pub fn write(seed: u64, n_speakers: usize, out: &Path, watcher: &dyn Watcher) -> Result<usize, WriteCorpusError> {
    let places = places(n_speakers)?;
    let sexes = places.iter().map(|place| if place.name.starts_with('f') { Sex::Female } else { Sex::Male });
    let speakers = Speakers::new(seed, sexes, Voices::Flite);
    let dirs: Vec<PathBuf> = places.iter().enumerate().map(|(index, place)| dir(out, index, place)).collect();
    for dir in &dirs {
        fs::create_dir_all(dir).map_err(writing(dir))?;
    }
    let all = (0..places.len()).flat_map(|speaker| (0..N_SENTENCES).map(move |index| Slot { speaker, index }));
    let slots: Vec<Slot> = all.collect();
    watcher.begin("speaking", slots.len());
    let sentence = |slot: &Slot| (*slot, (slot.index < 2).then(|| Sentence::shared(slot.index)));
    make_all(&speakers, &slots, watcher, sentence, |slot, recording| {
        save(&dirs[slot.speaker], &places[slot.speaker].name, &sentence_name(*slot), recording)
    })?;
    Ok(slots.len())
}

fn dir(out: &Path, index: usize, place: &Place) -> PathBuf {
    let region = format!("DR{}", index % 8 + 1);
    out.join("TIMIT").join(place.usage).join(region).join(place.name.to_uppercase())
}

/// The speakers of each part, in proportion to the complete corpus and at least one in each that is used.
fn places(n_speakers: usize) -> Result<Vec<Place>, WriteCorpusError> {
    if n_speakers < 3 {
        return Err(WriteCorpusError::TooFewSpeakers { found: n_speakers, expected: 3, layout: "TIMIT" });
    }
    let share = |n: usize| (n_speakers * n + N_SPEAKERS / 2) / N_SPEAKERS;
    let n_core = share(CORE_TEST_SPEAKERS.len()).clamp(1, CORE_TEST_SPEAKERS.len());
    let n_dev = share(DEV_SPEAKERS.len()).clamp(1, DEV_SPEAKERS.len());
    let n_other = share(N_OTHER_TEST).min(n_speakers - n_core - n_dev - 1);
    let n_train = n_speakers - n_core - n_dev - n_other;
    let invented = (0..).map(invented_name).filter(|name| !is_published(name));
    let mut invented = invented.take(n_train + n_other);
    let mut places: Vec<Place> = invented.by_ref().take(n_train).map(|name| Place { name, usage: "TRAIN" }).collect();
    let published = CORE_TEST_SPEAKERS[..n_core].iter().chain(&DEV_SPEAKERS[..n_dev]).map(|name| (*name).to_owned());
    places.extend(published.chain(invented).map(|name| Place { name, usage: "TEST" }));
    Ok(places)
}

fn is_published(name: &str) -> bool {
    CORE_TEST_SPEAKERS.contains(&name) || DEV_SPEAKERS.contains(&name)
}

/// Sex, initials and a number, as TIMIT names people; three in ten are women. Distinct below 26^3.
fn invented_name(index: usize) -> String {
    let sex = if index % 10 % 3 == 1 { 'f' } else { 'm' };
    // 5417 has no factor in common with 26^3, so the initials run through all there are.
    let code = index * 5417 % 17_576;
    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
    format!("{sex}{}{}{}0", letter(code / 676), letter(code / 26), letter(code))
}

fn sentence_name(slot: Slot) -> String {
    let Slot { speaker, index } = slot;
    match index {
        0 | 1 => format!("SA{}", index + 1),
        2..5 => format!("SI{}", 451 + (speaker * 3 + index - 2) % 1890),
        _ => format!("SX{}", 1 + (speaker * 5 + index - 5) % 450),
    }
}

fn save(dir: &Path, speaker: &str, sentence: &str, recording: Recording) -> Result<(), WriteCorpusError> {
    let path = |extension: &str| dir.join(format!("{sentence}.{extension}"));
    let n_samples = recording.speech.samples.len();
    let write = |extension: &str, text: String| fs::write(path(extension), text).map_err(writing(&path(extension)));
    write("PHN", labels(&recording.speech.phones))?;
    write("WRD", labels(&recording.speech.words))?;
    write("TXT", format!("0 {n_samples} {}\n", written(&recording.sentence)))?;
    let id = format!("{speaker}_{}", sentence.to_lowercase());
    let header = [("database_id", "srf built-in"), ("speaker_id", speaker), ("utterance_id", &id)];
    srf_audio::sphere::save(path("WAV"), &samples_of(recording.speech.samples), &header).map_err(writing(&path("WAV")))
}

fn labels(spans: &[Span]) -> String {
    spans.iter().map(|Span { start, end, name }| format!("{start} {end} {name}\n")).collect()
}

/// The sentence as it is written: a capital at its start.
fn written(sentence: &Sentence) -> String {
    let mut chars = sentence.spoken.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_complete_corpus_has_the_published_numbers_of_speakers() {
        let places = places(630).unwrap();
        let count = |is: &dyn Fn(&Place) -> bool| places.iter().filter(|place| is(place)).count();
        assert_eq!(count(&|place| place.usage == "TRAIN"), 462);
        assert_eq!(count(&|place| CORE_TEST_SPEAKERS.contains(&place.name.as_str())), 24);
        assert_eq!(count(&|place| DEV_SPEAKERS.contains(&place.name.as_str())), 50);
        let names: HashSet<&str> = places.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names.len(), 630);
        let n_women = count(&|place| place.name.starts_with('f'));
        assert!((170..=220).contains(&n_women), "{n_women}");
    }

    #[test]
    fn any_number_of_speakers_from_three_has_all_parts() {
        for n_speakers in 3..700 {
            let places = places(n_speakers).unwrap();
            assert_eq!(places.len(), n_speakers);
            assert!(places.iter().any(|place| place.usage == "TRAIN"), "{n_speakers}");
            assert!(places.iter().any(|place| DEV_SPEAKERS.contains(&place.name.as_str())));
            assert!(places.iter().any(|place| CORE_TEST_SPEAKERS.contains(&place.name.as_str())));
        }
        assert!(places(2).is_err());
    }

    #[test]
    fn a_speaker_has_ten_distinct_sentences() {
        for speaker in [0, 89, 629] {
            let names: HashSet<String> = (0..10).map(|index| sentence_name(Slot { speaker, index })).collect();
            assert_eq!(names.len(), 10);
        }
    }
}
