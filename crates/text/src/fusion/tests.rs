//! Fused search against the definition: every label sequence listed, its score added up by hand.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::{Fusion, FusionError, Hotword, Language, Level, Lexicon, Phrases, Sources};
use crate::decode::tests::{log_softmax, plain_beam, same, sequence_log_prob};
use crate::decode::{Decoder, DecoderConfig, Hypothesis, Search};
use crate::labels::{LabelSet, Units};
use crate::lm::{Limits, NgramModel};

const CHARS: &str = "\\data\\\nngram 1=5\nngram 2=3\n\\1-grams:\n-0.5 <s> -0.1\n-0.7 </s>\n-0.4 <space> -0.2\n\
    -0.6 A -0.3\n-0.9 B\n\\2-grams:\n-0.2 A B\n-0.3 B <space>\n-0.15 <s> A\n\\end\\\n";
const WORDS: &str = "\\data\\\nngram 1=6\nngram 2=3\n\\1-grams:\n-1.5 <unk>\n-0.5 <s> -0.1\n-0.7 </s>\n-0.4 AB -0.2\n\
    -0.6 A -0.3\n-0.9 B\n\\2-grams:\n-0.2 A B\n-0.1 AB A\n-0.3 A </s>\n\\end\\\n";

fn chars() -> LabelSet {
    LabelSet::new(Units::Chars, [" ", "A", "B"]).unwrap()
}

fn phones() -> LabelSet {
    LabelSet::new(Units::Phones, ["a", "b", "sil"]).unwrap()
}

fn language(arpa: &str, level: Level) -> Language {
    let model = Arc::new(NgramModel::read(arpa.as_bytes(), Limits::default()).unwrap());
    Language { model, level, alpha: 0.7, beta: 0.9 }
}

fn decode(fusion: Fusion, log_probs: &[f32], n_classes: usize, width: usize) -> (Arc<Fusion>, Vec<Hypothesis>) {
    let fusion = Arc::new(fusion);
    let config = DecoderConfig { search: Search::Beam { width }, fusion: Some(Arc::clone(&fusion)) };
    let mut decoder = Decoder::new(n_classes, &config);
    decoder.accept(log_probs);
    (fusion, decoder.finish(width))
}

fn slices(n_slices: usize) -> impl Strategy<Value = Vec<f32>> {
    proptest::collection::vec(-3.0f32..3.0, n_slices * 5).prop_map(|logits| log_softmax(&logits, 5))
}

fn words(arpa_words: &[&str], language: &Language) -> f64 {
    let model = &language.model;
    language.alpha * model.sentence_log_prob(arpa_words) + language.beta * arpa_words.len() as f64
}

