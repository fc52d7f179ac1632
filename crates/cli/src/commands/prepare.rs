//! `srf prepare`: a corpus of any kind in, manifests, labels and a summary out.

pub(super) mod builtin;
mod report;

pub(super) use self::report::problems;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use srf_text::labels::mapping::PhoneMapping;
use srf_text::labels::timit::PhoneSet;
use srf_text::labels::{LabelSet, Units};
use srf_train::corpus::kaldi::Commands;
use srf_train::corpus::prepare::{Found, PrepareConfig, prepare};
use srf_train::corpus::split::{Shares, SplitConfig};
use srf_train::corpus::summary::Check;
use srf_train::corpus::targets::{Case, Labels, TargetConfig};
use srf_train::corpus::wsj::TrainingSet;
use srf_train::corpus::{Corpus, Problem, commonvoice, folder, kaldi, librispeech, manifest, timit, wsj};

use crate::Exit;
use crate::printer::{Bar, Printer};

/// Turn a corpus into manifests and labels to train on
///
/// OUT gets one manifest a part (`train.jsonl`, `dev.jsonl`, `test.jsonl`: a JSON object a line with NeMo's keys, and
/// speaker, phones and words with times), `labels.txt` with the classes of a network, and `summary.json`.
/// Whatever is wrong is told with its file and line; the rest is prepared, and the exit code is 1.
#[derive(ClapArgs)]
#[command(
    after_help = "Examples:\n  srf prepare builtin corpus --hours 2            speech made by the program itself\n  \
                        srf prepare timit /discs/timit data/timit --fold 39\n  \
                        srf prepare folder recordings data/mine --units chars --case lower --split 80/10/10"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// TIMIT: the disc or a folder it lies in; train 3,696, dev 400 and core test 192 utterances
    Timit(InParts),
    /// Wall Street Journal: a folder with the discs, or with `wsj0` and `wsj1`
    Wsj {
        /// What to train on
        #[arg(long, value_enum, default_value = "si284")]
        train: Training,
        #[command(flatten)]
        corpus: InParts,
    },
    /// A Kaldi data directory (`wav.scp`, `text`, `utt2spk`, `segments`), or a folder of several
    Kaldi {
        /// Run the commands that `wav.scp` names, and keep their output in OUT/audio
        #[arg(long)]
        allow_commands: bool,
        #[command(flatten)]
        corpus: InOnePiece,
    },
    /// LibriSpeech: a folder with `train-clean-100`, `dev-clean` and the like
    Librispeech(InParts),
    /// Common Voice: the folder of a language, with `train.tsv` and `clips`
    Commonvoice(InParts),
    /// A NeMo manifest (JSONL) or a folder of several; `audio`, `dur`, `phones`, `phone_seq` are read too
    Nemo(InOnePiece),
    /// Recordings with .txt, .lab, .TextGrid, .phn or .wrd beside them, speakers in sub-folders
    Folder(InOnePiece),
    /// Speech made by the program itself: any number of hours, with exact phones and words
    Builtin(builtin::Args),
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
}

