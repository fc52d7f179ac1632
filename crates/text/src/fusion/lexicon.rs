//! Lexicons: words, their pronunciations or spellings as classes of a label set, and the prefix tree of all of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::encoder::encode;
use super::phrases::{ReadListError, check_length};
use crate::labels::{LabelSet, Units};

/// The root of the tree: between words.
pub(super) const ROOT: u32 = 0;
/// Inside a word that is not in the tree.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// Words with the labels of each of their pronunciations; cloning it copies pointers.
///
/// ```
/// use srf_text::fusion::Lexicon;
/// use srf_text::labels::{LabelSet, Units};
///
/// let labels = LabelSet::new(Units::Phones, ["d", "eh", "iy", "r"])?;
/// let lexicon = Lexicon::parse("read r eh d\nread(2) r iy d\nred r eh d\n", &labels)?;
/// assert_eq!((lexicon.n_words(), lexicon.word(1)), (2, Some("red")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lexicon {
    pub(crate) names: Arc<Names>,
    pub(crate) tree: Arc<WordTree>,
    /// For every word its number in the language model with the same stamp, if they are from one file.
    pub(crate) ids: Arc<[u32]>,
    pub(crate) stamp: u32,
}

/// Many words in one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) text: String,
    /// Where each word ends in `text`.
    pub(crate) ends: Vec<u32>,
}

impl Names {
    fn push(&mut self, name: &str) -> u32 {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
        self.ends.len() as u32 - 1
    }

    pub(crate) fn get(&self, index: u32) -> Option<&str> {
        let end = *self.ends.get(index as usize)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before as usize] as usize);
        Some(&self.text[start..end])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len() as u32).filter_map(|index| self.get(index))
    }
}

impl Lexicon {
    /// Reads `word label label ...` lines, one for each pronunciation, as in CMUdict: a number in brackets after the
    /// word (`read(2)`) is not part of it, stress digits are dropped if the set has none, and lines that begin with
    /// `;;;` or `#` and comments after ` #` are skipped.
    pub fn parse(text: &str, labels: &LabelSet) -> Result<Self, ReadListError> {
        let mut builder = Builder::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with(";;;") || line.starts_with('#') {
                continue;
            }
            let mut fields = line.split_whitespace();
            let word = fields.next().map_or("", base_word);
            let found: Result<Vec<u32>, &str> = fields.map(|name| class(labels, name).ok_or(name)).collect();
            let short = |text: &str| text.chars().take(40).collect();
            let found = found.map_err(|label| {
                let (found, phrase) = (short(label), short(word));
                ReadListError::Label { line: index + 1, found, phrase }
            })?;
            if found.is_empty() {
                return Err(ReadListError::NoLabels { line: index + 1, word: short(word) });
            }
            builder.add(word, found);
        }
        check_length(builder.entries.len())?;
        Ok(builder.finish())
    }

    /// Words with their pronunciations, which are names of labels; those with a label that the set does not have are left
    /// out and counted.
    ///
    /// ```
    /// use srf_text::fusion::Lexicon;
    /// use srf_text::labels::{LabelSet, Units};
    ///
    /// let labels = LabelSet::new(Units::Phones, ["b", "iy"])?;
    /// let (lexicon, n_left_out) = Lexicon::pronounced([("bee", &["b", "iy"][..]), ("tea", &["t", "iy"])], &labels);
    /// assert_eq!((lexicon.n_words(), n_left_out), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pronounced<'a, L: AsRef<[&'a str]>>(
        entries: impl IntoIterator<Item = (&'a str, L)>,
        labels: &LabelSet,
    ) -> (Self, usize) {
        let mut builder = Builder::default();
        let mut n_left_out = 0;
        for (word, names) in entries {
            let classes: Option<Vec<u32>> = names.as_ref().iter().map(|name| class(labels, name)).collect();
            match classes {
                Some(classes) if !classes.is_empty() => builder.add(word, classes),
                _ => n_left_out += 1,
            }
        }
        (builder.finish(), n_left_out)
    }

    /// Words spelled in the labels of the set; those that cannot be spelled are left out and counted.
    pub fn spelled<'a>(words: impl IntoIterator<Item = &'a str>, labels: &LabelSet) -> (Self, usize) {
        let mut builder = Builder::default();
        let mut n_left_out = 0;
        for word in words {
            match encode(labels, word) {
                Some(classes) if !classes.is_empty() => {
                    builder.add(word, classes.into_iter().map(|class| class as u32).collect());
                }
                _ => n_left_out += 1,
            }
        }
        (builder.finish(), n_left_out)
    }

    /// What [`Self::parse`] reads: a line for each pronunciation, in the order of the labels.
    pub fn format(&self, labels: &LabelSet) -> String {
        let mut text = String::new();
        let mut parents = vec![ROOT; self.tree.n_nodes()];
        for node in 0..self.tree.n_nodes() as u32 {
            self.tree.children(node).for_each(|child| parents[child as usize] = node);
            for word in self.tree.words(node) {
                let above = std::iter::successors(Some(node), |node| Some(parents[*node as usize]));
                let classes = above.take_while(|node| *node != ROOT).map(|node| self.tree.classes[node as usize]);
                let mut names: Vec<&str> = classes.filter_map(|class| labels.symbol(class as usize)).collect();
                names.push(self.word(*word).unwrap_or_default());
                names.reverse();
                text.push_str(&names.join(" "));
                text.push('\n');
            }
        }
        text
    }

    /// The spelling of a word.
    pub fn word(&self, word: u32) -> Option<&str> {
        self.names.get(word)
    }

    /// Number of pronunciations, each of them counted once for every word that is said so.
    pub fn n_pronunciations(&self) -> usize {
        self.tree.words.len()
    }

    /// Number of words.
    pub fn n_words(&self) -> usize {
        self.names.ends.len()
    }
}

