//! Every wire parser on many damaged messages: no panic, no growth.
//!
//! Only this test is in the process, so that its memory can be looked at.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use srf_server::wire::Dialect;

/// Messages per dialect, unless `SRF_WIRE_MESSAGES` says otherwise.
const N_MESSAGES: usize = 1_000_000;

/// Bytes that mean something to one of the parsers.
const MARKS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b"--b",
    b"--b--",
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"0",
    b"&",
    b"=",
    b"%00",
    b"%",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"\x00",
    b"9223372036854775808",
    b"name=\"file\"",
    b"\"type\"",
];

/// Valid messages, from which the others are made.
fn seeds(dialect: Dialect) -> Vec<Vec<u8>> {
    if dialect == Dialect::Sherpa {
        let offline = [16_000_i32, 8, 0, 0].map(i32::to_le_bytes).concat();
        return vec![offline, [0.5_f32, -0.25, 0.0, 1.0].map(f32::to_le_bytes).concat()];
    }
    let texts: &[&str] = match dialect {
        Dialect::Vosk => &[
            r#"{"config": {"sample_rate": 8000, "phrase_list": ["one two", "[unk]"], "words": true, "max_alternatives": 3}}"#,
            r#"{"config": {"model": "en", "hotwords": ["a b:2"], "endpoint_silence": 0.5, "rule1_min_trailing_silence": 2}}"#,
            r#"{"eof" : 1}"#,
            r#"{"reset" : 1}"#,
        ],
        Dialect::Sherpa => &[],
        Dialect::Deepgram => &[r#"{"type": "KeepAlive"}"#, r#"{"type": "Finalize"}"#, r#"{"type": "CloseStream"}"#],
        Dialect::OpenAi => &[
            "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\ncontent-type: audio/wav\r\n\r\nRIFF\r\n--b--\r\n",
        ],
        Dialect::Realtime => &[
            r#"{"type": "session.update", "session": {"audio": {"input": {"format": {"rate": 16000}, "turn_detection": {"silence_duration_ms": 500}}}}}"#,
            r#"{"type": "input_audio_buffer.append", "audio": "AAAAAA=="}"#,
            r#"{"type": "input_audio_buffer.commit"}"#,
        ],
        Dialect::Page => &[r#"{"rate": 16000, "model": "en", "key": "k", "routing": true, "output": "phones"}"#],
        Dialect::Wyoming => &[
            "{\"type\": \"transcribe\", \"data\": {\"name\": \"en\", \"n_best\": 2}}\n",
            "{\"type\": \"audio-chunk\", \"data\": {\"rate\": 16000, \"width\": 2, \"channels\": 1}, \"payload_length\": 4}\nabcd",
            "{\"type\": \"ping\", \"data_length\": 2}\n{}",
        ],
        Dialect::Query => &[
            "encoding=mulaw&sample_rate=8000&interim_results=true&endpointing=300&keywords=a:2&keywords=b",
            "n_best=3&phrases=one,two&rule3_min_utterance_length=20&end_of_sentence=false&partials=true&output=words",
        ],
    };
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Numbers from a seed: xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Changes a few places of a message: bytes, parts left out, repeated, or replaced by something that means something.
fn damage(message: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(4) {
        let (at, end) = (numbers.below(message.len() + 1), numbers.below(message.len() + 1));
        let (at, end) = (at.min(end), at.max(end));
        match numbers.below(5) {
            0 if at < message.len() => message[at] = numbers.below(256) as u8,
            1 => drop(message.drain(at..end.min(at + 16))),
            2 => drop(message.splice(at..end.min(at + 4), MARKS[numbers.below(MARKS.len())].iter().copied())),
            3 => {
                let copy = message[at..end].to_vec();
                message.splice(end..end, copy);
            }
            _ => message.truncate(end),
        }
    }
    message.truncate(1 << 14);
}

/// Memory in use, in bytes; `None` where the system does not say.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    text.split(' ').nth(1)?.parse::<usize>().ok().map(|pages| pages * 4096)
}

#[test]
fn damaged_messages_neither_panic_nor_grow() {
    let n_messages = std::env::var("SRF_WIRE_MESSAGES").map_or(N_MESSAGES, |n| n.parse().unwrap());
    for dialect in Dialect::ALL {
        let seeds = seeds(dialect);
        for seed in &seeds {
            assert!(dialect.accepts(seed), "{dialect:?}: {}", String::from_utf8_lossy(seed));
        }
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        let (mut n_accepted, mut before) = (0, None);
        for index in 0..n_messages {
            let mut message = seeds[numbers.below(seeds.len())].clone();
            damage(&mut message, &mut numbers);
            n_accepted += usize::from(dialect.accepts(&message));
            if index == n_messages / 4 {
                before = resident();
            }
        }
        // The damage is neither nothing nor everything.
        assert!((1..n_messages).contains(&n_accepted), "{dialect:?}: {n_accepted} of {n_messages} accepted");
        if let (Some(before), Some(after)) = (before, resident()) {
            assert!(after < before + (16 << 20), "{dialect:?}: from {before} to {after} bytes");
        }
    }
}
