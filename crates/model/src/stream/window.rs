//! What a layer that looks at several frames at once still needs of its input: frames in, runs of frames out.

use srf_kernels::Element;

/// Frames that wait for those after them.
pub(super) struct Window<E> {
    width: usize,
    /// Frames that one output needs, and from one output to the next.
    size: usize,
    stride: usize,
    /// Zero frames before the first and after the last.
    margin: [usize; 2],
    frames: Vec<E>,
    /// Whether a real frame came since the start.
    has_frames: bool,
}

impl<E: Element> Window<E> {
    pub(super) fn new(width: usize, size: usize, stride: usize, margin: [usize; 2]) -> Self {
        let mut window = Self { width, size, stride, margin, frames: Vec::new(), has_frames: false };
        window.reset();
        window
    }

    /// Back to the start: nothing but the zero frames before the first.
    pub(super) fn reset(&mut self) {
        self.frames.clear();
        self.push_zeros(self.margin[0]);
        self.has_frames = false;
    }

    /// Takes whole frames.
    pub(super) fn push(&mut self, frames: &[E]) {
        self.has_frames |= !frames.is_empty();
        self.frames.extend_from_slice(frames);
    }

    /// The last frame came: what follows is zero. Without any frame nothing follows.
    pub(super) fn end(&mut self) {
        if self.has_frames {
            self.push_zeros(self.margin[1]);
        } else {
            self.frames.clear();
        }
    }

    /// Takes whole frames, the last ones if `is_end`.
    pub(super) fn push_or_end(&mut self, frames: &[E], is_end: bool) {
        self.push(frames);
        if is_end {
            self.end();
        }
    }

    /// Outputs that the frames suffice for.
    pub(super) fn n_ready(&self) -> usize {
        let n_frames = self.frames.len() / self.width;
        if n_frames < self.size { 0 } else { (n_frames - self.size) / self.stride + 1 }
    }

    /// The frames that the next `n` outputs need.
    pub(super) fn ready(&self, n: usize) -> &[E] {
        let n_frames = if n == 0 { 0 } else { (n - 1) * self.stride + self.size };
        &self.frames[..n_frames * self.width]
    }

    /// Forgets the frames that outputs after the next `n` do not need.
    pub(super) fn advance(&mut self, n: usize) {
        self.frames.drain(..(n * self.stride * self.width).min(self.frames.len()));
    }

    /// Values that it has room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.frames.capacity()
    }

    fn push_zeros(&mut self, n: usize) {
        self.frames.resize(self.frames.len() + n * self.width, E::ZERO);
    }
}
