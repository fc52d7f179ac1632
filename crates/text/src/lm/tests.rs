//! Scores against hand-computed ones, against kenlm's and against the definition; lines that are no model.

use std::collections::HashMap;
use std::io::Write as _;

use proptest::prelude::*;

use super::{Limits, NgramModel};

const DIGITS: &str = include_str!("../../tests/data/digits.arpa");
const SCORES: &str = include_str!("../../tests/data/digits.scores.tsv");

fn model(arpa: &str) -> NgramModel {
    NgramModel::read(arpa.as_bytes(), Limits::default()).unwrap()
}

fn error(arpa: &str) -> String {
    NgramModel::read(arpa.as_bytes(), Limits::default()).unwrap_err().to_string()
}

fn log10(model: &NgramModel, words: &[&str]) -> f64 {
    model.sentence_log_prob(words) / std::f64::consts::LN_10
}

#[test]
fn scores_are_the_hand_computed_ones() {
    let digits = model(DIGITS);
    assert_eq!((digits.order(), digits.n_ngrams()), (3, 18));
    // <s> one two (-0.2 of the trigram), three (-0.1), four: back off twice from `two three`, then its 1-gram.
    let expected = -0.3 - 0.2 - 0.1 + (-0.05 - 0.1 - 1.1) - 0.35;
    assert!((log10(&digits, &["one", "two", "three", "four"]) - expected).abs() < 1e-6);
    // A word that is not there counts as <unk>, behind which nothing is known.
    assert!((log10(&digits, &["nine"]) - -(2f64.log10() + 1.2 + 0.8)).abs() < 1e-6);
}

#[test]
fn scores_are_those_of_kenlm() {
    let digits = model(DIGITS);
    for line in SCORES.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let words: Vec<&str> = fields[0].split_whitespace().collect();
        let expected: f64 = fields[1].parse().unwrap();
        // Six digits were written.
        assert!((log10(&digits, &words) - expected).abs() < 2e-6, "{line}");
    }
}

#[test]
fn a_compressed_file_is_the_same_model() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("digits.arpa.gz");
    let mut gzip = flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::fast());
    gzip.write_all(DIGITS.as_bytes()).unwrap();
    gzip.finish().unwrap();
    let loaded = NgramModel::load(&path).unwrap();
    assert_eq!(log10(&loaded, &["one", "two"]), log10(&model(DIGITS), &["one", "two"]));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = NgramModel::load(&path).unwrap_err();
    assert!(error.to_string().contains("digits.arpa.gz:"), "{error}");
}

#[test]
fn without_unk_unknown_words_are_all_but_impossible() {
    let arpa = "\\data\\\nngram 1=2\n\\1-grams:\n-1 a\n-0.5 </s>\n\\end\\\n";
    assert!((log10(&model(arpa), &["b"]) - -100.5).abs() < 1e-6);
}

#[test]
fn errors_tell_line_found_and_expected() {
    assert_eq!(error(""), "1: the file ends without `\\data\\`");
    let head = "\\data\\\nngram 1=2\nngram 2=1\n\n";
    assert_eq!(
        error(&format!("{head}\\1-grams:\n-1 a -0.1\nx b\n")),
        "7: found `x b`, expected a log-probability, 1 words and maybe a back-off weight, or `\\2-grams:`"
    );
    assert_eq!(error(&format!("{head}\\1-grams:\n-1 a -0.1\n\\2-grams:\n")), "7: 1 1-grams, but 2 were announced");
    let words = "\\1-grams:\n-1 a -0.1\n-1 b\n\\2-grams:\n";
    assert_eq!(error(&format!("{head}{words}-1 a c\n")), "9: `c` is not among the 1-grams");
    assert_eq!(error(&format!("{head}{words}-1 a b\n-1 a b\n")), "10: the n-gram is in the file twice");
    assert_eq!(error(&format!("{head}{words}-1 a b\n")), "10: found ``, expected `\\end\\`");
    assert_eq!(
        error("\\data\\\nngram 1=99999999999\n\\1-grams:\n"),
        "3: 99999999999 n-grams are announced, at most 50000000 are read"
    );
    let orders: String = (1..=6).map(|order| format!("ngram {order}=1\n")).collect();
    assert_eq!(error(&format!("\\data\\\n{orders}\\1-grams:\n")), "8: order 6, at most 5 is supported");
    assert_eq!(error(&format!("\\data\\\n{}", "x".repeat(20_000))), "2: longer than 16384 bytes");
}

