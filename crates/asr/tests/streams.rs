//! One engine: a stream equals the file, alone equals among others, whatever the cuts, the rate and the mode.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod tiny;

use std::sync::Arc;

use proptest::prelude::*;
use srf::verify::{Chunking, Difference, chunkings, compare};
use srf::{EndReason, Recognizer, Segment, Stream, StreamOptions, VadConfig};
use srf_audio::Selection;
use srf_audio::bulk::Utterance;
use srf_audio::features::cmvn::CmvnStats;
use srf_model::config::Cmvn;
use srf_text::decode::DecoderConfig;
use srf_text::fusion::{Fusion, Lexicon, Sources};
use srf_text::labels::Units;

fn recognizer(cmvn: Cmvn) -> Recognizer {
    let mut parts = tiny::letters(cmvn);
    let mut stats = CmvnStats::new(parts.features.n_features());
    stats.add(&(0..180).map(|i| (i % 7) as f32 + 5.0).collect::<Vec<f32>>());
    parts.cmvn = (cmvn == Cmvn::Global).then_some(stats);
    Recognizer::from_parts(parts).unwrap()
}

/// Everything but the delays, which are of the clock.
fn plain(mut segments: Vec<Segment>) -> Vec<Segment> {
    segments.iter_mut().flat_map(|segment| &mut segment.tokens).for_each(|token| token.delay = None);
    segments
}

fn at_once(stream: &mut Stream, samples: &[f32], rate_hz: u32) -> Vec<Segment> {
    stream.accept(samples, rate_hz).unwrap();
    plain(stream.finish())
}

