//! Charts as a reader of their HTML sees them.

use super::*;

fn chart(series: Vec<Series>) -> Chart {
    Chart { title: "Loss".to_owned(), x_name: "epoch".to_owned(), series, ..Chart::default() }
}

fn count(html: &str, what: &str) -> usize {
    html.matches(what).count()
}

/// The points of every drawn curve.
fn curves(html: &str) -> Vec<Vec<(f64, f64)>> {
    let point = |point: &str| {
        let (x, y) = point.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    let curve = |text: &str| text.split('"').next().unwrap().split(' ').map(point).collect();
    html.split("points=\"").skip(1).map(curve).collect()
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
    assert_eq!((count(&html, "<polyline"), count(&html, "<circle")), (2, 1));
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
fn every_layer_has_a_colour_of_its_own() {
    let series = (0..10).map(|n| Series::new(format!("caps{n}"), [(1.0, 1.0), (2.0, 2.0)])).collect();
    let chart = Chart { colours: Colours::Ordered, ..chart(series) };
    let colours: std::collections::BTreeSet<String> = (0..10).map(|at| chart.colour(at)).collect();
    assert_eq!(colours.len(), 10);
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
