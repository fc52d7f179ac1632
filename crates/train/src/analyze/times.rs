//! Which times to look at: what was asked for, or some that show something.

use super::{Analysis, Routes};

/// Times shown where none are asked for.
pub const N_TIMES: usize = 5;

/// Times in seconds, in order: the first and the last slice, and between them places where the first model is sure of
/// a label, as evenly spread as these are.
pub fn choose(analysis: &Analysis, n: usize) -> Vec<f64> {
    let Some(routes) = analysis.models.first() else { return Vec::new() };
    let last = routes.n_slices() - 1;
    let labels: Vec<usize> = peaks(routes).into_iter().filter(|slice| (1..last).contains(slice)).collect();
    let n_between = n.saturating_sub(2);
    let between = (1..=n_between).filter_map(|k| {
        let wanted = k * last / (n_between + 1);
        labels.iter().copied().min_by_key(|slice| slice.abs_diff(wanted)).or(Some(wanted))
    });
    let mut slices: Vec<usize> = [0].into_iter().chain(between).chain([last]).collect();
    slices.sort_unstable();
    slices.dedup();
    slices.into_iter().take(n.max(1)).map(|slice| routes.time_s(slice)).collect()
}

/// Where each run of a label is likeliest.
fn peaks(routes: &Routes) -> Vec<usize> {
    let likeliest = routes.likeliest();
    let mut peaks: Vec<usize> = Vec::new();
    for (slice, class) in likeliest.iter().copied().enumerate().filter(|(_, class)| *class != routes.blank()) {
        let goes_on = 0 < slice && likeliest[slice - 1] == class;
        match peaks.last_mut().filter(|_| goes_on) {
            Some(peak) if routes.probabilities_at(*peak)[class] < routes.probabilities_at(slice)[class] => {
                *peak = slice;
            }
            Some(_) => {}
            None => peaks.push(slice),
        }
    }
    peaks
}

#[cfg(test)]
mod tests {
    use super::super::testing::{analysis, routes};
    use super::*;

    #[test]
    fn chosen_times_are_the_ends_and_peaks_of_labels_between() {
        let row = |a: f32| [a, 0.0, 1.0 - a];
        // Blank at 0 to 2, `a` at 3 to 5 and surest at 4, blank to the end.
        let probabilities = [0.1, 0.1, 0.2, 0.6, 0.9, 0.7, 0.1, 0.0, 0.0, 0.1].map(row).concat();
        let analysis = analysis(vec![routes(&["a", "b"], &probabilities, &probabilities)]);
        let times = choose(&analysis, 3);
        let slices: Vec<usize> = times.iter().map(|time_s| analysis.models[0].slice_at(*time_s)).collect();
        assert_eq!(slices, [0, 4, 9]);
        assert_eq!(choose(&analysis, 1).len(), 1);
    }
}
