//! Estimates n-gram language models from text: interpolated modified Kneser-Ney, written as an ARPA file.
//!
//! The model is that of KenLM's `lmplz`, digit by digit: the same counts, discounts and single-precision arithmetic, in
//! the same order of lines. With a(.) the adjusted counts of Kneser-Ney and D the discounts of each order,
//!
//! ```text
//! p(w | h) = (a(h w) - D(a(h w))) / sum_v a(h v)  +  g(h) p(w | h without its first word)
//! ```
//!
//! where g(h) is what the discounts left over; 1-grams are interpolated with equal probabilities for all words.
//!
//! The steps: `text` turns words into numbers, `count` counts n-grams and adjusts the counts, `probs` turns them into
//! probabilities, `entropy` drops n-grams that matter little, `arpa` writes lines. All but the last two work on sorted
//! streams (`sort`) that go to temporary files where memory does not suffice. Neither the memory nor the number of
//! threads changes a bit of the result.

mod arpa;
mod count;
mod entropy;
mod key;
mod probs;
mod sort;
mod text;
mod vocab;

use std::io::{self, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::count::Restriction;
use crate::key::{Key, Layout, Wide};
use crate::sort::{Room, TempError};
pub use crate::text::Text;
use crate::vocab::Vocabulary;

/// The longest n-grams.
pub const MAX_ORDER: usize = 5;
/// The least memory that is accepted, in bytes.
pub const MIN_MEMORY: usize = 1 << 20;

/// Which words stay in the model; n-grams with others are dropped and their probability goes to shorter ones.
#[derive(Clone, Debug, Default)]
pub enum Words {
    /// All words of the text.
    #[default]
    All,
    /// Those of a list.
    List(Vec<String>),
    /// The most frequent ones, and of equally frequent ones those that occur first.
    MostFrequent(usize),
}

/// What kind of model is estimated, and with what means.
#[derive(Clone, Debug)]
pub struct Options {
    /// Words of the longest n-grams, 1 to [`MAX_ORDER`].
    pub order: usize,
    /// N-grams of each order that occur this often or less are dropped; the last number holds for higher orders.
    pub prune: Vec<u64>,
    /// Which words stay in the model.
    pub words: Words,
    /// Discounts of counts 1, 2 and 3 or more for orders whose own cannot be estimated; without them that is an error.
    pub fallback_discounts: Option<[f32; 3]>,
    /// Skips `<s>`, `</s>` and `<unk>` in the text instead of refusing them.
    pub skip_symbols: bool,
    /// Drops n-grams whose absence raises the perplexity by less than this share.
    pub entropy: Option<f64>,
    /// Bytes for sorting; the vocabulary and, with `entropy`, the model come on top of it.
    pub memory: usize,
    /// Where sorted files go if the memory does not suffice.
    pub temp_dir: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            order: 3,
            prune: Vec::new(),
            words: Words::All,
            fallback_discounts: None,
            skip_symbols: false,
            entropy: None,
            memory: 1 << 30,
            temp_dir: std::env::temp_dir(),
        }
    }
}

/// What a model was made of and what it contains.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Lines of the texts.
    pub n_sentences: u64,
    /// Words of the texts.
    pub n_words: u64,
    /// Different words of the texts.
    pub n_types: usize,
    /// One entry per order.
    pub orders: Vec<OrderSummary>,
}

/// The n-grams of one length.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OrderSummary {
    /// Different n-grams in the text.
    pub n_counted: u64,
    /// N-grams in the model.
    pub n_kept: u64,
    /// What is taken off counts of 1, 2 and 3 or more.
    pub discounts: [f32; 3],
    /// Whether the discounts are [`Options::fallback_discounts`].
    pub is_fallback: bool,
}

