//! `srf prepare builtin`: a seed in, a spoken corpus out, plain or shaped like TIMIT's or WSJ's discs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use clap::{Args as ClapArgs, ValueEnum};
use text::labels::Units;
use text::labels::timit::PhoneSet;
use train::builtin::layout::{plain, timit, wsj};
use train::builtin::{USUAL_LENGTH_S, Voices};
use train::corpus::split::{Shares, SplitConfig};
use train::corpus::targets::Labels;

use super::{Place, Targets, UnitsName, finish, no_checks};
use crate::Exit;
use crate::printer::Printer;
use crate::watch::Bar;

#[derive(ClapArgs)]
#[command(after_help = "Examples:\n  srf prepare builtin corpus --hours 2 --units words\n  \
                        srf prepare builtin disc --layout timit --speakers 630 && srf prepare timit disc data/timit")]
pub(super) struct Args {
    /// The folder to write to
    out: PathBuf,
    /// How much speech [default: 1]
    #[arg(long)]
    hours: Option<f64>,
    /// How many speakers [default: 40, 630 with `--layout timit`, 312 with `--layout wsj`]
    #[arg(long)]
    speakers: Option<usize>,
    /// Everything follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// `timit` and `wsj` write a tree like the discs', for `srf prepare timit` and `srf prepare wsj` to read
    #[arg(long, value_enum, default_value = "plain")]
    layout: Layout,
    /// `espeak` lets every second speaker be a voice of the program espeak-ng: no phones, no times
    #[arg(long, value_enum, default_value = "flite")]
    voices: VoicesName,
    /// Percent of the speakers in train, dev and test
    #[arg(long, value_name = "SHARES", default_value = "80/10/10")]
    split: Shares,
    #[command(flatten)]
    targets: Targets,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Layout {
    Plain,
    Timit,
    Wsj,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum VoicesName {
    Flite,
    Espeak,
}

pub(super) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { out: dir, hours, speakers, seed, layout, voices, split, targets } = args;
    anyhow::ensure!(speakers != Some(0), "`--speakers 0` leaves nobody to speak");
    anyhow::ensure!(hours.is_none_or(|hours| 0.0 < hours && hours <= 100_000.0), "`--hours` must be above 0");
    anyhow::ensure!(
        layout == Layout::Plain || voices == VoicesName::Flite,
        "`--voices espeak` has no phones, which `--layout` needs"
    );
    let bar = Bar::new(out);
    match layout {
        Layout::Plain => {
            let is_phones = targets.units.is_none_or(|units| matches!(units, UnitsName::Phones));
            anyhow::ensure!(
                !is_phones || voices == VoicesName::Flite,
                "`--voices espeak` has no phones, choose `--units chars` or `--units words`"
            );
            let voices = if voices == VoicesName::Espeak { Voices::FliteAndEspeak } else { Voices::Flite };
            let config =
                plain::PlainConfig { seed, n_speakers: speakers.unwrap_or(40), hours: hours.unwrap_or(1.0), voices };
            let split = SplitConfig { shares: Some(split), seed, ..SplitConfig::default() };
            let prepare = targets.config(Units::Phones, Labels::Timit(PhoneSet::Score39), split)?;
            let start = Instant::now();
            let corpus = plain::write(&config, &dir, &bar).context("could not make the corpus")?;
            bar.finish();
            tell_speed(corpus.n_utterances(), start, out);
            finish((corpus, Vec::new()), Place { src: dir.clone(), out: dir }, &prepare, &no_checks, out)
        }
        Layout::Timit => {
            anyhow::ensure!(
                hours.is_none(),
                "with `--layout timit` everyone says ten sentences: choose `--speakers`, not `--hours`"
            );
            let start = Instant::now();
            let n = timit::write(seed, speakers.unwrap_or(630), &dir, &bar).context("could not make the corpus")?;
            bar.finish();
            tell_speed(n, start, out);
            tell_next("timit", &dir, out);
            Ok(Exit::Done)
        }
        Layout::Wsj => {
            let n_speakers = speakers.unwrap_or(312);
            let n_each = (hours.unwrap_or(1.0) * 3600.0 / USUAL_LENGTH_S / n_speakers as f64).ceil() as usize;
            anyhow::ensure!(
                n_each <= 99 * 99,
                "{n_each} utterances a speaker are more than WSJ's names can count: choose more `--speakers`"
            );
            let start = Instant::now();
            let n = wsj::write(seed, n_speakers, n_each, &dir, &bar).context("could not make the corpus")?;
            bar.finish();
            tell_speed(n, start, out);
            tell_next("wsj", &dir, out);
            Ok(Exit::Done)
        }
    }
}

fn tell_speed(n_utterances: usize, start: Instant, out: &Printer) {
    out.remark(format!("{n_utterances} utterances spoken in {:.1} s", start.elapsed().as_secs_f64()));
}

fn tell_next(kind: &str, dir: &Path, out: &Printer) {
    out.remark(format!("written to `{}`; next: `srf prepare {kind} {} OUT`", dir.display(), dir.display()));
}
