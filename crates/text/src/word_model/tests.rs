//! What is written is read back, rounding is small, and damaged files are refused.

use proptest::prelude::*;

use super::*;
use crate::labels::Units;
use crate::lm::Limits;

const ARPA: &str = "\\data\\\nngram 1=6\nngram 2=4\nngram 3=2\n\\1-grams:\n-1.5 <unk>\n-0.5 <s> -0.1\n-0.7 </s>\n\
    -0.4 red -0.2\n-0.6 read -0.3\n-0.9 blue\n\\2-grams:\n-0.2 read red -0.25\n-0.1 <s> read -0.5\n-0.3 read </s>\n\
    -0.35 red blue\n\\3-grams:\n-0.05 <s> read red\n-0.02 read red </s>\n\\end\\\n";

fn labels() -> LabelSet {
    LabelSet::new(Units::Phones, ["d", "eh", "iy", "r", "sil"]).unwrap()
}

fn packed() -> (Lexicon, NgramModel, Vec<u8>) {
    let lexicon = Lexicon::parse("read r eh d\nread(2) r iy d\nred r eh d\nreed r iy d\nid iy d\n", &labels()).unwrap();
    let model = NgramModel::read(ARPA.as_bytes(), Limits::default()).unwrap();
    let bytes = WordModel::format(&lexicon, &model, &labels());
    (lexicon, model, bytes)
}

#[test]
fn words_and_probabilities_are_read_back() {
    let (lexicon, model, bytes) = packed();
    let found = WordModel::parse(&bytes, &labels()).unwrap();
    assert_eq!(found.lexicon.tree, lexicon.tree);
    assert!(found.lexicon.names.iter().eq(lexicon.names.iter()));
    let ids = crate::fusion::ids(&found.lexicon, &found.language);
    let of = |model: &NgramModel, ids: &[crate::lm::WordId]| {
        let mut context = model.start();
        let mut sum = 0.0;
        for id in ids.iter().copied().chain(model.sentence_end()) {
            let (next, log_prob) = model.next(context, id);
            (context, sum) = (next, sum + log_prob);
        }
        sum
    };
    let old_ids = crate::fusion::ids(&lexicon, &model);
    for sentence in [&[0, 1][..], &[1, 0], &[0, 0, 1], &[2], &[3, 1, 0], &[]] {
        let pick = |ids: &[crate::lm::WordId]| sentence.iter().map(|word| ids[*word]).collect::<Vec<_>>();
        let (a, b) = (of(&found.language, &pick(&ids)), of(&model, &pick(&old_ids)));
        assert!((a - b).abs() < 1e-6, "{sentence:?}: {a} {b}");
    }
}

#[test]
fn many_values_are_rounded_by_little() {
    let values: Vec<f32> = (0..20_000).map(|n| -((n as f32) * 0.37).sin().abs() * 5.0).collect();
    let mut out = Writer::default();
    out.quantized(&values);
    let mut from = Reader { bytes: &out.0, at: 0 };
    let mut found = Vec::new();
    from.quantized_into(&mut found).unwrap();
    // The widest of 256 parts of equal size, at the thin end of the distribution, spans 0.07.
    assert!(values.iter().zip(&found).all(|(a, b)| (a - b).abs() < 0.07));
}

#[test]
fn other_labels_and_other_files_are_refused() {
    let (_, _, bytes) = packed();
    let other = LabelSet::new(Units::Phones, ["d", "eh", "iy", "l", "sil"]).unwrap();
    assert_eq!(
        WordModel::parse(&bytes, &other).unwrap_err().to_string(),
        "is for other labels than those of the model"
    );
    let foreign = "does not begin as a word model of version 1";
    assert_eq!(WordModel::parse(b"RIFF....WAVE", &labels()).unwrap_err().to_string(), foreign);
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(WordModel::parse(&damaged, &labels()).unwrap_err().to_string(), "byte 16: the checksum differs");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_files_never_panic(at in 0usize..2000, value in any::<u8>(), cut in 0usize..2000) {
        let (_, _, mut bytes) = packed();
        let at = 16 + at % (bytes.len() - 16);
        bytes[at] = value;
        bytes.truncate(if cut % 4 == 0 { 16 + cut % (bytes.len() - 16) } else { bytes.len() });
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[16..]);
        bytes[12..16].copy_from_slice(&crc.sum().to_le_bytes());
        if let Ok(found) = WordModel::parse(&bytes, &labels()) {
            let _ = found.language.sentence_log_prob(&["</s>", "x"]);
            for id in crate::fusion::ids(&found.lexicon, &found.language) {
                let _ = found.language.next(found.language.start(), id);
            }
            let _ = found.lexicon.tree.best_values(|word| word as f32);
        }
    }
}
