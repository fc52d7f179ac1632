//! Networks of words: text with alternatives such as `so { um / uh / @ } what`, of which an alignment picks the best.
//!
//! The order in which words enter a node is the order of the file, since it decides between readings of equal cost.

use crate::encoding::Encoding;
use crate::word::{NOTHING, Word, escape_semicolons};

/// How words are prepared before they are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// A fragment matches the words it begins or ends.
    pub fragments: bool,
    /// Words in brackets may be left out.
    pub optional_words: bool,
    /// Characters are compared instead of words.
    pub characters: Option<Characters>,
    /// What the bytes mean.
    pub encoding: Encoding,
}

/// How words are cut into characters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Characters {
    /// Runs of ASCII stay together.
    pub keep_ascii: bool,
    /// Hyphens are dropped.
    pub drop_hyphens: bool,
}

/// A word, or a choice between sequences of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Word(Word),
    Choice(Vec<Vec<Item>>),
}

/// Why text could not be read as words and alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what they are")]
pub enum ReadAlternativesError {
    #[error("`{{` is never closed by a `}}`")]
    Unclosed,
    #[error("nothing stands between `{{` and `}}`, not even `@`")]
    Empty,
    #[error("`{{` stands inside a word, a space is expected before it")]
    Glued,
    #[error("`{{` is nested deeper than {MAX_DEPTH} times")]
    TooDeep,
}

const MAX_DEPTH: usize = 64;

/// Reads the words and the alternatives `{ a / b / @ }` of `text`.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Item>, ReadAlternativesError> {
    parse_nested(text, 0)
}

fn parse_nested(text: &[u8], depth: usize) -> Result<Vec<Item>, ReadAlternativesError> {
    if depth > MAX_DEPTH {
        return Err(ReadAlternativesError::TooDeep);
    }
    let mut items = Vec::new();
    let mut rest = trim_start(text);
    while let Some(first) = rest.first() {
        let len = if *first == b'{' { braces_len(rest)? } else { token_len(rest) };
        let (token, others) = rest.split_at(len);
        items.push(parse_item(token, depth)?);
        rest = trim_start(others);
    }
    Ok(items)
}

fn parse_item(token: &[u8], depth: usize) -> Result<Item, ReadAlternativesError> {
    if let [b'{', inside @ .., b'}'] = token {
        return parse_choice(inside, depth).map(Item::Choice);
    }
    if token.contains(&b'{') {
        return Err(ReadAlternativesError::Glued);
    }
    Ok(Item::Word(Word::parse(token)))
}

fn parse_choice(inside: &[u8], depth: usize) -> Result<Vec<Vec<Item>>, ReadAlternativesError> {
    let mut choices = Vec::new();
    for alternative in split_alternatives(inside) {
        let items = parse_nested(alternative, depth + 1)?;
        if !items.is_empty() {
            choices.push(items);
        }
    }
    if choices.is_empty() { Err(ReadAlternativesError::Empty) } else { Ok(choices) }
}

/// Splits at the slashes outside of inner braces.
fn split_alternatives(inside: &[u8]) -> Vec<&[u8]> {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut parts = Vec::new();
    for (at, byte) in inside.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b'/' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}

fn braces_len(text: &[u8]) -> Result<usize, ReadAlternativesError> {
    let mut depth = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(at + 1);
        }
    }
    Err(ReadAlternativesError::Unclosed)
}

fn token_len(text: &[u8]) -> usize {
    text.iter().position(|b| is_space(*b)).unwrap_or(text.len())
}

/// White space as C's `isspace` sees it.
pub(crate) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn trim_start(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|b| is_space(**b)).count();
    &text[blanks..]
}

/// Words in an order in which each comes after all that may stand before it.
///
/// Index 0 is the place before the first word; word `i` is `words[i - 1]`.
///
/// ```
/// use srf_score::{Characters, Network, ReadAlternativesError, Reading, Word};
///
/// assert!(Network::linear(vec![Word::new(*b"yes")]).is_linear());
/// let reading = Reading { optional_words: true, ..Reading::default() };
/// assert!(!Network::parse(b"the { colour / color } { uh / @ }", reading)?.is_linear());
/// // By characters, but Latin words stay whole.
/// let characters = Some(Characters { keep_ascii: true, drop_hyphens: false });
/// assert!(Network::parse("好 ok".as_bytes(), Reading { characters, ..reading })?.is_linear());
/// assert!(matches!(Network::parse(b"{ a / b", reading), Err(ReadAlternativesError::Unclosed)));
/// # Ok::<(), ReadAlternativesError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Network {
    pub(crate) words: Vec<Word>,
    /// For each word the indices that may stand just before it; empty where it is just the one before.
    pub(crate) before: Vec<Vec<u32>>,
    /// The indices the network may end with.
    pub(crate) last: Vec<u32>,
}

