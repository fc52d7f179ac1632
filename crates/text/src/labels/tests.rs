//! Label sets against the published lists, and round trips of any set.

use proptest::prelude::*;

use super::timit::{Folded, PHONES_61, PhoneSet};
use super::*;

#[test]
fn timit_has_61_48_and_39_phones_and_two_more_classes() {
    for (set, n_phones) in [(PhoneSet::All61, 61), (PhoneSet::Train48, 48), (PhoneSet::Score39, 39)] {
        assert_eq!(set.labels().n_classes(), n_phones + 2, "{set}");
    }
}

#[test]
fn timit_phones_are_in_alphabetical_order_with_the_blank_last() {
    let labels = PhoneSet::All61.labels();
    assert_eq!(labels.class("aa"), Some(1));
    assert_eq!(labels.class("h#"), Some(28));
    assert_eq!(labels.class("zh"), Some(61));
    assert_eq!(labels.blank(), 62);
}

#[test]
fn folding_changes_only_the_published_phones() {
    let changed: Vec<(&str, Option<&str>)> = PHONES_61
        .iter()
        .map(|phone| (*phone, PhoneSet::Score39.fold(phone).written()))
        .filter(|(phone, folded)| Some(*phone) != *folded)
        .collect();
    let expected = [
        ("ao", Some("aa")),
        ("ax", Some("ah")),
        ("ax-h", Some("ah")),
        ("axr", Some("er")),
        ("bcl", Some("sil")),
        ("dcl", Some("sil")),
        ("el", Some("l")),
        ("em", Some("m")),
        ("en", Some("n")),
        ("eng", Some("ng")),
        ("epi", Some("sil")),
        ("gcl", Some("sil")),
        ("h#", Some("sil")),
        ("hv", Some("hh")),
        ("ix", Some("ih")),
        ("kcl", Some("sil")),
        ("nx", Some("n")),
        ("pau", Some("sil")),
        ("pcl", Some("sil")),
        ("q", None),
        ("tcl", Some("sil")),
        ("ux", Some("uw")),
        ("zh", Some("sh")),
    ];
    assert_eq!(changed, expected);
}

#[test]
fn folding_twice_is_folding_once() {
    for phone in PHONES_61 {
        if let Folded::To(folded) = PhoneSet::Train48.fold(phone) {
            assert_eq!(PhoneSet::Train48.fold(folded), Folded::To(folded));
            assert_eq!(PhoneSet::Score39.fold(folded), PhoneSet::Score39.fold(phone));
        }
    }
    assert_eq!(PhoneSet::Score39.fold("xx"), Folded::Unknown);
}

#[test]
fn wsj_has_32_classes_in_the_published_order() {
    let labels = wsj::labels();
    assert_eq!(labels.n_classes(), 32);
    assert_eq!(labels.class(" "), Some(1));
    assert_eq!(labels.end_of_sentence(), Some(2));
    assert_eq!(labels.class("'"), Some(3));
    assert_eq!((labels.class("A"), labels.class("Z")), (Some(4), Some(29)));
    assert_eq!((labels.class("n"), labels.blank()), (Some(30), 31));
}

#[test]
fn the_end_of_the_sentence_is_added_and_hidden() {
    let labels = wsj::labels();
    assert_eq!(labels.encode("  A  B ").unwrap(), [4, 1, 5, 2]);
    assert_eq!(labels.decode(&[4, 1, 5, 2]), "A B");
}

#[test]
fn wsj_transcripts_are_normalised_as_is_customary() {
    let cases = [
        (r"the rate rose %percent \[tongue_click\] today .", "THE RATE ROSE PERCENT <NOISE> TODAY"),
        ("five .POINT two ,COMMA", "FIVE POINT TWO ,COMMA"),
        ("[<door_slam] he said [door_slam>] it", "HE SAID IT"),
        ("[cross_talk/] so [/cross_talk]", "SO"),
        ("<maker's> name~ --DASH", "MAKER'S NAME -DASH"),
        ("[unclosed", "[UNCLOSED"),
        ("", ""),
    ];
    for (transcript, expected) in cases {
        assert_eq!(wsj::normalise(transcript), expected, "{transcript}");
    }
}

#[test]
fn characters_outside_the_32_are_deleted_and_told() {
    let (text, dropped) = wsj::to_labels("MR. O'HARA'S <NOISE> -DASH ,COMMA . É");
    assert_eq!(text, "MR O'HARA'S n DASH COMMA");
    assert_eq!(dropped, ['.', '-', ',', '.', 'É']);
    assert!(wsj::labels().encode(&text).is_ok());
}

#[test]
fn a_foreign_label_is_named_with_its_place() {
    let labels = PhoneSet::Score39.labels();
    let error = labels.encode("sil aa xx").unwrap_err();
    assert_eq!(error.to_string(), "label 3 is `xx`, which is not in the set of 39 labels");
    assert_eq!(labels.foreign("q sil q"), ["q", "q"]);
}

#[test]
fn a_broken_list_says_where() {
    let cases = [
        ("", "line 1: found \"\", expected `# units: phones`, `# units: chars`, `# units: words` or `# units: bpe`"),
        ("# units: phones\naa\n<blank>", "line 2: found \"aa\", expected <pad>"),
        ("# units: phones\n<pad>", "line 3: found \"\", expected <blank>"),
        ("# units: phones\n<pad>\n<blank>", "a label set needs at least one label"),
        ("# units: phones\n<pad>\naa\naa\n<blank>", "label `aa` appears twice, as classes 1 and 2"),
        ("# units: chars\n<pad>\naa\n<blank>", "class 1: \"aa\" is not a label of chars"),
        ("# units: chars\n<pad>\na\n\n<blank>", "class 2: \"\" is not a label of chars"),
    ];
    for (text, expected) in cases {
        assert_eq!(LabelSet::parse(text).unwrap_err().to_string(), expected, "{text:?}");
    }
}

#[test]
fn a_file_is_read_back() {
    let path = tempfile::tempdir().unwrap();
    let path = path.path().join("labels.txt");
    wsj::labels().save(&path).unwrap();
    assert_eq!(LabelSet::load(&path).unwrap(), wsj::labels());
}

proptest! {
    #[test]
    fn any_text_makes_a_set_that_writes_it_back(text in "\\PC{1,40}") {
        for units in [Units::Chars, Units::Words] {
            let Ok(set) = LabelSet::of_texts(units, [text.as_str()]) else { continue };
            let classes = set.encode(&text).unwrap();
            prop_assert_eq!(set.decode(&classes), text.split_whitespace().collect::<Vec<_>>().join(" "));
            prop_assert!(classes.iter().all(|class| (1..set.blank()).contains(class)));
            prop_assert_eq!(LabelSet::parse(&set.format()).unwrap(), set);
        }
    }

    #[test]
    fn no_list_of_labels_panics(text in "(# units: (chars|phones)\n)?(<pad>\n)?(\\PC{0,3}\n){0,5}(<blank>)?\n{0,2}") {
        let _ = LabelSet::parse(&text);
    }

    #[test]
    fn no_transcript_panics_and_all_are_writable(text in "([\\[\\]<>/~.%A-Zé ]|\\PC){0,60}") {
        let (text, _) = wsj::to_labels(&wsj::normalise(&text));
        prop_assert!(wsj::labels().encode(&text).is_ok());
    }
}