/// Parts of corpora that come in one piece.
#[derive(ClapArgs)]
struct Split {
    /// Split by speakers: percent of train, dev and test, as in `80/10/10`
    #[arg(long = "split", value_name = "SHARES")]
    shares: Option<Shares>,
    /// These speakers are the test part (comma-separated names, or `@FILE` with one a line)
    #[arg(long, value_name = "NAMES", default_value = "")]
    test_speakers: String,
    /// These speakers are the dev part
    #[arg(long, value_name = "NAMES", default_value = "")]
    dev_speakers: String,
    /// Which of all possible splits
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// What a model is to write.
#[derive(ClapArgs, Default)]
struct Targets {
    /// What a label is [default: phones for timit and builtin, chars for the rest]
    #[arg(long, value_enum)]
    units: Option<UnitsName>,
    /// Fold TIMIT's phones to 61, 48 or 39 [default: 61 for timit, 39 for builtin]
    #[arg(long, value_name = "SIZE")]
    fold: Option<PhoneSet>,
    /// Map phones of TIMIT or of CMU's dictionary to `timit48`, `timit39` or `shared37`, so that corpora can be joined
    #[arg(long, value_name = "SET", conflicts_with = "fold")]
    map: Option<PhoneMapping>,
    /// Make one silence of several in a row (results are usually reported without)
    #[arg(long)]
    merge_silences: bool,
    /// Keep `AH0` and `AH1` apart
    #[arg(long)]
    keep_stress: bool,
    /// Case of characters and words
    #[arg(long, value_enum, default_value = "keep")]
    case: CaseName,
    /// Keep letters, digits, apostrophes and spaces only
    #[arg(long)]
    drop_punctuation: bool,
    /// Use these labels (a `labels.txt`) instead of those the training part needs
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Write Kaldi data directories too, to OUT/kaldi
    #[arg(long)]
    kaldi: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum UnitsName {
    Phones,
    Chars,
    Words,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum CaseName {
    #[default]
    Keep,
    Lower,
    Upper,
}

#[derive(Clone, Copy, ValueEnum)]
enum Training {
    Si84,
    Si284,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { kind } = args;
    match kind {
        Kind::Timit(InParts { place, targets }) => {
            let config = targets.config(Units::Phones, Labels::Timit(PhoneSet::All61), SplitConfig::default())?;
            finish(timit::read(&place.src), place, &config, &timit::checks, out)
        }
        Kind::Wsj { train, corpus: InParts { place, targets } } => {
            let train = if matches!(train, Training::Si84) { TrainingSet::Si84 } else { TrainingSet::Si284 };
            let config = targets.config(Units::Chars, Labels::Wsj, SplitConfig::default())?;
            finish(wsj::read(&place.src, train), place, &config, &|corpus| wsj::checks(corpus, train), out)
        }
        Kind::Kaldi { allow_commands, corpus } => {
            let kept = corpus.place.out.join("audio");
            let commands = if allow_commands { Commands::KeptIn(kept) } else { Commands::Refused };
            corpus.prepare(|src| kaldi::read(src, &commands), out)
        }
        Kind::Librispeech(corpus) => corpus.prepare(librispeech::read, out),
        Kind::Commonvoice(corpus) => corpus.prepare(commonvoice::read, out),
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
        finish(read(&place.src), place, &config, &no_checks, out)
    }
}

impl InOnePiece {
    fn prepare(self, read: impl FnOnce(&Path) -> Read, out: &Printer) -> anyhow::Result<Exit> {
        let InOnePiece { place, split, targets } = self;
        let config = targets.config(Units::Chars, Labels::OfTraining, split.config()?)?;
        finish(read(&place.src), place, &config, &no_checks, out)
    }
}

fn no_checks(_corpus: &Corpus) -> Vec<Check> {
    Vec::new()
}

/// Prepares what a reader found, and tells of it.
fn finish(
    (corpus, problems): Read,
    place: Place,
    config: &PrepareConfig,
    checks: &dyn Fn(&Corpus) -> Vec<Check>,
    out: &Printer,
) -> anyhow::Result<Exit> {
    let Place { src, out: dir } = place;
    let found = Found { src, corpus, problems };
    let bar = Bar::new(out);
    let (summary, problems) = prepare(found, config, checks, &dir, &bar);
    bar.finish();
    report::problems(&problems, out);
    let summary = summary.context("could not prepare the corpus")?;
    report::summary(&summary, &dir, out);
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Problems })
}

impl Targets {
    /// The configuration that was asked for, with the defaults of the kind of corpus.
    fn config(self, units: Units, labels: Labels, split: SplitConfig) -> anyhow::Result<PrepareConfig> {
        let Targets {
            units: wanted,
            fold,
            map,
            merge_silences,
            keep_stress,
            case,
            drop_punctuation,
            labels: file,
            kaldi,
        } = self;
        let folded = fold.map(Labels::Timit).or(map.map(Labels::Mapped));
        let (default_units, units) = (units, wanted.map_or(units, UnitsName::units));
        let labels = match (file, folded) {
            (Some(path), _) => Labels::Given(given_labels(&path, units)?),
            (None, Some(folded)) if units == Units::Phones => folded,
            (None, Some(_)) => anyhow::bail!("`--fold` and `--map` are for phones, but the units are {units}"),
            (None, None) if units == default_units => labels,
            (None, None) => Labels::OfTraining,
        };
        let case = match case {
            CaseName::Keep => Case::Keep,
            CaseName::Lower => Case::Lower,
            CaseName::Upper => Case::Upper,
        };
        let targets = TargetConfig { units, labels, merge_silences, keep_stress, case, drop_punctuation };
        Ok(PrepareConfig { split, targets, kaldi })
    }
}

impl UnitsName {
    fn units(self) -> Units {
        match self {
            UnitsName::Phones => Units::Phones,
            UnitsName::Chars => Units::Chars,
            UnitsName::Words => Units::Words,
        }
    }
}

fn given_labels(path: &Path, units: Units) -> anyhow::Result<LabelSet> {
    let labels = LabelSet::load(path)?;
    let found = labels.units();
    anyhow::ensure!(found == units, "`{}` has labels of {found}, but the units are {units}", path.display());
    Ok(labels)
}

impl Split {
    fn config(self) -> anyhow::Result<SplitConfig> {
        let Split { shares, test_speakers, dev_speakers, seed } = self;
        let (dev_speakers, test_speakers) = (names(&dev_speakers)?, names(&test_speakers)?);
        Ok(SplitConfig { shares, dev_speakers, test_speakers, seed })
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
