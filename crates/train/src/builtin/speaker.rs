//! The speakers of the built-in corpus: each has a vocal tract, a manner of speaking, a room and a microphone.
//!
//! There is one recorded voice; a speaker is what is done to it. The length of the vocal tract is changed by playing
//! the voice faster or slower, after asking it for a slower (or faster) and lower (or higher) sentence: formants move,
//! duration and pitch come out as intended.

use fastrand::Rng;

use super::grammar::Sentence;
use super::voice::{Manner, RATE_HZ, Span, Speech, Voice};
use crate::noise;
use crate::playback::play;
use crate::seed::{between, generator};

/// A woman's or a man's voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sex {
    /// Shorter vocal tract, higher pitch.
    Female,
    /// Longer vocal tract, lower pitch.
    Male,
}

/// What makes a speaker, the same in all sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Speaker {
    /// Woman or man.
    pub sex: Sex,
    /// The rate the voice is played at: above 16 kHz formants rise, as in a shorter vocal tract.
    tract_hz: u32,
    manner: Manner,
    level_dbfs: f32,
    tilt: f32,
    room: Room,
    snr_db: f32,
    noise_colour: f32,
}

const FULL_SCALE: f32 = 32_768.0;
const PEAK: f32 = 32_000.0;

impl Speaker {
    /// Speaker `index` of the corpus with this seed.
    pub fn new(seed: u64, index: usize, sex: Sex) -> Self {
        let rng = &mut generator(seed, &[0, index as u64]);
        let (tract, pitch_hz) = match sex {
            Sex::Female => (between(rng, 1.08, 1.22), between(rng, 165.0, 240.0)),
            Sex::Male => (between(rng, 0.90, 1.06), between(rng, 85.0, 145.0)),
        };
        Self {
            sex,
            tract_hz: (tract * RATE_HZ as f32 / 100.0).round() as u32 * 100,
            manner: Manner {
                stretch: between(rng, 0.92, 1.4),
                pitch_hz,
                pitch_range_hz: pitch_hz * between(rng, 0.06, 0.18),
            },
            level_dbfs: between(rng, -36.0, -18.0),
            tilt: between(rng, -0.35, 0.35),
            room: Room::random(rng),
            snr_db: between(rng, 15.0, 45.0),
            noise_colour: between(rng, 0.0, 0.95),
        }
    }

    /// Says `sentence`; `rng` varies rate, pitch and level a little from one recording to the next, and draws the noise.
    pub fn say(&self, voice: &mut Voice, sentence: &Sentence, rng: &mut Rng) -> Speech {
        let tract = self.tract_hz as f32 / RATE_HZ as f32;
        let manner = Manner {
            stretch: self.manner.stretch * tract * between(rng, 0.93, 1.07),
            pitch_hz: self.manner.pitch_hz / tract * between(rng, 0.95, 1.05),
            pitch_range_hz: self.manner.pitch_range_hz / tract,
        };
        let mut speech = voice.speak(sentence, manner);
        warp(&mut speech, self.tract_hz);
        self.record(&mut speech.samples, rng);
        speech
    }

    /// What the microphone makes of it: the room, its tilt, its level, its noise.
    pub(super) fn record(&self, samples: &mut [f32], rng: &mut Rng) {
        self.room.apply(samples);
        tilt(samples, self.tilt);
        set_level(samples, self.level_dbfs + between(rng, -2.0, 2.0));
        noise::add(samples, self.snr_db, self.noise_colour, rng);
    }
}

/// Plays samples that were made at 16 kHz at `rate_hz`, and moves the times along.
fn warp(speech: &mut Speech, rate_hz: u32) {
    let n_before = speech.samples.len();
    speech.samples = play(std::mem::take(&mut speech.samples), rate_hz, RATE_HZ);
    let n_after = speech.samples.len();
    let moved = |at: usize| {
        let at = (at as u64 * u64::from(RATE_HZ) + u64::from(rate_hz) / 2) / u64::from(rate_hz);
        (at as usize).min(n_after)
    };
    for span in speech.phones.iter_mut().chain(&mut speech.words) {
        let Span { start, end, .. } = span;
        (*start, *end) = (moved(*start), if *end == n_before { n_after } else { moved(*end) });
    }
}

