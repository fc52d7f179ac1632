//! Networks that need the whole utterance go through the same engine, and say that they cannot stream.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod tiny;

use std::path::Path;
use std::sync::Arc;

use srf::directory::{ModelParts, read, write};
use srf::{AcceptError, Recognizer, StreamOptions};
use srf_model::config::{Cmvn, ModelConfig};
use srf_model::params::{Layout, Params};

/// The tiny model with another network inside.
fn parts(keys: &str) -> ModelParts {
    let parts = tiny::letters(Cmvn::Online);
    let text = format!("features = {}\nclasses = {}\n{keys}", parts.features.n_features(), parts.labels.n_classes());
    let model = ModelConfig::parse(&text, Path::new("test")).unwrap();
    let mut values = Params::<f32>::initialize(Arc::new(Layout::new(&model)), 1).values;
    values.iter_mut().for_each(|value| *value *= 1.5);
    ModelParts { model, values, ..parts }
}

fn backward() -> ModelParts {
    parts("architecture = \"lstm\"\nlayers = 1\ncells = 6\ndirections = \"both\"")
}

#[test]
fn both_directions_answer_at_the_end_and_the_same_in_any_pieces() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &backward()).unwrap();
    assert_eq!(read(dir.path()).unwrap(), backward());
    let recognizer = Recognizer::open(dir.path()).unwrap();
    assert!(!recognizer.can_stream());
    assert_eq!(recognizer.timing().algorithmic_ms(), None);
    let samples = tiny::sound(1, 40_000);
    let options = StreamOptions { has_evidence: true, ..StreamOptions::default() };
    let mut stream = recognizer.stream(&options).unwrap();
    let mut heard = [1, 777, 40_000].map(|size| {
        for piece in samples.chunks(size) {
            stream.accept(piece, 16_000).unwrap();
            assert_eq!(stream.partial(), None);
        }
        stream.finish()
    });
    for token in heard.iter_mut().flatten().flat_map(|heard| &mut heard.tokens) {
        let delay = token.delay.take().unwrap();
        // All that was waited for is the end: 2.5 s from the start.
        let known_s = token.start_s + delay.algorithmic_ms / 1000.0;
        assert!((2.4..2.6).contains(&known_s) && delay.buffering_ms == 0.0, "{token:?} {delay:?}");
        assert_eq!(token.evidence, None);
    }
    assert!(!heard[0].is_empty());
    assert_eq!(heard[0], heard[1]);
    assert_eq!(heard[0], heard[2]);
}

#[test]
fn an_utterance_without_end_is_refused_before_memory_is_gone() {
    let recognizer = Recognizer::from_parts(backward()).unwrap();
    let mut stream = recognizer.stream(&StreamOptions::default()).unwrap();
    let minute = vec![0.0; 60 * 8000];
    let accepted = (0..6).take_while(|_| stream.accept(&minute, 8000).is_ok()).count();
    assert_eq!(accepted, 5);
    assert_eq!(stream.accept(&minute, 8000), Err(AcceptError::TooLong { limit_s: 300.0 }));
    stream.reset();
    stream.accept(&minute, 8000).unwrap();
}
