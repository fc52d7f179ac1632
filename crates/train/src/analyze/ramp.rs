//! Shades of values: a share between 0 and 1 in, a colour out that gets darker all the way.

use super::sheet::Colour;

/// From paper to ink by way of orange and purple, so that it also reads in grey and in print.
const STOPS: [Colour; 6] =
    [[255, 252, 245], [254, 217, 160], [245, 148, 86], [210, 73, 88], [120, 28, 109], [24, 10, 44]];

/// Colours that can be told apart, for curves.
pub(super) const DISTINCT: [Colour; 10] = [
    [9, 105, 218],
    [207, 72, 10],
    [26, 127, 55],
    [130, 80, 223],
    [180, 35, 60],
    [14, 130, 150],
    [154, 103, 0],
    [191, 57, 137],
    [85, 95, 105],
    [110, 160, 20],
];

/// Where a value lies in a range, 0 to 1; everything is 0 where the range is a point.
pub(super) fn share(value: f32, (low, high): (f32, f32)) -> f32 {
    let share = (value - low) / (high - low);
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

/// The colour of a share.
pub(super) fn shade(share: f32) -> Colour {
    let at = share * (STOPS.len() - 1) as f32;
    let below = (at as usize).min(STOPS.len() - 2);
    let part = at - below as f32;
    std::array::from_fn(|c| {
        let [from, to] = [STOPS[below][c], STOPS[below + 1][c]].map(f32::from);
        (from + part * (to - from)).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_get_darker_all_the_way() {
        let light = |share: f32| {
            let [r, g, b] = shade(share).map(f32::from);
            0.299 * r + 0.587 * g + 0.114 * b
        };
        for step in 0..100 {
            let (before, after) = (light(step as f32 / 100.0), light((step + 1) as f32 / 100.0));
            assert!(after < before, "at {step} %: {after} is not below {before}");
        }
    }

    #[test]
    fn a_range_that_is_a_point_has_one_shade() {
        assert_eq!(share(0.25, (0.25, 0.25)), 0.0);
        assert_eq!(share(3.0, (0.0, 1.0)), 1.0);
        assert_eq!(share(f32::NAN, (0.0, 1.0)), 0.0);
    }
}