/// A model as a map, asked by the definition of back-off.
#[derive(Debug)]
struct Plain(HashMap<Vec<usize>, (f32, f32)>);

impl Plain {
    fn log10(&self, context: &[usize], word: usize) -> f64 {
        let ngram = [context, &[word]].concat();
        if let Some((prob, _)) = self.0.get(&ngram) {
            return f64::from(*prob);
        }
        let backoff = self.0.get(context).map_or(0.0, |(_, backoff)| f64::from(*backoff));
        backoff + self.log10(&context[1..], word)
    }
}

const WORDS: [&str; 5] = ["<unk>", "<s>", "</s>", "a", "b"];

fn arpa(plain: &Plain) -> String {
    let order = plain.0.keys().map(Vec::len).max().unwrap();
    let of = |n: usize| plain.0.iter().filter(move |(ngram, _)| ngram.len() == n);
    let line = |(ngram, (prob, backoff)): (&Vec<usize>, &(f32, f32))| {
        let words: Vec<&str> = ngram.iter().map(|word| WORDS[*word]).collect();
        let end = if ngram.len() < order { format!("\t{backoff}\n") } else { "\n".to_owned() };
        format!("{prob}\t{}{end}", words.join(" "))
    };
    let counts: String = (1..=order).map(|n| format!("ngram {n}={}\n", of(n).count())).collect();
    let section = |n: usize| format!("\\{n}-grams:\n{}", of(n).map(line).collect::<String>());
    format!("\\data\\\n{counts}{}\\end\\\n", (1..=order).map(section).collect::<String>())
}

fn plain() -> impl Strategy<Value = Plain> {
    let ngram = (proptest::collection::vec(0usize..5, 2..=5), -3.0f32..0.0, -1.0f32..0.5);
    let words = proptest::collection::vec((-3.0f32..0.0, -1.0f32..0.5), 5);
    (words, proptest::collection::vec(ngram, 0..60)).prop_map(|(words, ngrams)| {
        let mut map: HashMap<_, _> = words.into_iter().enumerate().map(|(id, values)| (vec![id], values)).collect();
        map.extend(ngrams.into_iter().map(|(ngram, prob, backoff)| (ngram, (prob, backoff))));
        let order = map.keys().map(Vec::len).max().unwrap();
        // The file has no back-off for the longest.
        map.iter_mut().filter(|(ngram, _)| ngram.len() == order).for_each(|(_, values)| values.1 = 0.0);
        Plain(map)
    })
}

proptest! {
    #[test]
    fn queries_follow_the_definition_of_back_off_even_with_gaps(
        plain in plain(), sentence in proptest::collection::vec(0usize..5, 0..12)
    ) {
        let model = model(&arpa(&plain));
        let order = plain.0.keys().map(Vec::len).max().unwrap();
        let mut context = model.start();
        let mut history = vec![1];
        for word in sentence {
            let id = model.word(WORDS[word]).unwrap_or(model.unknown());
            let (next, found) = model.next(context, id);
            let expected = plain.log10(&history[history.len().saturating_sub(order - 1)..], word);
            prop_assert!((found / std::f64::consts::LN_10 - expected).abs() < 1e-5);
            context = next;
            history.push(word);
        }
    }

    #[test]
    fn changed_lines_never_panic(at in 0usize..400, bytes in proptest::collection::vec(any::<u8>(), 0..6)) {
        let mut arpa = DIGITS.as_bytes().to_vec();
        let at = at.min(arpa.len());
        let end = (at + bytes.len()).min(arpa.len());
        arpa.splice(at..end, bytes);
        if let Ok(model) = NgramModel::read(&arpa[..], Limits::default()) {
            prop_assert!(model.sentence_log_prob(&["one", "nine"]).is_finite());
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let head = b"\\data\\\nngram 1=3\n\\1-grams:\n".to_vec();
        let read = NgramModel::read(&[&head[..], &bytes].concat()[..], Limits::default());
        prop_assert!(read.is_err() || bytes.windows(5).any(|part| part == b"\\end\\"));
    }
}
