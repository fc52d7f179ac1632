//! Files that are not what they should be: each error names its file and line, and nothing panics.

use proptest::prelude::*;
use srf_score::files::{self, FileOptions, Format, Missing};
use srf_score::formats::{self, Source, TrnOptions};
use srf_score::pairing::{PairOptions, score_by_id, score_by_segment, score_by_time};
use srf_score::{Encoding, Heading, Language, Reading};

fn source(name: &str, text: impl Into<Vec<u8>>) -> Source {
    Source { path: name.into(), bytes: text.into() }
}

fn score(reference: &str, hypothesis: &str) -> Result<usize, String> {
    let (r, h) = (source("ref", reference), source("hyp", hypothesis));
    files::score(&r, &h, "system", FileOptions::default())
        .map(|scored| scored.system.counts().n_errors())
        .map_err(|error| error.to_string())
}

#[test]
fn a_line_without_an_id_is_named() {
    let error = formats::parse_trn(&source("ref.trn", "a b (s-1)\nno id here\n"), TrnOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "ref.trn:2: no utterance id in brackets at the end of the line");
    assert!(error.hint().is_some());
}

#[test]
fn an_id_that_comes_twice_is_named_with_both_lines() {
    let error = score("a (s-1)\nb (s-2)\n", "a (s-1)\nb (s-2)\nc (s-1)\n").unwrap_err();
    assert_eq!(error, "hyp:3: utterance `s-1` was already on line 1");
}

#[test]
fn a_brace_that_is_never_closed_is_named() {
    let error = score("a (s-1)\nb { c / d (s-2)\n", "a (s-1)\nb (s-2)\n").unwrap_err();
    assert_eq!(error, "ref:2: `{` is never closed by a `}`");
}

#[test]
fn bytes_that_are_not_utf8_are_named() {
    let r = source("ref.trn", b"a (s-1)\nb\xff (s-2)\n".to_vec());
    let options = TrnOptions { encoding: Encoding::Utf8(Language::Generic), ..TrnOptions::default() };
    assert_eq!(formats::parse_trn(&r, options).unwrap_err().to_string(), "ref.trn:2: bytes that are not UTF-8");
    assert!(
        formats::parse_trn(&r, TrnOptions::default()).is_ok(),
        "plain bytes are fine where no encoding is asked for"
    );
}

#[test]
fn words_out_of_order_are_named() {
    let hyp = source("hyp.ctm", "f A 1.0 0.2 a\nf A 0.5 0.2 b\n");
    let words = formats::parse_ctm(&hyp, Encoding::Ascii, false).unwrap();
    let error = formats::check_order(&hyp, &words).unwrap_err();
    assert_eq!(error.to_string(), "hyp.ctm:2: begins at 0.5 s, but the line before it begins at 1 s");
    let r = source("ref.stm", "f A s 0.0 2.0 a b\n");
    let scored = files::score(&r, &hyp, "system", FileOptions::default()).unwrap();
    assert_eq!(scored.notes, [error.to_string()]);
}

#[test]
fn times_that_are_no_numbers_are_named() {
    let error =
        formats::parse_ctm(&source("hyp.ctm", ";; comment\nf A one 0.2 a\n"), Encoding::Ascii, false).unwrap_err();
    assert_eq!(error.to_string(), "hyp.ctm:2: the start is `one`, expected a number of seconds");
    let error = formats::parse_stm(&source("ref.stm", "f A s 0.0 a b c\n"), Encoding::Ascii, false).unwrap_err();
    assert_eq!(error.to_string(), "ref.stm:1: the end is `a`, expected a number of seconds");
}

#[test]
fn too_few_fields_are_counted() {
    let error = formats::parse_ctm(&source("hyp.ctm", "f A 0.1 0.2\n"), Encoding::Ascii, false).unwrap_err();
    assert_eq!(error.to_string(), "hyp.ctm:1: found 4 fields, expected at least 5 (file channel start duration word)");
}

#[test]
fn a_segment_that_ends_before_it_begins_is_named() {
    let r = source("ref.stm", "f A s 2.0 1.0 a b\n");
    let segments = formats::parse_stm(&r, Encoding::Ascii, false).unwrap();
    assert_eq!(
        formats::check_times(&r, &segments).unwrap_err().to_string(),
        "ref.stm:1: ends at 1 s, before it begins at 2 s"
    );
}

