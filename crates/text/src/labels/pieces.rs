//! Pieces of words as labels: byte-pair encoding as in SentencePiece.
//!
//! A word is written as `▁` and its characters, and neighbours are joined as long as the two together are a piece; of
//! several such pairs the one whose piece comes first in the set. So the order of the labels is all that a text needs to
//! be cut into pieces, and `labels.txt` is the whole model.
//!
//! ```
//! use srf_text::labels::pieces::{self, PiecesError};
//! use srf_text::labels::{LabelSet, Units};
//!
//! let labels = pieces::learn(["low lower lowest", "low slow"], 11)?;
//! assert_eq!(labels.units(), Units::Pieces);
//! assert_eq!(labels.split("lower"), ["▁low", "e", "r"]);
//! assert!(labels.split("slow")[0].starts_with(pieces::WORD_START));
//! assert_eq!(labels.decode(&labels.encode("slow lower")?), "slow lower");
//! assert!(matches!(pieces::learn(["low"], 2), Err(PiecesError::TooFew { needed: 4, .. })));
//! assert!(matches!(pieces::read_sentencepiece(b"no model"), Err(PiecesError::NotAModel)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{LabelSet, LabelSetError, Units};

/// Begins every word, as a piece of its own or as the first character of one.
pub const WORD_START: char = '▁';

/// Words longer than this are cut into pieces in parts: no language has them, broken texts do.
const MAX_WORD_CHARS: usize = 400;

/// Why pieces could not be learned or read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum PiecesError {
    #[error("{size} pieces are too few: the text has {needed} different characters, the start of words included")]
    TooFew { size: usize, needed: usize },
    #[error("this is not a SentencePiece model")]
    NotAModel,
    #[error("this SentencePiece model is of type {found}, expected byte-pair encoding (`--model_type=bpe`)")]
    OtherType { found: &'static str },
    #[error(transparent)]
    Labels(#[from] LabelSetError),
}

/// The pieces of a word by their places in the set; characters that the set does not have stay alone.
pub(super) fn split_word(word: &str, place: impl Fn(&str) -> Option<usize>) -> Vec<String> {
    let chars: Vec<char> = std::iter::once(WORD_START).chain(word.chars()).collect();
    chars.chunks(MAX_WORD_CHARS).flat_map(|chars| merge(chars.iter().map(char::to_string).collect(), &place)).collect()
}

fn merge(mut pieces: Vec<String>, place: &impl Fn(&str) -> Option<usize>) -> Vec<String> {
    let joined = |pair: &[String]| place(&pair.concat());
    let mut places: Vec<Option<usize>> = pieces.windows(2).map(joined).collect();
    // The leftmost of equals, as they are the same piece.
    while let Some((_, at)) = places.iter().enumerate().filter_map(|(at, place)| Some(((*place)?, at))).min() {
        let right = pieces.remove(at + 1);
        pieces[at].push_str(&right);
        places.remove(at);
        for pair in at.saturating_sub(1)..=at {
            if pair + 1 < pieces.len() {
                places[pair] = joined(&pieces[pair..pair + 2]);
            }
        }
    }
    pieces
}

/// Learns `size` pieces from texts: all characters, and the pairs that occur most often, one after the other.
///
/// There are fewer if every word has become a piece before.
pub fn learn<'a>(texts: impl IntoIterator<Item = &'a str>, size: usize) -> Result<LabelSet, PiecesError> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    texts.into_iter().flat_map(str::split_whitespace).for_each(|word| *counts.entry(word).or_default() += 1);
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_unstable();
    let mut learner = Learner::new(&counts);
    let chars: BTreeSet<String> = learner.words.iter().flat_map(|word| word.pieces.iter().cloned()).collect();
    if size < chars.len() {
        return Err(PiecesError::TooFew { size, needed: chars.len() });
    }
    let mut known: HashSet<String> = chars.iter().cloned().collect();
    let mut merged = Vec::new();
    while known.len() < size
        && let Some(pair) = learner.most_frequent()
    {
        let piece = pair.0.clone() + &pair.1;
        learner.merge(&pair);
        // Two pairs can make the same piece.
        if known.insert(piece.clone()) {
            merged.push(piece);
        }
    }
    Ok(LabelSet::new(Units::Pieces, merged.into_iter().chain(chars))?)
}

type Pair = (String, String);

struct CountedWord {
    pieces: Vec<String>,
    count: u64,
}

