//! Reads ARPA files, plain or compressed by gzip.
//!
//! Nothing is allocated for what a file only announces: memory grows with the n-grams that are really there.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::{Inner, MAX_ORDER, NgramModel, ROOT, UNKNOWN, UNKNOWN_LOG10};
use crate::edges::Edges;

/// How much of a file is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// N-grams of all lengths together; each one takes about 30 bytes.
    pub max_ngrams: usize,
    /// Bytes of one line.
    pub max_line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_ngrams: 50_000_000, max_line_bytes: 16 << 10 }
    }
}

/// Why a language model could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum LoadArpaError {
    #[error("could not read `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("{}:{source}", path.display())]
    Parse { path: PathBuf, source: ParseArpaError },
}

impl LoadArpaError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Parse { source, .. } if source.is_foreign() => {
                Some("only ARPA files are read, plain or as .gz; KenLM's binaries are made from one".into())
            }
            _ => None,
        }
    }
}

/// Why lines are not a language model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ParseArpaError {
    #[error("{line}: could not be read: {source}")]
    Read { line: usize, source: io::Error },
    #[error("{line}: longer than {limit} bytes")]
    LongLine { line: usize, limit: usize },
    #[error("{line}: bytes that are not UTF-8")]
    NotUtf8 { line: usize },
    #[error("{line}: the file ends without `\\data\\`")]
    NoData { line: usize },
    #[error("{line}: found `{found}`, expected {expected}")]
    Unexpected { line: usize, found: String, expected: String },
    #[error("{line}: order {found}, at most {MAX_ORDER} is supported")]
    Order { line: usize, found: usize },
    #[error("{line}: {found} n-grams are announced, at most {limit} are read")]
    TooMany { line: usize, found: u64, limit: usize },
    #[error("{line}: {found} {order}-grams, but {announced} were announced")]
    Count { line: usize, order: usize, found: u64, announced: u64 },
    #[error("{line}: `{word}` is not among the 1-grams")]
    UnknownWord { line: usize, word: String },
    #[error("{line}: the n-gram is in the file twice")]
    Twice { line: usize },
}

impl ParseArpaError {
    /// Whether the file looks like one of another kind.
    fn is_foreign(&self) -> bool {
        matches!(self, Self::NoData { .. } | Self::NotUtf8 { .. } | Self::LongLine { .. })
    }
}

impl NgramModel {
    /// Reads a file, plain or compressed by gzip, whatever its name.
    pub fn load(path: &Path) -> Result<Self, LoadArpaError> {
        let open = |source| LoadArpaError::Open { path: path.to_owned(), source };
        let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(open)?);
        let is_gzip = file.fill_buf().map_err(open)?.starts_with(&[0x1f, 0x8b]);
        let read = if is_gzip {
            Self::read(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)), Limits::default())
        } else {
            Self::read(file, Limits::default())
        };
        read.map_err(|source| LoadArpaError::Parse { path: path.to_owned(), source })
    }

    /// Reads the lines of a plain ARPA file.
    pub fn read(from: impl BufRead, limits: Limits) -> Result<Self, ParseArpaError> {
        let mut lines = Lines { from, limits, number: 0, bytes: Vec::new() };
        let counts = lines.head()?;
        let mut builder = Builder::new(counts.len());
        for (index, announced) in counts.iter().enumerate() {
            lines.section(index + 1, counts.len(), *announced, &mut builder)?;
        }
        Ok(builder.finish())
    }
}

struct Lines<R> {
    from: R,
    limits: Limits,
    number: usize,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The next line that is not empty, without spaces around it; `None` after the last one.
    fn next(&mut self) -> Result<Option<&str>, ParseArpaError> {
        loop {
            self.bytes.clear();
            self.number += 1;
            let (line, limit) = (self.number, self.limits.max_line_bytes);
            let mut rest = self.from.by_ref().take(limit as u64 + 1);
            let n_bytes = rest.read_until(b'\n', &mut self.bytes);
            let n_bytes = n_bytes.map_err(|source| ParseArpaError::Read { line, source })?;
            if limit < n_bytes {
                return Err(ParseArpaError::LongLine { line, limit });
            }
            if n_bytes == 0 {
                return Ok(None);
            }
            if !self.bytes.trim_ascii().is_empty() {
                break;
            }
        }
        let line = self.number;
        let text = std::str::from_utf8(self.bytes.trim_ascii()).map_err(|_| ParseArpaError::NotUtf8 { line })?;
        Ok(Some(text))
    }

