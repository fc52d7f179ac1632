//! The words of a text, numbered in the order in which they first occur.

use srf_base::random::scramble;

/// Numbers of the words that every model has.
pub(crate) const UNKNOWN: u32 = 0;
pub(crate) const SENTENCE_START: u32 = 1;
pub(crate) const SENTENCE_END: u32 = 2;
/// The first three words, in the order of their numbers.
pub(crate) const SPECIAL: [&str; 3] = ["<unk>", "<s>", "</s>"];

const EMPTY: u32 = u32::MAX;

/// Words and their numbers: an open-addressing hash table over the bytes of all words.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    text: Vec<u8>,
    /// Where each word ends in `text`.
    ends: Vec<usize>,
    hashes: Vec<u64>,
    /// Numbers of words by their hash; a power of two.
    slots: Vec<u32>,
}

impl Vocabulary {
    /// No words at all.
    pub(crate) fn empty() -> Self {
        Self { text: Vec::new(), ends: Vec::new(), hashes: Vec::new(), slots: vec![EMPTY; 1 << 10] }
    }

    /// The three special words.
    pub(crate) fn with_special() -> Self {
        let mut words = Self::empty();
        for word in SPECIAL {
            words.insert(word.as_bytes());
        }
        words
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn word(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.text[start..self.ends[id]]
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).map(|id| self.word(id))
    }

    pub(crate) fn get(&self, word: &[u8]) -> Option<u32> {
        let id = self.slots[self.slot(word, hash(word))];
        (id != EMPTY).then_some(id)
    }

    /// The number of a word, new or not.
    pub(crate) fn insert(&mut self, word: &[u8]) -> u32 {
        let hash = hash(word);
        let slot = self.slot(word, hash);
        if self.slots[slot] != EMPTY {
            return self.slots[slot];
        }
        let id = self.len() as u32;
        self.slots[slot] = id;
        self.text.extend_from_slice(word);
        self.ends.push(self.text.len());
        self.hashes.push(hash);
        if 2 * self.len() > self.slots.len() {
            self.grow();
        }
        id
    }

    /// The slot of a word, or the empty one where it belongs.
    fn slot(&self, word: &[u8], hash: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let id = self.slots[slot];
            if id == EMPTY || (self.hashes[id as usize] == hash && self.word(id) == word) {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let mask = 2 * self.slots.len() - 1;
        self.slots = vec![EMPTY; mask + 1];
        for (id, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = id as u32;
        }
    }
}

/// Eight bytes at a time; several times as fast as the hash of the standard library on short words.
fn hash(bytes: &[u8]) -> u64 {
    let mut state = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        state = mix(state, u64::from_le_bytes(chunk.try_into().expect("chunks have eight bytes")));
    }
    let rest = chunks.remainder().iter().rev().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
    scramble(mix(state, rest))
}

fn mix(state: u64, value: u64) -> u64 {
    (state.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_numbers_of_their_first_occurrence() {
        let mut words = Vocabulary::with_special();
        let names: Vec<String> = (0..5000).map(|i| format!("w{}", i * i)).collect();
        for (index, name) in names.iter().enumerate() {
            assert_eq!(words.insert(name.as_bytes()), index as u32 + 3);
        }
        for (index, name) in names.iter().enumerate() {
            assert_eq!(words.insert(name.as_bytes()), index as u32 + 3);
            assert_eq!(words.get(name.as_bytes()), Some(index as u32 + 3));
            assert_eq!(words.word(index as u32 + 3), name.as_bytes());
        }
        assert_eq!(words.get(b"w2"), None);
        assert_eq!(words.get(b"</s>"), Some(SENTENCE_END));
        assert_eq!(words.len(), 5003);
    }
}
