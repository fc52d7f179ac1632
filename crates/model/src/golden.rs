//! Golden vectors: a file's name in, its tensors out; and the CTC loss held against them.

use std::path::{Path, PathBuf};

use kernels::{CtcLoss, CtcScratch, ctc};
use safetensors::SafeTensors;

/// Cases whose labels fit; what the others should give differs, they are reported instead.
const FEASIBLE: [&str; 7] = ["normal", "repeat", "repeat_exact_fit", "empty", "blank0", "label0_used", "T1"];
const INFEASIBLE: [&str; 3] = ["too_long", "too_long_repeat", "T1_too_long"];

/// The golden file `name` of this crate, or, if it is only among the shared ones, that one if it is there.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["tests/golden", "../../../shared/spec/golden"];
    let found = places.map(|place| crate_dir.join(place).join(name)).into_iter().find(|path| path.exists());
    if found.is_none() {
        println!("skipped: golden file `{name}` is not there");
    }
    found
}

/// An open golden file.
pub(crate) struct Golden<'a>(SafeTensors<'a>);

impl<'a> Golden<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(SafeTensors::deserialize(bytes).unwrap())
    }

    pub(crate) fn shape(&self, name: &str) -> Vec<usize> {
        self.0.tensor(name).unwrap().shape().to_vec()
    }

    pub(crate) fn floats(&self, name: &str) -> Vec<f32> {
        self.words(name).into_iter().map(f32::from_le_bytes).collect()
    }

    fn whole(&self, name: &str) -> Vec<u32> {
        self.words(name).into_iter().map(u32::from_le_bytes).collect()
    }

    fn words(&self, name: &str) -> Vec<[u8; 4]> {
        self.0.tensor(name).unwrap_or_else(|_| panic!("no `{name}`")).data().as_chunks().0.to_vec()
    }

    /// The losses and gradients of a case, with its frames past an utterance's end left out.
    fn run(&self, case: &str) -> Vec<(CtcLoss, Vec<f32>, Vec<f32>)> {
        let shape = self.shape(&format!("ctc.{case}.logits"));
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
    let bytes = std::fs::read(path("ctc_loss_and_beam.safetensors").unwrap()).unwrap();
    let golden = Golden::new(&bytes);
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
