//! A lexicon and an n-gram model in one compact file that is read in milliseconds: what a model directory holds to
//! write words. `docs/FORMATS.md` describes the bytes.
//!
//! The tree of words is stored as it is used. N-grams with words that the lexicon does not have cannot occur and are
//! left out; log-probabilities of two words and more are stored as one of 256 values per length.
//!
//! ```
//! use srf_text::fusion::Lexicon;
//! use srf_text::labels::{LabelSet, Units};
//! use srf_text::lm::{Limits, NgramModel};
//! use srf_text::word_model::{ReadWordModelError, WordModel};
//!
//! let labels = LabelSet::new(Units::Phones, ["y", "eh", "s"])?;
//! let lexicon = Lexicon::parse("yes y eh s\n", &labels)?;
//! let arpa = "\\data\\\nngram 1=3\n\n\\1-grams:\n-0.3 yes\n-0.5 </s>\n-99 <s>\n\n\\end\\\n";
//! let language = NgramModel::read(arpa.as_bytes(), Limits::default())?;
//! let bytes = WordModel::format(&lexicon, &language, &labels);
//! let WordModel { lexicon, .. } = WordModel::parse(&bytes, &labels)?;
//! assert_eq!(lexicon.word(0), Some("yes"));
//! assert!(matches!(WordModel::parse(b"text", &labels), Err(ReadWordModelError::Foreign)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fusion::{Lexicon, Names, WordTree};
use crate::labels::LabelSet;
use crate::lm::{Context, Inner, MAX_ORDER, NgramModel, ROOT, SENTENCE_END, SENTENCE_START, UNKNOWN, WordId};

const MAGIC: &[u8; 8] = b"SRFWORDS";
const VERSION: u32 = 1;
const MAX_BYTES: u64 = 256 << 20;
/// Number of values a log-probability may have.
const N_CODES: usize = 256;

/// A lexicon and the language model of its words.
#[derive(Clone, Debug)]
pub struct WordModel {
    /// The words and their pronunciations.
    pub lexicon: Lexicon,
    /// The probabilities of the words.
    pub language: Arc<NgramModel>,
}

/// Why a file is not a word model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ReadWordModelError {
    #[error("could not read `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("has more than {MAX_BYTES} bytes, the most that is read of a word model")]
    TooLarge,
    #[error("does not begin as a word model of version {VERSION}")]
    Foreign,
    #[error("byte {at}: {what}")]
    Damaged { at: usize, what: &'static str },
    #[error("is for other labels than those of the model")]
    OtherLabels,
}

impl WordModel {
    /// Joins a lexicon and a language model, which must be smaller than 4 billion bytes in each part.
    ///
    /// The result is what [`Self::parse`] reads: words that the language model does not know share its unknown word, and
    /// log-probabilities are rounded.
    pub fn format(lexicon: &Lexicon, language: &NgramModel, labels: &LabelSet) -> Vec<u8> {
        let mut out = Writer::default();
        out.bytes(label_line(labels).as_bytes());
        write_lexicon(&mut out, lexicon);
        write_language(&mut out, lexicon, language);
        let mut crc = flate2::Crc::new();
        crc.update(&out.0);
        [&MAGIC[..], &VERSION.to_le_bytes(), &crc.sum().to_le_bytes(), &out.0].concat()
    }

    /// Reads what [`Self::format`] wrote for the same labels.
    pub fn parse(bytes: &[u8], labels: &LabelSet) -> Result<Self, ReadWordModelError> {
        let mut from = Reader { bytes, at: 0 };
        if from.take(8).ok() != Some(MAGIC) || from.number().ok() != Some(VERSION) {
            return Err(ReadWordModelError::Foreign);
        }
        let stamp = from.number()?;
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[from.at..]);
        from.check(crc.sum() == stamp, "the checksum differs")?;
        if from.counted()? != label_line(labels).as_bytes() {
            return Err(ReadWordModelError::OtherLabels);
        }
        let mut lexicon = read_lexicon(&mut from, labels.n_classes())?;
        let language = read_language(&mut from, &mut lexicon)?;
        from.check(from.at == bytes.len(), "bytes after the end")?;
        lexicon.stamp = stamp;
        Ok(Self { lexicon, language: Arc::new(NgramModel { stamp, ..language }) })
    }

    /// Reads a file.
    pub fn load(path: &Path, labels: &LabelSet) -> Result<Self, ReadWordModelError> {
        let bytes = srf_base::files::read_at_most(path, MAX_BYTES);
        let bytes = bytes.map_err(|source| ReadWordModelError::Open { path: path.to_owned(), source })?;
        Self::parse(&bytes.ok_or(ReadWordModelError::TooLarge)?, labels)
    }
}

