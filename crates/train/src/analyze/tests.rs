//! Small analyses with known contents, for the tests of all modules here.

use srf::directory::ModelParts;
use srf_model::config::{FeaturesConfig, ModelConfig, SrfConfig};
use srf_text::labels::LabelSet;

use super::*;

/// A recogniser with random weights: two capsule layers, labels a, b and c.
pub(crate) fn recognizer() -> Recognizer {
    let labels = LabelSet::new(Units::Phones, ["a", "b", "c"]).unwrap();
    let config = SrfConfig { layers: 2, primary_height: 6, filters: 4, ..SrfConfig::new(labels.n_classes()) };
    let model = ModelConfig::Srf(config);
    let features = FeaturesConfig { cmvn: srf_model::config::Cmvn::None, ..FeaturesConfig::default() };
    Recognizer::from_parts(ModelParts::untrained(model, features, labels, 7)).unwrap()
}

/// Routes with these masses and probabilities, `[slices, classes]`, the blank being the last class; one layer of two
/// capsules that share a class's mass.
pub(crate) fn routes(labels: &[&str], masses: &[f32], probabilities: &[f32]) -> Routes {
    let classes: Vec<String> = labels.iter().copied().chain([super::routes::BLANK]).map(str::to_owned).collect();
    let halves: Vec<f32> = masses
        .chunks_exact(classes.len())
        .flat_map(|row| row.iter().chain(row).map(|mass| mass / 2.0).collect::<Vec<_>>())
        .collect();
    Routes {
        model: "toy".to_owned(),
        layers: vec![Layer::new("caps1", 2, [0, 0], classes.len(), &halves)],
        classes,
        clock: recognizer().timing().clock(),
        unused: Vec::new(),
        probabilities: probabilities.to_vec(),
        masses: masses.to_vec(),
    }
}

/// An utterance whose reference is `a` and then `b`.
pub(crate) fn analysis(models: Vec<Routes>) -> Analysis {
    let duration_s = models[0].n_slices() as f64 * models[0].clock.slice_s;
    let label = |start_s, end_s, name: &str| Timed { start_s, end_s, name: name.to_owned() };
    let middle_s = duration_s / 2.0;
    let n_frames = (100.0 * duration_s) as usize;
    Analysis {
        id: "u1".to_owned(),
        duration_s,
        spectrogram: Spectrogram { n_bands: 4, shift_s: 0.01, values: (0..4 * n_frames).map(|i| i as f32).collect() },
        sound: None,
        reference: vec![label(0.0, middle_s, "a"), label(middle_s, duration_s, "b")],
        models,
    }
}

/// A PNG file as its width and pixels.
pub(crate) fn decode(png: &[u8]) -> (usize, Vec<[u8; 3]>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width as usize, bytes.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect())
}

/// The lightness of a pixel.
pub(crate) fn light([r, g, b]: [u8; 3]) -> u32 {
    299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b)
}

/// The share of a picture that is not paper.
pub(crate) fn inked(png: &[u8]) -> f64 {
    let (_, pixels) = decode(png);
    pixels.iter().filter(|pixel| **pixel != [255; 3]).count() as f64 / pixels.len() as f64
}

/// The texts of an SVG.
pub(crate) fn texts(svg: &str) -> Vec<&str> {
    svg.split("<text")
        .skip(1)
        .filter_map(|rest| rest.split_once('>')?.1.split_once('<'))
        .map(|(t, _)| t.trim())
        .collect()
}

#[test]
fn chosen_times_are_the_ends_and_peaks_of_labels_between() {
    let row = |a: f32| [a, 0.0, 1.0 - a];
    // Blank at 0 to 2, `a` at 3 to 5 and surest at 4, blank to the end.
    let probabilities = [0.1, 0.1, 0.2, 0.6, 0.9, 0.7, 0.1, 0.0, 0.0, 0.1].map(row).concat();
    let analysis = analysis(vec![routes(&["a", "b"], &probabilities, &probabilities)]);
    let times = analysis.choose_times(3);
    let slices: Vec<usize> = times.iter().map(|time_s| analysis.models[0].slice_at(*time_s)).collect();
    assert_eq!(slices, [0, 4, 9]);
    assert_eq!(analysis.choose_times(1).len(), 1);
}

#[test]
fn no_id_leads_out_of_its_folder_and_no_two_share_one() {
    assert_eq!(folder_name("dr1-fvmh0_sa1"), "dr1-fvmh0_sa1");
    let long = "x".repeat(300);
    let ids = ["../../etc/passwd", "a/b", "a\\b", "a b", "a-b", "a\nb", "..", ".", "", ".a", "a", &long, &long[1..]];
    let names: std::collections::BTreeSet<String> = ids.iter().map(|id| folder_name(id)).collect();
    assert_eq!(names.len(), ids.len(), "{names:?}");
    for name in names {
        assert!(!name.starts_with('.') && !name.contains(['/', '\\', '\n']) && name.len() < 255, "{name}");
    }
}

#[test]
fn labels_that_training_does_not_have_are_left_out_of_the_sums() {
    let labels = LabelSet::new(Units::Phones, ["a", "b", "c"]).unwrap();
    assert_eq!(unused_labels(&labels, ["a c", "c"].into_iter()), ["b"]);
    assert!(unused_labels(&labels, std::iter::empty()).is_empty(), "nothing is known of the training data");
    let routes = routes(&["a", "b"], &[0.3, 1.5, 0.2], &[0.8, 0.1, 0.1]);
    assert_eq!((routes.most_coupled(), routes.most_probable()), (vec![1], vec![0]));
    let routes = routes.without(&["b".to_owned()]);
    assert_eq!((routes.most_coupled(), &routes.unused[..], routes.masses_at(0)[1]), (vec![0], &[1][..], 0.0));
}
