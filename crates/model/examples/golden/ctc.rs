//! The CTC cases of a golden file: losses and gradients compared, infeasible labels expected to be reported.

use std::collections::BTreeSet;

use anyhow::ensure;
use srf_kernels::{CtcLoss, CtcScratch, ctc};

use super::file::Golden;
use super::{Finding, GRADIENTS, LOSSES, error};

/// Losses and gradients of every case.
pub(super) fn check(golden: &Golden) -> anyhow::Result<Vec<Finding>> {
    let cases: BTreeSet<&str> =
        golden.names().filter_map(|name| name.strip_prefix("ctc.")?.split('.').next()).collect();
    let mut findings = Vec::new();
    for case in cases {
        findings.extend(check_case(golden, case)?);
    }
    Ok(findings)
}

fn check_case(golden: &Golden, case: &str) -> anyhow::Result<Vec<Finding>> {
    let tensor = |part: &str| golden.tensor(&format!("ctc.{case}.{part}"));
    let counts = |part: &str| golden.counts(&format!("ctc.{case}.{part}"));
    let logits = tensor("logits")?;
    ensure!(logits.shape.len() == 3, "ctc.{case}.logits has shape {:?}, expected three axes", logits.shape);
    let [n, n_frames, n_classes] = [logits.shape[0], logits.shape[1], logits.shape[2]];
    let (losses, gradients) = (&tensor("loss")?.values, &tensor("grad_of_sum")?.values);
    let (labels, n_labels, lengths) = (counts("labels")?, counts("label_len")?, counts("logit_len")?);
    let blank = counts("blank")?.first().copied().unwrap_or_default();
    let fits = lengths.len() == n && n_labels.len() == n && losses.len() == n && gradients.len() == logits.values.len();
    ensure!(fits && lengths.iter().all(|&length| length <= n_frames), "ctc.{case}: lengths do not fit the logits");
    ensure!(n_labels.iter().all(|&count| count * n <= labels.len()), "ctc.{case}: label_len does not fit the labels");
    ensure!(blank < n_classes, "ctc.{case}: blank is {blank}, expected one of {n_classes} classes");
    let mut found = (Vec::new(), Vec::new());
    let mut expected = (Vec::new(), Vec::new());
    let mut n_infeasible = 0;
    for u in 0..n {
        let from = u * n_frames * n_classes;
        let used = &logits.values[from..][..lengths[u] * n_classes];
        let labels: Vec<u32> = labels[u * labels.len() / n..][..n_labels[u]].iter().map(|&l| l as u32).collect();
        let mut gradient = vec![0.0f32; used.len()];
        match ctc(used, n_classes, blank, &labels, &mut CtcScratch::default(), &mut gradient) {
            CtcLoss::Value(loss) => {
                found.0.push(loss);
                expected.0.push(f64::from(losses[u]));
                found.1.extend(gradient.iter().map(|&g| f64::from(g)));
                expected.1.extend(gradients[from..][..used.len()].iter().map(|&g| f64::from(g)));
            }
            // The other implementation gives about 700 and a wrong gradient here.
            CtcLoss::Infeasible { .. } => {
                ensure!(
                    losses[u] > 500.0,
                    "ctc.{case}: utterance {u} is infeasible here, its loss {} there",
                    losses[u]
                );
                n_infeasible += 1;
            }
            CtcLoss::BadLabel { position } => anyhow::bail!("ctc.{case}: utterance {u} has a bad label at {position}"),
        }
    }
    if found.0.is_empty() {
        return Ok(vec![Finding::new(format!("{case}: {n_infeasible} infeasible"), 0.0, 0.0)]);
    }
    let note = if n_infeasible > 0 { format!(" ({n_infeasible} infeasible)") } else { String::new() };
    Ok(vec![
        Finding::new(format!("{case}: losses{note}"), error(found.0, expected.0), LOSSES),
        Finding::new(format!("{case}: gradients"), error(found.1, expected.1), GRADIENTS),
    ])
}
