//! Reads TIMIT: the training set, development set and core test set.
//!
//! The tree is `{TRAIN,TEST}/DR1..DR8/<speaker>/<sentence>.{WAV,PHN,WRD,TXT}` in either case, the recordings SPHERE
//! or RIFF. The two sentences that all speakers say (`SA`) are left out, as everybody does; the speakers of the
//! development and core test sets are the published ones, and the other test speakers are left out too.

use std::path::{Path, PathBuf};

use srf_text::labels::timit::PhoneSet;

use super::files::{self, Siblings};
use super::problem::{Fault, Problem, Problems};
use super::summary::Check;
use super::{AudioPart, Corpus, DEV, Part, TEST, TRAIN, Utterance, phn};

/// Samples per second of every recording.
const RATE_HZ: f64 = 16_000.0;

const MAX_TEXT_BYTES: u64 = 1 << 16;

/// The speakers of the core test set.
pub const CORE_TEST_SPEAKERS: [&str; 24] = [
    "mdab0", "mwbt0", "felc0", "mtas1", "mwew0", "fpas0", "mjmp0", "mlnt0", "fpkt0", "mlll0", "mtls0", "fjlm0",
    "mbpm0", "mklt0", "fnlp0", "mcmj0", "mjdh0", "fmgd0", "mgrt0", "mnjm0", "fdhc0", "mjln0", "mpam0", "fmld0",
];

/// The speakers of the development set.
pub const DEV_SPEAKERS: [&str; 50] = [
    "faks0", "fdac1", "fjem0", "mgwt0", "mjar0", "mmdb1", "mmdm2", "mpdf0", "fcmh0", "fkms0", "mbdg0", "mbwm0",
    "mcsh0", "fadg0", "fdms0", "fedw0", "mgjf0", "mglb0", "mrtk0", "mtaa0", "mtdt0", "mthc0", "mwjg0", "fnmr0",
    "frew0", "fsem0", "mbns0", "mmjr0", "mdls0", "mdlf0", "mdvc0", "mers0", "fmah0", "fdrw0", "mrcs0", "mrjm4",
    "fcal1", "mmwh0", "fjsj0", "majc0", "mjsw0", "mreb0", "fgjd0", "fjmg0", "mroa0", "mteb0", "mjfc0", "mrjr0",
    "fmml0", "mrws1",
];

/// Utterances of the complete corpus, part by part.
pub const N_UTTERANCES: [(&str, usize); 3] = [(TRAIN, 3696), (DEV, 400), (TEST, 192)];

/// Phones of the complete corpus in the 39, part by part.
pub const N_PHONES_39: [(&str, usize); 2] = [(DEV, 15_057), (TEST, 7_215)];

/// Reads the disc at `root`, or a folder it lies in.
pub fn read(root: &Path) -> (Corpus, Vec<Problem>) {
    let mut problems = Problems::default();
    let files = files::files(root, &mut problems);
    let siblings = Siblings::new(&files);
    if !files.iter().any(|path| Place::of(path).part().is_some()) {
        let what = "a file like `TRAIN/DR1/FCJF0/SI1027.PHN` (any case)".to_owned();
        problems.add(root, None, Fault::Missing { what });
    }
    let [mut train, mut dev, mut test] = [const { Vec::new() }; 3];
    for labels in files.iter().filter(|path| files::extension(path) == "phn") {
        let place = Place::of(labels);
        let Some(part) = place.part() else { continue };
        let Some(utterance) = read_utterance(labels, &place, &siblings, &mut problems) else { continue };
        match part {
            TRAIN => train.push(utterance),
            DEV => dev.push(utterance),
            _ => test.push(utterance),
        }
    }
    (Corpus::of_parts([(TRAIN, train), (DEV, dev), (TEST, test)]), problems.0)
}

/// What the path of a file says.
struct Place {
    usage: String,
    speaker: String,
    sentence: String,
}

impl Place {
    fn of(path: &Path) -> Self {
        Self {
            usage: files::ancestor_name(path, 3).to_lowercase(),
            speaker: files::ancestor_name(path, 1).to_lowercase(),
            sentence: files::stem(path).to_lowercase(),
        }
    }