fn in_pieces(stream: &mut Stream, samples: &[f32], rate_hz: u32, cuts: &[usize]) -> Vec<Segment> {
    let mut rest = samples;
    for &cut in cuts.iter().cycle() {
        let (piece, later) = rest.split_at(cut.min(rest.len()));
        stream.accept(piece, rate_hz).unwrap();
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    plain(stream.finish())
}

fn log_probs(recognizer: &Recognizer, samples: &[f32], rate_hz: u32, size: usize) -> Vec<u32> {
    let statistics = recognizer.needs_statistics().then(|| CmvnStats::new(recognizer.features().n_features()));
    let mut listener = recognizer.listener(statistics).unwrap();
    let mut log_probs = Vec::new();
    for piece in samples.chunks(size) {
        listener.accept(piece, rate_hz, &mut log_probs).unwrap();
    }
    listener.flush(&mut log_probs);
    log_probs.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn the_tiny_model_writes_something_to_compare() {
    let recognizer = recognizer(Cmvn::Online);
    let mut stream = recognizer.stream(&StreamOptions::default()).unwrap();
    let heard = at_once(&mut stream, &tiny::sound(1, 80_000), 16_000);
    let n_tokens: usize = heard.iter().map(|heard| heard.tokens.len()).sum();
    assert!(5 < n_tokens, "{n_tokens} tokens");
    assert!(!heard[0].words.is_empty());
}

#[test]
fn samples_one_at_a_time_give_the_bits_of_the_file() {
    for cmvn in [Cmvn::None, Cmvn::Online, Cmvn::Global] {
        let recognizer = recognizer(cmvn);
        for rate_hz in [16_000, 8000, 44_100] {
            let samples = tiny::sound(2, 9000);
            let whole = log_probs(&recognizer, &samples, rate_hz, samples.len());
            assert!(!whole.is_empty());
            assert_eq!(log_probs(&recognizer, &samples, rate_hz, 1), whole, "{cmvn:?} at {rate_hz} Hz");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_stream_cut_anywhere_hears_what_the_file_says(
        seed in 0_u64..1000,
        n_samples in 0_usize..60_000,
        rate_hz in prop_oneof![Just(16_000), Just(8000), Just(22_050), Just(48_000)],
        cmvn in prop_oneof![Just(Cmvn::None), Just(Cmvn::Online), Just(Cmvn::Global)],
        cuts in proptest::collection::vec(prop_oneof![Just(1_usize), 0_usize..5000], 1..8),
        has_vad in any::<bool>(),
    ) {
        let cuts = [cuts, vec![1, 777]].concat();
        let recognizer = recognizer(cmvn);
        let samples = tiny::sound(seed, n_samples);
        let config = VadConfig { min_silence_s: 0.1, pad_s: 0.05, ..VadConfig::default() };
        let vad = has_vad.then_some(config);
        let options = StreamOptions { has_evidence: true, n_best: 3, vad, ..StreamOptions::default() };
        let mut stream = recognizer.stream(&options).unwrap();
        let whole = at_once(&mut stream, &samples, rate_hz);
        // The same stream, used again: a finished stream is at its start.
        prop_assert_eq!(in_pieces(&mut stream, &samples, rate_hz, &cuts), whole);
    }
}

/// Without memory of what came before, a part between silences gives what it gives alone, at its own time.
#[test]
fn voice_activity_detection_leaves_out_silence_and_keeps_the_times() {
    let recognizer = recognizer(Cmvn::None);
    let options = StreamOptions { vad: Some(VadConfig::default()), ..StreamOptions::default() };
    let mut stream = recognizer.stream(&options).unwrap();
    let tone = |n: usize| (0..n).map(|n| (n as f32 * 0.2).sin() / 4.0 * (n as f32 * 0.001).cos());
    let one: Vec<f32> =
        std::iter::repeat_n(0.0, 32_000).chain(tone(16_000)).chain(std::iter::repeat_n(0.0, 16_000)).collect();
    let alone = at_once(&mut stream, &one, 16_000);
    assert_eq!((alone.len(), alone[0].ended_by), (1, Some(EndReason::Vad)));
    assert!(1.6 < alone[0].start_s && alone[0].end_s < 3.4, "{alone:?}");

    let both = at_once(&mut stream, &[one.clone(), one.clone()].concat(), 16_000);
    assert_eq!(both.len(), 2);
    let later: Vec<f64> = both[1].tokens.iter().map(|token| token.start_s - 4.0).collect();
    for (token, (first, start_s)) in both[1].tokens.iter().zip(alone[0].tokens.iter().zip(&later)) {
        assert!(token.text == first.text && (start_s - first.start_s).abs() < 1e-6, "{token:?} {first:?}");
    }
    assert_eq!(both[1].tokens.len(), alone[0].tokens.len());

    stream.accept(&one, 16_000).unwrap();
    assert_eq!(stream.accepted_s(), 4.0, "what is left out counts");
    let silence = at_once(&mut recognizer.stream(&options).unwrap(), &vec![0.0; 48_000], 16_000);
    assert_eq!(silence, []);
    let bad = VadConfig { pad_s: -1.0, ..VadConfig::default() };
    let error = recognizer.stream(&StreamOptions { vad: Some(bad), ..StreamOptions::default() }).err().unwrap();
    assert_eq!(error.to_string(), "voice activity detection: the padding is -1, expected 0 to 3600 s");
}

#[test]
fn looking_at_partial_results_and_taking_what_ended_changes_nothing() {
    let recognizer = recognizer(Cmvn::Online);
    let samples = tiny::sound(5, 100_000);
    let mut stream = recognizer.stream(&StreamOptions::default()).unwrap();
    let whole = at_once(&mut stream, &samples, 16_000);
    let (mut taken, mut n_partial) = (Vec::new(), 0);
    for piece in samples.chunks(1600) {
        stream.accept(piece, 16_000).unwrap();
        n_partial += usize::from(stream.partial().is_some());
        taken.extend(stream.take_ended());
    }
    taken.extend(stream.finish());
    assert_eq!(plain(taken), whole);
    assert!(0 < n_partial);
}

#[test]
fn a_reset_stream_is_a_new_stream() {
    let recognizer = recognizer(Cmvn::Online);
    let samples = tiny::sound(6, 30_000);
    let mut stream = recognizer.stream(&StreamOptions::default()).unwrap();
    let whole = at_once(&mut stream, &samples, 16_000);
    stream.accept(&tiny::sound(7, 20_000), 8000).unwrap();
    stream.reset();
    assert_eq!(stream.accepted_s(), 0.0);
    assert_eq!(at_once(&mut stream, &samples, 16_000), whole);
}

#[test]
fn after_a_flush_times_go_on() {
    let recognizer = recognizer(Cmvn::None);
    let samples = tiny::sound(6, 48_000);
    let options = StreamOptions { endpoint: None, ..StreamOptions::default() };
    let mut stream = recognizer.stream(&options).unwrap();
    stream.accept(&samples, 16_000).unwrap();
    stream.flush();
    stream.accept(&samples, 16_000).unwrap();
    let heard = stream.finish();
    assert_eq!(heard.len(), 2);
    let [first, second] = [&heard[0], &heard[1]];
    assert_eq!(first.text, second.text);
    let shift_s = second.start_s - first.start_s;
    assert!((shift_s - 3.0).abs() < 1e-9, "{shift_s}");
    assert!(second.end_s < 6.1);
}

fn utterances(dir: &std::path::Path, n: usize) -> Vec<Utterance> {
    let save = |index: usize| {
        let path = dir.join(format!("{index}.wav"));
        tiny::save(&path, &tiny::sound(index as u64, 16_000 + 3000 * index), [16_000, 8000][index % 2]);
        let speaker = format!("speaker {}", index % 3);
        Utterance { id: index.to_string(), speaker, path, selection: Selection::default() }
    };
    (0..n).map(save).collect()
}

#[test]
fn alone_equals_among_others_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let utterances = utterances(dir.path(), 7);
    for cmvn in [Cmvn::Online, Cmvn::Speaker] {
        let recognizer = recognizer(cmvn);
        let run = |utterances: &[Utterance], n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let all = pool.install(|| recognizer.transcribe_all(utterances, &StreamOptions::default(), &|| ()));
            all.into_iter().map(|result| plain(result.unwrap().segments)).collect::<Vec<_>>()
        };
        let together = run(&utterances, 4);
        assert_eq!(run(&utterances, 1), together);
        let statistics = recognizer.speaker_statistics(&utterances);
        for (utterance, heard) in utterances.iter().zip(&together) {
            let statistics = recognizer.is_by_speaker().then(|| statistics[utterance.speaker.as_str()].clone());
            let options = StreamOptions { statistics, ..StreamOptions::default() };
            assert_eq!(&plain(recognizer.transcribe_with(utterance, &options).unwrap().segments), heard);
        }
    }
}

#[test]
fn a_recording_that_cannot_be_read_is_told_and_the_others_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut utterances = utterances(dir.path(), 2);
    let missing =
        Utterance { path: dir.path().join("missing.wav"), speaker: "nobody".to_owned(), ..utterances[0].clone() };
    utterances.insert(1, missing);
    for cmvn in [Cmvn::Online, Cmvn::Speaker] {
        let results = recognizer(cmvn).transcribe_all(&utterances, &StreamOptions::default(), &|| ());
        assert!(results[0].is_ok() && results[2].is_ok());
        let message = results[1].as_ref().unwrap_err().to_string();
        assert!(message.contains("missing.wav"), "{message}");
    }
}

#[test]
fn a_recording_of_one_sample_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("one.wav");
    tiny::save(&path, &[5e-4], 16_000);
    let utterance = Utterance { id: "one".to_owned(), speaker: "s".to_owned(), path, selection: Selection::default() };
    for cmvn in [Cmvn::Online, Cmvn::Speaker, Cmvn::Global, Cmvn::None] {
        let results =
            recognizer(cmvn).transcribe_all(std::slice::from_ref(&utterance), &StreamOptions::default(), &|| ());
        assert_eq!(results[0].as_ref().unwrap().segments, []);
    }
}

