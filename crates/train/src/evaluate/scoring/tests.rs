//! Error rates counted by hand.

use srf_score::Counts;

use super::*;

fn answer(id: &str, reference: &str, recognized: &str) -> Answer {
    let recognized = recognized.split_whitespace().map(|w| Recognized { text: w.to_owned(), confidence: Some(0.5) });
    let (id, speaker) = (id.to_owned(), id[..2].to_owned());
    Answer { id, speaker, reference: reference.to_owned(), recognized: recognized.collect() }
}

fn rate(answers: &[Answer], measure: Measure, mapping: Option<PhoneMapping>) -> Rate {
    score(answers, measure, "test", Scoring { mapping, n_replications: 200, seed: 1 }).unwrap()
}

#[test]
fn words_are_counted_as_by_hand() {
    // One wrong, one missing, one extra, of 3 + 2 + 2 words; capitals do not matter.
    let answers = [
        answer("s1-1", "THE CAT SAT", "the dog sat"),
        answer("s1-2", "SIT DOWN", "down"),
        answer("s2-1", "oh no", "oh no no"),
    ];
    let rate = rate(&answers, Measure::Words, None);
    let expected = Counts { correct: 5, substitutions: 1, deletions: 1, insertions: 1 };
    assert_eq!(rate.system.counts(), expected);
    assert_eq!((rate.system.n_wrong(), rate.system.n_utterances()), (3, 3));
    assert_eq!(rate.interval.measured, 3.0 / 7.0);
    let errors = rate.errors();
    assert_eq!((errors.measure.as_str(), errors.n_reference, errors.n_errors()), ("WER", 7, 3));
    let speakers: Vec<(&[u8], usize)> = rate.system.speakers.iter().map(|s| (&*s.name, s.counts.n_errors())).collect();
    assert_eq!(speakers, [(&b"s1"[..], 2), (&b"s2"[..], 1)]);
}

#[test]
fn characters_are_counted_without_spaces() {
    let rate = rate(&[answer("s1-1", "the cat", "THE BATS")], Measure::Characters, None);
    assert_eq!(rate.system.counts(), Counts { correct: 5, substitutions: 1, deletions: 0, insertions: 1 });
}

#[test]
fn phones_are_counted_in_the_set_they_are_mapped_to() {
    let answers = [answer("s1-1", "h# sh ix dcl d ao q h#", "pau zh ih pcl d aa h#")];
    assert_eq!(rate(&answers, Measure::Phones, None).system.counts().n_errors(), 6);
    assert_eq!(
        rate(&answers, Measure::Phones, Some(PhoneMapping::Timit39)).system.counts(),
        Counts { correct: 7, ..Counts::default() }
    );
}

#[test]
fn capitals_matter_in_phones_unless_they_are_mapped() {
    let answers = [answer("s1-1", "S AH0 dx", "s ah t")];
    assert_eq!(rate(&answers, Measure::Phones, None).system.counts().substitutions, 3);
    assert_eq!(rate(&answers, Measure::Phones, Some(PhoneMapping::Shared37)).system.counts().correct, 3);
}

#[test]
fn the_interval_holds_what_was_measured_and_narrows_with_more_utterances() {
    let wide: Vec<Answer> = (0..10)
        .map(|n| answer(&format!("s{n}-1"), "a b c d", if n % 2 == 0 { "a b c d" } else { "a b c x" }))
        .collect();
    let narrow: Vec<Answer> = (0..20).flat_map(|_| wide.clone()).collect();
    let width = |answers: &[Answer]| {
        let Interval { measured, low, high } = rate(answers, Measure::Words, None).interval;
        assert!(low <= measured && measured <= high && measured == 0.125, "{low} {measured} {high}");
        high - low
    };
    assert!(width(&narrow) < width(&wide) / 2.0);
}

#[test]
fn an_utterance_without_any_recognized_word_is_all_missing() {
    let rate = rate(&[answer("s1-1", "a b", "")], Measure::Words, None);
    assert_eq!(rate.system.counts(), Counts { deletions: 2, ..Counts::default() });
}

#[test]
fn confidences_are_measured_where_all_words_have_one() {
    let mut answers = [answer("s1-1", "a b c", "a x c")];
    answers[0].recognized.iter_mut().zip([0.95, 0.5, 1.0]).for_each(|(word, c)| word.confidence = Some(c));
    let measured = rate(&answers, Measure::Words, None).confidences.unwrap();
    // Bin 9: 0.95 and 1.0, both right: 2 * |0.975 - 1|. Bin 5: 0.5, wrong. Over 3 words. Confidences are `f32`.
    assert!((measured.ece - (0.05 + 0.5) / 3.0).abs() < 1e-6);
    // Two of three right; 1.0 counts as 1 - 1e-7.
    let prior = -(2.0 * (2.0_f64 / 3.0).log2() + (1.0_f64 / 3.0).log2());
    let told = 0.95_f64.log2() + 0.5_f64.log2();
    assert!((measured.nce.unwrap() - (prior + told) / prior).abs() < 1e-6);
    assert_eq!((measured.bins[9].n, measured.bins[5].n), (2, 1));
    assert_eq!(rate(&answers, Measure::Characters, None).confidences, None);
    answers[0].recognized[1].confidence = None;
    assert_eq!(rate(&answers, Measure::Words, None).confidences, None);
}

#[test]
fn what_was_compared_can_be_written_down() {
    let answer = answer("s1-1", "h# AH0 dx", "pau ah t");
    assert_eq!(compared(&answer, Measure::Phones, Some(PhoneMapping::Shared37)), ["ah t", "ah t"]);
}