/// A first-order tilt of the spectrum: above 0 the highs are raised, below 0 the lows.
fn tilt(samples: &mut [f32], amount: f32) {
    let mut previous = 0.0;
    for sample in samples {
        let input = *sample;
        *sample = input - amount * previous;
        previous = input;
    }
}

fn set_level(samples: &mut [f32], level_dbfs: f32) {
    let rms = noise::power(samples).sqrt();
    let peak = samples.iter().fold(0.0f32, |peak, v| peak.max(v.abs()));
    if rms == 0.0 {
        return;
    }
    let gain = (FULL_SCALE * 10f32.powf(level_dbfs / 20.0) / rms).min(PEAK / peak);
    for sample in samples {
        *sample *= gain;
    }
}

/// A small room: four combs in parallel and two all-pass filters in series, the classical artificial reverberation.
///
/// The direct sound stays where it was, so that times keep their meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// How long echoes take to fall by 60 dB.
    decay_s: f32,
    /// Their level relative to the direct sound, as a factor.
    wetness: f32,
    comb_delays: [usize; 4],
}

const ALL_PASS_DELAYS: [usize; 2] = [80, 27];
const ALL_PASS_GAIN: f32 = 0.7;

impl Room {
    /// Any room between a cupboard and an office.
    pub fn random(rng: &mut Rng) -> Self {
        let scale = between(rng, 0.4, 1.2);
        let delay = |ms: f32, rng: &mut Rng| (ms * scale * between(rng, 0.95, 1.05) * RATE_HZ as f32 / 1000.0) as usize;
        Self {
            decay_s: between(rng, 0.08, 0.4),
            wetness: 10f32.powf(between(rng, -32.0, -12.0) / 20.0),
            comb_delays: [delay(29.7, rng), delay(37.1, rng), delay(41.1, rng), delay(43.7, rng)],
        }
    }

    /// Adds the echoes; the ones after the last sample are cut off.
    pub fn apply(&self, samples: &mut [f32]) {
        let mut wet = vec![0.0; samples.len()];
        for delay in self.comb_delays {
            add_comb(samples, &mut wet, delay, self.comb_gain(delay));
        }
        for delay in ALL_PASS_DELAYS {
            all_pass(&mut wet, delay);
        }
        for (sample, wet) in samples.iter_mut().zip(wet) {
            *sample += self.wetness * wet;
        }
    }

    fn comb_gain(&self, delay: usize) -> f32 {
        10f32.powf(-3.0 * delay as f32 / RATE_HZ as f32 / self.decay_s)
    }
}

/// Adds to `out` the sum of all echoes: `y[n] = x[n - d] + g y[n - d]`.
fn add_comb(samples: &[f32], out: &mut [f32], delay: usize, gain: f32) {
    let mut line = vec![0.0; delay.max(1)];
    for (chunk, out) in samples.chunks(delay.max(1)).zip(out.chunks_mut(delay.max(1))) {
        for ((sample, out), echo) in chunk.iter().zip(out).zip(&mut line) {
            *out += *echo;
            *echo = sample + gain * *echo;
        }
    }
}

