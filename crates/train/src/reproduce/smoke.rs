//! Trying a table out: nothing in, a corpus of half a minute out; or a corpus in, a little of it out.

use std::path::Path;

use srf_text::labels::Units;
use srf_text::labels::timit::PhoneSet;

use super::error::ReproduceError;
use super::runner::Part;
use super::table::Table;
use crate::builtin::Voices;
use crate::builtin::layout::{PlainConfig, write_plain};
use crate::corpus::prepare::{Found, PrepareConfig, prepare};
use crate::corpus::split::SplitConfig;
use crate::corpus::targets::{Labels, TargetConfig};
use crate::trainer::TrainWatcher;
use crate::trainer::prepared::Prepared;

/// How much speech is made.
const HOURS: f64 = 0.012;
const N_SPEAKERS: usize = 6;
/// Utterances that are left of a corpus.
const N_TRAIN: usize = 12;
const N_MEASURED: usize = 4;

/// Speaks and prepares a corpus for `table` in `dir`, unless it is there.
pub fn corpus(table: &Table, dir: &Path, watcher: &dyn TrainWatcher) -> Result<(), ReproduceError> {
    // Written last: what it counts is there.
    if dir.join("summary.json").is_file() {
        return Ok(());
    }
    watcher.remark("speaking a corpus of half a minute");
    let config = PlainConfig { seed: 1, n_speakers: N_SPEAKERS, hours: HOURS, voices: Voices::Flite };
    let corpus = write_plain(&config, dir, watcher)?;
    let targets = if table.is_of_phones {
        TargetConfig { labels: Labels::Timit(PhoneSet::All61), ..TargetConfig::new(Units::Phones) }
    } else {
        TargetConfig::new(Units::Chars)
    };
    let split = SplitConfig { shares: "60/20/20".parse().ok(), seed: 1, ..SplitConfig::default() };
    let config = PrepareConfig { split, targets, kaldi: false };
    let found = Found { src: dir.to_owned(), corpus, problems: Vec::new() };
    prepare(found, &config, &|_| Vec::new(), dir, watcher).0?;
    Ok(())
}

/// Leaves a little of a corpus, so that a table is made in a minute.
pub fn cut(data: &mut Prepared, parts: &mut [Part]) {
    data.train.truncate(N_TRAIN);
    data.dev.truncate(N_MEASURED);
    for part in parts {
        part.utterances.truncate(N_MEASURED);
    }
}
