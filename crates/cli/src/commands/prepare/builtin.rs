//! `srf prepare builtin`: synthesises a corpus, plain or in the layout of TIMIT or WSJ.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use srf_text::labels::Units;
use srf_text::labels::timit::PhoneSet;
use srf_train::builtin::layout::{PlainConfig, write_plain};
use srf_train::builtin::layout::{WriteCorpusError, timit, wsj};
use srf_train::builtin::{USUAL_LENGTH_S, Voices};
use srf_train::corpus::Corpus;
use srf_train::corpus::prepare::{Found, check_out};
use srf_train::corpus::split::{Shares, SplitConfig};
use srf_train::corpus::targets::Labels;

use super::{Targets, choice, no_checks, write};
use crate::Exit;
use crate::printer::{Bar, Printer};

const MAX_HOURS: f64 = 100_000.0;
/// Percent of the speakers in train, dev and test.
const USUAL_SPLIT: &str = "80/10/10";

#[derive(ClapArgs)]
#[command(after_help = "Examples:\n  srf prepare builtin corpus --hours 2 --units words\n  \
                        srf prepare builtin disc --layout timit --speakers 630 && srf prepare timit disc data/timit")]
pub(crate) struct Args {
    /// The folder to write to
    out: PathBuf,
    /// How much speech [default: 1]
    #[arg(long, value_name = "N")]
    hours: Option<f64>,
    /// How many speakers [default: one for each minute, at least 10; 630 with `--layout timit`, 312 with `--layout wsj`]
    #[arg(long, value_name = "N")]
    speakers: Option<usize>,
    /// Everything follows from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// `timit` and `wsj` write a tree like the discs', for `srf prepare timit` and `srf prepare wsj` to read
    #[arg(long, value_parser = choice(&LAYOUTS), default_value = "plain")]
    layout: Layout,
    /// `espeak` lets every second speaker be a voice of the program espeak-ng: no phones, no times
    #[arg(long, value_parser = choice(&VOICES), default_value = "flite")]
    voices: Voices,
    /// Percent of the speakers in train, dev and test
    #[arg(long, value_name = "SHARES", default_value = USUAL_SPLIT)]
    split: Shares,
    /// Replace a corpus in OUT, or write next to files that are there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    targets: Targets,
}

const LAYOUTS: [(&str, Layout); 3] = [("plain", Layout::Plain), ("timit", Layout::Timit), ("wsj", Layout::Wsj)];
const VOICES: [(&str, Voices); 2] = [("flite", Voices::Flite), ("espeak", Voices::FliteAndEspeak)];

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Plain,
    Timit,
    Wsj,
}

pub(super) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { out: dir, hours, speakers, seed, layout, voices, split, force, targets } = args;
    anyhow::ensure!(speakers != Some(0), "`--speakers 0` leaves nobody to speak");
    anyhow::ensure!(hours.is_none_or(|hours| 0.0 < hours && hours <= MAX_HOURS), "`--hours` takes 0 to {MAX_HOURS}");
    let is_flite = voices == Voices::Flite;
    anyhow::ensure!(layout == Layout::Plain || is_flite, "`--voices espeak` has no phones, which `--layout` needs");
    check_out(&dir, force)?;
    match layout {
        Layout::Plain => {
            let is_phones = targets.units.is_none_or(|units| units == Units::Phones);
            anyhow::ensure!(
                is_flite || !is_phones,
                "`--voices espeak` has no phones, choose `--units chars` or `words`"
            );
            let hours = hours.unwrap_or(1.0);
            let n_speakers = speakers.unwrap_or_else(|| usual_speakers(hours));
            let config = PlainConfig { seed, n_speakers, hours, voices };
            make(&config, split, targets, dir, out)
        }
        Layout::Timit => {
            anyhow::ensure!(hours.is_none(), "with `--layout timit` everyone says ten sentences: choose `--speakers`");
            speak(out, |bar| timit::write(seed, speakers.unwrap_or(630), &dir, bar), |n| *n)?;
            Ok(print_next("timit", &dir, out))
        }
        Layout::Wsj => {
            let n_speakers = speakers.unwrap_or(312);
            let n_each = (hours.unwrap_or(1.0) * 3600.0 / USUAL_LENGTH_S / n_speakers as f64).ceil() as usize;
            anyhow::ensure!(
                n_each <= wsj::MAX_EACH,
                "{n_each} utterances per speaker are too many: choose more `--speakers`"
            );
            speak(out, |bar| wsj::write(seed, n_speakers, n_each, &dir, bar), |n| *n)?;
            Ok(print_next("wsj", &dir, out))
        }
    }
}

/// One for each minute: a network that has heard few speakers much does not know the others.
fn usual_speakers(hours: f64) -> usize {
    ((hours * 60.0) as usize).max(10)
}

/// Speaks a corpus into `dir` and prepares it as `srf prepare builtin` does where nothing else is asked for.
pub(crate) fn make_usual(config: &PlainConfig, dir: PathBuf, out: &Printer) -> anyhow::Result<Exit> {
    make(config, USUAL_SPLIT.parse()?, Targets::default(), dir, out)
}

fn make(config: &PlainConfig, shares: Shares, targets: Targets, dir: PathBuf, out: &Printer) -> anyhow::Result<Exit> {
    let split = SplitConfig { shares: Some(shares), seed: config.seed, ..SplitConfig::default() };
    let prepare = targets.config(Units::Phones, Labels::Timit(PhoneSet::Score39), split)?;
    let corpus = speak(out, |bar| write_plain(config, &dir, bar), Corpus::n_utterances)?;
    write(Found { src: dir.clone(), corpus, problems: Vec::new() }, &prepare, &no_checks, &dir, out)
}

/// Makes a corpus with a progress bar, and prints how long it took.
fn speak<T>(
    out: &Printer,
    write: impl FnOnce(&Bar) -> Result<T, WriteCorpusError>,
    n_utterances: impl FnOnce(&T) -> usize,
) -> anyhow::Result<T> {
    let start = Instant::now();
    let bar = Bar::new(out);
    let made = write(&bar);
    bar.finish();
    let made = made.context("could not make the corpus")?;
    out.note(format!("{} utterances spoken in {:.1} s", n_utterances(&made), start.elapsed().as_secs_f64()));
    Ok(made)
}

fn print_next(kind: &str, dir: &Path, out: &Printer) -> Exit {
    out.note(format!("written to `{}`; next: `srf prepare {kind} {} OUT`", dir.display(), dir.display()));
    Exit::Done
}
