//! Weights files: round trips, the same bytes for the same values, and every kind of damage told in one line.

use std::io::Cursor;

use proptest::prelude::*;
use safetensors::SafeTensors;

use super::*;
use crate::config::{Routing, SrfConfig, any_srf};
use crate::init::initialise;

/// How many damaged files each of the mutation tests reads.
const N_MUTATIONS: u32 = 4000;

fn small() -> (ModelConfig, Params<f32>) {
    let srf = SrfConfig {
        features: 7,
        filters: 2,
        layers: 2,
        primary_height: 3,
        hidden_height: crate::config::PerLayer::Same(2),
        primary_depth: 2,
        class_depth: 3,
        routing: Routing::Dr,
        ..SrfConfig::new(4)
    };
    with_values(srf)
}

fn with_values(srf: SrfConfig) -> (ModelConfig, Params<f32>) {
    let config = ModelConfig::Srf(srf);
    let params = initialise(Arc::new(Layout::new(&config)), 1);
    (config, params)
}

fn bytes_of((config, params): &(ModelConfig, Params<f32>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, config, params).unwrap();
    bytes
}

fn read_bytes(bytes: &[u8]) -> Result<(ModelConfig, Params<f32>), LoadWeightsError> {
    read(&mut Cursor::new(bytes), bytes.len() as u64, Path::new("m.safetensors"))
}

fn told(bytes: &[u8]) -> String {
    let line = read_bytes(bytes).unwrap_err().to_string();
    assert!(!line.contains('\n'), "more than a line: {line}");
    line
}

/// The file with a part of its header replaced and its size put right.
fn with_header(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let size = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..8 + size].to_vec()).unwrap();
    assert!(header.contains(from), "no `{from}` in {header}");
    let header = header.replacen(from, to, 1);
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes[8 + size..]].concat()
}

#[test]
fn a_saved_model_loads_with_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("weights.safetensors");
    let (config, params) = with_values(SrfConfig { layers: 2, ..SrfConfig::new(63) });
    save(&path, &config, &params).unwrap();
    assert_eq!(load(&path).unwrap(), (config, params));
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["weights.safetensors"], "nothing is left beside it");
}

#[test]
fn a_save_replaces_the_file_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("weights.safetensors");
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    let (config, params) = small();
    save(&path, &config, &params).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes_of(&(config, params)));
}

#[test]
fn a_save_into_no_directory_names_the_file() {
    let (config, params) = small();
    let error = save(Path::new("no/such/dir/w.safetensors"), &config, &params).unwrap_err();
    assert_eq!(error.to_string(), "could not write the model `no/such/dir/w.safetensors`");
}

#[test]
fn other_readers_of_safetensors_find_names_shapes_metadata_and_values() {
    let model = small();
    let bytes = bytes_of(&model);
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.len(), model.1.layout.tensors().len());
    let kernel = file.tensor("conv1.a.kernel").unwrap();
    assert_eq!(kernel.shape(), [3, 3, 1, 2]);
    let expected: Vec<u8> =
        model.1.tensor("conv1.a.kernel").unwrap().iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(kernel.data(), expected);
    let (size, header) = SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(size % 8, 0);
    let metadata = header.metadata().as_ref().unwrap();
    let short = ["format", "architecture", "classes", "blank"].map(|key| metadata[key].as_str());
    assert_eq!(short, ["1", "srf", "4", "3"]);
    assert!(metadata["model"].contains("routing = \"dr\""));
}

#[test]
fn files_written_by_others_in_another_order_load() {
    let (config, params) = small();
    let bytes = bytes_of(&(config.clone(), params.clone()));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    // The crate's own writer sorts tensors by name.
    let theirs = safetensors::serialize(file.tensors(), header.metadata().clone()).unwrap();
    assert_ne!(theirs, bytes);
    assert_eq!(read_bytes(&theirs).unwrap(), (config, params));
}

#[test]
fn a_file_cut_anywhere_is_told_with_its_size_and_the_expected_one() {
    let bytes = bytes_of(&small());
    for size in 0..bytes.len() {
        let line = told(&bytes[..size]);
        assert!(line.starts_with(&format!("`m.safetensors` has {size} bytes, expected ")), "{line}");
    }
    assert_eq!(told(&bytes[..3]), "`m.safetensors` has 3 bytes, expected 8");
    let n = bytes.len();
    assert_eq!(told(&bytes[..n - 1]), format!("`m.safetensors` has {} bytes, expected {n}", n - 1));
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(told(&longer), format!("`m.safetensors` has {} bytes, expected {n}", n + 1));
}

#[test]
fn a_header_of_absurd_size_is_refused_before_it_is_read() {
    let mut bytes = bytes_of(&small());
    bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let line = told(&bytes);
    assert!(
        line.starts_with("`m.safetensors` states a header of 18446744073709551615 bytes, expected at most 1048576")
    );
}

#[test]
fn the_deepest_model_has_a_header_far_below_the_limit() {
    let one = crate::config::PerLayer::Same(1);
    let srf = SrfConfig { layers: 100, hidden_height: one.clone(), hidden_depth: one, ..SrfConfig::new(5) };
    let bytes = bytes_of(&with_values(srf));
    let n_header = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!((30_000..60_000).contains(&n_header), "{n_header}");
    assert!(read_bytes(&bytes).is_ok());
}

