//! Voice activity detection: which parts of a long recording are transcribed.
//!
//! A frame of 10 ms is active if its level is above that of the background by a threshold. The background follows the
//! quietest recent frames: it falls quickly and rises slowly, so that it neither follows speech nor stays below a noise
//! that goes on. Speech begins after enough active frames and ends after enough inactive ones, with some audio kept on
//! both sides, because words begin and end quietly.
//!
//! Decisions follow from the frames alone, so they do not depend on how samples are cut into pieces, and none waits for
//! the end of the recording.

use std::ops::Range;

/// How much louder than the background speech is, and how long it and its pauses are.
///
/// ```
/// use srf::VadConfig;
/// use srf::vad::speech;
///
/// // A second of silence, half a second of a tone, and silence again.
/// let mut samples = vec![0.0; 40_000];
/// for (n, sample) in samples[16_000..24_000].iter_mut().enumerate() {
///     *sample = (n as f32 * 0.3).sin() / 4.0;
/// }
/// let config = VadConfig { pad_s: 0.1, ..VadConfig::default() };
/// assert_eq!(speech(&samples, 16_000, &config), [0.9..1.6]);
///
/// let options = srf::StreamOptions { vad: Some(config), ..Default::default() };
/// # assert!(srf::doc::recognizer().stream(&options).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VadConfig {
    /// Level above the background from which on a frame counts as speech.
    pub threshold_db: f64,
    /// Shorter sounds are ignored, such as clicks.
    pub min_speech_s: f64,
    /// Shorter pauses do not end speech.
    pub min_silence_s: f64,
    /// Audio that is kept before and after speech.
    pub pad_s: f64,
    /// Longer speech ends at its next pause, however short, and at twice this length without one; `None`: never.
    pub max_speech_s: Option<f64>,
}

impl Default for VadConfig {
    fn default() -> Self {
        Self { threshold_db: 10.0, min_speech_s: 0.08, min_silence_s: 0.5, pad_s: 0.3, max_speech_s: None }
    }
}

/// The largest time of a [`VadConfig`], which bounds the memory of a stream.
const MAX_S: f64 = 3600.0;

impl VadConfig {
    /// The value that is not usable, by name, with what is expected.
    pub(crate) fn check(&self) -> Result<(), (&'static str, f64, String)> {
        let &Self { threshold_db, min_speech_s, min_silence_s, pad_s, max_speech_s } = self;
        let values = [
            ("threshold", threshold_db, 0.0..=100.0, "dB"),
            ("minimum of speech", min_speech_s, 0.0..=MAX_S, "s"),
            ("minimum of silence", min_silence_s, 0.0..=MAX_S, "s"),
            ("padding", pad_s, 0.0..=MAX_S, "s"),
            ("maximum of speech", max_speech_s.unwrap_or(1.0), 1.0..=f64::INFINITY, "s"),
        ];
        match values.into_iter().find(|(_, found, range, _)| !range.contains(found)) {
            Some((name, found, range, unit)) => {
                Err((name, found, format!("{} to {} {unit}", range.start(), range.end())))
            }
            None => Ok(()),
        }
    }
}

/// The parts of a recording (samples from -1 to 1) that a stream with this configuration transcribes, in seconds.
pub fn speech(samples: &[f32], rate_hz: u32, config: &VadConfig) -> Vec<Range<f64>> {
    let mut vad = Vad::new(*config);
    let mut parts: Vec<Range<f64>> = Vec::new();
    let (mut n_samples, mut is_open) = (0, false);
    let mut note = |piece: Piece<'_>| {
        let start = n_samples;
        match piece {
            Piece::Silence(n) => n_samples += n,
            Piece::Speech(samples) => n_samples += samples.len(),
            Piece::End => {
                is_open = false;
                return;
            }
        }
        let seconds = |n: usize| n as f64 / f64::from(rate_hz);
        match (piece, parts.last_mut()) {
            (Piece::Speech(_), Some(last)) if is_open => last.end = seconds(n_samples),
            (Piece::Speech(_), _) => {
                is_open = true;
                parts.push(seconds(start)..seconds(n_samples));
            }
            _ => {}
        }
    };
    vad.accept(samples, rate_hz, &mut note);
    vad.flush(&mut note);
    parts
}

/// What follows next in the audio.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    /// So many samples are left out.
    Silence(usize),
    /// These samples are speech, or close to it.
    Speech(&'a [f32]),
    /// Speech has ended.
    End,
}

/// Frames per second.
const FRAMES_PER_S: f64 = 100.0;
/// Levels are not followed below this: digital silence has none.
const MIN_DB: f64 = -75.0;
/// The background is not assumed to be louder than this at first: the recording may begin with speech.
const MAX_START_DB: f64 = -60.0;
/// How much of the way the background goes in one frame to a level below it.
const FALL: f64 = 0.1;
/// How far it rises in one frame below a level above it.
const RISE_DB: f64 = 2.0 / FRAMES_PER_S;
/// Hum and rumble are low: they count less after the difference of neighbouring samples.
const EMPHASIS: f64 = 0.97;
/// Samples that were handed on are removed from the front of the buffer in portions of this size.
const PORTION: usize = 1 << 14;

