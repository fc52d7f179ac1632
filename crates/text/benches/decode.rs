//! What decoding costs: microseconds a slice for posteriors from sure to unsure, printed as a table.
//!
//! `cargo bench -p text --bench decode`

#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::sync::Arc;
use std::time::Instant;

use srf_text::decode::{Decoder, DecoderConfig, Search};
use srf_text::fusion::{Fusion, Hotword, Language, Level, Lexicon, Sources};
use srf_text::labels::{LabelSet, wsj};
use srf_text::lm::{Limits, NgramModel};

const N_SLICES: usize = 750;

/// Numbers without order, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Posteriors of a made-up utterance: a label in every third slice, blanks between, `noise` on all logits.
fn posteriors(n_classes: usize, said: impl Fn(usize) -> usize, noise: f32) -> Vec<f32> {
    let mut random = Random(1);
    let mut log_probs = Vec::with_capacity(N_SLICES * n_classes);
    for at in 0..N_SLICES {
        let said = if at % 3 == 0 { said(at / 3) } else { n_classes - 1 };
        let logit =
            |class| noise * random.below(1 << 24) as f32 / (1 << 24) as f32 + if class == said { 8.0 } else { 0.0 };
        let logits: Vec<f32> = (0..n_classes).map(logit).collect();
        let sum: f32 = logits.iter().map(|x| x.exp()).sum();
        log_probs.extend(logits.iter().map(|x| x - sum.ln()));
    }
    log_probs
}

fn micros_a_slice(n_classes: usize, config: &DecoderConfig, log_probs: &[f32]) -> f64 {
    let once = || {
        let mut decoder = Decoder::new(n_classes, config);
        let start = Instant::now();
        decoder.accept(log_probs);
        assert!(!decoder.finish(1).is_empty());
        start.elapsed().as_secs_f64() * 1e6 / N_SLICES as f64
    };
    (0..7).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn words(n_words: usize) -> Vec<String> {
    let mut random = Random(2);
    let mut word = |_| (0..3 + random.below(6)).map(|_| char::from(b'A' + random.below(26) as u8)).collect();
    let mut words: Vec<String> = (0..n_words).map(&mut word).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// A model of all `words` with as many pairs of them.
fn language(words: &[String], level: Level) -> Language {
    let mut random = Random(3);
    let mut pairs: Vec<(usize, usize)> = (0..words.len())
        .map(|_| random.below(words.len() * words.len()))
        .map(|n| (n / words.len(), n % words.len()))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    let one = |(index, word): (usize, &String)| format!("-{}.5\t{word}\t-0.3\n", index % 4);
    let two = |(a, b): &(usize, usize)| format!("-0.{}\t{} {}\n", a % 9, words[*a], words[*b]);
    let arpa = format!(
        "\\data\\\nngram 1={}\nngram 2={}\n\\1-grams:\n-2 <unk>\n{}\\2-grams:\n{}\\end\\\n",
        words.len() + 1,
        pairs.len(),
        words.iter().enumerate().map(one).collect::<String>(),
        pairs.iter().map(two).collect::<String>()
    );
    let model = NgramModel::read(arpa.as_bytes(), Limits::default()).expect("the file is whole");
    Language { model: Arc::new(model), level, alpha: 0.5, beta: 1.0 }
}

fn sources(labels: &LabelSet) -> [(&'static str, Sources); 5] {
    let words = words(20_000);
    let letters: Vec<String> = ('A'..='Z').map(String::from).chain(["<space>".to_owned()]).collect();
    let hotword = |word: &String| Hotword { phrase: word.clone(), score: 1.5 };
    let hotwords: Vec<Hotword> = words.iter().take(10_000).map(hotword).collect();
    let lexicon = Lexicon::spelled(words.iter().map(String::as_str), labels).0;
    let of_words = Some(language(&words, Level::Words));
    [
        ("letters", Sources { language: Some(language(&letters, Level::Labels)), ..Sources::default() }),
        ("words", Sources { language: of_words.clone(), ..Sources::default() }),
        ("lexicon", Sources { lexicon: Some(lexicon.clone()), ..Sources::default() }),
        ("words+lexicon", Sources { language: of_words, lexicon: Some(lexicon), ..Sources::default() }),
        ("10k hotwords", Sources { hotwords, ..Sources::default() }),
    ]
}

fn main() {
    println!("{:>14} {:>8} {:>6} {:>6} {:>12}", "", "classes", "beam", "noise", "us a slice");
    for n_classes in [32, 63, 1000] {
        for (noise, width) in [(2.0, 10), (2.0, 100), (6.0, 100), (12.0, 100), (12.0, 1000)] {
            let config = DecoderConfig { search: Search::Beam { width }, ..DecoderConfig::default() };
            let log_probs = posteriors(n_classes, |index| 1 + index * 7 % (n_classes - 2), noise);
            let time = micros_a_slice(n_classes, &config, &log_probs);
            println!("{:>14} {n_classes:>8} {width:>6} {noise:>6} {time:>12.1}", "");
        }
    }
    let labels = wsj::labels();
    let mut random = Random(4);
    let words = words(20_000);
    let text: Vec<&str> = (0..100).map(|_| words[random.below(words.len())].as_str()).collect();
    let said = labels.encode(&text.join(" ")).expect("letters and spaces");
    for (name, sources) in sources(&labels) {
        let fusion = Some(Arc::new(Fusion::new(&labels, sources).expect("all in capitals")));
        let config = DecoderConfig { search: Search::Beam { width: 100 }, fusion };
        for noise in [2.0, 6.0, 12.0] {
            let log_probs = posteriors(labels.n_classes(), |index| said[index % said.len()], noise);
            let time = micros_a_slice(labels.n_classes(), &config, &log_probs);
            println!("{name:>14} {:>8} {:>6} {noise:>6} {time:>12.1}", labels.n_classes(), 100);
        }
    }
}
