//! The activations of a batch: utterances of different lengths in one buffer, each contiguous.
//!
//! Frames past an utterance's end are zero at the input of every layer.
//! The buffer guarantees that: an utterance has as many zero frames before and after it as the layer that reads it
//! looks beyond its ends, so no layer reads frames of another utterance.

use rayon::prelude::*;
use srf_kernels::{Buffer, Element};

/// Values that one task of an elementwise operation handles, roughly.
const BLOCK_VALUES: usize = 1 << 15;

/// Consecutive frames of one utterance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its place in the batch.
    pub utterance: usize,
    /// The first frame.
    pub first: usize,
    /// How many frames.
    pub n: usize,
}

/// Frames of a batch.
///
/// # Shapes
/// - each utterance `[before + n_frames + after][width]`, one after another; the frames before and after are zero
///
/// ```
/// use srf_model::frames::{Frames, Span};
///
/// // Two utterances of 3 and 1 frames of two values, with a zero frame before and after each.
/// let mut x: Frames<f32> = Frames::new(2, [1, 1]);
/// x.resize_for([3, 1]);
/// x.each_real_mut().into_iter().for_each(|frames| frames.fill(1.0));
/// assert_eq!((x.n_utterances(), x.n_frames(), x.lengths()), (2, 4, &[3, 1][..]));
/// assert_eq!((x.real(1), x.padded(1)), (&[1.0, 1.0][..], &[0.0, 0.0, 1.0, 1.0, 0.0, 0.0][..]));
/// x.each_padded_mut()[0][2..4].fill(5.0);
/// assert_eq!(x.part(Span { utterance: 0, first: 0, n: 1 }), [5.0, 5.0]);
///
/// // Work in blocks of time that do not depend on the number of threads.
/// assert_eq!(x.spans(2).len(), 3);
/// assert_eq!(x.blocks_mut(2).len(), 3);
/// assert!(x.n_block() > 0);
/// x.each_block(|_, values| values.iter_mut().for_each(|value| *value *= 2.0));
///
/// let mut y = Frames::new(4, [0, 0]);
/// y.resize_like(&x);
/// assert_eq!(y.all_mut().map(|values| values.len()), Some(4 * 4), "all frames are real without margins");
/// y.reshape(1, [0, 0]);
/// assert_eq!(y.n_utterances(), 0);
/// ```
#[derive(Clone)]
pub struct Frames<E> {
    width: usize,
    margin: [usize; 2],
    lengths: Vec<usize>,
    /// Where each utterance starts, its zero frames included, and where the last one ends.
    starts: Vec<usize>,
    data: Buffer<E>,
}

impl<E: Element> Default for Frames<E> {
    fn default() -> Self {
        Self::new(1, [0, 0])
    }
}

impl<E: Element> Frames<E> {
    /// No utterances yet; frames of `width` values, `margin` zero frames before and after each utterance.
    pub fn new(width: usize, margin: [usize; 2]) -> Self {
        Self { width, margin, lengths: Vec::new(), starts: vec![0], data: Buffer::new() }
    }

    /// Changes width and margin; there are no utterances afterwards, but the memory stays.
    pub fn reshape(&mut self, width: usize, margin: [usize; 2]) {
        (self.width, self.margin) = (width, margin);
        self.resize_for([]);
    }

    /// Makes room for utterances of these lengths, in the memory already there if it suffices.
    ///
    /// The zero frames are zero afterwards; what the others hold is unspecified.
    pub fn resize_for(&mut self, lengths: impl IntoIterator<Item = usize>) {
        self.lengths.clear();
        self.starts.truncate(1);
        let mut end = 0;
        for length in lengths {
            self.lengths.push(length);
            end += (self.margin[0] + length + self.margin[1]) * self.width;
            self.starts.push(end);
        }
        self.data.resize(end);
        for utterance in 0..self.lengths.len() {
            let [start, end] = [self.starts[utterance], self.starts[utterance + 1]];
            self.data[start..start + self.margin[0] * self.width].fill(E::ZERO);
            self.data[end - self.margin[1] * self.width..end].fill(E::ZERO);
        }
    }

    /// Makes room for utterances as long as those of `other`.
    pub fn resize_like(&mut self, other: &Self) {
        self.resize_for(other.lengths.iter().copied());
    }

    /// Values in a frame.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Zero frames before and after each utterance.
    pub fn margin(&self) -> [usize; 2] {
        self.margin
    }

    /// Real frames of each utterance.
    pub fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// How many utterances.
    pub fn n_utterances(&self) -> usize {
        self.lengths.len()
    }

    /// Real frames of all utterances.
    pub fn n_frames(&self) -> usize {
        self.lengths.iter().sum()
    }