impl Network {
    /// One reading: these words, one after the other.
    pub fn linear(words: Vec<Word>) -> Self {
        let last = vec![words.len() as u32];
        Self { words, before: Vec::new(), last }
    }

    /// The words of `text` and its alternatives `{ a / b / @ }`, prepared for comparison.
    pub fn parse(text: &[u8], reading: Reading) -> Result<Self, ReadAlternativesError> {
        Ok(Self::from_items(parse(text)?, reading))
    }

    /// Whether there is only one reading.
    pub fn is_linear(&self) -> bool {
        self.before.is_empty()
    }

    pub(crate) fn from_items(mut items: Vec<Item>, reading: Reading) -> Self {
        mark(&mut items, reading);
        if items.iter().all(|item| matches!(item, Item::Word(_))) {
            let words = items.into_iter().filter_map(|item| if let Item::Word(w) = item { Some(w) } else { None });
            return Self::linear(match reading.characters {
                Some(characters) => words.flat_map(|w| cut_word(w, characters, reading.encoding)).collect(),
                None => words.collect(),
            });
        }
        let mut graph = Graph::new(items);
        if let Some(characters) = reading.characters {
            graph.cut_words(characters, reading.encoding);
        }
        graph.into_network()
    }
}

fn mark(items: &mut [Item], reading: Reading) {
    for item in items {
        match item {
            Item::Word(word) => {
                if reading.optional_words {
                    word.mark_optional();
                }
                if reading.fragments {
                    word.mark_fragment();
                }
            }
            Item::Choice(choices) => choices.iter_mut().for_each(|choice| mark(choice, reading)),
        }
    }
}

/// The characters of a word, which share its time equally; the word itself where there is nothing to cut.
fn cut_word(word: Word, characters: Characters, encoding: Encoding) -> Vec<Word> {
    if word.text.len() <= 1 {
        return vec![word];
    }
    let pieces = cut(word.spelling(), characters, encoding);
    if let [only] = &pieces[..]
        && **only == *word.text
    {
        return vec![word];
    }
    let duration_s = word.duration_s / pieces.len() as f64;
    let mut start_s = word.start_s;
    let mut words = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let mut part = Word::parse(&escape_semicolons(&piece)).at(start_s, duration_s).with_confidence(word.confidence);
        part.duration_s = duration_s;
        if word.is_optional() {
            part.text = [b"(", &*part.text, b")"].concat().into();
            part.mark_optional();
        }
        start_s += duration_s;
        words.push(part);
    }
    words
}

fn cut(spelling: &[u8], characters: Characters, encoding: Encoding) -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut was_ascii = false;
    for character in encoding.characters(spelling) {
        if characters.drop_hyphens && character == b"-" {
            continue;
        }
        let is_ascii = match encoding {
            Encoding::Utf8(_) => character.is_ascii(),
            Encoding::Ascii | Encoding::Latin1 => true,
        };
        match pieces.last_mut() {
            Some(run) if characters.keep_ascii && is_ascii && was_ascii => run.extend_from_slice(character),
            _ => pieces.push(character.to_vec()),
        }
        was_ascii = is_ascii;
    }
    if pieces.is_empty() {
        pieces.push(NOTHING.to_vec());
    }
    pieces
}

/// A network while it is being built: words run from node to node.
struct Graph {
    arcs: Vec<Arc>,
    nodes: Vec<Node>,
    stop: usize,
}

struct Arc {
    word: Word,
    from: usize,
    to: usize,
}

#[derive(Default)]
struct Node {
    entering: Vec<usize>,
    leaving: Vec<usize>,
}

impl Graph {
    fn new(items: Vec<Item>) -> Self {
        let mut graph = Self { arcs: Vec::new(), nodes: vec![Node::default()], stop: 0 };
        let stop = graph.add_node();
        graph.stop = stop;
        graph.add_sequence(items, 0, stop);
        graph
    }

