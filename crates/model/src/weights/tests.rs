//! Weights files: round trips, the same bytes for the same values, and every kind of damage reported in one line.

use std::fs;
use std::io::Cursor;

use proptest::prelude::*;
use safetensors::SafeTensors;

use super::*;
use crate::config::{Routing, SrfConfig, any_srf};

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
    let params = Params::initialize(Arc::new(Layout::new(&config)), 1);
    (config, params)
}

fn bytes_of((config, params): &(ModelConfig, Params<f32>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, config, params, &SaveOptions::default()).unwrap();
    bytes
}

fn read_bytes(bytes: &[u8]) -> Result<(ModelConfig, Params<f32>), LoadWeightsError> {
    let (config, params, _) = read(&mut Cursor::new(bytes), bytes.len() as u64, Path::new("m.safetensors"))?;
    Ok((config, params))
}

fn message(bytes: &[u8]) -> String {
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
    assert_eq!(names, ["weights.safetensors"], "nothing else is left");
}

#[test]
fn a_save_replaces_the_whole_file() {
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
fn a_file_cut_anywhere_is_reported_with_its_size_and_the_expected_one() {
    let bytes = bytes_of(&small());
    for size in 0..bytes.len() {
        let line = message(&bytes[..size]);
        assert!(line.starts_with(&format!("`m.safetensors` has {size} bytes, expected ")), "{line}");
    }
    assert_eq!(message(&bytes[..3]), "`m.safetensors` has 3 bytes, expected 8");
    let n = bytes.len();
    assert_eq!(message(&bytes[..n - 1]), format!("`m.safetensors` has {} bytes, expected {n}", n - 1));
    let longer = [bytes.as_slice(), &[0]].concat();
    assert_eq!(message(&longer), format!("`m.safetensors` has {} bytes, expected {n}", n + 1));
}

#[test]
fn a_header_of_absurd_size_is_refused_before_it_is_read() {
    let mut bytes = bytes_of(&small());
    bytes[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let line = message(&bytes);
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
    assert_eq!(message(&renamed), "`m.safetensors` lacks the tensor `ln_out.beta` of shape [4]");
    let empty = r#""more":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"bn1.beta""#;
    let extra = with_header(&bytes, "\"bn1.beta\"", empty);
    assert_eq!(message(&extra), "`m.safetensors` has a tensor `more` that its model does not have");
    let turned = with_header(&bytes, r#""shape":[4,3]"#, r#""shape":[3,4]"#);
    assert_eq!(
        message(&turned),
        "`m.safetensors` has the tensor `proj.kernel` as F32 [3, 4], expected F32 or F16 [4, 3]"
    );
    let integers = with_header(&bytes, r#""dtype":"F32""#, r#""dtype":"I32""#);
    assert_eq!(message(&integers), "`m.safetensors` has the tensor `bn1.beta` as I32 [2], expected F32 or F16 [2]");
}

#[test]
fn metadata_that_is_missing_or_disagrees_is_reported() {
    let bytes = bytes_of(&small());
    let cases = [
        (r#""format":"1""#, r#""format":"2""#, "`m.safetensors` has \"2\" as metadata `format`, expected `1`"),
        (r#""blank":"3""#, r#""blank":"0""#, "`m.safetensors` has \"0\" as metadata `blank`, expected `3`"),
        (r#""classes":"4""#, r#""glasses":"4""#, "`m.safetensors` has nothing as metadata `classes`, expected `4`"),
        (r#""model":"#, r#""modem":"#, "`m.safetensors` has nothing as metadata `model`, expected a configuration"),
        (
            "layers = 2",
            "layers = 3",
            "`m.safetensors` has the tensor `caps2.W` as F32 [6, 4, 3, 8], expected F32 or F16 [6, 2, 8, 8]",
        ),
        ("layers = 2", "layers = 0", "m.safetensors (metadata `model`): `model.layers` is 0, expected 1 to 100"),
        ("layers = 2", "layens = 2", "m.safetensors (metadata `model`):5: unknown key `layens`, expected one of"),
    ];
    for (from, to, expected) in cases {
        let line = message(&with_header(&bytes, from, to));
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn a_configuration_of_absurd_size_is_refused_before_anything_is_allocated_for_it() {
    let bytes = bytes_of(&small());
    let line = message(&with_header(&bytes, "primary_depth = 2", "primary_depth = 99999999"));
    assert_eq!(line, "m.safetensors (metadata `model`): `model.primary_depth` is 99999999, expected 1 to 256");
}

#[test]
fn further_metadata_comes_back_and_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.safetensors");
    let (config, params) = small();
    let entry = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let save =
        |metadata: Metadata| save_with(&path, &config, &params, &SaveOptions { metadata, ..SaveOptions::default() });
    let metadata = Metadata::from([entry("labels.sha256", "ab12"), entry("note", "\"ü\"\n")]);
    save(metadata.clone()).unwrap();
    assert_eq!(load_with_metadata(&path).unwrap(), (config.clone(), params.clone(), metadata));
    let message = |metadata| save(metadata).unwrap_err().to_string().split_once("metadata ").unwrap().1.to_owned();
    assert_eq!(message(Metadata::from([entry("model", "")])), "`model` has a key that every file has already");
    let long = "x".repeat(4097);
    assert_eq!(message(Metadata::from([entry("a", &long)])), "`a` has 4097 bytes, expected at most 4096");
    let key = &long[..65];
    assert!(message(Metadata::from([entry(key, "")])).ends_with("has a key of 65 bytes, expected 1 to 64"));
    let many: Metadata = (0..65).map(|n| entry(&format!("k{n:02}"), "")).collect();
    assert_eq!(message(many), "`k64` is one of 65 entries, expected at most 64");
    let most = (0..64).map(|n| entry(&format!("{n:064}"), &long[1..])).collect();
    save(most).unwrap();
    assert!(load(&path).is_ok());
}

#[test]
fn half_precision_rounds_the_trained_tensors_and_keeps_the_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.safetensors");
    let (config, mut params) = small();
    params.tensor_mut("bn1.moving_mean").unwrap()[0] = 1e6 + 0.125;
    let options = SaveOptions { precision: Precision::F16, ..SaveOptions::default() };
    save_with(&path, &config, &params, &options).unwrap();
    let (found, half) = load(&path).unwrap();
    assert_eq!(found, config);
    let n_trainable = params.layout.n_trainable();
    assert_eq!(half.values[n_trainable..], params.values[n_trainable..]);
    for (half, full) in half.values.iter().zip(&params.values) {
        // Half a step of 11 bits, and half the smallest number.
        assert!((half - full).abs() <= full.abs() * 2f32.powi(-11) + 2f32.powi(-25), "{half} {full}");
    }
    let n_header = |path: &Path| u64::from_le_bytes(fs::read(path).unwrap()[..8].try_into().unwrap()) as usize;
    let n_values = fs::read(&path).unwrap().len() - 8 - n_header(&path);
    assert_eq!(n_values, 2 * n_trainable + 4 * (params.values.len() - n_trainable));
    save_with(&path, &config, &half, &options).unwrap();
    assert_eq!(load(&path).unwrap().1, half, "numbers of half precision stay");
    params.tensor_mut("proj.bias").unwrap()[1] = 7e4;
    let error = save_with(&path, &config, &params, &options).unwrap_err().to_string();
    let expected = "70000 at index 1 of the tensor `proj.bias`, expected a number that half precision can hold";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn values_that_are_not_finite_are_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.safetensors");
    let (config, mut params) = small();
    params.tensor_mut("caps2.b").unwrap()[2] = f32::INFINITY;
    let error = save(&path, &config, &params).unwrap_err().to_string();
    assert!(error.ends_with("inf at index 2 of the tensor `caps2.b`, expected a finite number"), "{error}");
    assert!(!path.exists());
}

#[test]
fn values_that_poison_results_are_refused_with_their_tensor() {
    let (config, mut params) = small();
    params.tensor_mut("caps1.W").unwrap()[5] = f32::NAN;
    let line = message(&bytes_of(&(config.clone(), params)));
    assert_eq!(line, "`m.safetensors` has NaN at index 5 of the tensor `caps1.W`, expected a finite number");
    let (_, mut params) = small();
    params.tensor_mut("bn2.moving_var").unwrap()[1] = -0.5;
    let line = message(&bytes_of(&(config, params)));
    let expected = "expected a finite number of at least 0";
    assert_eq!(line, format!("`m.safetensors` has -0.5 at index 1 of the tensor `bn2.moving_var`, {expected}"));
}

/// A damaged file either loads as some valid model or is reported in one line; it never panics.
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
