//! The members as loops over capsules, written from their equations without regard to speed or layout.

use super::{Case, Dynamic, Normalizer, Routing, RoutingVariant};
use crate::check::dot;

type Capsules = Vec<Vec<f64>>;

/// What a slice leaves to the next.
#[derive(Clone)]
struct Memory {
    sums: Capsules,
    /// Of each output capsule; none at the start.
    gaussians: Option<Vec<Gaussian>>,
}

/// Mean, variance and activation.
type Gaussian = (Vec<f64>, Vec<f64>, f64);

/// Outputs and couplings of an utterance.
pub(super) fn route(case: &Case<f64>, utterance: usize) -> (Vec<f64>, Vec<f64>) {
    let Routing { n_out, depth_out, stride, is_sequential, .. } = case.routing;
    let start = Memory { sums: vec![vec![0.0; depth_out]; n_out], gaussians: None };
    let (mut memory, mut outputs, mut all_couplings) = (start.clone(), Vec::new(), Vec::new());
    for t in 0..case.lengths[utterance] {
        let x = &case.inputs[utterance][t * stride..];
        if !is_sequential {
            memory = start.clone();
        }
        let (output, couplings) = slice(case, x, &mut memory);
        outputs.extend(output.concat());
        all_couplings.extend(couplings.concat());
    }
    (outputs, all_couplings)
}

fn slice(case: &Case<f64>, x: &[f64], memory: &mut Memory) -> (Capsules, Capsules) {
    let Routing { n_in, n_out, depth_in, n_iterations, .. } = case.routing;
    let mut added = vec![vec![0.0; n_out]; n_in];
    let mut couplings = Vec::new();
    for _ in 0..n_iterations {
        couplings = (0..n_in)
            .map(|i| {
                let pose = &x[i * depth_in..][..depth_in];
                let r: Vec<f64> = (0..n_out)
                    .map(|j| {
                        let agreement = agreement(case, i, j, pose, memory);
                        added[i][j] = if accumulates(case.variant) { added[i][j] + agreement } else { agreement };
                        added[i][j] + first(case, i, j, pose)
                    })
                    .collect();
                shares(case, &r)
            })
            .collect::<Capsules>();
        update_state(case, x, &couplings, memory);
    }
    ((0..n_out).map(|j| output(case, j, memory)).collect(), couplings)
}

fn accumulates(variant: RoutingVariant) -> bool {
    matches!(variant, RoutingVariant::Dynamic(Dynamic { entropy: None, .. }))
}

fn vote(case: &Case<f64>, i: usize, j: usize, pose: &[f64]) -> Vec<f64> {
    let Routing { n_out, depth_in, depth_out, .. } = case.routing;
    (0..depth_out)
        .map(|o| {
            let at = (i * n_out + j) * depth_out + o;
            case.biases[at] + dot(&case.weights[at * depth_in..][..depth_in], pose)
        })
        .collect()
}

/// What the agreement of a pair starts from.
fn first(case: &Case<f64>, i: usize, j: usize, pose: &[f64]) -> f64 {
    let Routing { n_in, n_out, depth_in, .. } = case.routing;
    let extra = |row: usize| case.extra[row * n_out + j];
    match case.variant {
        RoutingVariant::Dynamic(Dynamic { learns_start: true, .. }) => extra(i),
        RoutingVariant::SelfRouting => {
            extra(n_in * depth_in + i) + (0..depth_in).map(|k| pose[k] * extra(i * depth_in + k)).sum::<f64>()
        }
        _ => 0.0,
    }
}

