//! The page of a run as a reader sees it.

use std::fs;

use super::*;
use crate::events::{
    EndReason, EpochEnd, ErrorCounts, Event, Example, Examples, Health, LayerHealth, Measured, Record, Resume, RunEnd,
    RunStart, SkippedBatch, Speed, Steps,
};

fn at(step: u64, event: Event) -> Record {
    Record { time_s: 0.0, step, event }
}

fn start() -> RunStart {
    RunStart {
        recipe_name: "srf-7l <small>".to_owned(),
        recipe: "[model]\narchitecture = \"srf\"\n".to_owned(),
        command: ["srf", "train", "srf-7l.toml"].map(str::to_owned).to_vec(),
        seed: 42,
        architecture: "srf".to_owned(),
        n_parameters: 1_968_922,
        data_fingerprint: "0123abcd".to_owned(),
        n_epochs: 10,
        ..RunStart::default()
    }
}

fn epoch(epoch: usize, loss: f64, substitutions: usize) -> EpochEnd {
    let errors = ErrorCounts { measure: "PER".to_owned(), n_reference: 200, substitutions, ..ErrorCounts::default() };
    EpochEnd {
        epoch,
        train: Measured { n_utterances: 10, loss, ..Measured::default() },
        validation: Some(Measured { n_utterances: 5, loss: loss + 1.0, errors: Some(errors), ..Measured::default() }),
        learning_rate: 1e-3,
        speed: Speed { n_frames: 20_000, duration_s: 2.0, wait_s: 0.1 },
        ..EpochEnd::default()
    }
}

fn health(epoch: usize, n_dead: usize) -> Health {
    let layer = |name: &str, n_dead, agreement| LayerHealth {
        name: name.to_owned(),
        entropy: 0.8,
        n_dead,
        n_capsules: 60,
        agreement,
    };
    Health { epoch, layers: vec![layer("caps1", 0, None), layer("caps2", n_dead, None), layer("caps3", 50, Some(0.4))] }
}

fn history(n_dead: usize) -> History {
    let mut history = History::default();
    history.add(at(0, Event::Start(Box::new(start()))));
    for number in 1..=3 {
        let step = number as u64 * 10;
        history.add(at(step, Event::Steps(Steps { epoch: number, loss: 3.0, ..Steps::default() })));
        history.add(at(step, Event::Epoch(Box::new(epoch(number, 9.0 / number as f64, [80, 20, 30][number - 1])))));
        history.add(at(step, Event::Health(health(number, n_dead))));
        let (id, reference) = (format!("utt<{number}>"), "sil dh ah sil".to_owned());
        let examples = vec![Example { id, reference, hypothesis: "sil d ah".to_owned() }];
        history.add(at(step, Event::Examples(Examples { epoch: number, examples })));
    }
    history
}

#[test]
fn the_page_shows_what_happened() {
    let html = page(&history(0)).html();
    let expected = [
        "<h1>srf-7l &lt;small&gt;</h1>",
        "under way",
        "3 of 10",
        "best validation PER, epoch 2",
        "10.00 %",
        "15.00 %",
        "1.97M",
        "No layer has collapsed",
        "Routing entropy",
        "caps2",
        "utt&lt;3&gt; \u{2013} 2 of 4 wrong",
        "<span class=\"s\">dh<i>d</i></span>",
        "<span class=\"d\">sil</span>",
        "architecture = &quot;srf&quot;",
        "0123abcd",
        "Every batch and every utterance was used",
    ];
    for text in expected {
        assert!(html.contains(text), "`{text}` is not in {html}");
    }
    assert!(!html.contains("utt&lt;1&gt;"), "examples of an epoch long past");
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let html = page(&history(0)).html();
    for outside in ["http://", "https://", "src=", "@import", "url(", "<link"] {
        assert!(!html.contains(outside), "`{outside}`");
    }
}

/// Every element that is opened is closed, in order.
#[test]
fn tags_are_balanced() {
    let html = page(&history(20)).html();
    let without_script = format!("{}{}", html.split("<script>").next().unwrap(), "</body></html>");
    let mut open = Vec::new();
    for tag in without_script.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.split([' ', '/']).find(|part| !part.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
        } else if !tag.ends_with('/') && !["!DOCTYPE", "meta"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn collapse_is_reported_by_layer() {
    let html = page(&history(20)).html();
    assert!(html.contains("caps2: 20 of 60 capsules are dead"));
    assert!(!html.contains("caps1: ") && !html.contains("caps3: "));
}

#[test]
fn equal_couplings_are_reported_unless_the_network_cannot_do_otherwise() {
    let html = |routing: &str, entropy: f64| {
        let recipe = format!("[model]\narchitecture = \"srf\"\nclasses = 63\nrouting = \"{routing}\"\n");
        let mut history = History::default();
        history.add(at(0, Event::Start(Box::new(RunStart { recipe, ..start() }))));
        for epoch in 1..=2 {
            let mut health = health(epoch, 0);
            health.layers[1].entropy = entropy;
            history.add(at(epoch as u64, Event::Health(health)));
        }
        page(&history).html()
    };
    assert!(html("sdr", 1.0).contains("caps2: couplings are equal (entropy 1.000000)"));
    assert!(html("sdr", 0.9995).contains("No layer has collapsed"), "the paper's own networks");
    assert!(html("dr", 1.0).contains("No layer has collapsed"));
}

#[test]
fn what_was_left_out_is_told() {
    let mut history = history(0);
    let utterances = vec!["a1".to_owned(), "a2".to_owned()];
    let batch = SkippedBatch { epoch: 3, batch: 7, reason: "loss is not a number".to_owned(), utterances };
    history.add(at(31, Event::SkippedBatch(batch)));
    let html = page(&history).html();
    assert!(html.contains("<td>batch 7 of epoch 3</td><td>loss is not a number</td><td>a1 a2</td>"));
}

#[test]
fn the_state_of_a_run_is_its_last_one() {
    let mut history = history(0);
    let end = |reason| RunEnd { reason, remark: "disk <full>".to_owned(), ..RunEnd::default() };
    history.add(at(30, Event::End(end(EndReason::Failed))));
    assert!(page(&history).html().contains("<span class=\"alarm\">failed</span>: disk &lt;full&gt;"));
    history.add(at(30, Event::Resume(Resume::default())));
    let html = page(&history).html();
    assert!(html.contains("under way; resumed once") && html.contains("location.reload()"), "it refreshes itself");
    history.add(at(30, Event::End(end(EndReason::Completed))));
    let html = page(&history).html();
    assert!(html.contains("completed</span>; resumed once") && !html.contains("location.reload()"));
}

#[test]
fn a_run_without_an_epoch_or_with_nothing_but_bad_numbers_has_a_page() {
    let mut history = History::default();
    history.add(at(0, Event::Start(Box::new(start()))));
    assert!(page(&history).html().contains("No epoch is complete yet"));
    history.add(at(1, Event::Steps(Steps { loss: f64::NAN, gradient_norm: f64::INFINITY, ..Steps::default() })));
    history.add(at(1, Event::Epoch(Box::new(epoch(1, f64::NAN, 0)))));
    let html = page(&history).html();
    assert!(html.contains("not a number") && !html.contains("NaN"));
}

#[test]
fn the_page_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = log::Log::open(&dir.path().join(log::FILE_NAME)).unwrap();
    history(0).records.iter().for_each(|record| log.append(record).unwrap());
    write(dir.path()).unwrap();
    let written = fs::read_to_string(dir.path().join(FILE_NAME)).unwrap();
    assert_eq!(written, page(&history(0)).html());
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
