//! Axes a person can read: the range of the data in, round numbers with their names out.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal ratios; values that are not positive have no place.
    Logarithmic,
}

/// A range of values and where its ticks are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    scale: Scale,
    /// Values, with the names to be shown; some have none.
    pub(super) ticks: Vec<(f64, String)>,
}

/// Most ticks that still have room.
const MAX_TICKS: usize = 6;

impl Axis {
    /// An axis that holds all `values`, from round number to round number.
    pub(super) fn new(values: impl Iterator<Item = f64>, scale: Scale, is_whole: bool) -> Self {
        let has_place = |value: &f64| value.is_finite() && (scale == Scale::Linear || *value > 0.0);
        let (low, high) = values
            .filter(has_place)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match scale {
            _ if low > high => Self::linear(0.0, 1.0, is_whole),
            Scale::Linear => Self::linear(low, high, is_whole),
            Scale::Logarithmic => Self::logarithmic(low, high),
        }
    }

    /// An axis with these ends, whatever the data.
    pub(super) fn between(low: f64, high: f64) -> Self {
        let step = round_step((high - low) / (MAX_TICKS - 1) as f64);
        Self { low, high, scale: Scale::Linear, ticks: ticks_between(low, high, step) }
    }

    fn linear(low: f64, high: f64, is_whole: bool) -> Self {
        // Nothing to tell apart: a little room to either side.
        let room = if high > low { 0.0 } else { (low.abs() * 0.1).max(if is_whole { 1.0 } else { 1e-12 }) };
        let (low, high) = (low - room, high + room);
        let mut step = round_step((high - low) / (MAX_TICKS - 1) as f64);
        if is_whole {
            step = step.max(1.0).round();
            return Self { low, high, scale: Scale::Linear, ticks: ticks_between(low, high, step) };
        }
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high, scale: Scale::Linear, ticks: ticks_between(low, high, step) }
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        let (low, high) = if high > low { (low, high) } else { (low / 1.5, high * 1.5) };
        let n_decades = (high / low).log10();
        let digits: &[f64] = if n_decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let (first, last) = (low.log10().floor() as i32 - 1, high.log10().ceil() as i32 + 1);
        let values: Vec<f64> = (first..=last).flat_map(|e| digits.iter().map(move |d| d * 10_f64.powi(e))).collect();
        let low = values.iter().copied().rfind(|value| *value <= low).unwrap_or(low);
        let high = values.iter().copied().find(|value| *value >= high).unwrap_or(high);
        let within: Vec<f64> = values.into_iter().filter(|value| (low..=high).contains(value)).collect();
        let every = within.len().div_ceil(MAX_TICKS + 1);
        let ticks = within.into_iter().step_by(every).map(|value| (value, number(value))).collect();
        Self { low, high, scale: Scale::Logarithmic, ticks }
    }

    /// Where `value` is, 0 at the low end and 1 at the high one; nothing for what has no place.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Logarithmic => return None,
        };
        share.is_finite().then_some(share)
    }
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let digit = [1.0, 2.0, 2.5, 5.0].into_iter().find(|digit| digit * power >= step * (1.0 - 1e-9));
    digit.unwrap_or(10.0) * power
}

fn ticks_between(low: f64, high: f64, step: f64) -> Vec<(f64, String)> {
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    let n_digits = digits_behind_point(step);
    (first..=last).map(|k| k as f64 * step).map(|value| (value, tick_name(value, n_digits))).collect()
}

/// Digits that tell multiples of `step` apart.
fn digits_behind_point(step: f64) -> usize {
    (0..12).find(|n| (step * 10_f64.powi(*n) - (step * 10_f64.powi(*n)).round()).abs() < 1e-6).unwrap_or(12) as usize
}

fn tick_name(value: f64, n_digits: usize) -> String {
    if value.abs() >= 10_000.0 || n_digits > 4 && value != 0.0 { number(value) } else { format!("{value:.n_digits$}") }
}

/// `1968922` as `1,968,922`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).expect("digits are ASCII")).collect();
    groups.join(",")
}

