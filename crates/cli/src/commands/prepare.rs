//! `srf prepare`: turns a corpus of any kind into manifests, labels and a summary.

pub(super) mod builtin;
mod report;

pub(super) use self::report::problems;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Subcommand};
use srf_base::files::read_at_most;
use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::pieces;
use srf_text::labels::timit::PhoneSet;
use srf_text::labels::{LabelSet, Units};
use srf_train::corpus::kaldi::Commands;
use srf_train::corpus::prepare::{Found, PrepareConfig, check_out, prepare};
use srf_train::corpus::pronounce::Lexicon;
use srf_train::corpus::split::{Shares, SpeakerFrom, SplitConfig};
use srf_train::corpus::summary::Check;
use srf_train::corpus::targets::{Case, DEFAULT_PIECES, Labels, TargetConfig};
use srf_train::corpus::wsj::TrainingSet;
use srf_train::corpus::{Corpus, Problem, commonvoice, folder, harpervalley, kaldi, librispeech, manifest, timit, wsj};

use crate::Exit;
use crate::printer::{Bar, Printer};

/// Convert a corpus to manifests and labels to train on
///
/// OUT gets one manifest per part (`train.jsonl`, `dev.jsonl`, `test.jsonl`: one JSON object per line with NeMo's keys,
/// and speaker, phones and words with times), `labels.txt` with the classes of a network, and `summary.json`.
/// Problems are reported with their file and line; the rest is prepared, and the exit code is 1.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  srf prepare builtin corpus --hours 2            # synthetic speech, made by the program
  srf prepare timit /discs/timit data/timit --fold 39
  srf prepare librispeech LibriSpeech data/libri --units phones --lexicon cmudict
  srf prepare folder recordings data/mine --units chars --case lower --split 80/10/10
  srf prepare commonvoice cv/ko data/ko --units bpe --pieces 1000 --drop-punctuation")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// TIMIT: the disc or a folder that contains it; train 3,696, dev 400 and core test 192 utterances
    #[command(after_help = "Examples:\n  srf prepare timit /discs/timit data/timit --fold 39")]
    Timit(InParts),
    /// Wall Street Journal: a folder with the discs, or with `wsj0` and `wsj1`
    #[command(after_help = "Examples:\n  srf prepare wsj /discs/wsj data/wsj --train si84")]
    Wsj {
        /// What to train on
        #[arg(long, value_parser = choice(&TRAINING_SETS), default_value = "si284")]
        train: TrainingSet,
        #[command(flatten)]
        corpus: InParts,
    },
    /// A Kaldi data directory (`wav.scp`, `text`, `utt2spk`, `segments`), or a folder of several
    #[command(after_help = "Examples:\n  srf prepare kaldi data/train data/mine --allow-commands --split 90/10/0")]
    Kaldi {
        /// Run the commands that `wav.scp` names, and keep their output in OUT/audio
        #[arg(long)]
        allow_commands: bool,
        #[command(flatten)]
        corpus: InOnePiece,
    },
    /// LibriSpeech: a folder with `train-clean-100`, `dev-clean` and the like
    #[command(after_help = "Examples:\n  srf prepare librispeech LibriSpeech data/libri --units chars --case lower")]
    Librispeech(InParts),
    /// Common Voice: the folder of a language, with `train.tsv` and `clips`; with `--split`, all of `validated.tsv`
    #[command(after_help = "Examples:
  srf prepare commonvoice cv/de data/de --case lower --drop-punctuation
  srf prepare commonvoice cv/de data/de --split 90/4/6 --case lower --drop-punctuation")]
    Commonvoice(InOnePiece),
    /// HarperValley: calls to a bank, 8 kHz, one recording per side of a call
    #[command(
        after_help = "Examples:\n  srf prepare harpervalley harper data/hv --units phones --lexicon cmudict --split 80/10/10"
    )]
    Harpervalley(InOnePiece),
    /// A NeMo manifest (JSONL) or a folder of several; `audio`, `dur`, `phones`, `phone_seq` are read too
    #[command(
        after_help = "Examples:\n  srf prepare nemo manifest.jsonl data/mine --speaker-from path:1 --split 80/10/10"
    )]
    Nemo(InOnePiece),
    /// Recordings with .txt, .lab, .TextGrid, .phn or .wrd files of the same name, speakers in sub-folders
    #[command(after_help = "Examples:\n  srf prepare folder recordings data/mine --units chars --split 80/10/10")]
    Folder(InOnePiece),
    /// Synthetic speech: any number of hours, with exact phones and words
    Builtin(builtin::Args),
}