/// The state of one stream: what is still undecided, and the level of the background.
#[derive(Clone, Debug)]
pub(crate) struct Vad {
    config: VadConfig,
    background_db: Option<f64>,
    /// Whether speech has begun.
    is_speech: bool,
    /// Active frames in a row before speech, inactive ones in it.
    n_in_row: usize,
    /// Frames since speech began.
    n_speech: usize,
    /// The last samples; those before `start` were handed on, those from `judged` on are no whole frame yet.
    samples: Vec<f32>,
    start: usize,
    judged: usize,
}

impl Vad {
    pub(crate) fn new(config: VadConfig) -> Self {
        Self {
            config,
            background_db: None,
            is_speech: false,
            n_in_row: 0,
            n_speech: 0,
            samples: Vec::new(),
            start: 0,
            judged: 0,
        }
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.config);
    }

    /// Accepts samples and hands on what is decided.
    pub(crate) fn accept(&mut self, samples: &[f32], rate_hz: u32, each: &mut impl FnMut(Piece<'_>)) {
        let n_frame = ((f64::from(rate_hz) / FRAMES_PER_S) as usize).max(1);
        self.samples.extend_from_slice(samples);
        while self.judged + n_frame <= self.samples.len() {
            let is_active = self.is_active(n_frame);
            self.judged += n_frame;
            if self.is_speech {
                self.go_on(is_active, n_frame, each);
            } else {
                self.wait(is_active, n_frame, each);
            }
        }
        if PORTION < self.start {
            self.samples.drain(..self.start);
            self.judged -= self.start;
            self.start = 0;
        }
    }

    /// Decides about all samples, because no others follow, or not soon.
    pub(crate) fn flush(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        self.judged = self.samples.len();
        if self.is_speech && self.n_in_row <= frames(self.config.pad_s) {
            self.hand_on(each);
        } else if self.is_speech {
            each(Piece::End);
        }
        self.leave_out(self.judged, each);
        (self.is_speech, self.n_in_row) = (false, 0);
    }

    /// The next frame before speech.
    fn wait(&mut self, is_active: bool, n_frame: usize, each: &mut impl FnMut(Piece<'_>)) {
        self.n_in_row = if is_active { self.n_in_row + 1 } else { 0 };
        if is_active && frames(self.config.min_speech_s) <= self.n_in_row {
            (self.is_speech, self.n_in_row, self.n_speech) = (true, 0, 0);
            return self.hand_on(each);
        }
        let n_kept = (frames(self.config.pad_s) + self.n_in_row) * n_frame;
        self.leave_out(self.judged.saturating_sub(n_kept), each);
    }

    /// The next frame of speech.
    fn go_on(&mut self, is_active: bool, n_frame: usize, each: &mut impl FnMut(Piece<'_>)) {
        let n_pad = frames(self.config.pad_s);
        self.n_speech += 1;
        self.n_in_row = if is_active { 0 } else { self.n_in_row + 1 };
        if self.n_in_row <= n_pad {
            self.hand_on(each);
        }
        let is_pause = !is_active && frames(self.config.min_silence_s).max(n_pad) <= self.n_in_row;
        let is_long = self.config.max_speech_s.is_some_and(|max_s| {
            let max = frames(max_s);
            max <= self.n_speech && !is_active || max.saturating_mul(2) <= self.n_speech
        });
        if is_pause || is_long {
            (self.is_speech, self.n_in_row) = (false, 0);
            each(Piece::End);
            self.leave_out(self.judged.saturating_sub(n_pad * n_frame), each);
        }
    }

    /// Hands on all that was judged.
    fn hand_on(&mut self, each: &mut impl FnMut(Piece<'_>)) {
        let from = std::mem::replace(&mut self.start, self.judged);
        if from < self.judged {
            each(Piece::Speech(&self.samples[from..self.judged]));
        }
    }

    /// Leaves out what was not handed on before sample `end` of the buffer.
    fn leave_out(&mut self, end: usize, each: &mut impl FnMut(Piece<'_>)) {
        let n_samples = end.saturating_sub(self.start);
        self.start += n_samples;
        if 0 < n_samples {
            each(Piece::Silence(n_samples));
        }
    }

    /// Whether the frame that begins at `judged` is louder than the background, which it changes.
    fn is_active(&mut self, n_frame: usize) -> bool {
        let pairs = self.samples[self.judged..][..n_frame].windows(2);
        // Inside the frame alone: a loud sample before it must not make it active.
        let energy: f64 = pairs.map(|pair| (f64::from(pair[1]) - EMPHASIS * f64::from(pair[0])).powi(2)).sum();
        let level_db = (10.0 * (energy / n_frame as f64).log10()).max(MIN_DB);
        let background_db = self.background_db.unwrap_or(level_db.min(MAX_START_DB));
        let fallen_db = background_db + FALL * (level_db - background_db);
        self.background_db = Some(if level_db < background_db { fallen_db } else { background_db + RISE_DB });
        background_db + self.config.threshold_db <= level_db
    }
}

fn frames(seconds: f64) -> usize {
    (seconds * FRAMES_PER_S).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE_HZ: u32 = 8_000;

    /// Noise of this level (of its samples, from -1 to 1) for so many seconds.
    fn noise(level: f32, seconds: f64) -> Vec<f32> {
        let mut random = srf_model::random::Random::new(7, "noise");
        (0..(seconds * f64::from(RATE_HZ)) as usize).map(|_| level * (2.0 * random.uniform() as f32 - 1.0)).collect()
    }

    fn parts(sound: &[(f32, f64)], config: VadConfig) -> Vec<Range<f64>> {
        let samples: Vec<f32> = sound.iter().flat_map(|(level, seconds)| noise(*level, *seconds)).collect();
        speech(&samples, RATE_HZ, &config)
    }

    fn config() -> VadConfig {
        VadConfig { pad_s: 0.1, ..VadConfig::default() }
    }

    #[test]
    fn pauses_split_speech_only_if_they_are_long_and_clicks_are_not_speech() {
        let (quiet, loud) = (0.001, 0.2);
        let sound = [(quiet, 2.0), (loud, 1.0), (quiet, 0.4), (loud, 0.5), (quiet, 1.0), (loud, 0.05), (quiet, 1.0)];
        assert_eq!(parts(&sound, config()), [1.9..4.0]);
        let eager = VadConfig { min_silence_s: 0.3, ..config() };
        assert_eq!(parts(&sound, eager), [1.9..3.1, 3.3..4.0]);
        let sensitive = VadConfig { min_speech_s: 0.04, ..config() };
        assert_eq!(parts(&sound, sensitive), [1.9..4.0, 4.8..5.05]);
    }

    #[test]
    fn a_recording_may_begin_and_end_with_speech() {
        assert_eq!(parts(&[(0.2, 1.0), (0.001, 2.0), (0.2, 1.0)], config()), [0.0..1.1, 2.9..4.0]);
        assert_eq!(parts(&[(0.0, 3.0)], config()), []);
        assert_eq!(parts(&[], config()), []);
    }

    #[test]
    fn steady_noise_becomes_background_and_speech_above_it_is_found() {
        let found = parts(&[(0.02, 60.0), (0.3, 2.0), (0.02, 10.0)], config());
        let last = found.last().unwrap();
        assert!((last.start - 59.9).abs() < 0.05 && (last.end - 62.1).abs() < 0.05, "{found:?}");
        assert!(found[..found.len() - 1].iter().all(|part| part.end < 15.0), "{found:?}");
    }

    #[test]
    fn long_speech_ends_at_a_short_pause_or_at_twice_its_length() {
        let sound = [(0.001, 1.0), (0.2, 3.0), (0.001, 0.05), (0.2, 9.0)];
        let limited = VadConfig { max_speech_s: Some(2.0), ..config() };
        let ends: Vec<f64> = parts(&sound, limited).iter().map(|part| part.end).collect();
        assert!((ends[0] - 4.0).abs() < 0.1 && (ends[1] - 8.1).abs() < 0.2 && ends.len() == 4, "{ends:?}");
        assert_eq!(parts(&sound, config()).len(), 1);
    }

    #[test]
    fn no_cut_changes_a_decision() {
        let sound = [(0.001, 1.0), (0.2, 0.7), (0.002, 0.6), (0.1, 0.3), (0.001, 0.2), (0.3, 0.9), (0.001, 1.5)];
        let samples: Vec<f32> = sound.iter().flat_map(|(level, seconds)| noise(*level, *seconds)).collect();
        let pieces = |cut: usize| {
            let (mut speech, mut ends) = (Vec::new(), Vec::new());
            let mut n_left_out = 0;
            let mut vad = Vad::new(config());
            let mut each = |piece: Piece<'_>| match piece {
                Piece::Silence(n) => n_left_out += n,
                Piece::Speech(samples) => speech.extend_from_slice(samples),
                Piece::End => ends.push((speech.len(), n_left_out)),
            };
            for chunk in samples.chunks(cut) {
                vad.accept(chunk, RATE_HZ, &mut each);
            }
            vad.flush(&mut each);
            assert_eq!(speech.len() + n_left_out, samples.len());
            (speech, ends, n_left_out)
        };
        let whole = pieces(samples.len());
        assert!(!whole.1.is_empty() && 0 < whole.2);
        for cut in [1, 7, 79, 80, 81, 1000, 20_000] {
            assert!(pieces(cut) == whole, "{cut}");
        }
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_name() {
        assert!(config().check().is_ok());
        for (bad, name) in [
            (VadConfig { threshold_db: f64::NAN, ..config() }, "threshold"),
            (VadConfig { pad_s: -1.0, ..config() }, "padding"),
            (VadConfig { max_speech_s: Some(0.0), ..config() }, "maximum of speech"),
        ] {
            assert_eq!(bad.check().unwrap_err().0, name);
        }
    }
}
