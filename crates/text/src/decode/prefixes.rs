//! The prefixes of a beam as a tree with reference counts.
//!
//! A node lives while it is in the beam or has a child; then its place is used again. Memory is thus bounded by the
//! prefixes in the beam and what they do not share.

/// No node, no entry of the beam, no word.
pub(crate) const NONE: u32 = u32::MAX;

/// One label after the label of its parent.
#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    class: u32,
    /// The word that ended before this label, if there is a lexicon.
    word: u32,
    n_refs: u32,
    /// Its place in the beam.
    entry: u32,
    first_child: u32,
    next_sibling: u32,
}

/// All living prefixes.
pub(super) struct Prefixes {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
}

impl Prefixes {
    /// The empty prefix alone.
    pub(super) fn new() -> Self {
        let mut prefixes = Self { nodes: Vec::new(), free: Vec::new(), root: NONE };
        prefixes.root = prefixes.place(NONE, NONE, NONE);
        prefixes
    }

    /// The prefix that all others begin with.
    pub(super) fn root(&self) -> u32 {
        self.root
    }

    pub(super) fn parent(&self, node: u32) -> u32 {
        self.nodes[node as usize].parent
    }

    pub(super) fn word(&self, node: u32) -> u32 {
        self.nodes[node as usize].word
    }

    /// The place of a prefix in the beam, or [`NONE`].
    pub(super) fn entry(&self, node: u32) -> u32 {
        self.nodes[node as usize].entry
    }

    pub(super) fn set_entry(&mut self, node: u32, entry: u32) {
        self.nodes[node as usize].entry = entry;
    }

    /// `parent` and one more label, if it lives.
    pub(super) fn find(&self, parent: u32, class: u32, word: u32) -> Option<u32> {
        let mut child = self.nodes[parent as usize].first_child;
        while child != NONE {
            let node = &self.nodes[child as usize];
            if node.class == class && node.word == word {
                return Some(child);
            }
            child = node.next_sibling;
        }
        None
    }

    /// `parent` and one more label, held for the caller.
    pub(super) fn hold(&mut self, parent: u32, class: u32, word: u32) -> u32 {
        if let Some(child) = self.find(parent, class, word) {
            self.nodes[child as usize].n_refs += 1;
            return child;
        }
        let child = self.place(parent, class, word);
        let first = std::mem::replace(&mut self.nodes[parent as usize].first_child, child);
        self.nodes[child as usize].next_sibling = first;
        self.nodes[parent as usize].n_refs += 1;
        child
    }

    /// The root, held for the caller.
    pub(super) fn hold_root(&mut self) -> u32 {
        self.hold_again(self.root);
        self.root
    }

    /// Holds a living prefix once more.
    pub(super) fn hold_again(&mut self, node: u32) {
        self.nodes[node as usize].n_refs += 1;
    }

    /// Number of labels after the root.
    pub(super) fn depth(&self, mut node: u32) -> usize {
        let mut depth = 0;
        while node != self.root {
            node = self.parent(node);
            depth += 1;
        }
        depth
    }

    /// The first `depth` labels of a prefix after the root, or all of it if it is shorter.
    pub(super) fn ancestor(&self, mut node: u32, depth: usize) -> u32 {
        for _ in depth..self.depth(node) {
            node = self.parent(node);
        }
        node
    }

    /// Gives a held prefix back.
    pub(super) fn release(&mut self, mut node: u32) {
        loop {
            let freed = &mut self.nodes[node as usize];
            freed.n_refs -= 1;
            if 0 < freed.n_refs {
                return;
            }
            let parent = freed.parent;
            self.unlink(parent, node);
            self.free.push(node);
            node = parent;
        }
    }

    /// Makes the only child of the root the root, if every prefix goes through it and none ends there.
    pub(super) fn advance_root(&mut self) -> bool {
        let root = &self.nodes[self.root as usize];
        let child = root.first_child;
        // One reference for being the root, one for the child.
        if child == NONE || 2 < root.n_refs || root.entry != NONE || self.entry(child) != NONE {
            return false;
        }
        let node = &mut self.nodes[child as usize];
        node.parent = NONE;
        node.n_refs += 1;
        self.free.push(self.root);
        self.root = child;
        true
    }

    /// How many nodes live.
    #[cfg(test)]
    pub(super) fn n_living(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    fn place(&mut self, parent: u32, class: u32, word: u32) -> u32 {
        let node = Node { parent, class, word, n_refs: 1, entry: NONE, first_child: NONE, next_sibling: NONE };
        if let Some(at) = self.free.pop() {
            self.nodes[at as usize] = node;
            return at;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn unlink(&mut self, parent: u32, child: u32) {
        let next = self.nodes[child as usize].next_sibling;
        let first = self.nodes[parent as usize].first_child;
        if first == child {
            self.nodes[parent as usize].first_child = next;
            return;
        }
        let mut before = first;
        while self.nodes[before as usize].next_sibling != child {
            before = self.nodes[before as usize].next_sibling;
        }
        self.nodes[before as usize].next_sibling = next;
    }
}