/// `y[n] = x[n - d] + g (y[n - d] - x[n])` in place: smears the echoes without colouring them.
fn all_pass(samples: &mut [f32], delay: usize) {
    let mut line = vec![0.0; delay];
    for chunk in samples.chunks_mut(delay) {
        for (sample, state) in chunk.iter_mut().zip(&mut line) {
            let input = *sample;
            *sample = *state - ALL_PASS_GAIN * input;
            *state = input + ALL_PASS_GAIN * *sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet(sex: Sex, index: usize) -> Speaker {
        Speaker { snr_db: 60.0, ..Speaker::new(1, index, sex) }
    }

    /// The period that the vowels of a speaker repeat with, as the median of their autocorrelation peaks.
    fn median_pitch_hz(speech: &Speech) -> f32 {
        let vowels = speech
            .phones
            .iter()
            .filter(|phone| ["aa", "ae", "iy", "ow", "ey", "ay", "ao"].contains(&phone.name.as_str()));
        let mut pitches: Vec<f32> = vowels
            .filter(|vowel| 1200 < vowel.end - vowel.start)
            .map(|vowel| pitch_hz(&speech.samples[vowel.start..vowel.end]))
            .collect();
        pitches.sort_by(f32::total_cmp);
        pitches[pitches.len() / 2]
    }

    fn pitch_hz(samples: &[f32]) -> f32 {
        let correlation = |lag: usize| {
            samples.iter().zip(&samples[lag..]).map(|(a, b)| a * b).sum::<f32>() / (samples.len() - lag) as f32
        };
        let best =
            (RATE_HZ as usize / 320..RATE_HZ as usize / 65).max_by(|a, b| correlation(*a).total_cmp(&correlation(*b)));
        RATE_HZ as f32 / best.unwrap() as f32
    }

    #[test]
    fn pitch_is_the_speakers_whatever_the_vocal_tract() {
        let mut voice = Voice::new();
        for (sex, index) in [(Sex::Male, 0), (Sex::Female, 1), (Sex::Male, 2), (Sex::Female, 3)] {
            let speaker = quiet(sex, index);
            let sentence = Sentence { spoken: "they know the day they saw a large bean, far away in may.".to_owned() };
            let found_hz = median_pitch_hz(&speaker.say(&mut voice, &sentence, &mut Rng::with_seed(1)));
            // The melody moves by up to a fifth around the mean, and a recording by another twentieth.
            assert!((found_hz / speaker.manner.pitch_hz - 1.0).abs() < 0.25, "{found_hz} {}", speaker.manner.pitch_hz);
        }
    }

    #[test]
    fn the_length_does_not_depend_on_the_vocal_tract() {
        let mut voice = Voice::new();
        let [short, long] = [14_400, 19_500].map(|tract_hz| {
            let speaker = Speaker { tract_hz, ..quiet(Sex::Male, 0) };
            speaker.say(&mut voice, &Sentence::shared(0), &mut Rng::with_seed(1))
        });
        let ratio = long.samples.len() as f32 / short.samples.len() as f32;
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
        for (a, b) in short.words.iter().zip(&long.words) {
            assert!(a.start.abs_diff(b.start) < 400, "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_level_is_set_and_never_clips() {
        for level_dbfs in [-40.0, -20.0, 0.0] {
            let mut samples: Vec<f32> = (0..1000).map(|i| if i % 100 == 0 { 100.0 } else { 1.0 }).collect();
            set_level(&mut samples, level_dbfs);
            let rms_dbfs = 10.0 * (noise::power(&samples) / FULL_SCALE / FULL_SCALE).log10();
            let peak = samples.iter().fold(0.0f32, |peak, v| peak.max(*v));
            assert!(peak <= PEAK * 1.0001);
            assert!(peak > PEAK * 0.99 || (rms_dbfs - level_dbfs).abs() < 0.01, "{rms_dbfs} {level_dbfs}");
        }
    }

    fn impulse_response(room: &Room) -> Vec<f32> {
        let mut samples = vec![0.0; RATE_HZ as usize];
        samples[0] = 1.0;
        room.apply(&mut samples);
        samples
    }

    #[test]
    fn the_direct_sound_comes_first_and_loudest() {
        for seed in 0..20 {
            let response = impulse_response(&Room::random(&mut Rng::with_seed(seed)));
            assert_eq!(response[0], 1.0);
            assert!(response[1..].iter().all(|v| v.abs() < 0.5));
        }
    }

    #[test]
    fn echoes_fall_by_60_db_in_the_decay_time() {
        for seed in 0..20 {
            let room = Room::random(&mut Rng::with_seed(seed));
            let response = impulse_response(&room);
            let energy = |from: f32| response[(from * RATE_HZ as f32) as usize..].iter().map(|v| v * v).sum::<f32>();
            let fall_db = 10.0 * (energy(0.03) / energy(0.03 + room.decay_s / 2.0)).log10();
            // Echoes of four combs come in steps of up to 50 ms, so the slope is only roughly 30 dB over half the time.
            assert!((15.0..60.0).contains(&fall_db), "{seed}: {fall_db}");
        }
    }
}
