//! The built-in spoken corpus: a seed in, any number of hours of speech with exact labels out.
//!
//! Sentences come from a small [`grammar`], the [`voice`] is a diphone synthesiser inside the program, and each
//! [`speaker`] differs in vocal tract, pitch, rate, level, room and noise. What is said by whom depends on the seed
//! and the place in the corpus alone: any number of threads makes the same files.

pub mod espeak;
pub mod grammar;
pub mod layout;
mod phones;
pub mod room;
pub mod speaker;
pub mod voice;

use fastrand::Rng;

use self::espeak::{EspeakError, EspeakVoice};
use self::grammar::Sentence;
use self::speaker::{Sex, Speaker};
use self::voice::{Speech, Voice};
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
pub struct Cast {
    seed: u64,
    speakers: Vec<(Speaker, Option<EspeakVoice>)>,
}

/// A sentence as somebody said it.
pub struct Take {
    /// What was said.
    pub sentence: Sentence,
    /// How it sounds, and when.
    pub speech: Speech,
}

impl Cast {
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

    /// What speaker `speaker` says for the `index`th time; `sentence` if given, else any.
    pub fn take(
        &self,
        voice: &mut Voice,
        speaker: usize,
        index: usize,
        sentence: Option<Sentence>,
    ) -> Result<Take, EspeakError> {
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
        Ok(Take { sentence, speech })
    }
}

#[cfg(test)]
mod tests;
