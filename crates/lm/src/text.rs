//! Reads texts, one sentence per line, and turns their words into numbers.
//!
//! Blocks of whole lines are split into words on all threads, each with a vocabulary of its own; these are then joined
//! in the order of the blocks, so that the numbers do not depend on the threads.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use rayon::prelude::*;

use crate::EstimateError;
use crate::sort::{Queue, Room};
use crate::vocab::{SENTENCE_END, SPECIAL, Vocabulary};

const BLOCK_BYTES: usize = 2 << 20;
/// Longer lines are no sentences; without a limit a file without line ends would fill the memory.
const MAX_LINE_BYTES: usize = 64 << 20;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A text to be read, with the name that errors give it.
pub struct Text {
    name: String,
    from: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Text({})", self.name)
    }
}

impl Text {
    /// Reads what `from` gives.
    pub fn new(name: impl Into<String>, from: impl Read + Send + 'static) -> Self {
        Self { name: name.into(), from: Box::new(from) }
    }

    /// Opens a file, plain or compressed by gzip, whatever its name.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = BufReader::with_capacity(1 << 18, File::open(path)?);
        let name = path.display().to_string();
        if file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
            return Ok(Self::new(name, MultiGzDecoder::new(file)));
        }
        Ok(Self::new(name, file))
    }

    /// The name that errors give the text.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.from.read(buffer)
    }
}

/// All texts as numbers of words.
pub(crate) struct Corpus {
    pub(crate) vocabulary: Vocabulary,
    /// The words of all sentences, with [`SENTENCE_END`] after each sentence.
    pub(crate) words: Queue<u32>,
    /// How often each word occurs.
    pub(crate) counts: Vec<u64>,
}

impl Corpus {
    pub(crate) fn n_sentences(&self) -> u64 {
        self.counts[SENTENCE_END as usize]
    }

    pub(crate) fn n_words(&self) -> u64 {
        self.words.len() - self.n_sentences()
    }
}

/// Reads all of `texts`.
pub(crate) fn read(texts: Vec<Text>, skip_symbols: bool, room: Room) -> Result<Corpus, EstimateError> {
    let mut corpus = Corpus { vocabulary: Vocabulary::with_special(), words: Queue::new(room), counts: vec![0; 3] };
    for text in texts {
        corpus.add(text, skip_symbols)?;
    }
    Ok(corpus)
}

impl Corpus {
    fn add(&mut self, text: Text, skip_symbols: bool) -> Result<(), EstimateError> {
        let Text { name, from } = text;
        let mut blocks = Blocks { from, rest: Vec::new(), is_first: true, is_done: false };
        let mut n_lines = 0;
        loop {
            let mut batch = Vec::new();
            while batch.len() < 4 * rayon::current_num_threads() {
                match blocks.next() {
                    Ok(Some(block)) => batch.push(block),
                    Ok(None) => break,
                    Err(BlockError::Read(source)) => return Err(EstimateError::Read { name, source }),
                    Err(BlockError::LongLine) => return Err(EstimateError::LongLine { name, limit: MAX_LINE_BYTES }),
                }
            }
            if batch.is_empty() {
                return Ok(());
            }
            let split: Vec<_> = batch.par_iter().map(|block| SplitBlock::new(block, skip_symbols)).collect();
            for block in split {
                let block = block.map_err(|problem| problem.into_error(&name, n_lines))?;
                n_lines += block.n_lines;
                self.join(&block)?;
            }
        }
    }

    fn join(&mut self, block: &SplitBlock) -> Result<(), EstimateError> {
        let ids: Vec<u32> = block.vocabulary.words().map(|word| self.vocabulary.insert(word)).collect();
        self.counts.resize(self.vocabulary.len(), 0);
        for word in &block.words {
            let id = ids[*word as usize];
            self.counts[id as usize] += 1;
            self.words.push(id)?;
        }
        Ok(())
    }
}

enum BlockError {
    Read(io::Error),
    LongLine,
}

/// Cuts a text into blocks of whole lines.
struct Blocks {
    from: Box<dyn Read + Send>,
    /// The start of a line whose end is not read yet.
    rest: Vec<u8>,
    is_first: bool,
    is_done: bool,
}

impl Blocks {
    fn next(&mut self) -> Result<Option<Vec<u8>>, BlockError> {
        let mut block = std::mem::take(&mut self.rest);
        while !self.is_done {
            let n_before = block.len();
            block.reserve(BLOCK_BYTES);
            let mut part = self.from.by_ref().take(BLOCK_BYTES as u64);
            let n_read = part.read_to_end(&mut block).map_err(BlockError::Read)?;
            self.is_done = n_read == 0;
            self.skip_byte_order_mark(&mut block);
            let last = block.get(n_before..).and_then(|new| new.iter().rposition(|byte| *byte == b'\n'));
            if let Some(at) = last {
                self.rest = block.split_off(n_before + at + 1);
                return Ok(Some(block));
            }
            if block.len() > MAX_LINE_BYTES {
                return Err(BlockError::LongLine);
            }
        }
        Ok((!block.is_empty()).then_some(block))
    }

    fn skip_byte_order_mark(&mut self, block: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_first) && block.starts_with(BYTE_ORDER_MARK) {
            block.drain(..BYTE_ORDER_MARK.len());
        }
    }
}

/// What is wrong with a line of a block, counted from 0.
enum Problem {
    NotUtf8 { line: usize },
    Symbol { line: usize, symbol: &'static str },
}

impl Problem {
    fn into_error(self, name: &str, n_lines_before: usize) -> EstimateError {
        let name = name.to_owned();
        match self {
            Self::NotUtf8 { line } => EstimateError::NotUtf8 { name, line: n_lines_before + line + 1 },
            Self::Symbol { line, symbol } => EstimateError::Symbol { name, line: n_lines_before + line + 1, symbol },
        }
    }
}

/// A block as numbers of its own vocabulary.
struct SplitBlock {
    vocabulary: Vocabulary,
    words: Vec<u32>,
    n_lines: usize,
}

impl SplitBlock {
    fn new(bytes: &[u8], skip_symbols: bool) -> Result<Self, Problem> {
        std::str::from_utf8(bytes).map_err(|error| {
            let valid = &bytes[..error.valid_up_to()];
            Problem::NotUtf8 { line: valid.split(|byte| *byte == b'\n').count() - 1 }
        })?;
        let mut block =
            Self { vocabulary: Vocabulary::with_special(), words: Vec::with_capacity(bytes.len() / 4), n_lines: 0 };
        let mut start = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if is_space(*byte) {
                block.add_word(&bytes[start..at], skip_symbols)?;
                start = at + 1;
                if *byte == b'\n' {
                    block.end_line();
                }
            }
        }
        if bytes.last() != Some(&b'\n') {
            block.add_word(&bytes[start..], skip_symbols)?;
            block.end_line();
        }
        Ok(block)
    }

    fn add_word(&mut self, word: &[u8], skip_symbols: bool) -> Result<(), Problem> {
        if word.is_empty() {
            return Ok(());
        }
        let id = self.vocabulary.insert(word);
        match SPECIAL.get(id as usize) {
            None => self.words.push(id),
            Some(_) if skip_symbols => {}
            Some(symbol) => return Err(Problem::Symbol { line: self.n_lines, symbol }),
        }
        Ok(())
    }

    fn end_line(&mut self) {
        self.words.push(SENTENCE_END);
        self.n_lines += 1;
    }
}

/// The spaces of ASCII and NUL, as in KenLM; other spaces of Unicode are parts of words.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\0')
}
