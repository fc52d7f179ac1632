//! Writes n-grams as the lines of an ARPA file.

use std::io::Write;

use rayon::prelude::*;

use crate::EstimateError;
use crate::key::{Key, Layout};
use crate::probs::{Ngram, Sink};
use crate::vocab::Vocabulary;

/// N-grams that one thread formats at a time.
const CHUNK: usize = 1 << 13;
/// What stands for the logarithm of 0, by the convention of ARPA files.
const LOG_ZERO: f32 = -99.0;

/// An ARPA file as far as it is written.
pub(crate) struct Writer<'a, K, W> {
    out: &'a mut W,
    lines: Lines<'a>,
    batch: Vec<Ngram<K>>,
}

/// How n-grams become lines.
#[derive(Clone, Copy)]
struct Lines<'a> {
    vocabulary: &'a Vocabulary,
    layout: Layout,
    /// The order that is being written.
    k: usize,
}

impl<'a, K: Key, W: Write> Writer<'a, K, W> {
    /// Writes the header, with the number of n-grams of each order.
    pub(crate) fn start(
        out: &'a mut W,
        vocabulary: &'a Vocabulary,
        layout: Layout,
        n_ngrams: &[u64],
    ) -> Result<Self, EstimateError> {
        writeln!(out, "\\data\\")?;
        for (index, n) in n_ngrams.iter().enumerate() {
            writeln!(out, "ngram {}={n}", index + 1)?;
        }
        Ok(Self { out, lines: Lines { vocabulary, layout, k: 0 }, batch: Vec::new() })
    }

    pub(crate) fn finish(&mut self) -> Result<(), EstimateError> {
        self.flush()?;
        write!(self.out, "\n\\end\\\n")?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), EstimateError> {
        let lines = self.lines;
        let chunks: Vec<Vec<u8>> = self.batch.par_chunks(CHUNK).map(|chunk| lines.format_all(chunk)).collect();
        for chunk in chunks {
            self.out.write_all(&chunk)?;
        }
        self.batch.clear();
        Ok(())
    }
}

impl Lines<'_> {
    fn format_all<K: Key>(&self, ngrams: &[Ngram<K>]) -> Vec<u8> {
        let mut lines = Vec::with_capacity(ngrams.len() * 48);
        ngrams.iter().for_each(|ngram| self.format(ngram, &mut lines));
        lines
    }

    fn format<K: Key>(&self, ngram: &Ngram<K>, line: &mut Vec<u8>) {
        // Rounding can lift a probability above 1.
        format_log10(ngram.prob.log10().min(0.0), line);
        line.push(b'\t');
        for index in 0..self.k {
            if index > 0 {
                line.push(b' ');
            }
            line.extend_from_slice(self.vocabulary.word(self.layout.word(ngram.key, index)));
        }
        if self.k < self.layout.order {
            line.push(b'\t');
            format_log10(ngram.backoff.log10(), line);
        }
        line.push(b'\n');
    }
}

impl<K: Key, W: Write> Sink<K> for Writer<'_, K, W> {
    fn start_order(&mut self, k: usize) -> Result<(), EstimateError> {
        self.flush()?;
        self.lines.k = k;
        write!(self.out, "\n\\{k}-grams:\n")?;
        Ok(())
    }

    fn ngram(&mut self, ngram: Ngram<K>) -> Result<(), EstimateError> {
        self.batch.push(ngram);
        if self.batch.len() == CHUNK * 2 * rayon::current_num_threads() {
            self.flush()?;
        }
        Ok(())
    }
}

/// The shortest digits that give the same number when read, with an exponent below 10^-6.
fn format_log10(value: f32, line: &mut Vec<u8>) {
    let start = line.len();
    let written = if value == f32::NEG_INFINITY {
        write!(line, "{LOG_ZERO}")
    } else if value != 0.0 && value.abs() < 1e-6 {
        write!(line, "{value:e}")
    } else {
        write!(line, "{value}")
    };
    written.expect("writing to memory does not fail");
    round_half_to_even(value, start, line);
}

/// Of two equally near shortest numbers the standard library prints the larger one; KenLM prints the even one.
fn round_half_to_even(value: f32, start: usize, line: &mut [u8]) {
    let bits = value.to_bits();
    let (exponent, mantissa) = (bits >> 23 & 0xff, bits & 0x7f_ffff | 0x80_0000);
    // So many digits after the point has the exact number, the last of which is 5.
    let n_exact = 150_i64 - i64::from(exponent) - i64::from(mantissa.trailing_zeros());
    let n_printed = line[start..].iter().rev().position(|byte| *byte == b'.');
    if n_printed.is_some_and(|n| n as i64 + 1 == n_exact)
        && let Some(last) = line.last_mut().filter(|last| **last % 2 == 1)
    {
        *last -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_shortest_digits() {
        let text = |value| {
            let mut line = Vec::new();
            format_log10(value, &mut line);
            String::from_utf8(line).unwrap()
        };
        assert_eq!(text(-1.25), "-1.25");
        assert_eq!(text(0.0), "0");
        assert_eq!(text(-0.1), "-0.1");
        assert_eq!(text(-1e-6), "-0.000001");
        assert_eq!(text(-5.960_464_8e-8), "-5.9604645e-8");
        assert_eq!(text(f32::NEG_INFINITY), "-99");
        // Exactly -3.06640625 and -3.02734375, whose neighbours of eight digits are equally near.
        assert_eq!(text(-3.066_406_2), "-3.0664062");
        assert_eq!(text(-3.027_343_8), "-3.0273438");
    }
}
