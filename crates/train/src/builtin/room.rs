//! A small room around a speaker: dry samples in, the same samples with the room's echoes out.
//!
//! Four combs in parallel and two all-pass filters in series: the classical artificial reverberation.
//! The direct sound stays where it was, so times keep their meaning.

use fastrand::Rng;

use super::voice::RATE_HZ;
use crate::seed::between;

/// What a room does to sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// How long echoes take to fall by 60 dB.
    decay_s: f32,
    /// How loud they are beside the direct sound, as a factor.
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
