//! Voices of the program `espeak-ng`, where it is installed: a sentence in, samples out, without phones or times.

use std::process::{Command, Stdio};

use super::grammar::Sentence;
use super::speaker::Sex;
use super::voice::RATE_HZ;
use crate::playback::play;
use crate::seed::generator;

const PROGRAM: &str = "espeak-ng";
const ACCENTS: [&str; 5] = ["en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-gb-x-gbclan"];
const WOMEN: [&str; 5] = ["f1", "f2", "f3", "f4", "f5"];
const MEN: [&str; 8] = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"];

/// Why `espeak-ng` said nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EspeakError {
    /// It is not there, or may not run.
    #[error("could not run `{PROGRAM}`")]
    Run {
        /// What the system said.
        source: std::io::Error,
    },
    /// It failed.
    #[error("`{PROGRAM}` failed on `{text}`: {reason}")]
    Failed {
        /// What it was to say.
        text: String,
        /// What it said instead.
        reason: String,
    },
    /// Its output is no recording.
    #[error("`{PROGRAM}` wrote what cannot be read")]
    Output {
        /// Why.
        source: srf_audio::ReadAudioError,
    },
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