/// Why a model could not be estimated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum EstimateError {
    #[error("could not read `{name}`: {source}")]
    Read { name: String, source: io::Error },
    #[error("{name}:{line}: bytes that are not UTF-8")]
    NotUtf8 { name: String, line: usize },
    #[error("{name}:{line}: `{symbol}` has a meaning of its own in a language model and may not be in the text")]
    Symbol { name: String, line: usize, symbol: &'static str },
    #[error("{name}: a line is longer than {limit} bytes, expected one sentence per line")]
    LongLine { name: String, limit: usize },
    #[error("the text has no words")]
    NoWords,
    #[error("none of the {listed} words to keep is in the text")]
    NoListedWords { listed: usize },
    #[error("order {found}, expected 1 to {MAX_ORDER}")]
    Order { found: usize },
    #[error("{found} numbers of `prune` for order {order}")]
    TooManyPrune { found: usize, order: usize },
    #[error("`prune` falls from {before} to {after}, expected numbers that do not fall from order to order")]
    FallingPrune { before: u64, after: u64 },
    #[error("fallback discount {found} for count {count}, expected 0 to {count}")]
    FallbackDiscount { count: usize, found: f32 },
    #[error("entropy threshold {found}, expected a number above 0 and below 1")]
    Entropy { found: f64 },
    #[error("{found} bytes of memory, at least {MIN_MEMORY} are needed")]
    Memory { found: usize },
    #[error("{found} different words, at most {limit} can be in {order}-grams")]
    TooManyWords { found: usize, limit: u64, order: usize },
    #[error("no {order}-gram has the adjusted count {count}, so the discounts of {order}-grams cannot be estimated")]
    NoSuchCount { order: usize, count: usize },
    #[error("the discount of {order}-grams with adjusted count {count} is {found}, expected 0 to {count}")]
    DiscountRange { order: usize, count: usize, found: f32 },
    #[error("could not use a temporary file: {source}")]
    Temp { source: io::Error },
    #[error("could not write the model: {0}")]
    Write(#[from] io::Error),
}

impl From<TempError> for EstimateError {
    fn from(TempError(source): TempError) -> Self {
        Self::Temp { source }
    }
}

impl EstimateError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Symbol { .. } => Some("`--skip-symbols` leaves `<s>`, `</s>` and `<unk>` out".into()),
            Self::LongLine { .. } => Some("split the text into sentences, one per line".into()),
            Self::NoSuchCount { order, .. } | Self::DiscountRange { order, .. } => {
                let lower = if *order > 1 { format!("take an order below {order}, ") } else { String::new() };
                Some(format!(
                    "the text is small or artificial: use more text, remove repeated lines, {lower}or set discounts by \
                     hand with `--discount-fallback`"
                ))
            }
            Self::Temp { .. } => Some("`--temp-dir` sets where temporary files go, `--memory` how soon".into()),
            Self::TooManyWords { order, .. } => Some(format!("take an order below {order}")),
            _ => None,
        }
    }
}

/// Estimates a model from `texts` and writes it to `out` as an ARPA file.
///
/// ```
/// let text = srf_lm::Text::new("lines", &b"a rose is a rose\na rose is\n"[..]);
/// let options = srf_lm::Options { order: 2, fallback_discounts: Some([0.5, 1.0, 1.5]), ..Default::default() };
/// let mut arpa = Vec::new();
/// let summary = srf_lm::estimate(vec![text], &options, &mut arpa)?;
/// assert_eq!(summary.n_words, 8);
/// assert!(arpa.starts_with(b"\\data\\\nngram 1=6\nngram 2=6\n"));
/// # Ok::<(), srf_lm::EstimateError>(())
/// ```
pub fn estimate(texts: Vec<Text>, options: &Options, out: &mut impl Write) -> Result<Summary, EstimateError> {
    let thresholds = check(options)?;
    let room = Room { bytes: options.memory, temp_dir: options.temp_dir.clone() };
    let corpus = text::read(texts, options.skip_symbols, room.share(1, 4))?;
    if corpus.n_words() == 0 {
        return Err(EstimateError::NoWords);
    }
    let restriction = Restriction { thresholds, is_dropped: dropped_words(&options.words, &corpus)? };
    let layout = Layout::new(corpus.vocabulary.len(), options.order);
    if layout.total_bits() <= u64::BITS {
        run::<u64>(corpus, layout, &restriction, options, &room, out)
    } else if layout.total_bits() <= Wide::BITS {
        run::<Wide>(corpus, layout, &restriction, options, &room, out)
    } else {
        let limit = 1 << (Wide::BITS / options.order as u32);
        Err(EstimateError::TooManyWords { found: corpus.vocabulary.len(), limit, order: options.order })
    }
}

/// Like [`estimate`], compressed by gzip.
///
/// ```
/// use srf_lm::{MIN_MEMORY, MAX_ORDER, Options, OrderSummary, Summary, Text, Words, estimate_gzip};
///
/// let text = Text::new("corpus", "a b a\nb a\n".as_bytes());
/// let options = Options {
///     order: 2.min(MAX_ORDER),
///     words: Words::MostFrequent(1000),
///     // Two sentences are too few to estimate discounts from.
///     fallback_discounts: Some([0.5, 1.0, 1.5]),
///     memory: MIN_MEMORY,
///     ..Options::default()
/// };
/// let mut arpa = Vec::new();
/// let summary: Summary = estimate_gzip(vec![text], &options, &mut arpa)?;
/// assert_eq!((summary.n_sentences, summary.n_words), (2, 5));
/// for OrderSummary { n_kept, discounts, .. } in &summary.orders {
///     println!("{n_kept} n-grams, discounts {discounts:?}");
/// }
/// # Ok::<(), srf_lm::EstimateError>(())
/// ```
pub fn estimate_gzip(texts: Vec<Text>, options: &Options, out: &mut impl Write) -> Result<Summary, EstimateError> {
    let mut encoder = GzEncoder::new(out, Compression::default());
    let summary = estimate(texts, options, &mut encoder)?;
    encoder.finish()?;
    Ok(summary)
}

