//! Lists and transcripts that people write: a path in, its text out, of limited size.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, ensure};

/// Larger files are no lists.
const MAX_BYTES: u64 = 256 << 20;

/// The text of a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let failed = || format!("could not read `{shown}`");
    let mut text = String::new();
    let mut file = File::open(path).with_context(failed)?.take(MAX_BYTES);
    file.read_to_string(&mut text).with_context(failed)?;
    ensure!(0 < file.limit(), "`{shown}` has more than {MAX_BYTES} bytes, expected a list or a text");
    Ok(text)
}
