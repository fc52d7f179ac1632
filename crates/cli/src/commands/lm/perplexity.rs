//! `srf lm perplexity`: how well a language model predicts text.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;
use srf_text::lm::NgramModel;

use super::open_texts;
use crate::Exit;
use crate::printer::Printer;

/// Longer lines are no sentences.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Measure the perplexity of texts under a model
///
/// Every sentence counts with its end. A word that the model does not know has the probability of `<unk>`; the second
/// figure leaves such words out.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf lm perplexity --lm english.arpa.gz dev.txt
  srf lm perplexity --lm english.arpa.gz --sentences dev.txt
  srf lm perplexity --lm english.arpa.gz --json < dev.txt")]
pub(crate) struct Args {
    /// Texts, one sentence per line; `-` or none: stdin
    #[arg(value_name = "TEXT")]
    texts: Vec<PathBuf>,

    /// The language model: an ARPA file, plain or compressed by gzip
    #[arg(long, value_name = "FILE")]
    lm: PathBuf,

    /// Print a line for every sentence: log10 probability, words, unknown words, perplexity
    #[arg(long)]
    sentences: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// What was found in one sentence or in all of them.
#[derive(Clone, Copy, Default)]
struct Score {
    n_sentences: u64,
    n_words: u64,
    n_unknown: u64,
    /// Natural logarithms, of all words and of the unknown ones.
    log_prob: f64,
    log_prob_of_unknown: f64,
}

impl Score {
    fn of_sentence(model: &NgramModel, line: &str) -> anyhow::Result<Self> {
        let mut score = Self { n_sentences: 1, ..Self::default() };
        let mut context = model.start();
        for word in line.split([' ', '\t', '\n', '\r', '\0']).filter(|word| !word.is_empty()) {
            ensure!(!["<s>", "</s>"].contains(&word), "`{word}` has a meaning of its own and may not be in the text");
            let id = model.word(word);
            let (next, log_prob) = model.next(context, id.unwrap_or(model.unknown()));
            context = next;
            score.n_words += 1;
            score.log_prob += log_prob;
            if id.is_none() {
                score.n_unknown += 1;
                score.log_prob_of_unknown += log_prob;
            }
        }
        if let Some(end) = model.sentence_end() {
            score.log_prob += model.log_prob(context, end);
        }
        Ok(score)
    }

    fn add(&mut self, other: &Self) {
        self.n_sentences += other.n_sentences;
        self.n_words += other.n_words;
        self.n_unknown += other.n_unknown;
        self.log_prob += other.log_prob;
        self.log_prob_of_unknown += other.log_prob_of_unknown;
    }

    fn log10_prob(&self) -> f64 {
        self.log_prob / std::f64::consts::LN_10
    }

    /// Over all words and ends of sentences.
    fn perplexity(&self) -> f64 {
        (-self.log_prob / (self.n_words + self.n_sentences) as f64).exp()
    }

    fn perplexity_without_unknown(&self) -> f64 {
        let n = self.n_words - self.n_unknown + self.n_sentences;
        (-(self.log_prob - self.log_prob_of_unknown) / n as f64).exp()
    }

    fn as_json(&self) -> serde_json::Value {
        json!({
            "sentences": self.n_sentences,
            "words": self.n_words,
            "unknown": self.n_unknown,
            "log10_prob": self.log10_prob(),
            "perplexity": self.perplexity(),
            "perplexity_without_unknown": self.perplexity_without_unknown(),
        })
    }
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { texts, lm, sentences, json } = args;
    let model = NgramModel::load(&lm)?;
    let mut total = Score::default();
    let mut of_sentences = Vec::new();
    for text in open_texts(&texts)? {
        let name = text.name().to_owned();
        let mut lines = BufReader::with_capacity(1 << 16, text);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let place = || format!("{name}:{number}");
            let n_bytes = lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line).with_context(place)? as u64;
            match n_bytes {
                0 => break,
                MAX_LINE_BYTES.. => bail!("{name}:{number}: longer than {MAX_LINE_BYTES} bytes"),
                _ => {}
            }
            let words = std::str::from_utf8(&line).ok().with_context(|| format!("{name}:{number}: not UTF-8"))?;
            let score = Score::of_sentence(&model, words).with_context(place)?;
            total.add(&score);
            if sentences && json {
                of_sentences.push(score.as_json());
            } else if sentences {
                print_sentence(&score, words, out)?;
            }
        }
    }
    ensure!(total.n_sentences > 0, "the text has no sentences");
    print_total(&total, of_sentences, sentences, json, out)?;
    Ok(Exit::Done)
}

fn print_sentence(score: &Score, words: &str, out: &Printer) -> std::io::Result<()> {
    let Score { n_words, n_unknown, .. } = score;
    let words = words.trim_end();
    out.line(format_args!("{:.4} {n_words} {n_unknown} {:.4} {words}", score.log10_prob(), score.perplexity()))
}

fn print_total(
    total: &Score,
    of_sentences: Vec<serde_json::Value>,
    sentences: bool,
    json: bool,
    out: &Printer,
) -> anyhow::Result<()> {
    if json {
        let mut value = total.as_json();
        if sentences {
            value["each"] = of_sentences.into();
        }
        out.line(serde_json::to_string_pretty(&value)?)?;
        return Ok(());
    }
    let Score { n_sentences, n_words, n_unknown, .. } = total;
    let share = 100.0 * *n_unknown as f64 / (*n_words).max(1) as f64;
    out.line(format_args!("sentences                  {n_sentences}"))?;
    out.line(format_args!("words                      {n_words}"))?;
    out.line(format_args!("unknown words              {n_unknown} ({share:.2} %)"))?;
    out.line(format_args!("log10 probability          {:.4}", total.log10_prob()))?;
    out.line(format_args!("perplexity                 {:.4}", total.perplexity()))?;
    out.line(format_args!("perplexity without unknown {:.4}", total.perplexity_without_unknown()))?;
    Ok(())
}
