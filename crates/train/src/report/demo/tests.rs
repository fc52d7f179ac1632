//! The page of the demo as a reader gets it.

use srf_text::labels::Units;

use super::*;
use crate::analyze::tests::{analysis, routes};
use crate::evaluate::scoring::{Answer, Measure, Recognized, Scoring, score};

fn answer(id: &str, speaker: &str, reference: &str, heard: &str) -> Answer {
    let recognized =
        heard.split_whitespace().map(|text| Recognized { text: text.to_owned(), confidence: None }).collect();
    Answer { id: id.to_owned(), speaker: speaker.to_owned(), reference: reference.to_owned(), recognized }
}

fn evaluation() -> Evaluation {
    let answers = vec![
        answer("f1-1", "f1", "a b", "a <b>"),
        answer("f1-2", "f1", "a b", "a b"),
        answer("m1-1", "m1", "b c", "b"),
        answer("m2-1", "m2", "c", "c"),
    ];
    let scoring = Scoring { n_replications: 100, seed: 1, mapping: None };
    let rates = vec![score(&answers, Measure::Phones, "", scoring).unwrap()];
    Evaluation {
        units: Units::Phones,
        rates,
        answers,
        transcripts: Vec::new(),
        left_out: Vec::new(),
        audio_s: 10.0,
        recognition_s: 0.5,
        n_threads: 1,
    }
}

#[test]
fn the_first_utterance_of_each_speaker_is_shown_however_it_went() {
    assert_eq!(choose(&evaluation(), 2), [0, 2]);
    assert_eq!(choose(&evaluation(), 9), [0, 2, 3]);
}

#[test]
fn the_page_has_result_recordings_routing_and_confusions_and_loads_nothing() {
    let sound = Samples { rate_hz: 16_000, values: vec![0.0; 160] };
    let examples = [Example { answer: 0, sentence: "fish & chips".to_owned(), sound }];
    let analysis =
        analysis(vec![routes(&["a", "b"], &[1.0, 0.5, 0.5, 0.2, 1.3, 0.5], &[0.8, 0.1, 0.1, 0.1, 0.8, 0.1])]);
    let (history, evaluation) = (History::default(), evaluation());
    let html = page(&Demo {
        title: "demo",
        history: &history,
        evaluation: &evaluation,
        examples: &examples,
        routing: Some(&analysis),
    })
    .html();
    for expected in [
        "28.57 %",
        "2 of 4",
        "fish &amp; chips",
        "&lt;b&gt;",
        "<h2>Routing of u1</h2>",
        "class=\"confusions\"",
        "data:audio/wav;base64,",
    ] {
        assert!(html.contains(expected), "{expected} is missing");
    }
    for attribute in ["src=\"", "href=\""] {
        let loaded = html.split(attribute).skip(1).find(|rest| !rest.starts_with("data:") && !rest.starts_with('#'));
        assert!(loaded.is_none(), "{attribute}: {:?}", loaded.map(|rest| &rest[..40]));
    }
}