#[test]
fn missing_utterances_are_refused_unless_asked_otherwise() {
    let (r, h) = (source("ref", "a b (s-1)\nc d (s-2)\n"), source("hyp", "a b (s-1)\n"));
    let with = |missing| {
        let options = FileOptions { missing, ..FileOptions::default() };
        files::score(&r, &h, "system", options).map(|scored| scored.system.counts())
    };
    let error = with(Missing::Refuse).unwrap_err();
    assert_eq!(error.to_string(), "`hyp` lacks 1 of 2 utterances, the first is `s-2`");
    assert_eq!(with(Missing::Count).unwrap().deletions, 2);
    assert_eq!(with(Missing::Skip).unwrap().n_reference(), 2);
}

#[test]
fn a_hypothesis_without_reference_is_named() {
    let (r, h) = (source("ref", "a (s-1)\n"), source("hyp", "a (s-1)\nb (s-2)\n"));
    let error = score_by_id(&r, &h, Heading::default(), &PairOptions::default(), &mut 0);
    assert_eq!(error.unwrap_err().to_string(), "hyp:2: utterance `s-2` is not in the reference `ref`");
}

#[test]
fn formats_are_told_by_their_lines() {
    let format = |text: &str| Format::detect(&source("x", text));
    assert_eq!(format("a b (s-1)\n() (s-2)\n"), Some(Format::Trn));
    assert_eq!(format("s-1 a b\ns-2\n"), Some(Format::Text));
    assert_eq!(format(";; x\nf A 2347 0.0 1.5 <o,f> a b\n"), Some(Format::Stm));
    assert_eq!(format("f A 0.0 0.5 a 0.9\nf A 0.5 0.5 12\n"), Some(Format::Ctm));
    assert_eq!(format("\n\n"), None);
}

#[test]
fn a_last_line_without_its_end_counts_only_outside_of_sclite() {
    let r = source("ref", "a (s-1)\nb (s-2)");
    let options = |drops_unfinished_line| TrnOptions { drops_unfinished_line, ..TrnOptions::default() };
    assert_eq!(formats::parse_trn(&r, options(false)).unwrap().len(), 2);
    assert_eq!(formats::parse_trn(&r, options(true)).unwrap().len(), 1);
}

/// Lines made of the pieces parsers look for.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "/",
        "@",
        "(",
        ")",
        "(s-1)",
        " ",
        "\t",
        "\n",
        ";;",
        ";",
        "a",
        "b-",
        "f A 0.1 0.2 a\n",
        "f A s 0 1 x\n",
        "<ALT_BEGIN>",
        "<ALT>",
        "<ALT_END>",
        "f A * * <ALT_BEGIN>\n",
        "f A * * <ALT>\n",
        "f A * * <ALT_END>\n",
        "\u{e9}",
        "\\",
        "*",
        "-",
        "<o,f>",
        ";; LABEL \"o\" \"x\" \"y\"\n",
        "1e999",
        "nan",
        "é (s-2)\n",
        "IGNORE_TIME_SEGMENT_IN_SCORING",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_file_makes_the_scorer_panic(reference in lines(), hypothesis in lines(), cut in 0_usize..200) {
        let hypothesis = hypothesis[..cut.min(hypothesis.len())].to_vec();
        let (r, h) = (source("ref", reference), source("hyp", hypothesis));
        let characters = Some(srf_score::Characters { keep_ascii: false, drop_hyphens: true });
        for encoding in [Encoding::Ascii, Encoding::Utf8(Language::Guarani)] {
            let reading = Reading { fragments: true, optional_words: true, characters, encoding };
            let (reduces_reference, reduces_hypothesis) = (true, true);
            let options = PairOptions { reading, reduces_reference, reduces_hypothesis, ..PairOptions::default() };
            let _ = score_by_id(&r, &h, Heading::default(), &options, &mut 0);
            let _ = score_by_segment(&r, &h, Heading::default(), &options, &mut 0);
            let _ = score_by_time(&r, &h, Heading::default(), &options, &mut 0);
        }
        let _ = files::score(&r, &h, "system", FileOptions::default());
    }
}
