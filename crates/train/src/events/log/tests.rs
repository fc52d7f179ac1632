//! The log under kills: whatever a process leaves behind, the history is that of a run never stopped.

use std::fs;
use std::io::Write as _;

use proptest::prelude::*;

use super::*;
use crate::events::{Resume, Steps};

fn at(step: u64, event: Event) -> Record {
    Record { time_s: 0.5, step, event }
}

fn start() -> Record {
    at(0, Event::Start(Box::new(RunStart { recipe_name: "small".to_owned(), seed: 7, ..RunStart::default() })))
}

fn steps(step: u64) -> Record {
    at(step, Event::Steps(Steps { epoch: 1, n_steps: 1, loss: step as f64, ..Steps::default() }))
}

fn epoch(step: u64, epoch: usize) -> Record {
    at(step, Event::Epoch(Box::new(EpochEnd { epoch, ..EpochEnd::default() })))
}

fn resume(step: u64) -> Record {
    at(step, Event::Resume(Resume::default()))
}

fn written(records: &[Record]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let mut log = Log::open(&path).unwrap();
    records.iter().for_each(|record| log.append(record).unwrap());
    fs::read(&path).unwrap()
}

/// Six epochs of five steps.
fn whole_run() -> Vec<Record> {
    let mut records = vec![start()];
    for number in 1..=6 {
        records.extend((1..=5).map(|k| steps(5 * (number - 1) + k)));
        records.push(epoch(5 * number, number as usize));
    }
    records
}

fn without_resumptions(history: &History) -> Vec<Record> {
    history.records.iter().filter(|r| !matches!(r.event, Event::Resume(_))).cloned().collect()
}

#[test]
fn a_record_is_one_line_that_reads_back_equal() {
    let records = whole_run();
    let bytes = written(&records);
    assert_eq!(bytes.split_inclusive(|b| *b == b'\n').count(), records.len());
    let history = History::parse(&bytes);
    assert_eq!(history, History { records, n_unreadable: 0, n_superseded: 0 });
}

#[test]
fn the_kind_of_an_event_stands_beside_its_fields() {
    let line = String::from_utf8(written(&[steps(3)])).unwrap();
    assert!(line.starts_with(r#"{"time_s":0.5,"step":3,"event":"steps","epoch":1,"n_steps":1,"loss":3.0,"#), "{line}");
}

#[test]
fn a_loss_that_is_no_number_survives_the_file() {
    let record = at(1, Event::Steps(Steps { loss: f64::INFINITY, ..Steps::default() }));
    let history = History::parse(&written(&[start(), record]));
    let Event::Steps(steps) = &history.records[1].event else { panic!("{history:?}") };
    assert!(steps.loss.is_nan());
}

#[test]
fn a_torn_last_line_is_dropped_and_cut_off_before_the_next() {
    let bytes = written(&[start(), steps(1), steps(2)]);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let last_line = bytes[..bytes.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    for n_kept in last_line..bytes.len() {
        fs::write(&path, &bytes[..n_kept]).unwrap();
        assert_eq!(History::load(&path).unwrap().records[..2], [start(), steps(1)]);
        Log::open(&path).unwrap().append(&steps(3)).unwrap();
        let history = History::load(&path).unwrap();
        assert_eq!(history.n_unreadable, 0);
        assert_eq!(history.records, [start(), steps(1), steps(3)]);
    }
}

#[test]
fn a_torn_line_longer_than_a_block_is_cut_off_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let mut bytes = written(&[start()]);
    bytes.extend(vec![b'x'; 200_000]);
    fs::write(&path, &bytes).unwrap();
    Log::open(&path).unwrap().append(&steps(1)).unwrap();
    assert_eq!(History::load(&path).unwrap().records, [start(), steps(1)]);
}

#[test]
fn what_came_after_the_checkpoint_did_not_happen() {
    let mut records = vec![start(), steps(1), steps(2), epoch(2, 1), steps(3), steps(4)];
    records.extend([resume(2), steps(3)]);
    let history = History::parse(&written(&records));
    assert_eq!(history.records, [start(), steps(1), steps(2), epoch(2, 1), resume(2), steps(3)]);
    assert_eq!((history.n_superseded, history.n_resumptions()), (2, 1));
}

#[test]
fn the_end_of_an_epoch_told_twice_counts_once() {
    let records = [start(), steps(1), epoch(1, 1), resume(1), epoch(1, 1), steps(2)];
    let history = History::parse(&written(&records));
    assert_eq!(history.epochs().count(), 1);
}

#[test]
fn a_run_that_was_stopped_and_goes_on_has_not_ended() {
    let stop = at(2, Event::End(RunEnd { reason: EndReason::Interrupted, ..RunEnd::default() }));
    let mut history = History::parse(&written(&[start(), steps(1), steps(2), stop]));
    assert_eq!(history.end().unwrap().reason, EndReason::Interrupted);
    assert!(!history.is_finished());
    history.add(resume(2));
    assert_eq!(history.end(), None);
    history.add(at(2, Event::End(RunEnd::default())));
    assert!(history.is_finished());
}

#[test]
fn a_new_start_forgets_the_run_before_it() {
    let history = History::parse(&written(&[start(), steps(1), start(), steps(2)]));
    assert_eq!(history.records, [start(), steps(2)]);
}

#[test]
fn damaged_lines_and_later_events_are_passed_over() {
    let mut bytes = written(&[start()]);
    bytes.extend(b"\x00\xff{{{\n\n{\"time_s\":1,\"step\":1,\"event\":\"of_tomorrow\",\"x\":[]}\n");
    bytes.extend(written(&[steps(2)]));
    let history = History::parse(&bytes);
    assert_eq!(history.n_unreadable, 1);
    assert_eq!(history.events().nth(1), Some(&Event::Unknown));
    assert_eq!(history.records[2], steps(2));
}

#[test]
fn a_file_without_a_run_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    fs::File::create(&path).unwrap().write_all(b"hello\n").unwrap();
    let error = History::load(&path).unwrap_err().to_string();
    assert!(error.ends_with("is not the log of a run: none of its 1 lines is the start of one"), "{error}");
}

proptest! {
    /// Each kill stops after some bytes of what was left to write; the next process resumes at the last epoch.
    #[test]
    fn any_kills_leave_the_history_of_a_run_never_stopped(kills in proptest::collection::vec(0.0..1.0_f64, 0..6)) {
        let run = whole_run();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mut from_step = 0;
        for kill in kills.iter().map(Some).chain([None]) {
            let mut log = Log::open(&path).unwrap();
            let is_started = History::load(&path).is_ok();
            if is_started {
                log.append(&resume(from_step)).unwrap();
            }
            let rest: Vec<Record> = run.iter()
                .filter(|r| r.step > from_step || (!is_started && matches!(r.event, Event::Start(_)))).cloned().collect();
            let bytes = written(&rest);
            let n_kept = kill.map_or(bytes.len(), |share| (share * bytes.len() as f64) as usize);
            OpenOptions::new().append(true).open(&path).unwrap().write_all(&bytes[..n_kept]).unwrap();
            // A line whose end was cut off does not count: a checkpoint is saved only after whole lines.
            drop(Log::open(&path).unwrap());
            let seen = History::parse(&fs::read(&path).unwrap());
            from_step = seen.epochs().last().map_or(0, |epoch| 5 * epoch.epoch as u64);
        }
        prop_assert_eq!(without_resumptions(&History::load(&path).unwrap()), run);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        History::parse(&bytes);
    }
}
