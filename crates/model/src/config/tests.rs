//! Good configurations are understood; bad ones are reported in one line: place, found, expected.

use std::path::Path;

use proptest::prelude::*;

use super::*;

const SCHEDULE: &str = "schedule = { constant = { rate = 0.1 } }";

fn parse(text: &str) -> Result<Recipe, String> {
    Recipe::parse(text, Path::new("r.toml")).map_err(|error| error.to_string())
}

/// The error for a `[model]` table with 5 classes and these further keys.
fn message(keys: &str) -> String {
    let line = parse(&format!("[model]\narchitecture = \"srf\"\nclasses = 5\n{keys}\n")).unwrap_err();
    assert!(!line.contains('\n'), "more than a line: {line}");
    line
}

#[test]
fn only_classes_must_be_given() {
    let recipe = parse("[model]\narchitecture = \"srf\"\nclasses = 63").unwrap();
    assert_eq!(recipe.model, ModelConfig::Srf(SrfConfig::new(63)));
    assert_eq!(recipe.features.n_features(), 123);
    assert_eq!(recipe.training, None);
    assert_eq!(recipe.model.blank_class(), 62);
}

#[test]
fn a_list_gives_each_layer_its_own_numbers() {
    let keys = "layers = 3\nhidden_height = [10, 6]\nhidden_depth = [5, 4]\nprimary_depth = 3\nclass_depth = 7
        window_left = [2, 1, 0]\nwindow_right = 1";
    let recipe = parse(&format!("[model]\narchitecture = \"srf\"\nclasses = 12\n{keys}")).unwrap();
    let ModelConfig::Srf(srf) = &recipe.model else { panic!("{:?}", recipe.model) };
    let sizes: Vec<_> = srf
        .capsule_shapes()
        .map(|s| (s.window_left, s.window_right, s.in_height, s.in_depth, s.out_height, s.out_depth, s.is_last))
        .collect();
    assert_eq!(sizes, [(2, 1, 60, 3, 10, 5, false), (1, 1, 10, 5, 6, 4, false), (0, 1, 6, 4, 12, 7, true)]);
    assert_eq!(srf.capsule_shape(0).n_inputs(), 4 * 60);
    assert_eq!(recipe.summary().look_ahead_frames, Some(11 + 4 * 3));
    assert_eq!(recipe.summary().receptive_field_frames, Some(23 + 4 * 3 + 4 * 3));
}

#[test]
fn one_layer_goes_from_primary_to_class_capsules() {
    let srf = SrfConfig { layers: 1, primary_depth: 4, class_depth: 6, ..SrfConfig::new(9) };
    srf.validate().unwrap();
    let shape = srf.capsule_shape(0);
    assert_eq!((shape.in_height, shape.in_depth, shape.out_height, shape.out_depth), (60, 4, 9, 6));
    assert!(shape.is_last);
}

