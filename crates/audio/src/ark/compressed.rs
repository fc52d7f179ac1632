//! Kaldi's compressed matrices: one or two bytes per number.
//!
//! All begin with the least value, the range of values, rows and columns. `CM2` (two bytes) and `CM3` (one byte)
//! divide the range evenly, row by row. `CM` goes column by column: four points of each column's distribution (0, 25,
//! 75 and 100 per cent) are divided evenly between, by one byte a number.

use std::io::BufRead;

use super::read::Reader;
use super::{Element, Matrix, ReadArkError};

/// Reads what follows the token.
pub(super) fn read<R: BufRead, E: Element>(reader: &mut Reader<R>, token: &[u8]) -> Result<Matrix<E>, ReadArkError> {
    let min = f32::from_le_bytes(reader.bytes()?);
    let range = f32::from_le_bytes(reader.bytes()?);
    let (n_rows, n_cols) = (reader.count()?, reader.count()?);
    reader.check_size(n_rows, n_cols)?;
    let mut values = Vec::new();
    match token {
        b"CM" => values = by_column(reader, n_rows, n_cols, min, range)?,
        b"CM2" => reader.bytes_in_pieces(2 * n_rows * n_cols, 2, |piece| {
            let words = piece.as_chunks::<2>().0.iter().map(|&pair| u16::from_le_bytes(pair));
            values.extend(words.map(|word| E::from_f32(min + range / 65535.0 * f32::from(word))));
        })?,
        _ => reader.bytes_in_pieces(n_rows * n_cols, 1, |piece| {
            values.extend(piece.iter().map(|&byte| E::from_f32(min + range / 255.0 * f32::from(byte))));
        })?,
    }
    Ok(Matrix { n_cols: n_cols as usize, values })
}

fn by_column<R: BufRead, E: Element>(
    reader: &mut Reader<R>,
    n_rows: u64,
    n_cols: u64,
    min: f32,
    range: f32,
) -> Result<Vec<E>, ReadArkError> {
    let mut points = Vec::new();
    reader.bytes_in_pieces(8 * n_cols, 8, |piece| {
        let words = |column: &[u8; 8]| column.as_chunks::<2>().0.iter().map(|&pair| u16::from_le_bytes(pair)).collect();
        points.extend(
            piece
                .as_chunks::<8>()
                .0
                .iter()
                .map(words)
                .map(|words: Vec<u16>| std::array::from_fn(|index| min + range / 65535.0 * f32::from(words[index]))),
        );
    })?;
    let mut bytes = Vec::new();
    reader.bytes_in_pieces(n_rows * n_cols, 1, |piece| bytes.extend_from_slice(piece))?;
    let (n_rows, n_cols) = (n_rows as usize, n_cols as usize);
    let at = |row: usize, col: usize| E::from_f32(between(&points[col], bytes[col * n_rows + row]));
    Ok((0..n_rows).flat_map(|row| (0..n_cols).map(move |col| (row, col))).map(|(row, col)| at(row, col)).collect())
}

/// Bytes 0 to 64 lead from the first point to the second, 64 to 192 to the third, 192 to 255 to the last.
fn between(points: &[f32; 4], byte: u8) -> f32 {
    let &[lowest, low, high, highest] = points;
    let byte = f32::from(byte);
    if byte <= 64.0 {
        lowest + (low - lowest) * byte * (1.0 / 64.0)
    } else if byte <= 192.0 {
        low + (high - low) * (byte - 64.0) * (1.0 / 128.0)
    } else {
        high + (highest - high) * (byte - 192.0) * (1.0 / 63.0)
    }
}