impl CountedWord {
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        self.pieces.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()))
    }
}

/// The words of a text in pieces, with the counts of all pairs of neighbours.
struct Learner {
    words: Vec<CountedWord>,
    /// How often each pair occurs, and the words in which it has occurred.
    pairs: HashMap<Pair, (u64, BTreeSet<usize>)>,
}

impl Learner {
    fn new(counts: &[(&str, u64)]) -> Self {
        let in_chars = |word: &str| std::iter::once(WORD_START).chain(word.chars()).map(String::from).collect();
        let words = counts.iter().map(|(word, count)| CountedWord { pieces: in_chars(word), count: *count }).collect();
        let mut learner = Self { words, pairs: HashMap::new() };
        (0..learner.words.len()).for_each(|index| learner.count(index));
        learner
    }

    fn count(&mut self, index: usize) {
        let word = &self.words[index];
        for pair in word.pairs() {
            let (count, words) = self.pairs.entry(pair).or_default();
            *count += word.count;
            words.insert(index);
        }
    }

    fn uncount(&mut self, index: usize) {
        let word = &self.words[index];
        for pair in word.pairs() {
            if let Some((count, _)) = self.pairs.get_mut(&pair) {
                *count -= word.count;
            }
        }
    }

    /// The most frequent pair; of equals the first in the order of Unicode, so that a text always gives the same pieces.
    fn most_frequent(&self) -> Option<Pair> {
        let best = self.pairs.iter().filter(|(_, (count, _))| 0 < *count);
        best.max_by(|a, b| a.1.0.cmp(&b.1.0).then_with(|| b.0.cmp(a.0))).map(|(pair, _)| pair.clone())
    }

    fn merge(&mut self, pair: &Pair) {
        let (_, words) = self.pairs.remove(pair).unwrap_or_default();
        for index in words {
            self.uncount(index);
            let word = &mut self.words[index];
            let mut at = 0;
            while at + 1 < word.pieces.len() {
                if word.pieces[at] == pair.0 && word.pieces[at + 1] == pair.1 {
                    let right = word.pieces.remove(at + 1);
                    word.pieces[at].push_str(&right);
                }
                at += 1;
            }
            self.count(index);
        }
    }
}

/// The pieces of a SentencePiece model of byte-pair encoding: the file that its trainer writes, a protocol buffer.
pub fn read_sentencepiece(bytes: &[u8]) -> Result<LabelSet, PiecesError> {
    const PIECES: u64 = 1;
    const TRAINER: u64 = 2;
    const MODEL_TYPE: u64 = 3;
    const UNIGRAM: u64 = 1;
    const BPE: u64 = 2;
    let (mut pieces, mut model_type) = (Vec::new(), UNIGRAM);
    for field in fields(bytes) {
        match field.ok_or(PiecesError::NotAModel)? {
            (PIECES, Value::Bytes(piece)) => pieces.extend(normal_piece(piece)?),
            (TRAINER, Value::Bytes(trainer)) => {
                for field in fields(trainer) {
                    if let (MODEL_TYPE, Value::Number(found)) = field.ok_or(PiecesError::NotAModel)? {
                        model_type = found;
                    }
                }
            }
            _ => {}
        }
    }
    match model_type {
        _ if pieces.is_empty() => Err(PiecesError::NotAModel),
        BPE => Ok(LabelSet::new(Units::Pieces, pieces)?),
        UNIGRAM => Err(PiecesError::OtherType { found: "unigram" }),
        _ => Err(PiecesError::OtherType { found: "words or characters" }),
    }
}

/// The text of a piece; `None` for `<unk>`, `<s>` and other symbols that no text has.
fn normal_piece(bytes: &[u8]) -> Result<Option<String>, PiecesError> {
    const TEXT: u64 = 1;
    const TYPE: u64 = 3;
    const NORMAL: u64 = 1;
    let (mut text, mut kind) = (None, NORMAL);
    for field in fields(bytes) {
        match field.ok_or(PiecesError::NotAModel)? {
            (TEXT, Value::Bytes(found)) => text = std::str::from_utf8(found).ok(),
            (TYPE, Value::Number(found)) => kind = found,
            _ => {}
        }
    }
    let text = text.ok_or(PiecesError::NotAModel)?;
    Ok((kind == NORMAL).then(|| text.to_owned()))
}

