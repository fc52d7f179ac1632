//! The routing of an utterance as a page that needs no network.
//!
//! A reader moves in time, by hand or by playing, over spectrogram, softmax and labels, and sees the coefficients of
//! every layer at that moment. [`fragment`] is the same for use inside another page.
//! Numbers are stored in bytes, as differences between slices, compressed.

use std::io::{self, Cursor, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};
use srf_audio::Samples;
use srf_audio::wav::Writer;

use super::distance::Distance;
use super::routes::{Layer, Routes};
use super::{Analysis, Spectrogram};
use crate::page::{Page, escape};

const STYLE: &str = include_str!("page/routing.css");
const SCRIPT: &str = include_str!("page/routing.js");
const BODY: &str = include_str!("page/routing.html");

/// A whole page about one utterance.
pub fn page(analysis: &Analysis) -> Page {
    let about: Vec<String> = analysis.models.iter().map(|routes| escape(&describe(routes))).collect();
    let line = format!("{:.2} s · {}", analysis.duration_s, about.join(" · "));
    let mut page = Page::new(&format!("Routing of {}", analysis.id), &line);
    page.push(&fragment(analysis));
    page
}

/// The contents of [`page`] for another page; it brings its own style and script, and may be there twice.
pub fn fragment(analysis: &Analysis) -> String {
    // Inside a script element only `<` could end it.
    let data = data(analysis).to_string().replace('<', "\\u003c");
    let sound = analysis
        .sound
        .as_ref()
        .map_or_else(String::new, |sound| format!("<audio preload=\"auto\" src=\"{}\"></audio>\n", data_url(sound)));
    format!(
        "<div class=\"routing\"><style>{STYLE}</style>\n{BODY}{sound}\
         <script type=\"application/json\">{data}</script></div>\n<script>{SCRIPT}</script>\n"
    )
}

fn describe(routes: &Routes) -> String {
    let differs = Distance::of(routes).rate().map_or(0.0, |rate| 100.0 * rate);
    format!("{}: routing and softmax differ in {differs:.1} % of {} slices", routes.model, routes.n_slices())
}

fn data(analysis: &Analysis) -> Value {
    let reference: Vec<Value> =
        analysis.reference.iter().map(|label| json!([label.start_s, label.end_s, label.name])).collect();
    // The page opens on a label in the middle: at time 0 there is only silence to see.
    let chosen = analysis.choose_times(3);
    json!({
        "duration_s": analysis.duration_s,
        "start_s": chosen.get(chosen.len() / 2),
        "reference": reference,
        "spectrogram": spectrogram(&analysis.spectrogram),
        "models": analysis.models.iter().map(model).collect::<Vec<_>>(),
    })
}

fn spectrogram(spectrogram: &Spectrogram) -> Value {
    let range = spectrogram.range();
    let values = spectrogram.values.iter().map(|value| byte(share(*value, range))).collect();
    json!({
        "bands": spectrogram.n_bands,
        "shift_s": spectrogram.shift_s,
        "data": packed(values, spectrogram.n_bands),
    })
}

fn model(routes: &Routes) -> Value {
    let n_classes = routes.classes.len();
    let probabilities = routes.probabilities.iter().map(|p| byte(p.sqrt())).collect();
    json!({
        "name": routes.model,
        "classes": routes.classes,
        "unused": routes.unused,
        "n_slices": routes.n_slices(),
        "first_s": routes.time_s(0),
        "slice_s": routes.clock.slice_s,
        "probabilities": packed(probabilities, n_classes),
        "most_probable": routes.most_probable(),
        "most_coupled": routes.most_coupled(),
        "layers": routes.layers.iter().map(layer).collect::<Vec<_>>(),
    })
}

/// The coefficients between the least and the largest of all slices: roots are stored, so small ones stay exact.
fn layer(layer: &Layer) -> Value {
    let (low, high) = layer.roots().iter().fold((u16::MAX, 0), |(low, high), r| (low.min(*r), high.max(*r)));
    let range = (f32::from(low), f32::from(high));
    let values = layer.roots().iter().map(|root| byte(share(f32::from(*root), range))).collect();
    let full = f32::from(u16::MAX);
    json!({
        "name": layer.name,
        "in_height": layer.in_height,
        "window": layer.window,
        "n_out": layer.n_out,
        "low": range.0 / full,
        "high": range.1 / full,
        "data": packed(values, layer.n_in() * layer.n_out),
    })
}

