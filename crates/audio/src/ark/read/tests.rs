//! Tests of reading archives, against what was written and against bytes laid out by hand.

use std::io::Cursor;

use proptest::prelude::*;

use super::super::{Form, Matrix, Writer, load_scp};
use super::*;

fn read_all<E: Element>(bytes: &[u8]) -> Result<Vec<(String, Matrix<E>)>, String> {
    let mut reader = Reader::new("x.ark", Cursor::new(bytes));
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry().map_err(|e| e.to_string())? {
        entries.push(entry);
    }
    Ok(entries)
}

fn matrix(n_rows: usize, n_cols: usize) -> Matrix {
    Matrix { n_cols, values: (0..n_rows * n_cols).map(|i| ((i * i * 37) % 1001) as f32 / 7.0 - 60.0).collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_written_is_read_back_to_the_bit(
        shapes in proptest::collection::vec((1usize..20, 1usize..9), 1..5),
        is_text in proptest::bool::ANY,
        noise in -1e30f32..1e30,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (ark, scp) = (dir.path().join("a.ark"), dir.path().join("a.scp"));
        let entries: Vec<(String, Matrix)> = shapes.iter().enumerate().map(|(index, &(n_rows, n_cols))| {
            let mut matrix = matrix(n_rows, n_cols);
            matrix.values[0] = noise;
            (format!("utt-{index}"), matrix)
        }).collect();
        let form = if is_text { Form::Text } else { Form::Binary };
        let mut writer = Writer::create(&ark, Some(&scp), form).unwrap();
        for (key, matrix) in &entries {
            writer.write(key, matrix).unwrap();
        }
        writer.finish().unwrap();
        let read: Vec<(String, Matrix)> = read_all(&std::fs::read(&ark).unwrap()).unwrap();
        prop_assert_eq!(&read, &entries);
        // And one by one, last first, through the script.
        for (entry, (key, matrix)) in load_scp(&scp).unwrap().iter().zip(&entries).rev() {
            prop_assert_eq!(&entry.key, key);
            prop_assert_eq!(&entry.read::<f32>().unwrap(), matrix);
        }
    }
}

#[test]
fn doubles_keep_their_precision() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stats.ark");
    for form in [Form::Binary, Form::Text] {
        let stats = Matrix { n_cols: 2, values: vec![1.0 / 3.0, 1e300, -0.0, 12_345_678.9] };
        let mut writer = Writer::create(&path, None, form).unwrap();
        writer.write("spk", &stats).unwrap();
        writer.finish().unwrap();
        assert_eq!(read_all::<f64>(&std::fs::read(&path).unwrap()), Ok(vec![("spk".to_owned(), stats)]));
    }
}

#[test]
fn empty_matrices_are_matrices() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty.ark");
    for form in [Form::Binary, Form::Text] {
        let mut writer = Writer::create(&path, None, form).unwrap();
        writer.write("none", &Matrix::<f32> { n_cols: 5, values: Vec::new() }).unwrap();
        writer.finish().unwrap();
        let read = read_all::<f32>(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, [("none".to_owned(), Matrix { n_cols: 0, values: Vec::new() })]);
    }
}

#[test]
fn text_is_read_as_kaldi_lays_it_out() {
    let read = read_all::<f32>(b"a  [\n  1 2.5 \n  -3e2 4 ]\nb  [ ]\nc  [ 7 ]\n").unwrap();
    let matrix = |n_cols, values: &[f32]| Matrix { n_cols, values: values.to_vec() };
    let expected = [("a", matrix(2, &[1.0, 2.5, -300.0, 4.0])), ("b", matrix(0, &[])), ("c", matrix(1, &[7.0]))];
    assert_eq!(read, expected.map(|(key, matrix)| (key.to_owned(), matrix)));
}