const TRAINING_SETS: [(&str, TrainingSet); 2] = [("si84", TrainingSet::Si84), ("si284", TrainingSet::Si284)];
/// SentencePiece models of all of Unicode have a few MB.
const MAX_SENTENCEPIECE_BYTES: u64 = 64 << 20;

const UNITS: [(&str, Units); 4] =
    [("phones", Units::Phones), ("chars", Units::Chars), ("words", Units::Words), ("bpe", Units::Pieces)];
const CASES: [(&str, Case); 3] = [("keep", Case::Keep), ("lower", Case::Lower), ("upper", Case::Upper)];
const FOLDS: [(&str, PhoneSet); 3] = [("61", PhoneSet::All61), ("48", PhoneSet::Train48), ("39", PhoneSet::Score39)];
const MAPS: [(&str, PhoneMapping); 3] =
    [("timit48", PhoneMapping::Timit48), ("timit39", PhoneMapping::Timit39), ("shared37", PhoneMapping::Shared37)];
const LEXICONS: [(&str, Lexicon); 1] = [("cmudict", Lexicon::CmuDict)];

/// One of these names, as what it stands for.
fn choice<T: Clone + Send + Sync>(all: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let names = PossibleValuesParser::new(all.iter().map(|(name, _)| *name));
    names.map(move |given| all.iter().find(|(name, _)| *name == given).expect("the parser knows the names").1.clone())
}

/// A corpus that comes with its parts.
#[derive(ClapArgs)]
struct InParts {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    targets: Targets,
}

/// A corpus that the user splits.
#[derive(ClapArgs)]
struct InOnePiece {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    split: Split,
    #[command(flatten)]
    targets: Targets,
}

/// From where to where.
#[derive(ClapArgs)]
struct Place {
    /// The corpus
    src: PathBuf,
    /// The folder to write to
    out: PathBuf,
    /// Replace a corpus in OUT, or write next to files that are there
    #[arg(long)]
    force: bool,
}