    fn unexpected(&self, expected: impl Into<String>) -> ParseArpaError {
        let found = String::from_utf8_lossy(self.bytes.trim_ascii()).chars().take(60).collect();
        ParseArpaError::Unexpected { line: self.number, found, expected: expected.into() }
    }

    /// What `\data\` announces: how many n-grams of each length.
    fn head(&mut self) -> Result<Vec<u64>, ParseArpaError> {
        loop {
            match self.next()? {
                None => return Err(ParseArpaError::NoData { line: self.number }),
                Some("\\data\\") => break,
                Some(_) => {}
            }
        }
        let mut counts = Vec::new();
        loop {
            let order = counts.len() + 1;
            let Some(text) = self.next()? else { return Err(self.unexpected("`\\1-grams:`")) };
            if text == "\\1-grams:" && !counts.is_empty() {
                break;
            }
            let count = text.strip_prefix("ngram").and_then(|rest| rest.trim().split_once('='));
            let count = count.filter(|(o, _)| o.trim().parse() == Ok(order)).and_then(|(_, n)| n.trim().parse().ok());
            counts.push(count.ok_or_else(|| self.unexpected(format!("`ngram {order}=COUNT` or the 1-grams")))?);
        }
        self.check(&counts)?;
        Ok(counts)
    }

    fn check(&self, counts: &[u64]) -> Result<(), ParseArpaError> {
        let (line, limit) = (self.number, self.limits.max_ngrams);
        if MAX_ORDER < counts.len() {
            return Err(ParseArpaError::Order { line, found: counts.len() });
        }
        let found = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        if limit as u64 <= found { Err(ParseArpaError::TooMany { line, found, limit }) } else { Ok(()) }
    }

    /// The n-grams of one length, and the line that begins the next section.
    fn section(&mut self, order: usize, max: usize, announced: u64, into: &mut Builder) -> Result<(), ParseArpaError> {
        let end = if order == max { "\\end\\".to_owned() } else { format!("\\{}-grams:", order + 1) };
        let mut found = 0;
        loop {
            let Some(text) = self.next()? else { return Err(self.unexpected(format!("`{end}`"))) };
            if text == end {
                break;
            }
            let Some(ngram) = Ngram::parse(text, order, max) else {
                return Err(self.unexpected(expected_line(order, &end)));
            };
            let added = into.add(&ngram);
            let line = self.number;
            added.map_err(|problem| match problem {
                Problem::UnknownWord(word) => ParseArpaError::UnknownWord { line, word },
                Problem::Twice => ParseArpaError::Twice { line },
            })?;
            found += 1;
            if announced < found {
                return Err(ParseArpaError::Count { line, order, found, announced });
            }
        }
        let line = self.number;
        if found == announced { Ok(()) } else { Err(ParseArpaError::Count { line, order, found, announced }) }
    }
}

fn expected_line(order: usize, end: &str) -> String {
    format!("a log-probability, {order} words and maybe a back-off weight, or `{end}`")
}

/// One line: `log10-probability word ... [log10-backoff]`.
struct Ngram<'a> {
    prob: f32,
    backoff: f32,
    words: [&'a str; MAX_ORDER],
    order: usize,
}

impl<'a> Ngram<'a> {
    fn parse(line: &'a str, order: usize, max: usize) -> Option<Self> {
        let mut fields = line.split([' ', '\t']).filter(|field| !field.is_empty());
        let prob = log10(fields.next()?)?;
        let mut words = [""; MAX_ORDER];
        for word in &mut words[..order] {
            *word = fields.next()?;
        }
        let backoff = match fields.next() {
            Some(field) if order < max => log10(field)?,
            Some(_) => return None,
            None => 0.0,
        };
        // A positive logarithm is a probability above one; some tools write tiny ones by rounding.
        (prob <= 0.01 && fields.next().is_none()).then_some(Self { prob: prob.min(0.0), backoff, words, order })
    }
}