#[test]
fn a_live_stream_of_a_speaker_nobody_knows_is_refused() {
    let recognizer = recognizer(Cmvn::Speaker);
    let error = recognizer.stream(&StreamOptions::default()).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the model normalises features by speaker, and no statistics of this speaker are known"
    );
    assert!(error.hint().is_some());
    let narrow = StreamOptions { statistics: Some(CmvnStats::new(3)), ..StreamOptions::default() };
    let error = recognizer.stream(&narrow).err().unwrap();
    assert_eq!(error.to_string(), "the speaker's statistics have 3 values per frame, but a frame has 18");
}

#[test]
fn broken_samples_and_changing_rates_are_told() {
    let recognizer = recognizer(Cmvn::Online);
    let mut stream = recognizer.stream(&StreamOptions::default()).unwrap();
    stream.accept(&[1.0; 10], 8000).unwrap();
    let told = |error: srf::AcceptError| error.to_string();
    let error = stream.accept(&[1.0], 16_000).map_err(told).unwrap_err();
    assert_eq!(error, "the stream started at 8000 Hz and goes on at 16000 Hz, expected one rate until it is reset");
    let error = stream.accept(&[0.0, f32::NAN], 8000).map_err(told).unwrap_err();
    assert_eq!(error, "sample 11 of the stream is NaN, expected a finite number");
    stream.reset();
    assert!(stream.accept(&[1.0], 3).is_err());
    stream.accept(&[f32::MAX, f32::MIN, 0.0].repeat(4000), 16_000).unwrap();
    for heard in stream.finish() {
        assert!(heard.tokens.iter().all(|token| token.confidence.is_some_and(f32::is_finite)));
    }
}

