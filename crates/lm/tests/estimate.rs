//! Models against counts by hand, against KenLM's, and against the rules that every model keeps.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use srf_base::random::SplitMix64;
use srf_lm::{EstimateError, Options, Summary, Text, Words};
use srf_text::lm::{Context, Limits, NgramModel};

const FALLBACK: Option<[f32; 3]> = Some([0.5, 1.0, 1.5]);

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn estimate(text: &[u8], options: &Options) -> Result<(Summary, String), EstimateError> {
    let mut arpa = Vec::new();
    let text = Text::new("text", std::io::Cursor::new(text.to_vec()));
    let summary = srf_lm::estimate(vec![text], options, &mut arpa)?;
    Ok((summary, String::from_utf8(arpa).unwrap()))
}

fn of_order(order: usize) -> Options {
    Options { order, fallback_discounts: FALLBACK, ..Options::default() }
}

/// N-grams with their numbers, line by line.
fn ngrams(arpa: &str) -> Vec<(String, f32, Option<f32>)> {
    let lines = arpa.lines().filter(|line| line.contains('\t'));
    lines
        .map(|line| {
            let mut fields = line.split('\t');
            let prob = fields.next().unwrap().parse().unwrap();
            (fields.next().unwrap().to_owned(), prob, fields.next().map(|backoff| backoff.parse().unwrap()))
        })
        .collect()
}

fn prob(arpa: &str, ngram: &str) -> f64 {
    let found = ngrams(arpa).into_iter().find(|(words, ..)| words == ngram);
    10f64.powf(f64::from(found.unwrap_or_else(|| panic!("{ngram} is not in {arpa}")).1))
}

fn backoff(arpa: &str, ngram: &str) -> f64 {
    let found = ngrams(arpa).into_iter().find(|(words, ..)| words == ngram).unwrap();
    10f64.powf(f64::from(found.2.unwrap()))
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "found {found}, expected {expected}");
}

#[test]
fn a_tiny_model_is_the_one_by_hand() {
    let (summary, arpa) = estimate(b"a b\na c\n", &of_order(2)).unwrap();
    assert_eq!((summary.n_sentences, summary.n_words, summary.n_types), (2, 4, 3));
    // Different words before a, b, c: 1; before </s>: 2. Left over: (3 * 0.5 + 1) / 5 = 0.5, shared by 5 words.
    assert_near(prob(&arpa, "<unk>"), 0.1);
    assert_near(prob(&arpa, "a"), 0.5 / 5.0 + 0.1);
    assert_near(prob(&arpa, "</s>"), 1.0 / 5.0 + 0.1);
    assert_near(prob(&arpa, "<s>"), 1.0);
    // Counts: <s> a 2, a b 1, a c 1, b </s> 1, c </s> 1.
    assert_near(prob(&arpa, "<s> a"), 0.5 + 0.5 * 0.2);
    assert_near(prob(&arpa, "a b"), 0.25 + 0.5 * 0.2);
    assert_near(prob(&arpa, "c </s>"), 0.5 + 0.5 * 0.3);
    assert_near(backoff(&arpa, "<s>"), 0.5);
    assert_near(backoff(&arpa, "a"), 0.5);
    assert_near(backoff(&arpa, "</s>"), 1.0);
    assert_eq!(ngrams(&arpa).len(), 6 + 5);
}

#[test]
fn dropped_ngrams_give_their_probability_to_shorter_ones() {
    let options = Options { prune: vec![0, 1], ..of_order(2) };
    let (summary, arpa) = estimate(b"a b\na c\n", &options).unwrap();
    assert_eq!(summary.orders[1].n_kept, 1);
    assert_eq!(summary.orders[1].n_counted, 5);
    assert_near(prob(&arpa, "<s> a"), 0.6);
    assert_near(backoff(&arpa, "a"), 1.0);
    let options = Options { words: Words::MostFrequent(1), ..of_order(2) };
    let (_, arpa) = estimate(b"a b\na c\n", &options).unwrap();
    // b and c leave 2 of 5 counts and their discounts do not matter; three words share what is left.
    let left = (2.0 + 0.5 + 1.0) / 5.0;
    assert_near(prob(&arpa, "a"), 0.5 / 5.0 + left / 3.0);
    assert_near(prob(&arpa, "<unk>"), left / 3.0);
    assert!(!arpa.contains("\tb") && !arpa.contains("\ta b"));
}