/// Where a value is in a range, 0 to 1; 0 where the range is a point.
fn share(value: f32, (low, high): (f32, f32)) -> f32 {
    let share = (value - low) / (high - low);
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

fn byte(share: f32) -> u8 {
    (255.0 * share).round() as u8
}

/// Rows of `width` bytes as differences from the row before, compressed, as base64.
fn packed(mut values: Vec<u8>, width: usize) -> String {
    for at in (width..values.len()).rev() {
        values[at] = values[at].wrapping_sub(values[at - width]);
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&values).expect("writing to memory does not fail");
    STANDARD.encode(encoder.finish().expect("writing to memory does not fail"))
}

/// Samples as a data URL.
pub(crate) fn data_url(sound: &Samples) -> String {
    let wav = STANDARD.encode(wav(sound).expect("writing to memory does not fail"));
    format!("data:audio/wav;base64,{wav}")
}

fn wav(sound: &Samples) -> io::Result<Vec<u8>> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), sound.rate_hz, 1)?;
    writer.push(&sound.values)?;
    Ok(writer.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::super::tests::{analysis, routes};
    use super::*;

    fn unpacked(text: &Value, width: usize) -> Vec<u8> {
        let bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
        let mut values = Vec::new();
        flate2::read::ZlibDecoder::new(&bytes[..]).read_to_end(&mut values).unwrap();
        for at in width..values.len() {
            values[at] = values[at].wrapping_add(values[at - width]);
        }
        values
    }

    #[test]
    fn the_page_holds_every_coefficient_to_a_byte() {
        let masses = [1.2, 0.6, 0.2, 0.1, 1.8, 0.1, 0.4, 0.4, 1.2];
        let analysis = analysis(vec![routes(&["a", "b"], &masses, &masses)]);
        let data = data(&analysis);
        let layer = &data["models"][0]["layers"][0];
        let [low, high] = ["low", "high"].map(|key| layer[key].as_f64().unwrap());
        let values = unpacked(&layer["data"], 6);
        let expected: Vec<f32> = (0..3).flat_map(|slice| analysis.models[0].layers[0].couplings(slice)).collect();
        assert_eq!(values.len(), expected.len());
        for (byte, expected) in values.iter().zip(expected) {
            let root = low + f64::from(*byte) / 255.0 * (high - low);
            // Half a step of the roots.
            assert!((root - f64::from(expected).sqrt()).abs() <= (high - low) / 510.0 + 1e-6, "{root} {expected}");
        }
        assert_eq!(data["models"][0]["most_probable"], json!([0, 1, 2]));
        assert_eq!(unpacked(&data["spectrogram"]["data"], 4).len(), analysis.spectrogram.values.len());
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let mut analysis = analysis(vec![routes(&["a", "b"], &[0.5, 0.3, 0.2], &[0.5, 0.3, 0.2])]);
        analysis.sound = Some(Samples { rate_hz: 16_000, values: vec![0.03; 800] });
        let page = page(&analysis).html();
        for outside in ["http:", "https:", "<link", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
            assert!(!page.contains(outside), "`{outside}`");
        }
        assert!(page.split("src=\"").skip(1).all(|source| source.starts_with("data:audio/wav;base64,UklGR")));
        assert_eq!((share(0.25, (0.25, 0.25)), share(3.0, (0.0, 1.0)), share(f32::NAN, (0.0, 1.0))), (0.0, 1.0, 0.0));
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("name=\"viewport\""));
    }

    #[test]
    fn no_label_ends_the_script_and_no_name_is_markup() {
        let mut analysis = analysis(vec![routes(&["</script>", "b"], &[0.5, 0.3, 0.2], &[0.5, 0.3, 0.2])]);
        analysis.id = "<b>&".to_owned();
        let page = page(&analysis).html();
        // The data, the script itself and that of all pages.
        assert_eq!(page.matches("</script>").count(), 3);
        assert!(page.contains("Routing of &lt;b&gt;&amp;</h1>") && !page.contains("<b>&"));
    }
}