/// Parts of corpora that come in one piece.
#[derive(ClapArgs)]
struct Split {
    /// Split by speakers: percent of train, dev and test, as in `80/10/10`
    #[arg(long = "split", value_name = "SHARES")]
    shares: Option<Shares>,
    /// These speakers are the test part (comma-separated names, or `@FILE` with one per line)
    #[arg(long, value_name = "NAMES", default_value = "")]
    test_speakers: String,
    /// These speakers are the dev part
    #[arg(long, value_name = "NAMES", default_value = "")]
    dev_speakers: String,
    /// Name speakers after the folder N levels above a recording (`path:N`) or the start of its id (`id:SEPARATOR`)
    #[arg(long, value_name = "WHERE")]
    speaker_from: Option<SpeakerFrom>,
    /// Which of all possible splits
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// What a model is to write.
#[derive(ClapArgs, Default)]
struct Targets {
    /// What a label is [default: phones for timit and builtin, chars for the rest]
    #[arg(long, value_parser = choice(&UNITS))]
    units: Option<Units>,
    /// Make phones of words with this dictionary (the CMU dictionary's 39 phones), and of unknown words by rules
    #[arg(long, value_name = "LEXICON", value_parser = choice(&LEXICONS))]
    lexicon: Option<Lexicon>,
    /// Fold TIMIT's phones to so many [default: 61 for timit, 39 for builtin]
    #[arg(long, value_name = "SIZE", value_parser = choice(&FOLDS))]
    fold: Option<PhoneSet>,
    /// Map phones of TIMIT or of CMU's dictionary to this set, so that corpora can be joined
    #[arg(long, value_name = "SET", conflicts_with = "fold", value_parser = choice(&MAPS))]
    map: Option<PhoneMapping>,
    /// Make one silence of several in a row (results are usually reported without)
    #[arg(long)]
    merge_silences: bool,
    /// Keep `AH0` and `AH1` apart
    #[arg(long)]
    keep_stress: bool,
    /// Case of characters and words
    #[arg(long, value_parser = choice(&CASES), default_value = "keep")]
    case: Case,
    /// Keep letters, digits, apostrophes and spaces only; hyphens become spaces
    #[arg(long)]
    drop_punctuation: bool,
    /// How many pieces of words to learn from the training part, with `--units bpe` [default: 500]
    #[arg(long, value_name = "N")]
    pieces: Option<usize>,
    /// Use these labels (a `labels.txt`, or a SentencePiece model of byte-pair encoding) instead of those the training
    /// part needs
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Write Kaldi data directories too, to OUT/kaldi
    #[arg(long)]
    kaldi: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { kind } = args;
    match kind {
        Kind::Timit(InParts { place, targets }) => {
            let config = targets.config(Units::Phones, Labels::Timit(PhoneSet::All61), SplitConfig::default())?;
            finish(timit::read, place, &config, &timit::checks, out)
        }
        Kind::Wsj { train, corpus: InParts { place, targets } } => {
            let config = targets.config(Units::Chars, Labels::Wsj, SplitConfig::default())?;
            finish(|src| wsj::read(src, train), place, &config, &|corpus| wsj::checks(corpus, train), out)
        }
        Kind::Kaldi { allow_commands, corpus } => {
            let kept = corpus.place.out.join("audio");
            let commands = if allow_commands { Commands::KeptIn(kept) } else { Commands::Refused };
            corpus.prepare(|src| kaldi::read(src, &commands), out)
        }
        Kind::Librispeech(corpus) => corpus.prepare(librispeech::read, out),
        Kind::Commonvoice(corpus) if corpus.split.is_asked() => corpus.prepare(commonvoice::read_validated, out),
        Kind::Commonvoice(corpus) => corpus.prepare(commonvoice::read, out),
        Kind::Harpervalley(corpus) => corpus.prepare(harpervalley::read, out),
        Kind::Nemo(corpus) => corpus.prepare(manifest::read_corpus, out),
        Kind::Folder(corpus) => corpus.prepare(folder::read, out),
        Kind::Builtin(args) => builtin::run(args, out),
    }
}

/// What a reader returns.
type Read = (Corpus, Vec<Problem>);

impl InParts {
    fn prepare(self, read: impl FnOnce(&Path) -> Read, out: &Printer) -> anyhow::Result<Exit> {
        let InParts { place, targets } = self;
        let config = targets.config(Units::Chars, Labels::OfTraining, SplitConfig::default())?;
        finish(read, place, &config, &no_checks, out)
    }
}

impl InOnePiece {
    fn prepare(self, read: impl FnOnce(&Path) -> Read, out: &Printer) -> anyhow::Result<Exit> {
        let InOnePiece { place, split, targets } = self;
        let config = targets.config(Units::Chars, Labels::OfTraining, split.config()?)?;
        finish(read, place, &config, &no_checks, out)
    }
}

fn no_checks(_corpus: &Corpus) -> Vec<Check> {
    Vec::new()
}

/// Reads a corpus, prepares it and prints the summary.
fn finish(
    read: impl FnOnce(&Path) -> Read,
    place: Place,
    config: &PrepareConfig,
    checks: &dyn Fn(&Corpus) -> Vec<Check>,
    out: &Printer,
) -> anyhow::Result<Exit> {
    let Place { src, out: dir, force } = place;
    check_out(&dir, force)?;
    let (corpus, problems) = read(&src);
    write(Found { src, corpus, problems }, config, checks, &dir, out)
}

/// Writes a corpus that was read, and prints the summary.
fn write(
    found: Found,
    config: &PrepareConfig,
    checks: &dyn Fn(&Corpus) -> Vec<Check>,
    dir: &Path,
    out: &Printer,
) -> anyhow::Result<Exit> {
    let bar = Bar::new(out);
    let (summary, problems) = prepare(found, config, checks, dir, &bar);
    bar.finish();
    report::problems(&problems, out);
    let summary = summary.context("could not prepare the corpus")?;
    report::summary(&summary, dir, out);
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Problems })
}

