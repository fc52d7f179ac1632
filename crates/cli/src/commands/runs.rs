//! `srf runs`: a table of the results of runs, and where their recipes differ.

use std::path::PathBuf;

use serde_json::json;
use srf_train::report;
use srf_train::runs::{Difference, Evaluated, Run, differences};

use crate::Exit;
use crate::printer::{Printer, table};

/// Compare runs: errors, time, speed, and where their recipes differ
#[derive(clap::Args)]
#[command(after_help = "\
`dev` is the error rate of the finished model on all of dev; epochs are measured on `training.validation_utterances` of
its utterances, which is said if it is not all.
Evaluations are shown if they are in the directory of their run (`srf evaluate --out RUN/test`).

Examples:
  srf runs runs/*
  srf runs runs/small runs/large --json
  srf runs runs/small --report")]
pub(crate) struct Args {
    /// Run directories written by `srf train --out`
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Regenerate the report.html of each run from its log
    #[arg(long)]
    report: bool,

    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { runs: paths, report, json } = args;
    let (mut runs, mut errors) = (Vec::new(), Vec::new());
    for path in &paths {
        match Run::load(path) {
            Ok(run) => runs.push(run),
            Err(error) => errors.push(error),
        }
    }
    if runs.is_empty()
        && let Some(first) = errors.drain(..).next()
    {
        return Err(first.into());
    }
    errors.iter().for_each(|error| out.problem(error));
    if report {
        runs.iter().try_for_each(|run| report::write(&run.path))?;
    }
    let differences = differences(&runs);
    if json {
        out.line(serde_json::to_string(&json!({ "runs": runs, "differences": differences }))?)?;
    } else {
        show(&runs, &differences, out)?;
    }
    Ok(if errors.is_empty() { Exit::Done } else { Exit::Problems })
}

fn show(runs: &[Run], differences: &[Difference], out: &Printer) -> std::io::Result<()> {
    let head = [
        "run",
        "recipe",
        "parameters",
        "epochs",
        "best epoch, dev",
        "dev",
        "evaluated",
        "time",
        "frames/s",
        "seed",
        "state",
    ];
    let rows = std::iter::once(head.map(str::to_owned).to_vec()).chain(runs.iter().map(row)).collect::<Vec<_>>();
    out.line(table(&rows, usize::MAX))?;
    if differences.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let names = runs.iter().map(name);
    let head: Vec<String> = std::iter::once("recipe".to_owned()).chain(names).collect();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(differences.iter().map(difference_row)).collect();
    out.line(table(&rows, usize::MAX))
}

fn name(run: &Run) -> String {
    run.path.file_name().map_or_else(|| run.path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn row(run: &Run) -> Vec<String> {
    let percent = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", 100.0 * rate));
    let measure = run.measure.as_deref().map_or_else(String::new, |measure| format!(" {measure}"));
    let at = run.best_epoch.map_or_else(String::new, |epoch| format!(" @{epoch}"));
    vec![
        name(run),
        run.recipe_name.clone(),
        report::grouped(run.n_parameters),
        format!("{}/{}", run.n_epochs, run.n_epochs_planned),
        format!("{}{measure}{at}{}", percent(run.best_rate), part(run.best_part)),
        format!("{}{}", percent(run.last_rate), part(run.last_part)),
        if run.evaluations.is_empty() { "-".to_owned() } else { evaluations(&run.evaluations) },
        report::duration(run.time_s),
        format!("{:.0}", run.frames_per_s),
        run.seed.to_string(),
        run.state.to_owned(),
    ]
}

/// ` (60 of 161)`, where only some utterances were recognised.
fn part(part: Option<[usize; 2]>) -> String {
    part.map_or_else(String::new, |[n, all]| format!(" ({n} of {all})"))
}

/// `test 16.90 PER [15.8 17.9]`.
fn evaluations(evaluations: &[Evaluated]) -> String {
    let one = |evaluated: &Evaluated| {
        let Evaluated { name, measure, rate, interval: [low, high], .. } = evaluated;
        let rate = rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.2}", 100.0 * rate));
        format!("{name} {rate} {measure} [{:.1} {:.1}]", 100.0 * low, 100.0 * high)
    };
    evaluations.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn difference_row(difference: &Difference) -> Vec<String> {
    let values = difference.values.iter().map(|value| value.clone().unwrap_or_else(|| "-".to_owned()));
    std::iter::once(difference.key.clone()).chain(values).collect()
}