#[test]
fn discounts_are_estimated_from_the_counts_of_counts() {
    // 1-grams with count 1: 4, count 2: 2, count 3: 1, count 4: 1; </s> has 1 more of count 1.
    let (summary, _) = estimate(b"a b c d e e f f g g g h h h h\n", &Options { order: 1, ..of_order(1) }).unwrap();
    let y = 5.0 / (5.0 + 2.0 * 2.0);
    let [one, two, three] = summary.orders[0].discounts;
    assert_near(one.into(), 1.0 - 2.0 * y * 2.0 / 5.0);
    assert_near(two.into(), 2.0 - 3.0 * y / 2.0);
    assert_near(three.into(), 3.0 - 4.0 * y);
    assert!(!summary.orders[0].is_fallback);
}

/// Compares with a file of KenLM's; see golden/README.md.
fn assert_equals_golden(arpa: &str, name: &str) {
    let expected = fs::read_to_string(golden(name)).unwrap();
    let head = |arpa: &str| arpa.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(head(arpa), head(&expected));
    let (found, expected) = (ngrams(arpa), ngrams(&expected));
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.0, expected.0);
        assert!(is_near(found.1, expected.1), "{found:?} {expected:?}");
        assert_eq!(found.2.is_some(), expected.2.is_some());
        assert!(is_near(found.2.unwrap_or(0.0), expected.2.unwrap_or(0.0)), "{found:?} {expected:?}");
    }
}

/// Two units in the last place: `log10f` of C libraries differs by that much.
fn is_near(found: f32, expected: f32) -> bool {
    (i64::from(found.to_bits()) - i64::from(expected.to_bits())).abs() <= 2
}

#[test]
fn models_equal_those_of_kenlm() {
    let text = fs::read(golden("text.txt")).unwrap();
    let (_, arpa) = estimate(&text, &Options { order: 3, ..Options::default() }).unwrap();
    assert_equals_golden(&arpa, "kenlm-3.arpa");
    let words = fs::read_to_string(golden("words.txt")).unwrap();
    let words = Words::List(words.split_whitespace().map(String::from).collect());
    let (_, arpa) = estimate(&text, &Options { prune: vec![0, 1], words, ..of_order(4) }).unwrap();
    assert_equals_golden(&arpa, "kenlm-4-pruned.arpa");
}

/// The sum over all words after every context that the model has, and after some that it has not.
fn assert_sums_to_one(arpa: &str) {
    let model = NgramModel::read(arpa.as_bytes(), Limits::default()).unwrap();
    let mut contexts = vec![model.nothing()];
    for (words, _, backoff) in ngrams(arpa) {
        if backoff.is_some() {
            let follow =
                |context: Context, word: &str| model.next(context, model.word(word).unwrap_or(model.unknown())).0;
            contexts.push(words.split(' ').fold(model.nothing(), follow));
        }
    }
    for context in contexts {
        let words = model.words().filter(|(word, _)| *word != "<s>");
        let sum: f64 = words.map(|(_, id)| model.log_prob(context, id).exp()).sum();
        // Single precision, in the file and in the estimate: a few units of 6e-8 for each of the words.
        let tolerance = 1e-6 * model.words().count() as f64;
        assert!((sum - 1.0).abs() < tolerance, "the sum after {context:?} is {sum} in\n{arpa}");
    }
}

#[test]
fn a_model_of_prose_sums_to_one_pruned_or_not() {
    let text = fs::read(golden("text.txt")).unwrap();
    let (full, arpa) = estimate(&text, &of_order(3)).unwrap();
    assert_sums_to_one(&arpa);
    let mut n_before = full.orders[2].n_kept;
    for entropy in [1e-7, 1e-5, 1e-4] {
        let (pruned, arpa) = estimate(&text, &Options { entropy: Some(entropy), ..of_order(3) }).unwrap();
        assert_sums_to_one(&arpa);
        assert_eq!(pruned.orders[0].n_kept, full.orders[0].n_kept);
        assert!(pruned.orders[2].n_kept <= n_before);
        n_before = pruned.orders[2].n_kept;
    }
    assert!(n_before < full.orders[2].n_kept / 2);
}

/// Text with words of many frequencies.
fn random_text(n_words: usize, n_types: u64, seed: u64) -> String {
    let mut random = SplitMix64::new(seed);
    let mut text = String::new();
    for _ in 0..n_words {
        let word = random.below(random.clone().below(n_types) + 1);
        let end = if random.below(8) == 0 { '\n' } else { ' ' };
        text.extend([format!("w{word}"), end.to_string()]);
    }
    text + "\n"
}