    /// Which part it belongs to; none for what is left out.
    fn part(&self) -> Option<&'static str> {
        let speaker = self.speaker.as_str();
        match self.usage.as_str() {
            _ if self.sentence.starts_with("sa") => None,
            "train" => Some(TRAIN),
            "test" if DEV_SPEAKERS.contains(&speaker) => Some(DEV),
            "test" if CORE_TEST_SPEAKERS.contains(&speaker) => Some(TEST),
            _ => None,
        }
    }
}

fn read_utterance(labels: &Path, place: &Place, siblings: &Siblings, problems: &mut Problems) -> Option<Utterance> {
    let Some(recording) = siblings.find(labels, &["wav", "sph", "flac"]) else {
        problems.add(labels, None, Fault::Missing { what: "the recording next to it (`.WAV`)".to_owned() });
        return None;
    };
    let phones = phn::load(labels, RATE_HZ, problems);
    if phones.is_empty() {
        problems.add(labels, None, Fault::Missing { what: "any phone".to_owned() });
        return None;
    }
    let words = siblings.find(labels, &["wrd"]).map(|path| phn::load(path, RATE_HZ, problems)).unwrap_or_default();
    Some(Utterance {
        id: format!("{}_{}", place.speaker, place.sentence).to_uppercase(),
        speaker: place.speaker.to_uppercase(),
        audio: AudioPart { path: PathBuf::from(recording), ..AudioPart::default() },
        sentence: siblings.find(labels, &["txt"]).map(|path| sentence(path, problems)).unwrap_or_default(),
        phones,
        words,
        ..Utterance::default()
    })
}

/// The sentence of a `.TXT` file: `0 46797 She had your dark suit ...`.
fn sentence(path: &Path, problems: &mut Problems) -> String {
    match files::read_text(path, MAX_TEXT_BYTES) {
        Ok(text) => text.split_whitespace().skip(2).collect::<Vec<_>>().join(" "),
        Err(fault) => {
            problems.add(path, None, fault);
            String::new()
        }
    }
}

/// The size of a complete corpus compared with this one.
pub fn checks(corpus: &Corpus) -> Vec<Check> {
    let n_utterances = |part: &Part| part.utterances.len();
    let n_phones = |part: &Part| part.utterances.iter().map(n_phones_39).sum();
    let count = |name: &str, count: &dyn Fn(&Part) -> usize| corpus.part(name).map_or(0, count);
    let utterances =
        N_UTTERANCES.map(|(name, expected)| Check::new(name, "utterances", count(name, &n_utterances), expected));
    let phones =
        N_PHONES_39.map(|(name, expected)| Check::new(name, "phones of the 39", count(name, &n_phones), expected));
    utterances.into_iter().chain(phones).collect()
}

fn n_phones_39(utterance: &Utterance) -> usize {
    utterance.phones.iter().filter(|phone| PhoneSet::Score39.fold(&phone.name).written().is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_lists_have_24_and_50_speakers_without_overlap() {
        let mut all: Vec<&str> = CORE_TEST_SPEAKERS.iter().chain(&DEV_SPEAKERS).copied().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 74);
        assert!(all.iter().all(|name| name.len() == 5 && name.starts_with(['f', 'm'])));
    }

    #[test]
    fn places_decide_the_part() {
        let part = |path: &str| Place::of(Path::new(path)).part();
        assert_eq!(part("/t/TRAIN/DR1/FCJF0/SI1027.PHN"), Some(TRAIN));
        assert_eq!(part("/t/train/dr1/fcjf0/sa1.phn"), None);
        assert_eq!(part("/t/TEST/DR1/FAKS0/SX43.PHN"), Some(DEV));
        assert_eq!(part("/t/test/dr1/mdab0/si1039.phn"), Some(TEST));
        assert_eq!(part("/t/test/dr1/mstk0/si1039.phn"), None);
        assert_eq!(part("a.phn"), None);
    }
}