    fn add_node(&mut self) -> usize {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    fn add_arc(&mut self, word: Word, from: usize, to: usize) {
        let index = self.arcs.len();
        self.arcs.push(Arc { word, from, to });
        self.nodes[from].leaving.push(index);
        self.nodes[to].entering.push(index);
    }

    fn add_sequence(&mut self, items: Vec<Item>, from: usize, to: usize) {
        let n_items = items.len();
        let mut here = from;
        for (at, item) in items.into_iter().enumerate() {
            let next = if at + 1 == n_items { to } else { self.add_node() };
            match item {
                Item::Word(word) => self.add_arc(word, here, next),
                Item::Choice(choices) => {
                    for choice in choices {
                        self.add_sequence(choice, here, next);
                    }
                }
            }
            here = next;
        }
    }

    /// Cuts every word into characters, node by node, depth first: a word that is cut goes after the
    /// others that enter the same node, so this order decides later between equal readings.
    fn cut_words(&mut self, characters: Characters, encoding: Encoding) {
        let mut pending = vec![0];
        let mut seen = vec![false; self.nodes.len()];
        seen[0] = true;
        while let Some(node) = pending.pop() {
            let leaving = self.nodes[node].leaving.clone();
            for arc in &leaving {
                let to = self.arcs[*arc].to;
                if !seen[to] {
                    seen[to] = true;
                    pending.push(to);
                }
            }
            for arc in leaving {
                self.cut_arc(arc, characters, encoding);
            }
        }
    }

    fn cut_arc(&mut self, index: usize, characters: Characters, encoding: Encoding) {
        let Arc { word, from, to } = &self.arcs[index];
        let (from, to) = (*from, *to);
        let pieces = cut_word(word.clone(), characters, encoding);
        if pieces.len() == 1 && pieces[0].text == word.text && !word.is_optional() {
            return;
        }
        self.nodes[from].leaving.retain(|arc| *arc != index);
        self.nodes[to].entering.retain(|arc| *arc != index);
        self.add_sequence(pieces.into_iter().map(Item::Word).collect(), from, to);
    }

    /// Numbers the words so that each comes after all that enter its node.
    fn into_network(self) -> Network {
        let mut place = vec![0_u32; self.arcs.len()];
        let mut order = Vec::with_capacity(self.arcs.len());
        let mut n_waiting: Vec<usize> = self.nodes.iter().map(|node| node.entering.len()).collect();
        let mut ready = vec![0];
        while let Some(node) = ready.pop() {
            for arc in &self.nodes[node].leaving {
                order.push(*arc);
                place[*arc] = order.len() as u32;
                let to = self.arcs[*arc].to;
                n_waiting[to] -= 1;
                if n_waiting[to] == 0 {
                    ready.push(to);
                }
            }
        }
        let entering = |node: usize| -> Vec<u32> {
            if node == 0 { vec![0] } else { self.nodes[node].entering.iter().map(|arc| place[*arc]).collect() }
        };
        let before = order.iter().map(|arc| entering(self.arcs[*arc].from)).collect();
        let last = entering(self.stop);
        let words = order.iter().map(|arc| self.arcs[*arc].word.clone()).collect();
        Network { words, before, last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spellings(network: &Network) -> Vec<String> {
        network.words.iter().map(|w| String::from_utf8_lossy(&w.text).into_owned()).collect()
    }

    #[test]
    fn plain_words_have_one_reading() {
        let network = Network::parse(b"  a b\tc\n", Reading::default()).unwrap();
        assert!(network.is_linear());
        assert_eq!(spellings(&network), ["a", "b", "c"]);
    }

    #[test]
    fn alternatives_keep_the_order_of_the_file() {
        let network = Network::parse(b"a {b / {c/d} e /@} f", Reading::default()).unwrap();
        let f = network.words.iter().position(|w| &*w.text == b"f").unwrap();
        let before: Vec<_> = network.before[f].iter().map(|i| &*network.words[*i as usize - 1].text).collect();
        assert_eq!(before, [&b"b"[..], b"e", b"@"]);
        assert_eq!(network.last, [f as u32 + 1]);
    }

    #[test]
    fn bad_braces_are_told_apart() {
        let error = |text: &str| Network::parse(text.as_bytes(), Reading::default()).unwrap_err();
        assert_eq!(error("a { b / c"), ReadAlternativesError::Unclosed);
        assert_eq!(error("a { / }"), ReadAlternativesError::Empty);
        assert_eq!(error("a{b/c}"), ReadAlternativesError::Glued);
        assert_eq!(error(&format!("{}a{}", "{".repeat(99), "}".repeat(99))), ReadAlternativesError::TooDeep);
    }

    #[test]
    fn words_are_cut_into_characters_that_share_their_time() {
        let reading = Reading { characters: Some(Characters::default()), ..Reading::default() };
        let items = vec![Item::Word(Word::new(*b"ab").at(1.0, 0.5))];
        let network = Network::from_items(items, reading);
        assert_eq!(spellings(&network), ["a", "b"]);
        assert_eq!((network.words[1].start_s, network.words[1].end_s), (1.25, 1.5));
    }

    #[test]
    fn runs_of_ascii_may_stay_together_and_hyphens_go() {
        let characters = Some(Characters { keep_ascii: true, drop_hyphens: true });
        let encoding = Encoding::Utf8(crate::encoding::Language::Generic);
        let reading = Reading { characters, encoding, ..Reading::default() };
        let network = Network::parse("ab-c日本d".as_bytes(), reading).unwrap();
        assert_eq!(spellings(&network), ["abc", "日", "本", "d"]);
    }
}