fn label_line(labels: &LabelSet) -> String {
    format!("{} {}", labels.units(), labels.symbols().join("\n"))
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u32);
        self.0.extend(bytes);
    }

    /// Numbers in as many bytes each as the largest needs.
    fn numbers(&mut self, numbers: &[u32]) {
        let largest = numbers.iter().copied().max().unwrap_or(0);
        let width = (1..4).find(|width| largest >> (8 * width) == 0).unwrap_or(4);
        self.number(numbers.len() as u32);
        self.0.push(width as u8);
        numbers.iter().for_each(|number| self.0.extend(&number.to_le_bytes()[..width]));
    }

    fn floats(&mut self, values: &[f32]) {
        self.numbers(&values.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
    }

    /// Values as codes of the nearest of at most 256.
    fn quantized(&mut self, values: &[f32]) {
        let centers = centers(values);
        let code = |value: &f32| {
            let above = centers.partition_point(|center| center < value).min(centers.len().saturating_sub(1));
            let is_below = 0 < above && (value - centers[above - 1]) < (centers[above] - value);
            (above - usize::from(is_below)) as u8
        };
        self.floats(&centers);
        self.bytes(&values.iter().map(code).collect::<Vec<_>>());
    }
}

/// All values if they are few, or else the means of parts of equal size, in order.
fn centers(values: &[f32]) -> Vec<f32> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let mut distinct = sorted.clone();
    distinct.dedup();
    if N_CODES < distinct.len() {
        let mean = |part: &[f32]| (part.iter().map(|v| f64::from(*v)).sum::<f64>() / part.len() as f64) as f32;
        distinct = sorted.chunks(sorted.len().div_ceil(N_CODES)).map(mean).collect();
        distinct.dedup();
    }
    distinct
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn check(&self, holds: bool, what: &'static str) -> Result<(), ReadWordModelError> {
        if holds { Ok(()) } else { Err(ReadWordModelError::Damaged { at: self.at, what }) }
    }

    fn take(&mut self, n_bytes: usize) -> Result<&'a [u8], ReadWordModelError> {
        self.check(n_bytes <= self.bytes.len() - self.at, "the file ends")?;
        self.at += n_bytes;
        Ok(&self.bytes[self.at - n_bytes..self.at])
    }

    fn number(&mut self) -> Result<u32, ReadWordModelError> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn counted(&mut self) -> Result<&'a [u8], ReadWordModelError> {
        let n_bytes = self.number()? as usize;
        self.take(n_bytes)
    }

    fn numbers(&mut self) -> Result<Vec<u32>, ReadWordModelError> {
        let mut numbers = Vec::new();
        self.numbers_into(&mut numbers)?;
        Ok(numbers)
    }

    fn numbers_into(&mut self, out: &mut Vec<u32>) -> Result<(), ReadWordModelError> {
        let n = self.number()? as usize;
        let width = usize::from(self.take(1)?[0]);
        self.check((1..=4).contains(&width), "numbers of 1 to 4 bytes are expected")?;
        let bytes = self.take(n.saturating_mul(width))?;
        let value = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        match width {
            1 => out.extend(bytes.iter().map(|byte| u32::from(*byte))),
            2 => out.extend(bytes.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]])))),
            _ => out.extend(bytes.chunks_exact(width).map(value)),
        }
        Ok(())
    }

    /// Counts of children or words as the place where those of each begin, after `first`, and the end of the last.
    fn starts(&mut self, first: u32) -> Result<Vec<u32>, ReadWordModelError> {
        let mut starts = self.numbers()?;
        let mut sum = first;
        for start in &mut starts {
            let here = sum;
            sum = here.saturating_add(*start);
            *start = here;
        }
        starts.push(sum);
        Ok(starts)
    }

    fn floats(&mut self) -> Result<Vec<f32>, ReadWordModelError> {
        let values: Vec<f32> = self.numbers()?.into_iter().map(f32::from_bits).collect();
        // Far below and above what logarithms of probabilities and back-offs are.
        self.check(values.iter().all(|value| value.is_finite() && value.abs() <= 2e4), "a logarithm out of range")?;
        Ok(values)
    }

    fn quantized_into(&mut self, out: &mut Vec<f32>) -> Result<(), ReadWordModelError> {
        let mut values = self.floats()?;
        self.check(values.len() <= N_CODES, "more values than codes")?;
        let codes = self.counted()?;
        let largest = codes.iter().copied().max().map_or(0, usize::from);
        self.check(codes.is_empty() || largest < values.len(), "a code without a value")?;
        values.resize(N_CODES, 0.0);
        out.extend(codes.iter().map(|code| values[usize::from(*code)]));
        Ok(())
    }
}