#[test]
fn tensors_that_are_missing_extra_misshapen_or_of_another_type_are_named() {
    let bytes = bytes_of(&small());
    let renamed = with_header(&bytes, "\"ln_out.beta\"", "\"ln_out.bela\"");
    assert_eq!(told(&renamed), "`m.safetensors` lacks the tensor `ln_out.beta` of shape [4]");
    let empty = r#""more":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"bn1.beta""#;
    let extra = with_header(&bytes, "\"bn1.beta\"", empty);
    assert_eq!(told(&extra), "`m.safetensors` has a tensor `more` that its model does not have");
    let turned = with_header(&bytes, r#""shape":[4,3]"#, r#""shape":[3,4]"#);
    assert_eq!(told(&turned), "`m.safetensors` has the tensor `proj.kernel` as F32 [3, 4], expected F32 [4, 3]");
    let whole = with_header(&bytes, r#""dtype":"F32""#, r#""dtype":"I32""#);
    assert_eq!(told(&whole), "`m.safetensors` has the tensor `bn1.beta` as I32 [2], expected F32 [2]");
}

#[test]
fn metadata_that_is_missing_or_disagrees_is_told() {
    let bytes = bytes_of(&small());
    let cases = [
        (r#""format":"1""#, r#""format":"2""#, "`m.safetensors` has \"2\" as metadata `format`, expected `1`"),
        (r#""blank":"3""#, r#""blank":"0""#, "`m.safetensors` has \"0\" as metadata `blank`, expected `3`"),
        (r#""classes":"4""#, r#""glasses":"4""#, "`m.safetensors` has nothing as metadata `classes`, expected `4`"),
        (r#""model":"#, r#""modem":"#, "`m.safetensors` has nothing as metadata `model`, expected a configuration"),
        (
            "layers = 2",
            "layers = 3",
            "`m.safetensors` has the tensor `caps2.W` as F32 [6, 4, 3, 8], expected F32 [6, 2, 8, 8]",
        ),
        ("layers = 2", "layers = 0", "m.safetensors (metadata `model`): `model.layers` is 0, expected 1 to 100"),
        ("layers = 2", "layens = 2", "m.safetensors (metadata `model`):5: unknown key `layens`, expected one of"),
    ];
    for (from, to, expected) in cases {
        let line = told(&with_header(&bytes, from, to));
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn a_configuration_of_absurd_size_is_refused_before_anything_is_allocated_for_it() {
    let bytes = bytes_of(&small());
    let line = told(&with_header(&bytes, "primary_depth = 2", "primary_depth = 99999999"));
    assert_eq!(line, "m.safetensors (metadata `model`): `model.primary_depth` is 99999999, expected 1 to 256");
}

#[test]
fn values_that_poison_results_are_refused_with_their_tensor() {
    let (config, mut params) = small();
    params.tensor_mut("caps1.W").unwrap()[5] = f32::NAN;
    let line = told(&bytes_of(&(config.clone(), params)));
    assert_eq!(line, "`m.safetensors` has NaN at index 5 of the tensor `caps1.W`, expected a finite number");
    let (_, mut params) = small();
    params.tensor_mut("bn2.moving_var").unwrap()[1] = -0.5;
    let line = told(&bytes_of(&(config, params)));
    let expected = "expected a finite number of at least 0";
    assert_eq!(line, format!("`m.safetensors` has -0.5 at index 1 of the tensor `bn2.moving_var`, {expected}"));
}

/// A damaged file either loads as some valid model or is told in one line; it never panics.
fn survive(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Err(error) = read_bytes(bytes) {
        let line = error.to_string();
        prop_assert!(!line.contains('\n') && line.contains("m.safetensors"), "{}", line);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_model_round_trips_and_its_bytes_are_always_the_same(srf in any_srf()) {
        let model = with_values(srf);
        let bytes = bytes_of(&model);
        prop_assert_eq!(&bytes, &bytes_of(&model.clone()));
        prop_assert_eq!(read_bytes(&bytes).unwrap(), model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(N_MUTATIONS))]

    #[test]
    fn no_damaged_header_makes_the_reader_panic(
        changes in prop::collection::vec((0.0_f64..1.0, any::<u8>()), 1..4)
    ) {
        let mut bytes = bytes_of(&small());
        let n_header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for (place, byte) in changes {
            bytes[(place * n_header as f64) as usize] = byte;
        }
        survive(&bytes)?;
    }

    #[test]
    fn no_exchanged_digit_or_sign_in_the_header_makes_the_reader_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[0-9,.:\\[\\]{}\"=-]"), 1..6)
    ) {
        let mut bytes = bytes_of(&small());
        let n_header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let places: Vec<usize> = (8..n_header).filter(|&i| !bytes[i].is_ascii_alphabetic()).collect();
        for (place, sign) in changes {
            bytes[*place.get(&places)] = sign.as_bytes()[0];
        }
        survive(&bytes)?;
    }

    #[test]
    fn no_random_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 0_u64..300) {
        survive(&bytes)?;
        survive(&[size.to_le_bytes().as_slice(), &bytes].concat())?;
    }
}
