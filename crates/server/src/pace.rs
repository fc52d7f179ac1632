//! Who is slow when a stream falls behind real time: the server or its client.

use std::time::{Duration, Instant};

/// Streams are judged once in this time.
const SPAN: Duration = Duration::from_secs(5);
/// A stream that gets this share of the audio of its time is in time.
const IN_TIME: f64 = 0.9;
/// A client that waits for the server for this share of the time would have sent more.
const ALWAYS_WAITING: f64 = 0.8;

/// Why a stream got less audio than time has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    /// Audio waited for the server nearly all of the time.
    Server,
    /// The server waited for audio.
    Client,
}

impl Slow {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// The audio and the work of a stream since the last judgement.
pub(crate) struct Pace {
    since: Instant,
    audio: Duration,
    /// Time that the client's audio was in the hands of the server: waiting for a core, or being recognised.
    served: Duration,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, audio: Duration::ZERO, served: Duration::ZERO }
    }

    /// Adds a piece of audio that took the server until `now`; says who is slow if a span is over and somebody is.
    pub(crate) fn add(&mut self, audio: Duration, served: Duration, now: Instant) -> Option<Slow> {
        self.audio += audio;
        self.served += served;
        let passed = now.duration_since(self.since);
        if passed < SPAN {
            return None;
        }
        let Self { audio, served, .. } = std::mem::replace(self, Self::new(now));
        if audio >= passed.mul_f64(IN_TIME) {
            None
        } else if served >= passed.mul_f64(ALWAYS_WAITING) {
            Some(Slow::Server)
        } else {
            Some(Slow::Client)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a stream with a second of audio every `every_ms`, which takes the server `served_ms`.
    fn judged(every_ms: u64, served_ms: u64) -> Vec<Slow> {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        let mut said = Vec::new();
        for _ in 0..20 {
            now += Duration::from_millis(every_ms);
            said.extend(pace.add(Duration::from_secs(1), Duration::from_millis(served_ms), now));
        }
        said
    }

    #[test]
    fn a_server_that_is_slow_is_not_taken_for_a_client_that_is() {
        // In real time, and as fast as the server can.
        assert_eq!(judged(1000, 100), []);
        assert_eq!(judged(50, 50), []);
        // A client that sends half of the time; a server that takes two seconds for one.
        let slow_client = judged(2000, 100);
        assert!(slow_client.len() >= 5 && slow_client.iter().all(|slow| *slow == Slow::Client), "{slow_client:?}");
        let slow_server = judged(2000, 1990);
        assert!(slow_server.len() >= 5 && slow_server.iter().all(|slow| *slow == Slow::Server), "{slow_server:?}");
    }
}
