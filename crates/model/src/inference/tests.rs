//! Recognition against the networks that training uses.

use srf_kernels::log_softmax;

use super::*;
use crate::network::testing::Case;
use crate::network::tests::networks;

#[test]
fn recognition_in_pieces_gives_the_log_probabilities_of_training() {
    for config in networks(10, 7, 5, 0.0) {
        let mut case = Case::<f32>::new(&config, 1);
        let x = case.batch(2, &[43, 0, 20]);
        let inference = Inference::new(&config, &case.values);
        let mut stream = inference.stream();
        for (utterance, logits) in case.logits(&x).iter().enumerate() {
            let mut expected = vec![0.0; logits.len()];
            log_softmax(logits, 7, &mut expected);
            for n_frames in [1, 7, 100] {
                let mut log_probs = Vec::new();
                for piece in x.real(utterance).chunks(n_frames * 10) {
                    stream.accept(piece, &mut log_probs);
                }
                stream.finish(&mut log_probs);
                assert_eq!(log_probs, expected, "utterance {utterance} in pieces of {n_frames}: {config:?}");
            }
        }
        assert_eq!((inference.classes(), inference.frames_per_slice()), (7, config.frames_per_slice()));
    }
}

#[test]
fn a_slice_comes_as_soon_as_its_look_ahead_is_there_or_at_the_end() {
    for config in networks(10, 7, 5, 0.0) {
        let case = Case::<f32>::new(&config, 1);
        let x = case.batch(2, &[43]);
        let inference = Inference::new(&config, &case.values);
        let mut stream = inference.stream();
        let mut log_probs = Vec::new();
        for (n_before, frame) in x.real(0).chunks(10).enumerate() {
            stream.accept(frame, &mut log_probs);
            // Slice t waits for frame t * frames a slice + look-ahead.
            let ready = inference
                .look_ahead_frames()
                .map_or(0, |ahead| (n_before + 1).saturating_sub(ahead).div_ceil(inference.frames_per_slice()));
            assert_eq!(log_probs.len(), ready * 7, "after {} frames: {config:?}", n_before + 1);
        }
        stream.reset();
        log_probs.clear();
        stream.finish(&mut log_probs);
        assert!(log_probs.is_empty(), "nothing since the reset: {config:?}");
    }
}
