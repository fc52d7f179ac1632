//! `srf lm`: language models from text, and the perplexity of text.

mod perplexity;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::json;
use srf_lm::{EstimateError, Options, Summary, Text, Words};

use crate::Exit;
use crate::commands::thread_pool;
use crate::printer::{Printer, human_duration};

/// Discounts where those of the text cannot be estimated.
const FALLBACK: [f32; 3] = [0.5, 1.0, 1.5];
/// Larger files are no lists of words.
const MAX_LIST_BYTES: u64 = 1 << 30;
/// Memory where the system does not say how much is free.
const DEFAULT_MEMORY: usize = 1 << 30;

/// Make language models from text and measure them
#[derive(clap::Args)]
#[command(after_help = "\
Texts are UTF-8 with one sentence per line, plain or compressed by gzip.

Examples:
  srf lm estimate books.txt news.txt --order 3 --out english.arpa.gz
  cat *.txt | srf lm estimate --order 4 --prune 0,0,1 --max-vocab 100000 > english.arpa
  srf lm perplexity --lm english.arpa.gz dev.txt")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Estimate(Box<EstimateArgs>),
    Perplexity(perplexity::Args),
}

/// Estimate an n-gram model from text and write it as an ARPA file
///
/// Interpolated modified Kneser-Ney; the numbers are those of KenLM's lmplz. Texts may be larger than memory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  srf lm estimate books.txt --out books.arpa
  srf lm estimate books.txt --order 3 --prune 0,0,1 --vocab words.txt --out books.arpa.gz
  srf lm estimate books.txt --order 4 --entropy 1e-8 --out small.arpa.gz
  srf lm estimate phones.txt --order 5 --discount-fallback > phones.arpa")]
struct EstimateArgs {
    /// Texts, one sentence per line; `-` or none: stdin
    #[arg(value_name = "TEXT")]
    texts: Vec<PathBuf>,

    /// Words of the longest n-grams
    #[arg(long, short, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    order: u8,

    /// The file to write, compressed if its name ends in `.gz`; stdout by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Drop n-grams that occur this often or less, one number per order; the last one holds for higher orders
    #[arg(long, value_name = "N", num_args = 1..=5, value_delimiter = ',')]
    prune: Vec<u64>,

    /// Keep only the words in this file, separated by spaces or lines
    #[arg(long, value_name = "FILE", conflicts_with = "max_vocab")]
    vocab: Option<PathBuf>,

    /// Keep only the N most frequent words
    #[arg(long, value_name = "N")]
    max_vocab: Option<usize>,

    /// Drop n-grams whose absence raises the perplexity by less than this share, such as 1e-8
    #[arg(long, value_name = "SHARE")]
    entropy: Option<f64>,

    /// Use these discounts for orders whose own cannot be estimated; without numbers 0.5,1,1.5
    #[arg(long, value_name = "D1,D2,D3", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    discount_fallback: Option<String>,

    /// Skip `<s>`, `</s>` and `<unk>` in the text instead of stopping
    #[arg(long)]
    skip_symbols: bool,

    /// Memory for sorting, such as 500M or 8G; half of what is free by default, the rest goes to temporary files
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,

    /// Where temporary files go
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,

    /// Threads; the result does not depend on it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,

    /// Print a summary as JSON; needs --out
    #[arg(long, requires = "out")]
    json: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    match args.action {
        Action::Estimate(args) => estimate(*args, out),
        Action::Perplexity(args) => perplexity::run(args, out),
    }
}

fn estimate(args: EstimateArgs, out: &Printer) -> anyhow::Result<Exit> {
    let EstimateArgs {
        texts,
        order,
        out: path,
        prune,
        vocab,
        max_vocab,
        entropy,
        discount_fallback,
        skip_symbols,
        memory,
        temp_dir,
        threads,
        json,
    } = args;
    let options = Options {
        order: order.into(),
        prune,
        words: words(vocab.as_deref(), max_vocab)?,
        fallback_discounts: discount_fallback.as_deref().map(parse_discounts).transpose()?,
        skip_symbols,
        entropy,
        memory: memory.as_deref().map_or_else(|| Ok(free_memory() / 2), parse_size)?,
        temp_dir: temp_dir.unwrap_or_else(std::env::temp_dir),
    };
    let texts = open_texts(&texts)?;
    let start = Instant::now();
    let summary = thread_pool(threads)?.install(|| write_model(texts, &options, path.as_deref()));
    let summary = summary.map_err(|error| name_output(error, path.as_deref()))?;
    if json {
        out.line(serde_json::to_string_pretty(&as_json(&summary))?)?;
    } else {
        report(&summary, start.elapsed().as_secs_f64(), out);
    }
    Ok(Exit::Done)
}