/// A value of a protocol buffer.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Numbers of four or eight bytes, which we do not need.
    Fixed,
}

/// The fields of a protocol buffer with their numbers; `None` where it is broken, and nothing after that.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = Option<(u64, Value<'_>)>> {
    std::iter::from_fn(move || {
        (!bytes.is_empty()).then(|| {
            let field = take_field(&mut bytes);
            if field.is_none() {
                bytes = &[];
            }
            field
        })
    })
}

fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let key = take_number(bytes)?;
    let value = match key & 7 {
        0 => Value::Number(take_number(bytes)?),
        1 => bytes.split_off(..8).map(|_| Value::Fixed)?,
        2 => {
            let length = usize::try_from(take_number(bytes)?).ok()?;
            Value::Bytes(bytes.split_off(..length)?)
        }
        5 => bytes.split_off(..4).map(|_| Value::Fixed)?,
        _ => return None,
    };
    Some((key >> 3, value))
}

/// Seven bits in each byte, the lowest first.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pairs_are_merged_by_how_often_they_occur() {
        // "▁a" 4 times, "b" after it 3 times, "▁ab" + "c" 2 times.
        let labels = learn(["abc abc", "ab a"], 7).unwrap();
        assert_eq!(labels.symbols(), ["▁a", "▁ab", "▁abc", "a", "b", "c", "▁"]);
        assert_eq!(labels.split("abc ab acb"), ["▁abc", "▁ab", "▁a", "c", "b"]);
        assert_eq!(labels.foreign("axb"), ["x"]);
    }

    #[test]
    fn scripts_without_spaces_and_with_many_characters_are_learned() {
        let labels = learn(["今天天气很好", "今天很好", "안녕하세요 안녕"], 22).unwrap();
        assert!(labels.class("今天").is_some() || labels.class("▁今天").is_some(), "{:?}", labels.symbols());
        assert!(labels.class("▁안녕").is_some(), "{:?}", labels.symbols());
        assert_eq!(labels.decode(&labels.encode("안녕 今天").unwrap()), "안녕 今天");
    }

    #[test]
    fn there_are_no_more_pieces_than_the_text_has() {
        let labels = learn(["ab"], 100).unwrap();
        assert_eq!(labels.symbols(), ["ab", "▁ab", "a", "b", "▁"]);
    }

    proptest! {
        #[test]
        fn any_text_of_its_characters_comes_back(
            texts in prop::collection::vec("[abcd]{1,6}( [abcd]{1,6}){0,5}", 1..20),
            extra in 0usize..30,
        ) {
            let all = texts.join(" ");
            let n_chars = all.chars().filter(|c| *c != ' ').collect::<HashSet<_>>().len() + 1;
            let labels = learn(texts.iter().map(String::as_str), n_chars + extra).unwrap();
            for text in &texts {
                prop_assert_eq!(&labels.decode(&labels.encode(text).unwrap()), text);
            }
        }

        #[test]
        fn no_bytes_panic_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(read_sentencepiece(&bytes));
        }
    }

    /// A model as SentencePiece writes it: pieces with text, score and type, then the settings of the trainer.
    fn sentencepiece(pieces: &[(&str, u8)], model_type: u8) -> Vec<u8> {
        let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
        let piece = |(text, kind): &(&str, u8)| {
            field(1, &[field(1, text.as_bytes()), vec![2 << 3 | 5, 0, 0, 0, 0], vec![3 << 3, *kind]].concat())
        };
        let pieces: Vec<u8> = pieces.iter().flat_map(piece).collect();
        [pieces, field(2, &[3 << 3, model_type])].concat()
    }

    #[test]
    fn a_sentencepiece_model_is_its_list_of_pieces() {
        let pieces = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("▁a", 1), ("▁", 1), ("a", 1), ("b", 1)];
        let labels = read_sentencepiece(&sentencepiece(&pieces, 2)).unwrap();
        assert_eq!(labels.symbols(), ["▁a", "▁", "a", "b"]);
        assert_eq!(labels.split("ab ba"), ["▁a", "b", "▁", "b", "a"]);
        let unigram = read_sentencepiece(&sentencepiece(&pieces, 1)).unwrap_err();
        assert_eq!(unigram, PiecesError::OtherType { found: "unigram" });
        let whole = sentencepiece(&pieces, 2);
        for length in 1..whole.len() {
            drop(read_sentencepiece(&whole[..length]));
        }
    }
}