impl Targets {
    /// The configuration that was asked for, with the defaults of the kind of corpus.
    fn config(self, units: Units, labels: Labels, split: SplitConfig) -> anyhow::Result<PrepareConfig> {
        let Targets { units: wanted, lexicon, fold, map, merge_silences, keep_stress, case, .. } = self;
        let folded = fold.map(Labels::Timit).or(map.map(Labels::Mapped));
        let default_units = if lexicon.is_some() { Units::Phones } else { units };
        let chosen = wanted.unwrap_or(default_units);
        anyhow::ensure!(
            lexicon.is_none() || chosen == Units::Phones,
            "`--lexicon` makes phones, but the units are {chosen}"
        );
        let labels = match (self.labels, folded) {
            (Some(path), _) => Labels::Given(given_labels(&path, chosen)?),
            (None, Some(folded)) if chosen == Units::Phones => folded,
            (None, Some(_)) => anyhow::bail!("`--fold` and `--map` are for phones, but the units are {chosen}"),
            (None, None) if chosen == units && lexicon.is_none() => labels,
            (None, None) => Labels::OfTraining,
        };
        anyhow::ensure!(
            self.pieces.is_none() || chosen == Units::Pieces,
            "`--pieces` is for `--units bpe`, but the units are {chosen}"
        );
        let n_pieces = self.pieces.unwrap_or(DEFAULT_PIECES);
        let drop_punctuation = self.drop_punctuation;
        let targets = TargetConfig {
            units: chosen,
            labels,
            n_pieces,
            lexicon,
            merge_silences,
            keep_stress,
            case,
            drop_punctuation,
        };
        Ok(PrepareConfig { split, targets, kaldi: self.kaldi })
    }
}

fn given_labels(path: &Path, units: Units) -> anyhow::Result<LabelSet> {
    let is_sentencepiece = path.extension().is_some_and(|extension| extension == "model");
    let labels = if is_sentencepiece { sentencepiece(path)? } else { LabelSet::load(path)? };
    let found = labels.units();
    anyhow::ensure!(found == units, "`{}` has labels of {found}, but the units are {units}", path.display());
    Ok(labels)
}

fn sentencepiece(path: &Path) -> anyhow::Result<LabelSet> {
    let shown = path.display();
    let bytes = read_at_most(path, MAX_SENTENCEPIECE_BYTES).with_context(|| format!("could not read `{shown}`"))?;
    let bytes = bytes.with_context(|| format!("`{shown}` has more than {MAX_SENTENCEPIECE_BYTES} bytes"))?;
    pieces::read_sentencepiece(&bytes).with_context(|| format!("`{shown}`"))
}

impl Split {
    fn is_asked(&self) -> bool {
        self.shares.is_some() || !self.test_speakers.is_empty() || !self.dev_speakers.is_empty()
    }

    fn config(self) -> anyhow::Result<SplitConfig> {
        let Split { shares, test_speakers, dev_speakers, speaker_from, seed } = self;
        let (dev_speakers, test_speakers) = (names(&dev_speakers)?, names(&test_speakers)?);
        Ok(SplitConfig { shares, dev_speakers, test_speakers, seed, speaker_from })
    }
}

/// Names given one by one, or in a file.
fn names(given: &str) -> anyhow::Result<Vec<String>> {
    let text = match given.strip_prefix('@') {
        Some(path) => fs::read_to_string(path).with_context(|| format!("could not read `{path}`"))?,
        None => given.replace(',', "\n"),
    };
    Ok(text.lines().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect())
}