#[test]
fn neither_memory_nor_threads_change_a_byte() {
    let text = random_text(150_000, 2000, 1);
    for order in [1, 3, 5] {
        let options = Options { memory: 1 << 30, prune: vec![0, 0, 1][..order.min(3)].to_vec(), ..of_order(order) };
        let (_, expected) = estimate(text.as_bytes(), &options).unwrap();
        for n_threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let options = Options { memory: srf_lm::MIN_MEMORY, ..options.clone() };
            let (_, found) = pool.install(|| estimate(text.as_bytes(), &options)).unwrap();
            assert!(found == expected, "order {order}, {n_threads} threads");
        }
    }
}

#[test]
fn several_texts_are_one_and_compressed_output_is_the_same() {
    let whole = random_text(2000, 50, 3);
    let cut = whole[..1000].rfind('\n').unwrap() + 1;
    let texts = || vec![&whole[..cut], &whole[cut..]];
    let open = || texts().into_iter().map(|text| Text::new("part", std::io::Cursor::new(text.to_owned()))).collect();
    let (_, expected) = estimate(whole.as_bytes(), &of_order(2)).unwrap();
    let mut arpa = Vec::new();
    srf_lm::estimate(open(), &of_order(2), &mut arpa).unwrap();
    assert_eq!(String::from_utf8(arpa).unwrap(), expected);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.arpa.gz");
    srf_lm::estimate_gzip(open(), &of_order(2), &mut fs::File::create(&path).unwrap()).unwrap();
    let mut unpacked = String::new();
    std::io::Read::read_to_string(&mut Text::open(&path).unwrap(), &mut unpacked).unwrap();
    assert_eq!(unpacked, expected);
}

#[test]
fn a_last_line_without_an_end_and_a_byte_order_mark_change_nothing() {
    let (_, expected) = estimate(b"a b\nc\n", &of_order(2)).unwrap();
    assert_eq!(estimate(b"a b\nc", &of_order(2)).unwrap().1, expected);
    assert_eq!(estimate(b"\xef\xbb\xbfa \t b\r\nc\n", &of_order(2)).unwrap().1, expected);
}

#[track_caller]
fn assert_error(text: &[u8], options: &Options, expected: &str) {
    assert_eq!(estimate(text, options).unwrap_err().to_string(), expected);
}

#[test]
fn errors_say_what_is_wrong() {
    assert_error(b"", &of_order(2), "the text has no words");
    assert_error(b"\n \n", &of_order(2), "the text has no words");
    assert_error(b"a\nb \xff\n", &of_order(2), "text:2: bytes that are not UTF-8");
    assert_error(
        b"a\na </s> b\n",
        &of_order(2),
        "text:2: `</s>` has a meaning of its own in a language model and may not be in the text",
    );
    assert!(estimate(b"a </s> b\n", &Options { skip_symbols: true, ..of_order(2) }).is_ok());
    let options = |prune: &[u64]| Options { prune: prune.to_vec(), ..of_order(2) };
    assert_error(b"a", &options(&[0, 0, 0]), "3 numbers of `prune` for order 2");
    assert_error(
        b"a",
        &options(&[1, 0]),
        "`prune` falls from 1 to 0, expected numbers that do not fall from order to order",
    );
    assert_error(b"a", &of_order(6), "order 6, expected 1 to 5");
    let options = Options { words: Words::List(vec!["x".into()]), ..of_order(1) };
    assert_error(b"a", &options, "none of the 1 words to keep is in the text");
    let options = Options { order: 2, ..Options::default() };
    let expected = "no 1-gram has the adjusted count 2, so the discounts of 1-grams cannot be estimated";
    assert_error(b"a b c\n", &options, expected);
    assert!(estimate(b"a b c\n", &options).unwrap_err().hint().unwrap().contains("--discount-fallback"));
}

proptest! {
    #[test]
    fn every_model_sums_to_one(
        text in "([a-e] ){0,6}(\n([a-e] ){1,6}){1,12}",
        order in 1..=5usize,
        prune in prop::collection::vec(0..2u64, 0..4),
        entropy in prop::option::of(1e-4..0.1f64),
        n_words in 1..8usize,
    ) {
        let mut prune = prune;
        prune.sort_unstable();
        prune.truncate(order);
        let words = if n_words > 5 { Words::All } else { Words::MostFrequent(n_words) };
        let (_, arpa) = estimate(text.as_bytes(), &Options { prune, entropy, words, ..of_order(order) }).unwrap();
        assert_sums_to_one(&arpa);
    }

    #[test]
    fn any_bytes_give_a_model_or_an_error(text in prop::collection::vec(prop::num::u8::ANY, 0..60), order in 1..=5usize) {
        if let Ok((_, arpa)) = estimate(&text, &of_order(order)) {
            prop_assert!(NgramModel::read(arpa.as_bytes(), Limits::default()).is_ok(), "{arpa:?}");
        }
    }
}