#[derive(Default)]
struct Builder {
    names: Names,
    ids: HashMap<String, u32>,
    entries: Vec<(Vec<u32>, u32)>,
}

impl Builder {
    fn add(&mut self, word: &str, classes: Vec<u32>) {
        let id = *self.ids.entry(word.to_owned()).or_insert_with(|| self.names.push(word));
        self.entries.push((classes, id));
    }

    fn finish(self) -> Lexicon {
        Lexicon { names: Arc::new(self.names), tree: Arc::new(WordTree::new(self.entries)), ..Lexicon::default() }
    }
}

fn base_word(word: &str) -> &str {
    match word.strip_suffix(')').and_then(|word| word.rsplit_once('(')) {
        Some((base, number)) if !base.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => word,
    }
}

fn class(labels: &LabelSet, name: &str) -> Option<u32> {
    let find = |name: &str| labels.class(name).or_else(|| labels.class(&name.to_lowercase()));
    let found = find(name).or_else(|| find(&name.to_uppercase()));
    let is_phone = labels.units() == Units::Phones;
    let unstressed = || find(name.trim_end_matches(['0', '1', '2'])).filter(|_| is_phone);
    found.or_else(unstressed).map(|class| class as u32)
}

/// The prefix tree of all pronunciations, nodes in breadth-first order so that children are neighbours.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WordTree {
    /// For every node the label that leads to it.
    pub(crate) classes: Vec<u32>,
    /// For every node its first child; one more at the end.
    pub(crate) first_child: Vec<u32>,
    /// For every node its first word in `words`; one more at the end.
    pub(crate) first_word: Vec<u32>,
    pub(crate) words: Vec<u32>,
}

impl WordTree {
    fn new(mut entries: Vec<(Vec<u32>, u32)>) -> Self {
        entries.sort_unstable();
        entries.dedup();
        let mut tree = Self { classes: vec![0], ..Self::default() };
        // The entries below each node, and its depth; entries that end in the node come first.
        let mut ranges = vec![(0, entries.len(), 0)];
        let mut node = 0;
        while let Some(&(mut start, end, depth)) = ranges.get(node) {
            tree.first_word.push(tree.words.len() as u32);
            tree.first_child.push(ranges.len() as u32);
            while start < end {
                let Some(&class) = entries[start].0.get(depth) else {
                    tree.words.push(entries[start].1);
                    start += 1;
                    continue;
                };
                let len = entries[start..end].partition_point(|(classes, _)| classes[depth] <= class);
                ranges.push((start, start + len, depth + 1));
                tree.classes.push(class);
                start += len;
            }
            node += 1;
        }
        tree.first_word.push(tree.words.len() as u32);
        tree.first_child.push(ranges.len() as u32);
        tree
    }

    pub(crate) fn n_nodes(&self) -> usize {
        self.classes.len()
    }

    pub(super) fn children(&self, node: u32) -> std::ops::Range<u32> {
        self.first_child[node as usize]..self.first_child[node as usize + 1]
    }

    pub(super) fn child(&self, node: u32, class: u32) -> Option<u32> {
        if node == OUTSIDE {
            return None;
        }
        let children = self.children(node);
        let classes = &self.classes[children.start as usize..children.end as usize];
        classes.binary_search(&class).ok().map(|at| children.start + at as u32)
    }

    /// The words that end in a node.
    pub(super) fn words(&self, node: u32) -> &[u32] {
        if node == OUTSIDE {
            return &[];
        }
        &self.words[self.first_word[node as usize] as usize..self.first_word[node as usize + 1] as usize]
    }

    /// For every node the largest value of a word at or below it.
    pub(crate) fn best_values(&self, value: impl Fn(u32) -> f32) -> Vec<f32> {
        let mut best = vec![f32::NEG_INFINITY; self.n_nodes()];
        for node in (0..self.n_nodes() as u32).rev() {
            let below = self.children(node).map(|child| best[child as usize]);
            let here = self.words(node).iter().map(|word| value(*word));
            best[node as usize] = below.chain(here).fold(f32::NEG_INFINITY, f32::max);
        }
        best
    }

    /// For every word the number of labels of its shortest pronunciation.
    pub(super) fn n_labels(&self, n_words: usize) -> Vec<u32> {
        let mut n_labels = vec![u32::MAX; n_words];
        let mut depths = vec![0; self.n_nodes()];
        for node in 0..self.n_nodes() as u32 {
            let depth = depths[node as usize];
            self.children(node).for_each(|child| depths[child as usize] = depth + 1);
            self.words(node).iter().for_each(|word| n_labels[*word as usize] = n_labels[*word as usize].min(depth));
        }
        n_labels
    }
}
