//! How far routing and softmax are apart: counts of utterances in, a table or JSON out.

use serde::Serialize;
use train::analyze::Named;
use train::analyze::distance::Distance;

/// Counts of all utterances, for each model.
pub(super) struct Measured {
    pub(super) n_problems: usize,
    models: Vec<String>,
    rows: Vec<(String, Vec<Distance>)>,
}

#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    utterance: Option<&'a str>,
    #[serde(flatten)]
    distance: Distance,
    rate: Option<f64>,
}

/// More utterances than this are only summed up.
const MAX_ROWS: usize = 40;

impl Measured {
    pub(super) fn new(models: &[Named]) -> Self {
        let models = models.iter().map(|model| model.name.clone()).collect();
        Self { n_problems: 0, models, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, id: &str, distances: Vec<Distance>) {
        self.rows.push((id.to_owned(), distances));
    }

    fn total(&self, model: usize) -> Distance {
        self.rows.iter().map(|(_, distances)| distances[model]).sum()
    }

    /// The edit distance rate of every utterance and of all.
    pub(super) fn text(&self) -> String {
        let head = ["utterance", "model", "slices", "different", "rate"].map(str::to_owned);
        let row = |id: &str, model: usize, distance: Distance| {
            let rate = distance.rate().map_or_else(|| "-".to_owned(), |rate| format!("{:.2} %", 100.0 * rate));
            let model = self.models[model].clone();
            [id.to_owned(), model, distance.n_slices.to_string(), distance.n_different.to_string(), rate]
        };
        let of_all = (0..self.models.len()).map(|model| row("all", model, self.total(model)));
        let shown = if self.rows.len() <= MAX_ROWS { &self.rows[..] } else { &[] };
        let each = shown.iter().flat_map(|(id, distances)| {
            let row = &row;
            distances.iter().enumerate().map(move |(model, distance)| row(id, model, *distance))
        });
        let lines: Vec<[String; 5]> = [head].into_iter().chain(each).chain(of_all).collect();
        aligned(&lines)
    }

    /// The same for programs; utterances always one by one.
    pub(super) fn json(&self) -> String {
        let line = |utterance, model: usize, distance: Distance| Line {
            model: &self.models[model],
            utterance,
            distance,
            rate: distance.rate(),
        };
        let total: Vec<Line> = (0..self.models.len()).map(|model| line(None, model, self.total(model))).collect();
        let each: Vec<Line> = self
            .rows
            .iter()
            .flat_map(|(id, distances)| {
                let line = &line;
                distances.iter().enumerate().map(move |(model, distance)| line(Some(id), model, *distance))
            })
            .collect();
        serde_json::json!({ "total": total, "utterances": each }).to_string()
    }
}

/// Columns of one width, numbers to the right.
fn aligned(lines: &[[String; 5]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let [a, b, c, d, e] = std::array::from_fn(width);
    let line = |[id, model, slices, different, rate]: &[String; 5]| {
        format!("{id:a$}  {model:b$}  {slices:>c$}  {different:>d$}  {rate:>e$}")
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}