proptest! {
    #[test]
    fn a_model_of_labels_adds_its_log_probabilities(log_probs in slices(5)) {
        let language = language(CHARS, Level::Labels);
        let sources = Sources { language: Some(language.clone()), ..Sources::default() };
        let (_, found) = decode(Fusion::new(&chars(), sources).unwrap(), &log_probs, 5, 100_000);
        for hypothesis in &found {
            let names: Vec<&str> = hypothesis.classes().iter().map(|class| ["<space>", "A", "B"][class - 1]).collect();
            let expected = hypothesis.log_prob + words(&names, &language);
            prop_assert!((hypothesis.score - expected).abs() < 1e-6);
        }
        prop_assert!(found.is_sorted_by(|a, b| b.score <= a.score));
    }

    #[test]
    fn a_model_of_words_adds_its_log_probabilities_of_the_words_as_they_are_written(log_probs in slices(6)) {
        let language = language(WORDS, Level::Words);
        let sources = Sources { language: Some(language.clone()), ..Sources::default() };
        let (_, found) = decode(Fusion::new(&chars(), sources).unwrap(), &log_probs, 5, 100_000);
        prop_assert!(found.iter().any(|h| h.tokens.is_empty()));
        for hypothesis in &found {
            let text: String = hypothesis.classes().iter().map(|class| [" ", "A", "B"][class - 1]).collect();
            let spoken: Vec<&str> = text.split_whitespace().collect();
            let expected = hypothesis.log_prob + words(&spoken, &language);
            prop_assert!((hypothesis.score - expected).abs() < 1e-5, "{text:?} {} {expected}", hypothesis.score);
        }
    }

    #[test]
    fn shortcuts_lose_nothing_with_a_language_model_and_hotwords(log_probs in slices(9), score in 0.0f32..3.0) {
        let make = || {
            let hotwords = vec![Hotword { phrase: "AB".into(), score }];
            let sources = Sources { language: Some(language(WORDS, Level::Words)), hotwords, ..Sources::default() };
            Fusion::new(&chars(), sources).unwrap()
        };
        // A width of ten lives on with two in reserve; not ended, since the end changes the order.
        let expected = plain_beam(&log_probs, 5, 12, Some(&make()));
        let config = DecoderConfig { search: Search::Beam { width: 10 }, fusion: Some(Arc::new(make())) };
        let mut decoder = Decoder::new(5, &config);
        decoder.accept(&log_probs);
        prop_assert!(same(&decoder.n_best(usize::MAX), &expected));
    }

    #[test]
    fn phones_become_the_words_of_a_lexicon(log_probs in slices(6)) {
        let lexicon = Lexicon::parse("AB a b\nA a\nB b\nBAB b a b\nBEE b\n", &phones()).unwrap();
        let language = language(WORDS, Level::Words);
        let sources = Sources { language: Some(language.clone()), lexicon: Some(lexicon), ..Sources::default() };
        let (fusion, found) = decode(Fusion::new(&phones(), sources).unwrap(), &log_probs, 5, 100_000);
        let said = HashMap::from([("AB", "ab"), ("A", "a"), ("B", "b"), ("BAB", "bab"), ("BEE", "b")]);
        for hypothesis in &found {
            let classes = hypothesis.classes();
            let names: Vec<&str> =
                hypothesis.words.iter().map(|span| fusion.lexicon().unwrap().word(span.word).unwrap()).collect();
            let phones: String = classes.iter().filter(|class| **class < 3).map(|class| ["a", "b"][class - 1]).collect();
            prop_assert_eq!(names.iter().map(|name| said[name]).collect::<String>(), phones);
            for (span, name) in hypothesis.words.iter().zip(&names) {
                let inside: String =
                    classes[span.first_token..span.end_token].iter().map(|class| ["a", "b", "-"][class - 1]).collect();
                prop_assert_eq!(&inside, said[name]);
            }
            // BAB and BEE are unknown to the model, whose unknown word stands for both.
            let n_unknown = names.iter().filter(|name| ["BAB", "BEE"].contains(name)).count();
            let share = -language.alpha * 2f64.ln() * n_unknown as f64;
            let expected = hypothesis.log_prob + words(&names, &language) + share;
            prop_assert!((hypothesis.score - expected).abs() < 1e-5);
        }
        prop_assert!(found.len() > 20);
    }

    #[test]
    fn words_taken_while_they_settle_are_the_words_of_the_whole(log_probs in slices(300), every in 1usize..150) {
        let lexicon = Lexicon::parse("AB a b\nA a\nB b\nBAB b a b\n", &phones()).unwrap();
        let fusion = Fusion::new(&phones(), Sources { lexicon: Some(lexicon), ..Sources::default() }).unwrap();
        let config = DecoderConfig { search: Search::Beam { width: 4 }, fusion: Some(Arc::new(fusion)) };
        let (mut whole, mut taken) = (Decoder::new(5, &config), Decoder::new(5, &config));
        let mut found = Vec::new();
        let mut n_before = 0;
        for (index, slice) in log_probs.chunks_exact(5).enumerate() {
            whole.accept(slice);
            taken.accept(slice);
            if index % every == 0 {
                let settled = taken.take_settled();
                found.extend(settled.words.iter().map(|w| (w.word, n_before + w.first_token, n_before + w.end_token)));
                n_before += settled.tokens.len();
            }
        }
        prop_assume!(!found.is_empty());
        let (last, expected) = (taken.finish(1), whole.finish(1));
        found.extend(last[0].words.iter().map(|w| (w.word, n_before + w.first_token, n_before + w.end_token)));
        let expected: Vec<_> = expected[0].words.iter().map(|w| (w.word, w.first_token, w.end_token)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn nothing_but_the_listed_phrases_is_written(log_probs in slices(8), repeats in any::<bool>()) {
        let list = ["A", "A B", "BB"];
        let phrases = Some(Phrases { phrases: list.map(String::from).to_vec(), repeats });
        let sources = Sources { phrases, ..Sources::default() };
        let (_, found) = decode(Fusion::new(&chars(), sources).unwrap(), &log_probs, 5, 1000);
        prop_assert!(!found.is_empty());
        for hypothesis in &found {
            let text = chars().decode(&hypothesis.classes());
            let spoken: Vec<&str> = text.split_whitespace().collect();
            prop_assert!(is_sequence(&spoken, &list, repeats), "{}", text);
            let expected = sequence_log_prob(&log_probs, 5, &hypothesis.classes());
            prop_assert!(hypothesis.log_prob <= expected + 1e-9);
        }
    }
}

fn is_sequence(spoken: &[&str], list: &[&str], repeats: bool) -> bool {
    if spoken.is_empty() {
        return true;
    }
    list.iter().any(|phrase| {
        let words: Vec<&str> = phrase.split(' ').collect();
        spoken.strip_prefix(&words[..]).is_some_and(|rest| rest.is_empty() || repeats && is_sequence(rest, list, true))
    })
}

#[test]
fn a_hotword_wins_where_the_sound_is_unsure() {
    let p = |values: [f32; 5]| values.map(f32::ln);
    let log_probs = [p([0.0, 0.0, 0.45, 0.55, 0.0]), p([0.0, 0.0, 0.0, 0.0, 1.0])].concat();
    let best = |hotwords: Vec<Hotword>| {
        let sources = Sources { hotwords, ..Sources::default() };
        let (_, found) = decode(Fusion::new(&chars(), sources).unwrap(), &log_probs, 5, 10);
        chars().decode(&found[0].classes())
    };
    assert_eq!(best(vec![]), "B");
    assert_eq!(best(vec![Hotword { phrase: "a".into(), score: 1.0 }]), "A");
    assert_eq!(best(vec![Hotword { phrase: "B".into(), score: -1.0 }]), "A");
    assert_eq!(best(vec![Hotword { phrase: "AB".into(), score: 1.0 }]), "B", "the loan went back");
}

#[test]
fn sources_that_do_not_fit_the_labels_are_refused() {
    let refuse = |labels: LabelSet, sources| Fusion::new(&labels, sources).unwrap_err();
    let hotwords = vec![Hotword { phrase: "CAB".into(), score: 1.0 }];
    let error = refuse(chars(), Sources { hotwords, ..Sources::default() });
    assert_eq!(error.to_string(), "`CAB` cannot be written in the labels of the model");
    let language = Some(language(WORDS, Level::Words));
    let error = refuse(phones(), Sources { language, ..Sources::default() });
    assert_eq!(error, FusionError::NeedsLexicon { units: Units::Phones });
    let hotwords = vec![Hotword { phrase: "A CAB".into(), score: 1.0 }];
    let lexicon = Some(Lexicon::parse("A a\n", &phones()).unwrap());
    let error = refuse(phones(), Sources { lexicon, hotwords, ..Sources::default() });
    assert_eq!(error.to_string(), "`A CAB` has a word that is not in the lexicon");
    let error = Lexicon::parse("A a x\n", &phones()).unwrap_err();
    assert_eq!(error.to_string(), "line 1: `A` has the label `x`, which the model cannot write");
    assert_eq!(Lexicon::parse("A\n", &phones()).unwrap_err().to_string(), "line 1: `A` has no labels after it");
}

#[test]
fn lexicons_are_read_as_cmudict_writes_them() {
    let set = LabelSet::new(Units::Phones, ["r", "eh", "iy", "d"]).unwrap();
    let lexicon = Lexicon::parse(";;; comment\nREAD  R EH1 D\nREAD(2)  R IY1 D\n(PAREN  D\n", &set).unwrap();
    assert_eq!((lexicon.n_words(), lexicon.word(0), lexicon.word(1)), (2, Some("READ"), Some("(PAREN")));
    let tree = &lexicon.tree;
    let at = [1, 3, 4].iter().fold(super::ROOT, |node, class| tree.child(node, *class).unwrap());
    assert_eq!(tree.words(at), [0]);
    assert_eq!(lexicon.format(&set), "(PAREN d\nREAD r eh d\nREAD r iy d\n");
}

const DICTIONARY: &str = "AB a b\nA a\nB b\nBAB b a b\nBEE b\nA(2) b a\n";

fn of_words(more: impl FnOnce(&mut Sources)) -> Fusion {
    let lexicon = Some(Lexicon::parse(DICTIONARY, &phones()).unwrap());
    let mut sources = Sources { language: Some(language(WORDS, Level::Words)), lexicon, ..Sources::default() };
    more(&mut sources);
    Fusion::new(&phones(), sources).unwrap()
}

/// All ways to read labels as words with silence (class 3) anywhere between them.
fn readings(classes: &[usize], so_far: &[&'static str], out: &mut Vec<Vec<&'static str>>) {
    let said: [(&str, &[usize]); 6] =
        [("AB", &[1, 2]), ("A", &[1]), ("B", &[2]), ("BAB", &[2, 1, 2]), ("BEE", &[2]), ("A", &[2, 1])];
    match classes {
        [] => out.push(so_far.to_vec()),
        [3, rest @ ..] => readings(rest, so_far, out),
        _ => {
            for (word, labels) in said.iter().filter(|(_, labels)| classes.starts_with(labels)) {
                readings(&classes[labels.len()..], &[so_far, &[*word]].concat(), out);
            }
        }
    }
}

/// The best score over all label sequences, each summed over its alignments, and all their readings.
fn best_of_all(log_probs: &[f32], score: impl Fn(&[&str]) -> f64) -> f64 {
    let mut best = f64::NEG_INFINITY;
    let mut sequences: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..=log_probs.len() / 5 {
        for classes in &sequences {
            let log_prob = sequence_log_prob(log_probs, 5, classes);
            let mut all = Vec::new();
            readings(classes, &[], &mut all);
            best = all.iter().map(|words| log_prob + score(words)).fold(best, f64::max);
        }
        let longer = |sequence: &Vec<usize>| [1, 2, 3].map(|class| [&sequence[..], &[class]].concat());
        sequences = sequences.iter().flat_map(longer).collect();
    }
    best
}

fn best_words(fusion: &Arc<Fusion>, log_probs: &[f32], width: usize, merges: Option<bool>) -> (Vec<String>, f64) {
    let config = DecoderConfig { search: Search::Beam { width }, fusion: Some(Arc::clone(fusion)) };
    let mut decoder = Decoder::new(5, &config);
    merges.into_iter().for_each(|alternatives| decoder.merge_pasts(alternatives));
    decoder.accept(log_probs);
    let best = decoder.finish(1).remove(0);
    let lexicon = fusion.lexicon().unwrap();
    (best.words.iter().map(|span| lexicon.word(span.word).unwrap().to_owned()).collect(), best.score)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_best_words_are_those_of_all_paths(log_probs in slices(5)) {
        let language = language(WORDS, Level::Words);
        // BAB and BEE are unknown to the model, whose unknown word stands for both.
        let share = |word: &&str| if ["BAB", "BEE"].contains(word) { -language.alpha * 2f64.ln() } else { 0.0 };
        let expected = best_of_all(&log_probs, |spoken| {
            words(spoken, &language) + spoken.iter().map(&share).sum::<f64>()
        });
        let fusion = Arc::new(of_words(|_| {}));
        let (_, found) = best_words(&fusion, &log_probs, 100_000, None);
        prop_assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        for alternatives in [false, true] {
            // A past that was dropped may have collected more alignments later, but never more than there are.
            let (_, merged) = best_words(&fusion, &log_probs, 100_000, Some(alternatives));
            prop_assert!(merged <= expected + 1e-5 && expected - 3.0 < merged, "{merged} {expected}");
        }
    }

    #[test]
    fn hotwords_of_words_add_their_scores(log_probs in slices(5), score in -2.0f32..2.0) {
        let language = language(WORDS, Level::Words);
        let hotword = Hotword { phrase: "ab A".into(), score };
        let fusion = Arc::new(of_words(|sources| sources.hotwords = vec![hotword]));
        let share = |word: &&str| if ["BAB", "BEE"].contains(word) { -language.alpha * 2f64.ln() } else { 0.0 };
        let expected = best_of_all(&log_probs, |spoken| {
            let n_hot = spoken.windows(2).filter(|pair| *pair == ["AB", "A"]).count();
            let hot = 3.0 * f64::from(score) * n_hot as f64;
            words(spoken, &language) + hot + spoken.iter().map(&share).sum::<f64>()
        });
        let (_, found) = best_words(&fusion, &log_probs, 100_000, None);
        prop_assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }

    #[test]
    fn phrases_of_words_are_all_that_is_written(log_probs in slices(8), repeats in any::<bool>()) {
        let list = ["A B", "BEE", "AB BAB"];
        let phrases = Some(Phrases { phrases: list.map(String::from).to_vec(), repeats });
        let fusion = Arc::new(of_words(|sources| sources.phrases = phrases));
        for merges in [None, Some(false), Some(true)] {
            let (spoken, _) = best_words(&fusion, &log_probs, 1000, merges);
            let spoken: Vec<&str> = spoken.iter().map(String::as_str).collect();
            prop_assert!(is_sequence(&spoken, &list, repeats), "{spoken:?}");
        }
    }
}