fn counts(starts: &[u32]) -> Vec<u32> {
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn write_lexicon(out: &mut Writer, lexicon: &Lexicon) {
    let Names { text, ends } = &*lexicon.names;
    out.bytes(text.as_bytes());
    out.numbers(&counts(&[&[0], &ends[..]].concat()));
    let WordTree { classes, first_child, first_word, words } = &*lexicon.tree;
    out.numbers(classes);
    out.numbers(&counts(first_child));
    out.numbers(&counts(first_word));
    out.numbers(words);
}

fn read_lexicon(from: &mut Reader<'_>, n_classes: usize) -> Result<Lexicon, ReadWordModelError> {
    let text = std::str::from_utf8(from.counted()?).unwrap_or_default().to_owned();
    let ends = from.starts(0)?.split_off(1);
    let is_word = |end: &u32| text.is_char_boundary(*end as usize);
    from.check(
        ends.last().map_or(0, |end| *end as usize) == text.len() && ends.iter().all(is_word),
        "the words differ",
    )?;
    let classes = from.numbers()?;
    from.check(
        !classes.is_empty() && classes.iter().all(|class| (*class as usize) < n_classes),
        "a class out of range",
    )?;
    let (first_child, first_word) = (from.starts(1)?, from.starts(0)?);
    let words = from.numbers()?;
    let n_nodes = classes.len();
    let is_tree = first_child.len() == n_nodes + 1
        && first_child[n_nodes] as usize == n_nodes
        && (0..n_nodes).all(|node| node < first_child[node] as usize);
    from.check(is_tree, "the nodes are no tree")?;
    let are_words = first_word.len() == n_nodes + 1
        && first_word[n_nodes] as usize == words.len()
        && words.iter().all(|word| (*word as usize) < ends.len());
    from.check(are_words, "a word out of range")?;
    let tree = WordTree { classes, first_child, first_word, words };
    Ok(Lexicon { names: Arc::new(Names { text, ends }), tree: Arc::new(tree), ..Lexicon::default() })
}

/// The n-grams of the words of the lexicon, with new numbers for the words.
fn write_language(out: &mut Writer, lexicon: &Lexicon, language: &NgramModel) {
    let named = |name: &str| language.names.get(name).copied().unwrap_or(ROOT);
    let specials = [language.unknown, named(SENTENCE_START), named(SENTENCE_END)];
    let mut new_of = vec![ROOT; language.names.len() + 2];
    let mut olds = vec![ROOT];
    let mut number = |old: u32| {
        if old != ROOT && new_of[old as usize] == ROOT {
            new_of[old as usize] = olds.len() as u32;
            olds.push(old);
        }
        new_of[old as usize]
    };
    let specials = specials.map(&mut number);
    let ids: Vec<u32> = crate::fusion::ids(lexicon, language).iter().map(|id| number(id.0)).collect();
    out.numbers(&[language.order as u32, specials[0], specials[1], specials[2]]);
    out.numbers(&ids);
    let unigrams: Vec<f32> = olds[1..].iter().map(|old| language.probs[*old as usize]).collect();
    out.floats(&unigrams);
    let mut level = olds.split_off(1);
    for order in 2..=language.order {
        let backoffs: Vec<f32> = level.iter().map(|node| language.inner[*node as usize].backoff).collect();
        if order == 2 {
            out.floats(&backoffs);
        } else {
            out.quantized(&backoffs);
        }
        let mut below: Vec<(u32, u32, u32)> = Vec::new();
        let mut n_children = Vec::with_capacity(level.len());
        for node in &level {
            let start = below.len();
            let range = language.inner[*node as usize].first_child..language.inner[*node as usize + 1].first_child;
            let known = range.map(|child| (new_of[language.words[child as usize] as usize], child, *node));
            below.extend(known.filter(|(word, ..)| *word != ROOT));
            below[start..].sort_unstable();
            n_children.push((below.len() - start) as u32);
        }
        out.numbers(&n_children);
        out.numbers(&below.iter().map(|(word, ..)| *word).collect::<Vec<_>>());
        // The beginning of a longer n-gram that the model does not have itself gets what back-off gives it.
        let backed_off = |child: u32, parent: u32| {
            let word = WordId(language.words[child as usize]);
            (language.log_prob(Context(parent), word) / std::f64::consts::LN_10) as f32
        };
        let prob = |&(_, child, parent): &(u32, u32, u32)| match language.probs[child as usize] {
            prob if prob.is_nan() => backed_off(child, parent),
            prob => prob,
        };
        out.quantized(&below.iter().map(prob).collect::<Vec<_>>());
        level = below.into_iter().map(|(_, child, _)| child).collect();
    }
}

fn read_language(from: &mut Reader<'_>, lexicon: &mut Lexicon) -> Result<NgramModel, ReadWordModelError> {
    let head = from.numbers()?;
    let &[order, unknown, start, end] = &head[..] else {
        return Err(ReadWordModelError::Damaged { at: from.at, what: "four numbers are expected" });
    };
    from.check((1..=MAX_ORDER as u32).contains(&order), "the order is out of range")?;
    lexicon.ids = from.numbers()?.into();
    let unigrams = from.floats()?;
    let n_words = unigrams.len() as u32;
    let is_word = |word: u32| (1..=n_words).contains(&word);
    let specials = is_word(unknown) && start <= n_words && end <= n_words;
    let are_words = lexicon.ids.len() == lexicon.n_words() && lexicon.ids.iter().all(|id| is_word(*id));
    from.check(specials && are_words, "a word of the language model out of range")?;
    let named = [(UNKNOWN, unknown), (SENTENCE_START, start), (SENTENCE_END, end)];
    let mut model = NgramModel {
        order: order as usize,
        words: (0..=n_words).collect(),
        probs: [&[0.0], &unigrams[..]].concat(),
        inner: vec![Inner { backoff: 0.0, first_child: 1, shorter: ROOT }],
        names: named.into_iter().filter(|(_, id)| *id != ROOT).map(|(name, id)| (name.into(), id)).collect(),
        unknown,
        ..NgramModel::default()
    };
    for order in 2..=order {
        let n_before = model.words.len() as u32;
        let mut backoffs = Vec::new();
        if order == 2 {
            backoffs = from.floats()?;
        } else {
            from.quantized_into(&mut backoffs)?;
        }
        let starts = from.starts(n_before)?;
        let n_inner = model.inner.len() + backoffs.len();
        from.check(starts.len() == backoffs.len() + 1 && n_inner == n_before as usize, "the n-grams differ in number")?;
        let inner = backoffs.iter().zip(&starts);
        model.inner.extend(inner.map(|(&backoff, &first_child)| Inner { backoff, first_child, shorter: ROOT }));
        from.numbers_into(&mut model.words)?;
        from.quantized_into(&mut model.probs)?;
        let are_words = model.words[n_before as usize..].iter().all(|word| is_word(*word));
        let n_all = model.words.len();
        let is_complete = starts[backoffs.len()] as usize == n_all && model.probs.len() == n_all;
        from.check(is_complete && are_words, "n-grams are missing")?;
    }
    model.inner.push(Inner { backoff: 0.0, first_child: model.words.len() as u32, shorter: ROOT });
    model.n_ngrams = model.words.len() - 1;
    model.link();
    Ok(model)
}

#[cfg(test)]
mod tests;