/// A value in few characters: `0.0123`, `4.57`, `15,057`, `1.2e-7`, `2.5M`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match () {
        () if !value.is_finite() => "not a number".to_owned(),
        () if size == 0.0 => "0".to_owned(),
        () if size < 1e-3 => format!("{value:.1e}").replace(".0e", "e"),
        () if size < 1.0 => trimmed(format!("{value:.4}")),
        () if size < 10.0 => trimmed(format!("{value:.3}")),
        () if size < 100.0 => trimmed(format!("{value:.2}")),
        () if size < 10_000.0 => trimmed(format!("{value:.1}")),
        () if size < 1e6 => trimmed(format!("{:.1}", value / 1e3)) + "k",
        () if size < 1e9 => trimmed(format!("{:.2}", value / 1e6)) + "M",
        () => format!("{value:.2e}"),
    }
}

/// Without zeros at the end of a fraction.
fn trimmed(number: String) -> String {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let numbers = [0, 7, 999, 1000, 21_125_692].map(grouped);
        assert_eq!(numbers, ["0", "7", "999", "1,000", "21,125,692"]);
    }

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| &**name).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let of = |values: &[f64]| Axis::new(values.iter().copied(), Scale::Linear, false);
        assert_eq!(names(&of(&[0.3, 4.2])), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(names(&of(&[12.0, 61.0])), ["10", "20", "30", "40", "50", "60", "70"]);
        assert_eq!(names(&of(&[0.0, 0.2])), ["0.00", "0.05", "0.10", "0.15", "0.20"]);
        assert_eq!(names(&of(&[12_000.0, 31_000.0])), ["10k", "15k", "20k", "25k", "30k", "35k"]);
        assert_eq!(names(&of(&[-1.0, 1.0])), ["-1.0", "-0.5", "0.0", "0.5", "1.0"]);
    }

    #[test]
    fn epochs_are_whole() {
        let of = |values: &[f64]| Axis::new(values.iter().copied(), Scale::Linear, true);
        assert_eq!(names(&of(&[1.0, 3.0])), ["1", "2", "3"]);
        assert_eq!(names(&of(&[1.0, 200.0])), ["50", "100", "150", "200"]);
        assert_eq!(names(&of(&[1.0])), ["0", "1", "2"]);
    }

    #[test]
    fn logarithmic_ticks_are_decades_or_halves_of_them() {
        let of = |values: &[f64]| Axis::new(values.iter().copied(), Scale::Logarithmic, false);
        assert_eq!(names(&of(&[1.3, 48.0])), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(names(&of(&[1e-7, 1e-3])), ["1e-7", "1e-6", "1e-5", "1e-4", "0.001"]);
    }

    #[test]
    fn values_are_short() {
        let values = [0.0, 0.012_345, 4.567_89, 15_057.0, 1.234e-7, 2_500_000.0, f64::NAN];
        assert_eq!(values.map(number), ["0", "0.0123", "4.568", "15.1k", "1.2e-7", "2.5M", "not a number"]);
    }

    proptest! {
        #[test]
        fn every_value_lies_on_the_axis_and_ticks_have_room(
            values in proptest::collection::vec(-1e9..1e9_f64, 1..20),
            is_whole: bool,
        ) {
            let axis = Axis::new(values.iter().copied(), Scale::Linear, is_whole);
            prop_assert!(axis.ticks.len() <= MAX_TICKS + 2, "{axis:?}");
            for value in values {
                let place = axis.place(value).unwrap();
                prop_assert!((-1e-9..=1.0 + 1e-9).contains(&place), "{axis:?} {value}");
            }
        }

        #[test]
        fn the_same_of_ratios(values in proptest::collection::vec(-12.0..12.0_f64, 1..20)) {
            let values: Vec<f64> = values.into_iter().map(|e| 10_f64.powf(e)).collect();
            let axis = Axis::new(values.iter().copied(), Scale::Logarithmic, false);
            prop_assert!((2..=MAX_TICKS + 2).contains(&axis.ticks.len()), "{axis:?}");
            for value in values {
                let place = axis.place(value).unwrap();
                prop_assert!((-1e-9..=1.0 + 1e-9).contains(&place), "{axis:?} {value}");
            }
        }
    }
}