/// `key \0B`, the token, the least value, the range, the counts, and the rest.
fn compressed(token: &str, n_rows: i32, n_cols: i32, rest: &[u8]) -> Vec<u8> {
    let mut bytes = format!("k \0B{token} ").into_bytes();
    bytes.extend(
        [(-10.0f32).to_le_bytes(), 65.535f32.to_le_bytes(), n_rows.to_le_bytes(), n_cols.to_le_bytes()].concat(),
    );
    bytes.extend(rest);
    bytes
}

fn assert_near(found: &Matrix, expected: &[f32]) {
    assert_eq!(found.values.len(), expected.len());
    for (found, expected) in found.values.iter().zip(expected) {
        // A few roundings of numbers below 64.
        assert!((found - expected).abs() < 4.0 * 64.0 * f32::EPSILON, "{found} {expected}");
    }
}

#[test]
fn compressed_matrices_divide_their_range() {
    let two_bytes = [0u16, 65535, 1000, 20_000].map(u16::to_le_bytes).concat();
    let read = read_all::<f32>(&compressed("CM2", 2, 2, &two_bytes)).unwrap();
    assert_near(&read[0].1, &[-10.0, 55.535, -9.0, 10.0]);
    let read = read_all::<f32>(&compressed("CM3", 1, 3, &[0, 255, 51])).unwrap();
    assert_near(&read[0].1, &[-10.0, 55.535, 3.107]);
    // Two columns of three rows: points at -10, -6, 2, 8 and at -10, -9, -8, -7, then bytes column by column.
    let points = [0u16, 4000, 12_000, 18_000, 0, 1000, 2000, 3000].map(u16::to_le_bytes).concat();
    let read = read_all::<f32>(&compressed("CM", 3, 2, &[points, vec![0, 64, 128, 192, 255, 32]].concat())).unwrap();
    assert_near(&read[0].1, &[-10.0, -8.0, -6.0, -7.0, -2.0, -9.5]);
}

#[test]
fn each_broken_archive_is_told_with_its_place() {
    let message = |bytes: &[u8]| read_all::<f32>(bytes).unwrap_err();
    let huge = [b"k \0BFM \x04".as_slice(), &i32::MAX.to_le_bytes(), b"\x04", &1i32.to_le_bytes(), &[0; 100]].concat();
    let negative = [b"k \0BFM \x04".as_slice(), &(-1i32).to_le_bytes()].concat();
    let rows_of_nothing = compressed("CM2", i32::MAX, 0, &[]);
    for (bytes, expected) in [
        (b"k".as_slice(), "`x.ark` breaks off at byte 1, inside an entry"),
        (b"k ", "`x.ark` breaks off at byte 2, inside an entry"),
        (b"k \0C", "`x.ark`: found `\\x00C` at byte 4, expected `\\0B`, the mark of a binary entry"),
        (b"k \0BXX ", "`x.ark`: found `XX` at byte 7, expected a matrix: `FM`, `DM`, `CM`, `CM2` or `CM3`"),
        (b"k \0BFM \x08", "`x.ark`: found `\\x08` at byte 8, expected the byte 4 before a 32-bit count"),
        (&huge, "`x.ark` breaks off at byte 17, inside an entry"),
        (&negative, "`x.ark`: found `-1` at byte 12, expected a count"),
        (&rows_of_nothing, "`x.ark`: found `2147483647 x 0` at byte 24, expected a matrix of at most 2^31 numbers"),
        (b"k [ 1 2\n 3 ]", "`x.ark`: the row that ends at byte 11 has 1 numbers, those before it have 2"),
        (b"k [ 1 two ]", "`x.ark`: found `two` at byte 9, expected a number or `]`"),
        (b"k 1 2 3\n", "`x.ark`: found `1` at byte 3, expected `[`"),
        (b"k [ 1 2", "`x.ark` breaks off at byte 7, inside an entry"),
        (b"\xff\xfe [ 1 ]", "`x.ark`: found `\\xff\\xfe` at byte 2, expected a key in UTF-8"),
    ] {
        assert_eq!(message(bytes), expected);
    }
}