fn run<K: Key>(
    corpus: text::Corpus,
    layout: Layout,
    restriction: &Restriction,
    options: &Options,
    room: &Room,
    out: &mut impl Write,
) -> Result<Summary, EstimateError> {
    let (n_sentences, n_words) = (corpus.n_sentences(), corpus.n_words());
    let text::Corpus { vocabulary, words, .. } = corpus;
    let counted = count::count::<K>(words, layout, room)?;
    let adjusted = count::adjust(counted, layout, vocabulary.len(), restriction, room)?;
    let discounts = adjusted.discounts(options.fallback_discounts)?;
    let mut orders: Vec<OrderSummary> = (adjusted.stats.iter().zip(&discounts))
        .map(|(stats, discount)| OrderSummary {
            n_counted: stats.n_counted,
            n_kept: stats.n_kept,
            discounts: discount.amounts,
            is_fallback: discount.is_fallback,
        })
        .collect();
    let n_types = vocabulary.len() - vocab::SPECIAL.len();
    if let Some(threshold) = options.entropy {
        let mut model = entropy::Model::new(layout);
        probs::interpolate(adjusted, &discounts, layout, room, &mut model)?;
        model.prune(threshold);
        for (summary, n_kept) in orders.iter_mut().zip(model.n_kept()) {
            summary.n_kept = n_kept;
        }
        model.write(&mut arpa::Writer::start(out, &vocabulary, layout, &model.n_kept())?)?;
    } else {
        let n_kept: Vec<u64> = orders.iter().map(|order| order.n_kept).collect();
        let mut writer = arpa::Writer::start(out, &vocabulary, layout, &n_kept)?;
        probs::interpolate(adjusted, &discounts, layout, room, &mut writer)?;
        writer.finish()?;
    }
    Ok(Summary { n_sentences, n_words, n_types, orders })
}

/// Checks the options and returns the pruning threshold of every order.
fn check(options: &Options) -> Result<Vec<u64>, EstimateError> {
    let Options { order, prune, fallback_discounts, entropy, memory, .. } = options;
    if !(1..=MAX_ORDER).contains(order) {
        return Err(EstimateError::Order { found: *order });
    }
    if prune.len() > *order {
        return Err(EstimateError::TooManyPrune { found: prune.len(), order: *order });
    }
    if let Some(pair) = prune.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(EstimateError::FallingPrune { before: pair[0], after: pair[1] });
    }
    for (index, &found) in fallback_discounts.iter().flatten().enumerate() {
        let count = index + 1;
        if !(0.0..=count as f32).contains(&found) {
            return Err(EstimateError::FallbackDiscount { count, found });
        }
    }
    if let Some(found) = entropy.filter(|threshold| !(*threshold > 0.0 && *threshold < 1.0)) {
        return Err(EstimateError::Entropy { found });
    }
    if *memory < MIN_MEMORY {
        return Err(EstimateError::Memory { found: *memory });
    }
    let mut thresholds = prune.clone();
    thresholds.resize(*order, prune.last().copied().unwrap_or(0));
    Ok(thresholds)
}

/// Which words may not be in the model; empty if all may.
fn dropped_words(words: &Words, corpus: &text::Corpus) -> Result<Vec<bool>, EstimateError> {
    let n_special = vocab::SPECIAL.len();
    let mut is_dropped = vec![true; corpus.vocabulary.len()];
    is_dropped[..n_special].fill(false);
    match words {
        Words::All => return Ok(Vec::new()),
        Words::List(list) => keep_listed(list, &corpus.vocabulary, &mut is_dropped)?,
        Words::MostFrequent(n) => {
            let mut by_count: Vec<usize> = (n_special..corpus.vocabulary.len()).collect();
            by_count.sort_by_key(|id| std::cmp::Reverse(corpus.counts[*id]));
            by_count.iter().take(*n).for_each(|id| is_dropped[*id] = false);
        }
    }
    Ok(is_dropped)
}

fn keep_listed(list: &[String], vocabulary: &Vocabulary, is_dropped: &mut [bool]) -> Result<(), EstimateError> {
    let mut n_found = 0;
    for id in list.iter().filter_map(|word| vocabulary.get(word.as_bytes())) {
        is_dropped[id as usize] = false;
        n_found += 1;
    }
    if n_found == 0 { Err(EstimateError::NoListedWords { listed: list.len() }) } else { Ok(()) }
}
