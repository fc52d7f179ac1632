//! Where everything of a table lies: rows, seeds and parts in, paths out.
//!
//! | path below OUT | holds |
//! |---|---|
//! | `ROW/seed-N/` | a run, as `srf train` makes it; ROW of WSJ is `wsj/NAME` |
//! | `ROW/seed-N/dev/`, `.../test/` | its evaluations, as `srf evaluate --out` writes them |
//! | `ROW/seed-N/decoding.json` | how long each utterance of the test takes ([`super::decoding`]) |
//! | `ROW/seed-N/distance-PART.json` | how far routing and softmax are apart, by utterance |
//! | `ROW/pace.json` | how fast the row trains, where the budget is time |
//! | `TABLE.md`, `TABLE.json`, `TABLE.html` | the table |

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::table::Row;
use srf_base::files::write_atomically;

/// Far more than any of our files has.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The directory of a reproduction.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its path.
    pub out: PathBuf,
}

impl Place {
    /// What belongs to a row.
    pub fn row(&self, row: &Row) -> PathBuf {
        self.out.join(row.directory())
    }

    /// The run of a row with a seed.
    pub fn run(&self, row: &Row, seed: u64) -> PathBuf {
        self.row(row).join(format!("seed-{seed}"))
    }

    /// The evaluation of a run on a part.
    pub fn evaluation(&self, row: &Row, seed: u64, part: &str) -> PathBuf {
        self.run(row, seed).join(part)
    }

    /// The decoding times of a run.
    pub fn decoding(&self, row: &Row, seed: u64) -> PathBuf {
        self.run(row, seed).join("decoding.json")
    }

    /// The distances of a run on a part.
    pub fn distance(&self, row: &Row, seed: u64, part: &str) -> PathBuf {
        self.run(row, seed).join(format!("distance-{part}.json"))
    }

    /// How fast a row trains.
    pub fn pace(&self, row: &Row) -> PathBuf {
        self.row(row).join("pace.json")
    }
}

/// Reads a JSON file; none where it is not there, or is no such thing.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Writes a JSON file, whole or not at all.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    write_atomically(path, (text + "\n").as_bytes())
}
