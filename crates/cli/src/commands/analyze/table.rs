//! How far routing and softmax are apart: counts of utterances in, a table or JSON out.

use serde::Serialize;
use srf_train::analyze::distance::Distance;
use srf_train::analyze::masses::{ClassMass, Masses};
use srf_train::analyze::{Named, Routes};

/// What is counted of a model and an utterance.
pub(super) struct Counts {
    distance: Distance,
    masses: Masses,
}

impl Counts {
    pub(super) fn of(routes: &Routes) -> Self {
        Self { distance: Distance::of(routes), masses: Masses::of(routes) }
    }
}

/// Counts of all utterances, for each model.
pub(super) struct Measured {
    pub(super) n_problems: usize,
    models: Vec<String>,
    rows: Vec<(String, Vec<Distance>)>,
    /// Of all utterances together; none before the first.
    masses: Vec<Masses>,
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

#[derive(Serialize)]
struct ClassLine<'a> {
    model: &'a str,
    #[serde(flatten)]
    mass: ClassMass,
}

/// All utterances, without the classes that are never the likeliest.
const SAID: &str = "all, of classes said";

/// More utterances than this are only summed up.
const MAX_ROWS: usize = 40;

impl Measured {
    pub(super) fn new(models: &[Named]) -> Self {
        let models = models.iter().map(|model| model.name.clone()).collect();
        Self { n_problems: 0, models, rows: Vec::new(), masses: Vec::new() }
    }

    pub(super) fn add(&mut self, id: &str, counts: Vec<Counts>) {
        self.rows.push((id.to_owned(), counts.iter().map(|counts| counts.distance).collect()));
        if self.masses.is_empty() {
            self.masses = counts.into_iter().map(|counts| counts.masses).collect();
        } else {
            self.masses.iter_mut().zip(&counts).for_each(|(masses, counts)| masses.add(&counts.masses));
        }
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
        let of_said = self.masses.iter().enumerate().map(|(model, masses)| row(SAID, model, masses.distance_of_said()));
        let shown = if self.rows.len() <= MAX_ROWS { &self.rows[..] } else { &[] };
        let each = shown.iter().flat_map(|(id, distances)| {
            let row = &row;
            distances.iter().enumerate().map(move |(model, distance)| row(id, model, *distance))
        });
        let lines: Vec<[String; 5]> = [head].into_iter().chain(each).chain(of_all).chain(of_said).collect();
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
        let of_said = |(model, masses): (usize, &Masses)| line(None, model, masses.distance_of_said());
        let said: Vec<Line> = self.masses.iter().enumerate().map(of_said).collect();
        let masses = self.models.iter().zip(&self.masses);
        let classes: Vec<ClassLine> = masses
            .flat_map(|(model, masses)| masses.each().into_iter().map(move |mass| ClassLine { model, mass }))
            .collect();
        serde_json::json!({ "total": total, "said": said, "classes": classes, "utterances": each }).to_string()
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
