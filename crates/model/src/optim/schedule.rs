//! Step and epoch in, rate of learning out.

use crate::config::{KappaStep, ScheduleConfig};

impl ScheduleConfig {
    /// The rate of the update number `step` in epoch `epoch`, both counted from 1.
    #[track_caller]
    pub fn rate(&self, step: u64, epoch: usize) -> f64 {
        assert!(step >= 1 && epoch >= 1, "schedule: step {step}, epoch {epoch}, expected both from 1");
        match self {
            Self::Constant { rate } => *rate,
            Self::Warmup { steps, dimension, kappa } => {
                let (n, n_w, d) = (step as f64, *steps as f64, *dimension as f64);
                // n^-1/2 and n n_w^-3/2, by roots and divisions alone: the same bits on every machine.
                let rise_or_fall = f64::min(1.0 / n.sqrt(), n / (n_w * n_w.sqrt()));
                kappa_at(kappa, epoch) / d.sqrt() * rise_or_fall
            }
        }
    }
}

/// The factor of the last step that has begun; the first begins at epoch 1.
fn kappa_at(kappa: &[KappaStep], epoch: usize) -> f64 {
    let begun = kappa.iter().take_while(|step| step.from_epoch <= epoch);
    begun.last().expect("a checked schedule starts at epoch 1").value
}