#[test]
fn values_out_of_bounds_are_reported_with_line_key_value_and_bounds() {
    let cases = [
        ("layers = 0", "r.toml:4: `model.layers` is 0, expected 1 to 100"),
        ("primary_height = 0", "r.toml:4: `model.primary_height` is 0, expected 1 to 4096"),
        ("\nhidden_height = 0", "r.toml:5: `model.hidden_height` is 0, expected 1 to 4096"),
        ("primary_depth = 0", "r.toml:4: `model.primary_depth` is 0, expected 1 to 256"),
        ("hidden_depth = [8, 8, 8, 0, 8, 8]", "r.toml:4: `model.hidden_depth` is 0, expected 1 to 256"),
        ("class_depth = 1000", "r.toml:4: `model.class_depth` is 1000, expected 1 to 256"),
        ("filters = 0", "r.toml:4: `model.filters` is 0, expected 1 to 1024"),
        ("window_left = 33", "r.toml:4: `model.window_left` is 33, expected 0 to 32"),
        ("window_right = 1000000000000", "r.toml:4: `model.window_right` is 1000000000000, expected 0 to 32"),
        ("iterations = 0", "r.toml:4: `model.iterations` is 0, expected 1 to 32"),
        ("dropout = { conv = 1.0 }", "r.toml:4: `model.dropout.conv` is 1, expected at least 0 and less than 1"),
        ("dropout.input = -0.1", "r.toml:4: `model.dropout.input` is -0.1, expected at least 0 and less than 1"),
        ("dropout.between = nan", "r.toml:4: `model.dropout.between` is NaN, expected at least 0 and less than 1"),
        (
            "hidden_height = [30, 30]",
            "r.toml:4: `model.hidden_height` is a list of 2, expected one number, or a list of 6, one for each layer it is for",
        ),
        (
            "layers = 2\nwindow_left = [1]",
            "r.toml:5: `model.window_left` is a list of 1, expected one number, or a list of 2, one for each layer it is for",
        ),
        ("features = 41", "r.toml:4: `model.features` is 41, expected 123, the width of a frame of `[features]`"),
        (
            "primary_height = 4096\nhidden_height = 4096\nprimary_depth = 256",
            "r.toml:1: `model` is a network of 121616387034 parameters, expected sizes that make at most 268435456 parameters",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(message(keys), expected);
    }
    assert_eq!(
        parse("[model]\narchitecture = \"srf\"\nclasses = 2").unwrap_err(),
        "r.toml:3: `model.classes` is 2, expected 3 to 65536"
    );
}

#[test]
fn choices_of_routing_that_make_no_sense_are_reported_in_one_line() {
    let cases = [
        (
            "routing = \"em\"\ncouplings = \"min_max\"",
            "r.toml:5: `model.couplings` is min_max, expected `softmax` with routing `em`; this is a choice of `sdr` and `dr`",
        ),
        (
            "routing = \"self\"\nstart = \"learned\"",
            "r.toml:5: `model.start` is learned, expected `zero` with routing `self`; this is a choice of `sdr` and `dr`",
        ),
        (
            "routing = \"inverted\"\nentropy = 2",
            "r.toml:5: `model.entropy` is 2, expected no such key but with routing `sdr` or `dr`",
        ),
        (
            "entropy = 2\ncouplings = \"min_max\"",
            "r.toml:4: `model.entropy` is 2, expected no such key with couplings `min_max`: it is the softmax that it softens",
        ),
        ("entropy = 0", "r.toml:4: `model.entropy` is 0, expected 0.001 to 1000"),
        ("entropy = nan", "r.toml:4: `model.entropy` is NaN, expected 0.001 to 1000"),
        (
            "routing = \"self\"\niterations = 2",
            "r.toml:5: `model.iterations` is 2, expected 1 with routing `self`, which decides at once",
        ),
        (
            "routing = \"inverted\"\nclass_depth = 1",
            "r.toml:5: `model.class_depth` is 1, expected at least 2 with routing `inverted`, which norms the values of a capsule",
        ),
        (
            "routing = \"inverted\"\nhidden_depth = [8, 8, 1, 8, 8, 8]",
            "r.toml:5: `model.hidden_depth` is 1, expected at least 2 with routing `inverted`, which norms the values of a capsule",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(message(keys), expected);
    }
    let first = SrfConfig::new(5);
    assert!(routed(&first).iter().all(|config| config.validate().is_ok()));
}

#[test]
fn a_network_without_choices_of_routing_is_written_without_their_keys() {
    let text = ModelConfig::Srf(SrfConfig::new(5)).format();
    assert!(["couplings", "entropy", "start"].iter().all(|key| !text.contains(key)), "{text}");
    let srf = SrfConfig { entropy: Some(2.0), start: Start::Learned, ..SrfConfig::new(5) };
    let text = ModelConfig::Srf(srf).format();
    assert!(text.contains("entropy = 2.0\nstart = \"learned\"\n"), "{text}");
}

#[test]
fn unknown_keys_and_values_of_the_wrong_kind_are_reported_with_their_line() {
    let cases = [
        ("layers = \"7\"", "r.toml:4: found string \"7\", expected a whole number, 0 or more, in `layers`"),
        ("layers = 7.5", "r.toml:4: found floating point `7.5`, expected a whole number, 0 or more, in `layers`"),
        ("layers = -1", "r.toml:4: invalid value: integer `-1`, expected a whole number, 0 or more, in `layers`"),
        (
            "window_left = \"1-1\"",
            "r.toml:4: found string \"1-1\", expected a whole number, 0 or more, or a list of them, one for each layer, in `window_left`",
        ),
        (
            "window_left = [1, -1]",
            "r.toml:4: invalid value: integer `-1`, expected a whole number, 0 or more, or a list of them, one for each layer, in `window_left`",
        ),
        (
            "routing = \"ema\"",
            "r.toml:4: unknown value `ema`, expected one of `sdr`, `dr`, `em`, `self`, `inverted`, in `routing`",
        ),
        (
            "dropout.inputs = 0.1",
            "r.toml:4: unknown key `inputs`, expected one of `conv`, `input`, `between`, in `dropout`",
        ),
        ("layers = 7\nlayers = 8", "r.toml:5: duplicate key"),
        ("layers 7", "r.toml:4: key with no value, expected `=`"),
    ];
    for (keys, expected) in cases {
        assert_eq!(message(keys), expected);
    }
    let line = message("heigth = 3");
    assert!(line.starts_with("r.toml:4: unknown key `heigth`, expected one of `features`, `classes`, "), "{line}");
}

#[test]
fn tables_that_are_missing_unknown_or_not_tables_are_reported() {
    assert_eq!(parse("").unwrap_err(), "r.toml:1: missing key `model`");
    assert_eq!(parse("[model]\nclasses = 5").unwrap_err(), "r.toml:1: missing key `architecture`");
    assert_eq!(parse("\n[model]\narchitecture = \"srf\"").unwrap_err(), "r.toml:2: missing key `classes`");
    assert_eq!(
        parse("[model]\narchitecture = \"lstn\"\nclasses = 5").unwrap_err(),
        "r.toml:2: unknown value `lstn`, expected one of `srf`, `lstm`, `cnn`, `transformer`, in `architecture`"
    );
    assert_eq!(parse("model = 3").unwrap_err(), "r.toml:1: found integer `3`, expected a table, in `model`");
    assert_eq!(
        parse("[model]\narchitecture = \"srf\"\nclasses = 5\n[trainig]\nepochs = 3").unwrap_err(),
        "r.toml:4: unknown key `trainig`, expected one of `model`, `features`, `training`"
    );
}

#[test]
fn training_settings_are_checked() {
    let training = |keys: &str| {
        let model = "[model]\narchitecture = \"srf\"\nclasses = 5\n";
        parse(&format!("{model}[training]\nepochs = 20\nbatch_frames = 100\n{keys}"))
    };
    let warmup = |kappa: &str| training(&format!("schedule.warmup = {{ steps = 10, kappa = {kappa} }}")).unwrap_err();
    assert!(training(SCHEDULE).is_ok());
    assert_eq!(training("").unwrap_err(), "r.toml:4: missing key `schedule`, in `training`");
    let cases = [
        ("average_epochs = 21", "`training.average_epochs` is 21, expected 1 to 20"),
        ("clip_norm = 0.0", "`training.clip_norm` is 0, expected a number greater than 0"),
        ("clip_norm = inf", "`training.clip_norm` is inf, expected a number greater than 0"),
        ("adam.beta2 = 1.0", "`training.adam.beta2` is 1, expected at least 0 and less than 1"),
        ("adam.epsilon = 0.0", "`training.adam.epsilon` is 0, expected a number greater than 0"),
    ];
    for (keys, expected) in cases {
        assert_eq!(training(&format!("{keys}\n{SCHEDULE}")).unwrap_err(), format!("r.toml:7: {expected}"));
    }
    let key = "r.toml:7: `training.schedule.warmup.kappa` is";
    let first = "expected a list that starts at epoch 1";
    assert_eq!(warmup("[]"), format!("{key} a list that starts at epoch 0, {first}"));
    assert_eq!(warmup("[{ from_epoch = 2, value = 1.0 }]"), format!("{key} a list that starts at epoch 2, {first}"));
    let twice = "[{ from_epoch = 1, value = 1.0 }, { from_epoch = 1, value = 0.5 }]";
    assert_eq!(warmup(twice), format!("{key} a list whose epochs do not rise, expected a later epoch at every step"));
}

#[test]
fn features_are_checked_and_decide_width_and_look_ahead() {
    let with = |features: &str| {
        parse(&format!("[features]\n{features}\n[model]\narchitecture = \"srf\"\nclasses = 5\nfeatures = 80"))
    };
    let recipe = with("mel_bins = 80\nenergy = false\ndelta_order = 0\nshift_ms = 8.0").unwrap();
    let summary = recipe.summary();
    assert_eq!((summary.look_ahead_frames, summary.delay_ms), (Some(35), Some(8.0 * 35.0 + 12.5)));
    assert_eq!(with("shift_ms = 0.0").unwrap_err(), "r.toml:2: `features.shift_ms` is 0, expected 1 to 1000");
    assert_eq!(
        with("cmvn = \"mean\"").unwrap_err(),
        "r.toml:2: unknown value `mean`, expected one of `speaker`, `utterance`, `global`, `online`, `none`, `off`, in `features.cmvn`"
    );
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(1 << 40).unwrap();
    let error = Recipe::load(file.path()).unwrap_err();
    assert!(matches!(error, ReadConfigError::TooLarge { most: 1_048_576, .. }), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    assert_eq!(Recipe::load(Path::new("no/such.toml")).unwrap_err().to_string(), "could not read `no/such.toml`");
}

fn per_layer(n_layers: usize, least: usize, most: usize) -> impl Strategy<Value = PerLayer> {
    let each = prop::collection::vec(least..=most, n_layers).prop_map(PerLayer::Each);
    prop_oneof![(least..=most).prop_map(PerLayer::Same), each]
}

/// The network with every routing that is worth a test: SDR and DR in the first three, then the family.
pub(crate) fn routed(config: &SrfConfig) -> Vec<SrfConfig> {
    let with = |routing, iterations| SrfConfig { routing, iterations, ..config.clone() };
    let min_max = |config| SrfConfig { couplings: Couplings::MinMax, ..config };
    let entropy = |config| SrfConfig { entropy: Some(0.5), ..config };
    let learned = |config| SrfConfig { start: Start::Learned, ..config };
    vec![
        with(Routing::Sdr, 1),
        with(Routing::Sdr, 3),
        with(Routing::Dr, 2),
        with(Routing::Em, 1),
        with(Routing::Em, 2),
        with(Routing::SelfRouting, 1),
        with(Routing::Inverted, 1),
        with(Routing::Inverted, 2),
        min_max(with(Routing::Sdr, 1)),
        min_max(learned(with(Routing::Dr, 2))),
        entropy(with(Routing::Sdr, 2)),
        entropy(learned(with(Routing::Dr, 2))),
        learned(with(Routing::Sdr, 1)),
    ]
}

/// Any small network.
pub(crate) fn any_srf() -> impl Strategy<Value = SrfConfig> {
    let sizes = (1_usize..5).prop_flat_map(|layers| {
        let hidden = (per_layer(layers - 1, 1, 5), per_layer(layers - 1, 1, 4));
        (Just(layers), hidden, per_layer(layers, 0, 3), per_layer(layers, 0, 3))
    });
    let numbers = (1_usize..20, 3_usize..9, 1_usize..5, 1_usize..6, 1_usize..5, 1_usize..5);
    let choices = (any::<prop::sample::Index>(), any::<bool>(), any::<bool>(), any::<bool>(), 0.0..0.99);
    (sizes, numbers, choices).prop_map(|((layers, (heights, depths), left, right), numbers, choices)| {
        let (features, classes, filters, primary_height, primary_depth, class_depth) = numbers;
        let (routing, is_normal, through_iterations, through_time, between) = choices;
        let config = SrfConfig {
            features,
            classes,
            filters,
            layers,
            primary_height,
            hidden_height: heights,
            primary_depth,
            hidden_depth: depths,
            class_depth,
            window_left: left,
            window_right: right,
            initializer: if is_normal { Initializer::Normal } else { Initializer::FanAvg },
            gradient: Gradient { through_iterations, through_time },
            dropout: Dropout { between, ..Dropout::default() },
            ..SrfConfig::new(classes)
        };
        let config = routing.get(&routed(&config)).clone();
        // Capsules of a single value cannot be normed.
        if config.validate().is_ok() { config } else { SrfConfig { routing: Routing::Em, ..config } }
    })
}

proptest! {
    #[test]
    fn any_model_written_out_reads_back_the_same(srf in any_srf()) {
        let model = ModelConfig::Srf(srf);
        prop_assert_eq!(ModelConfig::parse(&model.format(), Path::new("x")).unwrap(), model);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_change_of_a_recipe_makes_the_reader_panic(at in 0_usize..900, byte in any::<u8>(), cut in any::<bool>()) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recipes/timit/srf-7l.toml");
        let mut bytes = std::fs::read(path).unwrap();
        let at = at.min(bytes.len() - 1);
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let message = parse(&String::from_utf8_lossy(&bytes)).err().unwrap_or_default();
        prop_assert!(!message.contains('\n'), "more than a line: {}", message);
    }
}
