//! Checkpoints, complete and damaged.

use proptest::prelude::*;

use std::fs;

use super::*;

fn checkpoint(n_kept: usize) -> Checkpoint {
    let numbers = |n: usize, scale: f32| (0..n).map(|i| (i as f32 * 0.7).sin() * scale).collect::<Vec<f32>>();
    let (n_values, n_trainable) = (23, 20);
    Checkpoint {
        head: Head {
            recipe: "[model]\n".to_owned(),
            labels: "# units: phones\n".to_owned(),
            data_fingerprint: "0badcafe".to_owned(),
            from_fingerprint: None,
            cmvn: Some(vec![1.0, 0.1, 1e-300]),
            state: State { epoch: 3, n_steps: 77, loss_sum: 1.0 / 3.0, best_loss: Some(0.1), ..State::default() },
            n_values,
            n_trainable,
            n_kept,
        },
        values: numbers(n_values, 1.0),
        means: numbers(n_trainable, 1e-3),
        squares: numbers(n_trainable, 1e-9),
        kept: (0..n_kept).map(|k| numbers(n_values, k as f32)).collect(),
    }
}

fn bytes(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    checkpoint.write(&mut bytes).unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<Checkpoint, ReadCheckpointError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.ckpt");
    fs::write(&path, bytes).unwrap();
    Checkpoint::load(&path)
}

#[test]
fn what_is_saved_is_loaded_to_the_bit_and_the_same_state_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.ckpt");
    for n_kept in [0, 1, 3] {
        let saved = checkpoint(n_kept);
        saved.save(&path).unwrap();
        assert_eq!(Checkpoint::load(&path).unwrap(), saved);
        assert_eq!(fs::read(&path).unwrap(), bytes(&saved));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left next to it");
    }
}

#[test]
fn every_truncation_is_damage_and_not_an_error_of_the_system() {
    let whole = bytes(&checkpoint(2));
    for n in 0..whole.len() {
        let found = load(&whole[..n]);
        assert!(matches!(found, Err(ReadCheckpointError::Damaged { .. })), "{n} bytes: {found:?}");
    }
    let longer = [whole.as_slice(), &[0]].concat();
    assert!(matches!(load(&longer), Err(ReadCheckpointError::Damaged { .. })));
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.ckpt");
    let first = checkpoint(1);
    first.save(&path).unwrap();
    // Where the new file would be written, something is in the way.
    fs::create_dir(srf_base::files::partial_path(&path)).unwrap();
    let error = checkpoint(2).save(&path).unwrap_err().to_string();
    assert!(error.starts_with("could not write `"), "{error}");
    assert_eq!(Checkpoint::load(&path).unwrap(), first);
}

proptest! {
    #[test]
    fn any_changed_byte_is_noticed(at in any::<prop::sample::Index>(), change in 1_u8..) {
        let mut bytes = bytes(&checkpoint(1));
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        prop_assert!(load(&bytes).is_err());
    }

    #[test]
    fn bytes_that_are_no_checkpoint_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), n_head in any::<u64>()) {
        prop_assert!(load(&bytes).is_err());
        let headed = [MAGIC.as_slice(), &n_head.to_le_bytes(), &bytes].concat();
        prop_assert!(load(&headed).is_err());
    }
}