#[test]
fn every_token_tells_its_delay() {
    let recognizer = recognizer(Cmvn::None);
    let options = StreamOptions { endpoint: None, ..StreamOptions::default() };
    let mut stream = recognizer.stream(&options).unwrap();
    let samples = tiny::sound(8, 64_000);
    // 100 ms at a time.
    samples.chunks(1600).for_each(|piece| stream.accept(piece, 16_000).unwrap());
    let algorithmic_ms = recognizer.timing().algorithmic_ms().unwrap();
    // 4 frames of deltas, 7 of convolutions and 4 for each of the two layers' one slice; half a window.
    assert_eq!(algorithmic_ms, 10.0 * (4 + 7 + 2 * 4) as f64 + 12.5);
    let heard = stream.partial().unwrap();
    assert!(heard.tokens.len() > 3);
    // The first slice begins before the stream does, where no time is.
    for token in heard.tokens.iter().filter(|token| 0.0 < token.start_s) {
        let delay = token.delay.unwrap();
        assert_eq!(delay.algorithmic_ms, algorithmic_ms);
        assert!((0.0..100.0).contains(&delay.buffering_ms), "{delay:?}");
        assert!(0.0 < delay.compute_ms);
        // It is known when a whole number of chunks has come.
        let known_ms = 1000.0 * token.start_s + 20.0 + delay.algorithmic_ms + delay.buffering_ms;
        let chunks = known_ms / 100.0;
        assert!((chunks - chunks.round()).abs() < 1e-6, "{token:?}");
    }
}

#[test]
fn evidence_is_of_the_softmax_and_the_couplings() {
    let recognizer = recognizer(Cmvn::None);
    let options = StreamOptions { has_evidence: true, ..StreamOptions::default() };
    let heard = at_once(&mut recognizer.stream(&options).unwrap(), &tiny::sound(9, 64_000), 16_000);
    let tokens: Vec<_> = heard.iter().flat_map(|heard| &heard.tokens).collect();
    assert!(!tokens.is_empty());
    for token in tokens {
        let evidence = token.evidence.as_ref().unwrap();
        assert!((evidence.posterior - token.confidence.unwrap()).abs() < 1e-5, "{evidence:?}");
        assert!(0.0 < evidence.coupling_mass && evidence.coupling_mass < 1.0);
        assert_ne!(evidence.runner_up, token.text);
    }
}