fn agreement(case: &Case<f64>, i: usize, j: usize, pose: &[f64], memory: &Memory) -> f64 {
    let (vote, sum) = (vote(case, i, j, pose), &memory.sums[j]);
    match case.variant {
        RoutingVariant::Dynamic(options) => dot(&vote, &squash(sum)) / options.entropy.unwrap_or(1.0),
        RoutingVariant::SelfRouting => case.extra[case.extra.len() - case.routing.n_out + j] * dot(&vote, &squash(sum)),
        RoutingVariant::Inverted { .. } => dot(&vote, &norm(sum)) / (vote.len() as f64).sqrt(),
        RoutingVariant::Em => memory.gaussians.as_ref().map_or(0.0, |gaussians| {
            let (mean, variance, activation) = &gaussians[j];
            let terms = vote.iter().zip(mean.iter().zip(variance));
            let logs = activation.ln() - 0.5 * terms.map(|(u, (m, v))| (u - m) * (u - m) / v + v.ln()).sum::<f64>();
            logs / vote.len() as f64
        }),
    }
}

fn shares(case: &Case<f64>, r: &[f64]) -> Vec<f64> {
    let counts = |j: usize| !(case.routing.has_padding_class && j == 0);
    let least = (0..r.len()).filter(|&j| counts(j)).map(|j| r[j]).fold(f64::INFINITY, f64::min);
    let is_min_max = matches!(case.variant, RoutingVariant::Dynamic(Dynamic { normalizer: Normalizer::MinMax, .. }));
    let share = |j: usize| {
        if is_min_max { r[j] - least + 0.1 } else { (r[j] - least).exp() }
    };
    let shares: Vec<f64> = (0..r.len()).map(|j| if counts(j) { share(j) } else { 0.0 }).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum).collect()
}

fn update_state(case: &Case<f64>, x: &[f64], couplings: &[Vec<f64>], memory: &mut Memory) {
    let Routing { n_in, n_out, depth_in, depth_out, .. } = case.routing;
    let mut gaussians = Vec::new();
    for j in 0..n_out {
        let votes: Capsules = (0..n_in).map(|i| vote(case, i, j, &x[i * depth_in..][..depth_in])).collect();
        let share = |i: usize| couplings[i][j];
        let weighted = |f: &dyn Fn(usize) -> f64| (0..n_in).map(|i| share(i) * f(i)).sum::<f64>();
        let mass = weighted(&|_| 1.0);
        memory.sums[j] = (0..depth_out).map(|o| weighted(&|i| votes[i][o])).collect();
        let mean: Vec<f64> = memory.sums[j].iter().map(|sum| sum / (mass + 1e-6)).collect();
        let variance: Vec<f64> =
            (0..depth_out).map(|o| weighted(&|i| (votes[i][o] - mean[o]).powi(2)) / (mass + 1e-6) + 0.1).collect();
        if case.variant == RoutingVariant::Em {
            let cost: f64 = variance.iter().map(|v| case.extra[n_out + j] + 0.5 * v.ln()).sum::<f64>() * mass;
            let equal_mass = n_in as f64 / n_out as f64;
            let argument = case.extra[j] - cost / (depth_out as f64 * equal_mass);
            gaussians.push((mean, variance, 1.0 / (1.0 + (-argument).exp())));
        }
    }
    memory.gaussians = Some(gaussians);
}

fn output(case: &Case<f64>, j: usize, memory: &Memory) -> Vec<f64> {
    match (case.variant, &memory.gaussians) {
        (RoutingVariant::Em, Some(gaussians)) => {
            let (mean, _, activation) = &gaussians[j];
            squash(mean).iter().map(|m| activation * m).collect()
        }
        (RoutingVariant::Inverted { keeps_lengths: false }, _) => norm(&memory.sums[j]),
        _ => squash(&memory.sums[j]),
    }
}

fn squash(s: &[f64]) -> Vec<f64> {
    let square = dot(s, s);
    s.iter().map(|s| square / (1.0 + square) * s / (square + 1e-7).sqrt()).collect()
}

fn norm(s: &[f64]) -> Vec<f64> {
    let mean = s.iter().sum::<f64>() / s.len() as f64;
    let variance = s.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / s.len() as f64;
    s.iter().map(|s| (s - mean) / (variance + 1e-3).sqrt()).collect()
}
