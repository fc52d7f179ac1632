//! The built-in spoken corpus: any number of hours of synthetic speech with exact labels, made from a seed.
//!
//! Sentences come from a small [`grammar`], the [`voice`] is a diphone synthesiser inside the program, and each
//! [`speaker`] differs in vocal tract, pitch, rate, level, room and noise. What is said by whom depends on the seed
//! and the place in the corpus alone: any number of threads makes the same files.

pub mod grammar;
pub mod layout;
pub mod speaker;
pub mod voice;

use std::process::{Command, Stdio};

use fastrand::Rng;

use self::grammar::Sentence;
use self::speaker::{Sex, Speaker};
use self::voice::{RATE_HZ, Speech, Voice};
use crate::playback::play;
use crate::seed::generator;

/// The mean length of an utterance, to turn hours into utterances.
pub const USUAL_LENGTH_S: f64 = 3.3;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Voices {
    /// The built-in voice alone.
    #[default]
    Flite,
    /// Every second speaker is one of the voices of the program `espeak-ng`, which gives no phones and no times.
    FliteAndEspeak,
}

/// All the speakers of a corpus.
pub struct Speakers {
    seed: u64,
    speakers: Vec<(Speaker, Option<EspeakVoice>)>,
}

/// A sentence as a speaker said it.
pub struct Recording {
    /// What was said.
    pub sentence: Sentence,
    /// How it sounds, and when.
    pub speech: Speech,
}

impl Speakers {
    /// One speaker for each of `sexes`.
    pub fn new(seed: u64, sexes: impl IntoIterator<Item = Sex>, voices: Voices) -> Self {
        let speakers = sexes.into_iter().enumerate().map(|(index, sex)| {
            let espeak =
                (voices == Voices::FliteAndEspeak && index % 2 == 1).then(|| EspeakVoice::new(seed, index, sex));
            (Speaker::new(seed, index, sex), espeak)
        });
        Self { seed, speakers: speakers.collect() }
    }

    /// How many there are.
    pub fn n_speakers(&self) -> usize {
        self.speakers.len()
    }

    /// Records the `index`th utterance of `speaker`: `sentence` if given, otherwise a random one.
    pub fn record(
        &self,
        voice: &mut Voice,
        speaker: usize,
        index: usize,
        sentence: Option<Sentence>,
    ) -> Result<Recording, EspeakError> {
        let mut rng: Rng = generator(self.seed, &[1, speaker as u64, index as u64]);
        let sentence = sentence.unwrap_or_else(|| Sentence::random(&mut rng));
        let (person, espeak) = &self.speakers[speaker];
        let speech = match espeak {
            None => person.say(voice, &sentence, &mut rng),
            Some(espeak) => {
                let mut samples = espeak.say(&sentence)?;
                person.record(&mut samples, &mut rng);
                Speech { samples, phones: Vec::new(), words: Vec::new() }
            }
        };
        Ok(Recording { sentence, speech })
    }
}

const PROGRAM: &str = "espeak-ng";
const ACCENTS: [&str; 5] = ["en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-gb-x-gbclan"];
const WOMEN: [&str; 5] = ["f1", "f2", "f3", "f4", "f5"];
const MEN: [&str; 8] = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];

/// Why `espeak-ng` said nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what the fields are
pub enum EspeakError {
    #[error("could not run `{PROGRAM}`")]
    Run { source: std::io::Error },
    #[error("`{PROGRAM}` failed on `{text}`: {reason}")]
    Failed { text: String, reason: String },
    #[error("`{PROGRAM}` wrote output that cannot be read")]
    Output { source: srf_audio::ReadAudioError },
}

impl EspeakError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        matches!(self, Self::Run { .. })
            .then(|| "install it (`apt install espeak-ng`), or leave out `--voices espeak`".to_owned())
    }
}

/// One of its voices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EspeakVoice {
    name: String,
    pitch: u32,
    words_a_minute: u32,
}

impl EspeakVoice {
    /// The voice of speaker `index` of the corpus with this seed.
    pub fn new(seed: u64, index: usize, sex: Sex) -> Self {
        let mut rng = generator(seed, &[2, index as u64]);
        let variants: &[&str] = if sex == Sex::Female { &WOMEN } else { &MEN };
        let (accent, variant) = (ACCENTS[rng.usize(..ACCENTS.len())], variants[rng.usize(..variants.len())]);
        Self { name: format!("{accent}+{variant}"), pitch: rng.u32(25..75), words_a_minute: rng.u32(120..200) }
    }

    /// Says `sentence`, at the rate of the corpus.
    pub fn say(&self, sentence: &Sentence) -> Result<Vec<f32>, EspeakError> {
        let (pitch, speed) = (self.pitch.to_string(), self.words_a_minute.to_string());
        let output = Command::new(PROGRAM)
            .args(["-v", &self.name, "-p", &pitch, "-s", &speed, "--stdout", "--", &sentence.spoken])
            .stdin(Stdio::null())
            .output()
            .map_err(|source| EspeakError::Run { source })?;
        if !output.status.success() || output.stdout.len() <= WAV_HEADER_BYTES {
            let reason = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no output").to_owned();
            return Err(EspeakError::Failed { text: sentence.spoken.clone(), reason });
        }
        let recording = srf_audio::Recording::from_bytes(PROGRAM, with_sizes(output.stdout));
        let samples = recording.and_then(|recording| recording.read(srf_audio::Selection::default()));
        let samples = samples.map_err(|source| EspeakError::Output { source })?;
        let rate_hz = samples.rate_hz;
        let values = samples.values.into_iter().map(|value| value * srf_audio::I16_SCALE).collect();
        Ok(play(values, rate_hz, RATE_HZ))
    }
}

const WAV_HEADER_BYTES: usize = 44;

/// Written to a pipe, the header claims 2 GB: the real sizes are known now.
fn with_sizes(mut wav: Vec<u8>) -> Vec<u8> {
    let n_bytes = wav.len() as u32;
    wav[4..8].copy_from_slice(&(n_bytes - 8).to_le_bytes());
    wav[40..44].copy_from_slice(&(n_bytes - WAV_HEADER_BYTES as u32).to_le_bytes());
    wav
}

#[cfg(test)]
mod tests;