fn log10(field: &str) -> Option<f32> {
    let value: f32 = field.parse().ok()?;
    // `-inf` is what some tools write for <s>; it must stay summable.
    if value.is_nan() || value == f32::INFINITY { None } else { Some(value.max(-1e4)) }
}

enum Problem {
    UnknownWord(String),
    Twice,
}

/// N-grams as they come, as a tree with hashed edges.
struct Builder {
    order: usize,
    n_ngrams: usize,
    names: HashMap<Box<str>, u32>,
    /// Probability and back-off of every node.
    nodes: Vec<(f32, f32)>,
    edges: Edges,
}

impl Builder {
    fn new(order: usize) -> Self {
        Self { order, n_ngrams: 0, names: HashMap::new(), nodes: vec![(0.0, 0.0)], edges: Edges::default() }
    }

    fn add(&mut self, ngram: &Ngram<'_>) -> Result<(), Problem> {
        self.n_ngrams += 1;
        if ngram.order == 1 {
            let before = self.names.insert(ngram.words[0].into(), self.nodes.len() as u32);
            self.nodes.push((ngram.prob, ngram.backoff));
            return if before.is_some() { Err(Problem::Twice) } else { Ok(()) };
        }
        let mut at = ROOT;
        for word in &ngram.words[..ngram.order] {
            let id = *self.names.get(*word).ok_or_else(|| Problem::UnknownWord(word.chars().take(60).collect()))?;
            at = if at == ROOT { id } else { self.step(at, id) };
        }
        let node = &mut self.nodes[at as usize];
        if !node.0.is_nan() {
            return Err(Problem::Twice);
        }
        *node = (ngram.prob, ngram.backoff);
        Ok(())
    }

    /// The child of `node` by a word, created if there is none.
    fn step(&mut self, node: u32, word: u32) -> u32 {
        self.edges.get(node, word).unwrap_or_else(|| {
            let child = self.nodes.len() as u32;
            self.nodes.push((f32::NAN, 0.0));
            self.edges.insert(node, word, child);
            child
        })
    }

    fn finish(self) -> NgramModel {
        let Self { order, n_ngrams, mut names, nodes, edges } = self;
        let n_words = names.len() as u32;
        let unknown = [UNKNOWN, "<UNK>"].iter().find_map(|name| names.get(*name).copied());
        names.shrink_to_fit();
        let mut edges = edges.all();
        edges.sort_unstable();
        let mut model =
            NgramModel { order, n_ngrams, names, unknown: unknown.unwrap_or(n_words + 1), ..NgramModel::default() };
        // The old numbers of the nodes in their new order; a word that was missing has none.
        let mut olds: Vec<Option<u32>> = (0..=n_words).map(Some).chain(unknown.is_none().then_some(None)).collect();
        model.words = (0..olds.len() as u32).collect();
        let mut start = 1;
        model.inner.push(Inner { backoff: 0.0, first_child: 1, shorter: ROOT });
        for _ in 1..order {
            let end = olds.len();
            for at in start..end {
                let backoff = olds[at].map_or(0.0, |old| nodes[old as usize].1);
                model.inner.push(Inner { backoff, first_child: olds.len() as u32, shorter: ROOT });
                let Some(old) = olds[at] else { continue };
                let first = edges.partition_point(|edge| edge.0 < old);
                for (_, word, child) in edges[first..].iter().take_while(|edge| edge.0 == old) {
                    olds.push(Some(*child));
                    model.words.push(*word);
                }
            }
            start = end;
        }
        model.inner.push(Inner { backoff: 0.0, first_child: olds.len() as u32, shorter: ROOT });
        model.probs = olds.iter().map(|old| old.map_or(UNKNOWN_LOG10, |old| nodes[old as usize].0)).collect();
        model.link();
        model
    }
}