#[test]
fn the_health_of_layers_is_of_all_recordings_in_any_order_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let utterances = utterances(dir.path(), 4);
    for cmvn in [Cmvn::Online, Cmvn::Speaker] {
        let recognizer = recognizer(cmvn);
        let health = recognizer.health(&utterances);
        assert_eq!(health.iter().map(|layer| layer.name.as_str()).collect::<Vec<_>>(), ["caps1", "caps2"]);
        let alone = recognizer.health(&utterances[..1])[1].n_slices;
        assert!(alone < health[1].n_slices);
        assert!(health.iter().all(|layer| (0.0..=1.0).contains(&layer.entropy)), "{health:?}");
        assert!(health[0].agreement.is_none() && health[1].agreement.is_some());
    }
}

#[test]
fn the_proof_finds_no_difference_in_any_cut_and_finds_one_where_there_is_one() {
    let recognizer = recognizer(Cmvn::Online);
    let n_classes = recognizer.labels().n_classes();
    let options = StreamOptions::default();
    let samples = tiny::sound(4, 24_000);
    let whole = recognizer.trace(&samples, 16_000, None, &options).unwrap();
    assert_eq!(whole.n_chunks, 1);
    for chunking in chunkings(5, 1) {
        let cut = recognizer.trace(&samples, 16_000, Some(&chunking), &options).unwrap();
        assert_eq!(compare(&cut, &whole, n_classes), None, "{chunking:?}");
        assert_eq!(cut.n_chunks == samples.len(), chunking == Chunking::Equal(1));
    }
    let mut changed = samples.clone();
    changed[12_000] += 0.03;
    let other = recognizer.trace(&changed, 16_000, None, &options).unwrap();
    assert!(matches!(compare(&other, &whole, n_classes), Some(Difference::LogProb { .. })));
    let shorter = recognizer.trace(&samples[..20_000], 16_000, None, &options).unwrap();
    assert!(matches!(compare(&shorter, &whole, n_classes), Some(Difference::Count { .. })));
    let mut renamed = whole.clone();
    renamed.segments[0].tokens[0].start_s += 0.04;
    assert!(matches!(compare(&renamed, &whole, n_classes), Some(Difference::Segments { .. })));
}

#[test]
fn words_of_a_lexicon_have_their_times_and_are_the_text() {
    let parts = tiny::parts(Cmvn::Online, Units::Phones, &["a", "b", "c", "d", "e", "sil"]);
    let recognizer = Recognizer::from_parts(parts).unwrap();
    let lexicon =
        Lexicon::parse("one a b\none b\ntwo c\nthree d e\nfour e a\nfive d\nsix e", recognizer.labels()).unwrap();
    let sources = Sources { lexicon: Some(lexicon), ..Sources::default() };
    let fusion = Some(Arc::new(Fusion::new(recognizer.labels(), sources).unwrap()));
    let decoder = DecoderConfig { fusion, ..DecoderConfig::default() };
    let options = StreamOptions { decoder: Some(decoder), ..StreamOptions::default() };
    let heard = at_once(&mut recognizer.stream(&options).unwrap(), &tiny::sound(3, 60_000), 16_000);
    let segment = &heard[0];
    assert!(!segment.words.is_empty());
    assert_eq!(segment.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "), segment.text);
    assert!(segment.words.is_sorted_by(|a, b| a.end_s <= b.start_s + 1e-9), "{:?}", segment.words);
    assert!(["one", "two", "three", "four", "five", "six"].contains(&segment.words[0].text.as_str()));
}

#[test]
fn words_of_a_model_of_words_are_its_labels() {
    let parts = tiny::parts(Cmvn::Online, Units::Words, &["yes", "no", "maybe", "later", "now"]);
    let recognizer = Recognizer::from_parts(parts).unwrap();
    let heard = at_once(&mut recognizer.stream(&StreamOptions::default()).unwrap(), &tiny::sound(3, 60_000), 16_000);
    let segment = &heard[0];
    assert_eq!(segment.words.len(), segment.tokens.len());
    assert_eq!(segment.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "), segment.text);
}
