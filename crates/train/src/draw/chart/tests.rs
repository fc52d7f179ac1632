//! Charts as a reader of their HTML sees them, and the numbers on their axes.

use proptest::prelude::*;

use super::*;

fn chart(series: Vec<Series>) -> Chart {
    Chart { title: "Loss".to_owned(), x_name: "epoch".to_owned(), series, ..Chart::default() }
}

fn count(html: &str, what: &str) -> usize {
    html.matches(what).count()
}

/// The points of every drawn curve; lines of the frame are thinner.
fn curves(html: &str) -> Vec<Vec<(f64, f64)>> {
    let point = |point: &str| {
        let (x, y) = point.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    let points = |mark: &str| mark.split("points=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let lines = html.split("<polyline").skip(1).filter(|mark| mark.contains("stroke-width=\"2\""));
    lines.map(|mark| points(mark).split(' ').map(point).collect()).collect()
}

#[test]
fn larger_values_are_higher_and_later_ones_further_right() {
    let html = chart(vec![Series::new("train", [(1.0, 5.0), (2.0, 1.0), (3.0, 3.0)])]).html();
    let curve = &curves(&html)[0];
    assert!(curve[0].0 < curve[1].0 && curve[1].0 < curve[2].0);
    assert!(curve[0].1 < curve[2].1 && curve[2].1 < curve[1].1);
}

#[test]
fn points_stand_where_the_ticks_say() {
    // From 0 to 5 upwards: 5 is at the top of the frame, 0 at its floor.
    let html = chart(vec![Series::new("train", [(1.0, 5.0), (2.0, 0.0)])]).html();
    let curve = &curves(&html)[0];
    assert_eq!((curve[0].1, curve[1].1), (TOP, HEIGHT - BOTTOM));
    assert_eq!(curve[1].0, WIDTH - RIGHT);
    for name in [">0</text>", ">5</text>", ">epoch</text>"] {
        assert_eq!(count(&html, name), 1, "{name} in {html}");
    }
}

#[test]
fn a_gap_parts_a_curve_and_a_lone_point_is_a_dot() {
    let points = [(1.0, 1.0), (2.0, 2.0), (3.0, f64::NAN), (4.0, 1.0), (5.0, f64::INFINITY), (6.0, 1.0), (7.0, 2.0)];
    let html = chart(vec![Series::new("train", points)]).html();
    assert_eq!((curves(&html).len(), count(&html, "<circle")), (2, 1));
    assert!(!html.contains("NaN") && !html.contains("inf"));
}

#[test]
fn a_chart_of_nothing_is_not_drawn_and_an_empty_curve_not_named() {
    assert_eq!(chart(vec![]).html(), "");
    assert_eq!(chart(vec![Series::new("train", [(1.0, f64::NAN)])]).html(), "");
    let html = chart(vec![Series::new("train", [(1.0, 2.0)]), Series::new("validation", [])]).html();
    assert!(!html.contains("validation"));
}

#[test]
fn names_cannot_break_the_page() {
    let mut chart = chart(vec![Series::new("<script>alert(1)</script>\"", [(1.0, 2.0)])]);
    chart.title = "a < b & \"c\"".to_owned();
    let html = chart.html();
    assert!(!html.contains("<script>") && !html.contains("a < b"));
}

#[test]
fn values_beyond_the_bounds_stay_in_the_picture() {
    let series = vec![Series::new("share", [(1.0, -3.0), (2.0, 200.0)])];
    let html = Chart { bounds: Some((0.0, 1.0)), ..chart(series) }.html();
    assert_eq!(curves(&html)[0].iter().map(|point| point.1).collect::<Vec<_>>(), [HEIGHT - BOTTOM, TOP]);
}

#[test]
fn long_series_are_thinned_to_means() {
    let series = Series::new("loss", (0..1000).map(|n| (f64::from(n), f64::from(n % 2)))).thinned(100);
    assert_eq!(series.points.len(), 100);
    assert_eq!(series.points[0], (4.5, 0.5));
    let few = Series::new("loss", [(1.0, 2.0), (2.0, 3.0)]);
    assert_eq!(few.clone().thinned(100), few);
}

#[test]
fn every_layer_has_a_color_of_its_own() {
    let series = (0..10).map(|n| Series::new(format!("caps{n}"), [(1.0, 1.0), (2.0, 2.0)])).collect();
    let chart = Chart { colors: Colors::Ordered, ..chart(series) };
    let colors: std::collections::BTreeSet<String> = (0..10).map(|at| chart.color(at).css()).collect();
    assert_eq!(colors.len(), 10);
}

#[test]
fn hover_values_are_those_of_the_points() {
    let html = chart(vec![Series::new("train", [(1.0, 0.25), (2.0, 1e-7)])]).html();
    let json = html.split("data-values=\"").nth(1).unwrap().split('"').next().unwrap().replace("&quot;", "\"");
    let values: serde_json::Value = serde_json::from_str(&json).unwrap();
    let points = &values["series"][0]["points"];
    assert_eq!((points[0][1].as_str(), points[0][2].as_str()), (Some("1"), Some("0.25")));
    assert_eq!((points[1][1].as_str(), points[1][2].as_str()), (Some("2"), Some("1e-7")));
    assert_eq!(points[1][0], WIDTH - RIGHT);
}

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

#[test]
fn rows_without_an_order_are_dots_with_intervals() {
    let dot = |value, interval| Some(Dot { value, interval });
    let plot = DotPlot {
        title: "PER test %".to_owned(),
        keys: vec!["paper", "here"],
        rows: vec![
            ("SRF <7L>".to_owned(), vec![dot(17.5, None), dot(18.0, Some((17.0, 19.0)))]),
            ("CNN".to_owned(), vec![dot(18.2, None), None]),
        ],
    };
    let html = plot.html();
    assert_eq!((count(&html, "<circle"), count(&html, "stroke-width=\"2\"")), (3, 1));
    assert!(html.contains("SRF &lt;7L&gt;") && html.contains(">here<"));
    assert_eq!(DotPlot { rows: vec![("CNN".to_owned(), vec![None, None])], ..plot }.html(), "");
}
