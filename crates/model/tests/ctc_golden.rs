//! The CTC loss and its gradient against golden vectors.

use std::path::Path;

use kernels::{CtcLoss, CtcScratch, ctc};
use safetensors::SafeTensors;

/// Cases whose labels fit; what the others should give differs, they are reported instead.
const FEASIBLE: [&str; 7] = ["normal", "repeat", "repeat_exact_fit", "empty", "blank0", "label0_used", "T1"];
const INFEASIBLE: [&str; 3] = ["too_long", "too_long_repeat", "T1_too_long"];

struct Golden<'a>(SafeTensors<'a>);

impl Golden<'_> {
    fn floats(&self, name: &str) -> Vec<f32> {
        let tensor = self.0.tensor(name).unwrap();
        tensor.data().as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect()
    }

    fn whole(&self, name: &str) -> Vec<u32> {
        let tensor = self.0.tensor(name).unwrap();
        tensor.data().as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect()
    }

    /// The losses and gradients of a case, with its frames past an utterance's end left out.
    fn run(&self, case: &str) -> Vec<(CtcLoss, Vec<f32>, Vec<f32>)> {
        let shape = self.0.tensor(&format!("ctc.{case}.logits")).unwrap().shape().to_vec();
        let (n_frames, n_classes) = (shape[1], shape[2]);
        let [logits, grads] = ["logits", "grad_of_sum"].map(|part| self.floats(&format!("ctc.{case}.{part}")));
        let [labels, label_lens, logit_lens, blank] =
            ["labels", "label_len", "logit_len", "blank"].map(|part| self.whole(&format!("ctc.{case}.{part}")));
        let n_labels = labels.len() / shape[0];
        (0..shape[0])
            .map(|u| {
                let n = logit_lens[u] as usize * n_classes;
                let at = u * n_frames * n_classes;
                let labels = &labels[u * n_labels..][..label_lens[u] as usize];
                let mut grad = vec![f32::NAN; n];
                let scratch = &mut CtcScratch::default();
                let loss = ctc(&logits[at..at + n], n_classes, blank[0] as usize, labels, scratch, &mut grad);
                (loss, grad, grads[at..at + n].to_vec())
            })
            .collect()
    }
}

#[test]
fn feasible_cases_agree_and_the_others_are_reported() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ctc_loss_and_beam.safetensors");
    let bytes = std::fs::read(path).unwrap();
    let golden = Golden(SafeTensors::deserialize(&bytes).unwrap());
    for case in FEASIBLE {
        let losses = golden.floats(&format!("ctc.{case}.loss"));
        for ((loss, grad, expected_grad), expected) in golden.run(case).into_iter().zip(losses) {
            let CtcLoss::Value(loss) = loss else { panic!("{case}: {loss:?}") };
            let expected = f64::from(expected);
            assert!((loss - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{case}: {loss} {expected}");
            let worst = grad.iter().zip(&expected_grad).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
            assert!(worst <= 5e-6, "{case}: gradient off by {worst}");
        }
    }
    for case in INFEASIBLE {
        let found = golden.run(case);
        assert!(found.iter().any(|(loss, ..)| matches!(loss, CtcLoss::Infeasible { .. })), "{case}");
        for (_, grad, _) in found.iter().filter(|(loss, ..)| matches!(loss, CtcLoss::Infeasible { .. })) {
            assert!(grad.iter().all(|&g| g == 0.0), "{case}");
        }
    }
    let nothing = golden.run("logit_len0");
    assert!(nothing.iter().any(|(loss, ..)| matches!(loss, CtcLoss::Infeasible { .. })), "{nothing:?}");
}