/// Opens texts, or stdin where none or `-` is given.
fn open_texts(paths: &[PathBuf]) -> anyhow::Result<Vec<Text>> {
    if paths.is_empty() {
        return Ok(vec![Text::new("stdin", io::stdin())]);
    }
    let open = |path: &PathBuf| match path.to_str() {
        Some("-") => Ok(Text::new("stdin", io::stdin())),
        _ => Text::open(path).with_context(|| format!("could not read `{}`", path.display())),
    };
    paths.iter().map(open).collect()
}

fn write_model(texts: Vec<Text>, options: &Options, path: Option<&Path>) -> Result<Summary, EstimateError> {
    let Some(path) = path else {
        let mut stdout = BufWriter::with_capacity(1 << 20, io::stdout());
        let summary = srf_lm::estimate(texts, options, &mut stdout)?;
        stdout.flush()?;
        return Ok(summary);
    };
    let is_gzip = path.extension() == Some(OsStr::new("gz"));
    srf_base::files::write_atomically_with(path, |file| {
        if is_gzip { srf_lm::estimate_gzip(texts, options, file) } else { srf_lm::estimate(texts, options, file) }
    })
}

/// Says which file could not be written.
fn name_output(error: EstimateError, path: Option<&Path>) -> anyhow::Error {
    match (error, path) {
        (EstimateError::Write(source), Some(path)) => {
            anyhow::Error::from(source).context(format!("could not write `{}`", path.display()))
        }
        (EstimateError::Write(source), None) => source.into(),
        (error, _) => error.into(),
    }
}

fn words(vocab: Option<&Path>, max_vocab: Option<usize>) -> anyhow::Result<Words> {
    Ok(match (vocab, max_vocab) {
        (Some(path), _) => Words::List(read_list(path)?),
        (None, Some(n)) => Words::MostFrequent(n),
        (None, None) => Words::All,
    })
}

/// The words of a file.
fn read_list(path: &Path) -> anyhow::Result<Vec<String>> {
    let shown = path.display();
    let text = srf_base::files::read_text_at_most(path, MAX_LIST_BYTES);
    let text = text.with_context(|| format!("could not read `{shown}`"))?;
    let text = text.with_context(|| format!("`{shown}` has more than {MAX_LIST_BYTES} bytes, expected a list"))?;
    Ok(text.split_whitespace().map(String::from).collect())
}

fn parse_discounts(text: &str) -> anyhow::Result<[f32; 3]> {
    if text.is_empty() {
        return Ok(FALLBACK);
    }
    let numbers: Result<Vec<f32>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    match numbers.as_deref() {
        Ok([one, two, three]) => Ok([*one, *two, *three]),
        _ => bail!("--discount-fallback: found `{text}`, expected three numbers such as 0.5,1,1.5"),
    }
}

/// Bytes in `500M` and the like.
fn parse_size(text: &str) -> anyhow::Result<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().trim_end_matches('B') {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let size = digits.parse::<usize>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    size.with_context(|| format!("--memory: found `{text}`, expected a size such as 500M or 8G"))
}

/// Bytes that the system could give now.
fn free_memory() -> usize {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<usize>().ok());
    kib.map_or(2 * DEFAULT_MEMORY, |kib| kib << 10)
}

fn report(summary: &Summary, elapsed_s: f64, out: &Printer) {
    let Summary { n_sentences, n_words, n_types, orders, .. } = summary;
    let time = human_duration(elapsed_s);
    out.note(format_args!("{n_sentences} sentences, {n_words} words, {n_types} different ones; {time}"));
    for (index, order) in orders.iter().enumerate() {
        let [one, two, three] = order.discounts;
        let origin = if order.is_fallback { " (given)" } else { "" };
        out.note(format_args!(
            "{}-grams: {} of {} kept, discounts {one:.4} {two:.4} {three:.4}{origin}",
            index + 1,
            order.n_kept,
            order.n_counted
        ));
    }
}

fn as_json(summary: &Summary) -> serde_json::Value {
    let Summary { n_sentences, n_words, n_types, orders, .. } = summary;
    let orders: Vec<_> = (1..)
        .zip(orders)
        .map(|(order, n)| {
            json!({
                "order": order,
                "counted": n.n_counted,
                "kept": n.n_kept,
                "discounts": n.discounts,
                "fallback": n.is_fallback,
            })
        })
        .collect();
    json!({ "sentences": n_sentences, "words": n_words, "types": n_types, "orders": orders })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_discounts_are_read() {
        assert_eq!(parse_size("1024").unwrap(), 1024);
        assert_eq!(parse_size("500M").unwrap(), 500 << 20);
        assert_eq!(parse_size("8gb").unwrap(), 8 << 30);
        for wrong in ["", "M", "1X", "1.5G", "99999999999T", "-1"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_discounts("").unwrap(), FALLBACK);
        assert_eq!(parse_discounts("0.5, 1, 2").unwrap(), [0.5, 1.0, 2.0]);
        assert!(parse_discounts("0.5").is_err());
        assert!(parse_discounts("a,b,c").is_err());
    }
}
