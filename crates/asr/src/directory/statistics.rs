//! `cmvn.json`: the sums from which features are normalised, to a file and back.

use serde::{Deserialize, Serialize};
use srf_audio::features::cmvn::CmvnStats;

/// The one object of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statistics {
    n_frames: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

/// The text of `cmvn.json`.
pub(super) fn format(stats: &CmvnStats) -> String {
    let values = stats.to_kaldi();
    let (sums, squares) = values.split_at(values.len() / 2);
    let without_last = |row: &[f64]| row[..stats.n_dims()].to_vec();
    let statistics =
        Statistics { n_frames: stats.n_frames(), sums: without_last(sums), squares: without_last(squares) };
    serde_json::to_string(&statistics).expect("numbers and lists of them have a JSON form") + "\n"
}

/// Reads it back; the message says what is wrong.
pub(super) fn parse(text: &str) -> Result<CmvnStats, String> {
    let Statistics { n_frames, sums, squares } = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if sums.len() != squares.len() {
        return Err(format!("found {} sums and {} squares, expected as many of each", sums.len(), squares.len()));
    }
    let expected = "expected at least one frame and finite numbers";
    CmvnStats::from_kaldi(&[sums.as_slice(), &[n_frames], &squares, &[0.0]].concat())
        .ok_or_else(|| format!("found statistics of {n_frames} frames, {expected}"))
}
