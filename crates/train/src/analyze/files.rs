//! All pictures and the page of an utterance as files: an analysis in, a folder out.

use std::path::Path;
use std::{fs, io};

use super::{Analysis, couplings, grid, page, trajectories};

/// The page.
pub const PAGE: &str = "routing.html";

/// Writes into `dir`, which is made where it is not there: the couplings of every model at every time, the grid of
/// them all, the softmax at start and end (each as PNG and SVG) and the page.
pub fn save(analysis: &Analysis, times_s: &[f64], dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    for (model, routes) in analysis.models.iter().enumerate() {
        for time_s in times_s {
            let stem =
                format!("couplings-{}-{:.2}s", file_name(&routes.model), routes.time_s(routes.slice_at(*time_s)));
            couplings::picture(analysis, model, *time_s).save(dir, &stem)?;
        }
    }
    grid::picture(analysis, times_s).save(dir, "grid")?;
    trajectories::picture(analysis, trajectories::N_SLICES).save(dir, "softmax")?;
    fs::write(dir.join(PAGE), page::page(analysis))
}

/// A name that is one part of a path wherever it is used.
pub fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    // Neither hidden nor a way up.
    let plain = plain.trim_start_matches('.');
    if plain.is_empty() { "unnamed".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_its_folder() {
        assert_eq!(file_name("dr1-fvmh0_sa1"), "dr1-fvmh0_sa1");
        assert_eq!(file_name("../../etc/passwd"), "-..-etc-passwd");
        assert_eq!(file_name("a/b\\c d"), "a-b-c-d");
        assert_eq!(file_name(".."), "unnamed");
    }
}