    /// An utterance with its zero frames.
    pub fn padded(&self, utterance: usize) -> &[E] {
        &self.data[self.starts[utterance]..self.starts[utterance + 1]]
    }

    /// The real frames of an utterance.
    pub fn real(&self, utterance: usize) -> &[E] {
        &self.padded(utterance)[self.margin[0] * self.width..][..self.lengths[utterance] * self.width]
    }

    /// Real frames of one utterance that a block covers.
    pub fn part(&self, span: Span) -> &[E] {
        &self.real(span.utterance)[span.first * self.width..][..span.n * self.width]
    }

    /// The real frames of an utterance, mutable.
    pub fn real_mut(&mut self, utterance: usize) -> &mut [E] {
        let start = self.starts[utterance] + self.margin[0] * self.width;
        &mut self.data[start..start + self.lengths[utterance] * self.width]
    }

    /// Every utterance with its zero frames, which stop being zero if they are written.
    pub fn each_padded_mut(&mut self) -> Vec<&mut [E]> {
        let sizes = self.starts.windows(2).map(|pair| pair[1] - pair[0]);
        split(&mut self.data, sizes)
    }

    /// The real frames of every utterance, mutable.
    pub fn each_real_mut(&mut self) -> Vec<&mut [E]> {
        let [before, after] = self.margin.map(|n| n * self.width);
        self.each_padded_mut()
            .into_iter()
            .map(|part| {
                let n = part.len();
                &mut part[before..n - after]
            })
            .collect()
    }

    /// The real frames of every utterance in blocks of at most `n` frames.
    ///
    /// Blocks depend on the lengths alone, not on the number of threads.
    pub fn blocks_mut(&mut self, n: usize) -> Vec<(Span, &mut [E])> {
        let width = self.width;
        let mut blocks = Vec::new();
        for (utterance, frames) in self.each_real_mut().into_iter().enumerate() {
            for (index, part) in frames.chunks_mut(n * width).enumerate() {
                blocks.push((Span { utterance, first: index * n, n: part.len() / width }, part));
            }
        }
        blocks
    }

    /// The blocks of [`Frames::blocks_mut`].
    pub fn spans(&self, n: usize) -> Vec<Span> {
        let of_utterance = |(utterance, &length): (usize, &usize)| {
            (0..length).step_by(n).map(move |first| Span { utterance, first, n: n.min(length - first) })
        };
        self.lengths.iter().enumerate().flat_map(of_utterance).collect()
    }

    /// Runs `f` on blocks of frames in parallel, for operations that treat every frame by itself.
    pub fn each_block(&mut self, f: impl Fn(Span, &mut [E]) + Sync) {
        self.blocks_mut(self.n_block()).into_par_iter().for_each(|(span, part)| f(span, part));
    }

    /// Frames in a block of an operation that costs little per value.
    pub fn n_block(&self) -> usize {
        (BLOCK_VALUES / self.width).max(1)
    }

    /// All utterances as one run of frames, mutable; `None` if there are zero frames between them.
    pub fn all_mut(&mut self) -> Option<&mut [E]> {
        (self.margin == [0, 0]).then_some(&mut *self.data)
    }

    /// All utterances as one run of frames; only where there are no zero frames between them.
    #[track_caller]
    pub fn all(&self) -> &[E] {
        assert_eq!(self.margin, [0, 0], "frames: zero frames lie between the utterances");
        &self.data
    }
}

/// Cuts `buffer` into parts of these sizes.
pub(crate) fn split<T>(mut buffer: &mut [T], sizes: impl IntoIterator<Item = usize>) -> Vec<&mut [T]> {
    let mut parts = Vec::new();
    for size in sizes {
        let (part, rest) = buffer.split_at_mut(size);
        parts.push(part);
        buffer = rest;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_zero_again_after_every_resize_and_memory_stays() {
        let mut frames = Frames::<f32>::new(2, [1, 2]);
        frames.resize_for([5, 0, 3]);
        let start = frames.padded(0).as_ptr();
        for lengths in [vec![3, 4], vec![1], vec![2, 2, 1]] {
            frames.resize_for(lengths.clone());
            assert_eq!(frames.padded(0).as_ptr(), start);
            for (utterance, &length) in lengths.iter().enumerate() {
                let padded = frames.padded(utterance);
                assert_eq!(padded.len(), 2 * (length + 3));
                assert!(padded[..2].iter().chain(&padded[2 + 2 * length..]).all(|&x| x == 0.0));
            }
            frames.each_real_mut().into_iter().for_each(|part| part.fill(f32::NAN));
            assert!((0..lengths.len()).all(|u| frames.real(u).iter().all(|x| x.is_nan())));
        }
    }
}
