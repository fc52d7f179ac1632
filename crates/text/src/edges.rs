//! The edges of a tree as one hash table.

const EMPTY: u32 = u32::MAX;

/// Edges between numbered nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    /// Parent and label, child; open addressing with a power of two of places.
    places: Vec<(u64, u32)>,
    n_edges: usize,
}

impl Edges {
    /// The child of `node` by `label`.
    pub(crate) fn get(&self, node: u32, label: u32) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let key = key(node, label);
        let mask = self.places.len() - 1;
        let mut at = place(key, mask);
        loop {
            let (found, child) = self.places[at];
            if child == EMPTY {
                return None;
            }
            if found == key {
                return Some(child);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds an edge that is not there.
    pub(crate) fn insert(&mut self, node: u32, label: u32, child: u32) {
        debug_assert!(child != EMPTY && self.get(node, label).is_none());
        // Three quarters full at most, so that a search is short.
        if self.places.len() * 3 < (self.n_edges + 1) * 4 {
            self.grow();
        }
        self.n_edges += 1;
        self.put(key(node, label), child);
    }

    /// Node, label and child of every edge, in no order.
    pub(crate) fn all(&self) -> Vec<(u32, u32, u32)> {
        let taken = self.places.iter().filter(|(_, child)| *child != EMPTY);
        taken.map(|(key, child)| ((key >> 32) as u32, *key as u32, *child)).collect()
    }

    fn grow(&mut self) {
        let n_places = (self.places.len() * 2).max(16);
        let old = std::mem::replace(&mut self.places, vec![(0, EMPTY); n_places]);
        old.into_iter().filter(|(_, child)| *child != EMPTY).for_each(|(key, child)| self.put(key, child));
    }

    fn put(&mut self, key: u64, child: u32) {
        let mask = self.places.len() - 1;
        let mut at = place(key, mask);
        while self.places[at].1 != EMPTY {
            at = (at + 1) & mask;
        }
        self.places[at] = (key, child);
    }
}

fn key(node: u32, label: u32) -> u64 {
    u64::from(node) << 32 | u64::from(label)
}

/// Multiplication mixes low bits upwards, the shift brings them back.
fn place(key: u64, mask: usize) -> usize {
    let mixed = (key ^ key >> 29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize & mask
}
