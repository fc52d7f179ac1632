//! What a client may ask for, the same in every dialect.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::Query;
use axum::http::Uri;
use serde_json::Value;
use srf::endpoint::{EndpointRules, Rule};
use srf::{DecoderConfig, Recognizer, Stream, StreamOptions, Units};
use srf_text::fusion::{DEFAULT_HOTWORD_SCORE, Fusion, FusionError, Hotword, Phrases, Sources};

use crate::http::ApiError;

/// Options by name, as a query, a form or a JSON object gives them; several values of a name are lines.
pub(crate) type Fields = HashMap<String, String>;

/// Longer lists of phrases or hotwords are refused: each request builds its own search tree.
const MAX_LIST: usize = 10_000;

/// What the text is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Output {
    /// Words if the model has some, or else its labels.
    #[default]
    Usual,
    Words,
    /// The labels of the model, even if it has words.
    Phones,
}

/// The options of one request or stream.
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    /// A model by name; `None` is the default one.
    pub(crate) model: Option<String>,
    /// Words or phones.
    pub(crate) output: Output,
    /// Alternatives per utterance, at least 1.
    pub(crate) n_best: usize,
    /// Phrases to favour, each with an optional score after a colon.
    pub(crate) hotwords: Vec<String>,
    /// The only phrases that can be recognised; empty allows everything.
    pub(crate) phrases: Vec<String>,
    /// When an utterance ends by itself; `None` means never.
    pub(crate) endpoint: Option<EndpointRules>,
    /// Whether results of the utterance that goes on are wanted.
    pub(crate) partials: bool,
    /// Whether tokens carry what the routing decided.
    pub(crate) evidence: bool,
    /// Whether softmax and couplings of every slice are wanted.
    pub(crate) slices: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            model: None,
            output: Output::default(),
            n_best: 1,
            hotwords: Vec::new(),
            phrases: Vec::new(),
            endpoint: Some(EndpointRules::default()),
            partials: false,
            evidence: false,
            slices: false,
        }
    }
}

impl SessionOptions {
    /// Takes the options that have the same name in every dialect; docs/SERVER.md lists them.
    pub(crate) fn set_common(&mut self, fields: &Fields) -> Result<(), ApiError> {
        if let Some(model) = fields.get("model") {
            self.model = Some(model.clone());
        }
        match fields.get("output").map(String::as_str) {
            None | Some("") => {}
            Some("words") => self.output = Output::Words,
            Some("phones") => self.output = Output::Phones,
            Some(found) => return Err(ApiError::bad_field("output", found, "`words` or `phones`")),
        }
        if let Some(n_best) = fields.get("n_best") {
            self.n_best = parse("n_best", n_best, "a number from 1 to 100")?;
        }
        self.hotwords.extend(list(fields.get("hotwords")));
        self.phrases.extend(list(fields.get("phrases")));
        set_flag(fields, "partials", &mut self.partials)?;
        set_flag(fields, "evidence", &mut self.evidence)?;
        self.set_endpoint(fields)
    }

    fn set_endpoint(&mut self, fields: &Fields) -> Result<(), ApiError> {
        let mut rules = self.endpoint.unwrap_or_default();
        if let Some(silence) = fields.get("endpoint_silence") {
            let expected = "seconds from 0.1 to 60";
            self.set_trailing_silence(parse("endpoint_silence", silence, expected)?)
                .map_err(|()| ApiError::bad_field("endpoint_silence", silence, expected))?;
            rules = self.endpoint.unwrap_or_default();
        }
        set_rule(fields, 1, &mut rules.rule1)?;
        set_rule(fields, 2, &mut rules.rule2)?;
        set_rule(fields, 3, &mut rules.rule3)?;
        set_flag(fields, "end_of_sentence", &mut rules.end_of_sentence)?;
        let mut is_on = self.endpoint.is_some();
        match fields.get("endpoint").map(String::as_str) {
            Some("on") => is_on = true,
            Some("off") => is_on = false,
            _ => set_flag(fields, "endpoint", &mut is_on)?,
        }
        self.endpoint = is_on.then_some(rules);
        Ok(())
    }

    /// Ends utterances after this much silence once something was said.
    pub(crate) fn set_trailing_silence(&mut self, seconds: f64) -> Result<(), ()> {
        if !(0.1..=60.0).contains(&seconds) {
            return Err(());
        }
        let mut rules = self.endpoint.unwrap_or_default();
        rules.rule2.min_trailing_silence_s = seconds;
        self.endpoint = Some(rules);
        Ok(())
    }

    /// A stream of `recognizer` with these options.
    pub(crate) fn build(&self, recognizer: &Recognizer) -> Result<Stream, ApiError> {
        if !(1..=100).contains(&self.n_best) {
            return Err(ApiError::bad_field("n_best", &self.n_best.to_string(), "a number from 1 to 100"));
        }
        for (name, list) in [("hotwords", &self.hotwords), ("phrases", &self.phrases)] {
            if list.len() > MAX_LIST {
                return Err(ApiError::bad_field(name, &format!("{} entries", list.len()), "at most 10000"));
            }
        }
        let mut options = StreamOptions {
            n_best: self.n_best,
            endpoint: self.endpoint,
            has_evidence: self.evidence,
            keeps_slices: self.slices,
            ..StreamOptions::default()
        };
        options.decoder = self.decoder(recognizer)?;
        recognizer.stream(&options).map_err(|error| ApiError::bad_request("invalid_options", &error.to_string()))
    }

    /// How the stream decodes; `None` is the usual way of the model.
    fn decoder(&self, recognizer: &Recognizer) -> Result<Option<DecoderConfig>, ApiError> {
        let has_words = recognizer.words().is_some() || recognizer.labels().units() != Units::Phones;
        if self.output == Output::Words && !has_words {
            return Err(ApiError::bad_field("output", "words", "`phones`: this model has no words"));
        }
        let is_usual = self.output != Output::Phones || recognizer.words().is_none();
        if is_usual && self.hotwords.is_empty() && self.phrases.is_empty() {
            return Ok(None);
        }
        let wrong = |name: &str, problem: String| ApiError::bad_request(name, &format!("`{name}`: {problem}"));
        let hotwords = Hotword::parse_list(&self.hotwords.join("\n"), DEFAULT_HOTWORD_SCORE)
            .map_err(|error| wrong("hotwords", error.to_string()))?;
        let phrases = if self.phrases.is_empty() {
            None
        } else {
            let parsed = Phrases::parse(&self.phrases.join("\n"), true);
            Some(parsed.map_err(|error| wrong("phrases", error.to_string()))?)
        };
        let decoder = if is_usual {
            recognizer.decoder_with(&hotwords, phrases.as_ref())
        } else {
            of_labels(recognizer, hotwords, phrases)
        };
        decoder.map(Some).map_err(|error| wrong("phrases", error.to_string()))
    }
}

/// Decoding to the labels of a model that has words, as `srf transcribe --phones` does it.
fn of_labels(
    recognizer: &Recognizer,
    hotwords: Vec<Hotword>,
    phrases: Option<Phrases>,
) -> Result<DecoderConfig, FusionError> {
    let search = DecoderConfig::default().search;
    if hotwords.is_empty() && phrases.is_none() {
        return Ok(DecoderConfig { search, fusion: None });
    }
    let fusion = Fusion::new(recognizer.labels(), Sources { hotwords, phrases, ..Sources::default() })?;
    Ok(DecoderConfig { search, fusion: Some(Arc::new(fusion)) })
}

/// The options in the query of a request.
pub(crate) fn query(uri: &Uri) -> Result<Fields, ApiError> {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|error| ApiError::bad_message(format!("not a query: {error}")))?;
    let mut fields = Fields::new();
    for (name, value) in pairs {
        add(&mut fields, name, value);
    }
    Ok(fields)
}

/// Another value of a name.
pub(crate) fn add(fields: &mut Fields, name: String, value: String) {
    let all = fields.entry(name).or_default();
    if !all.is_empty() {
        all.push('\n');
    }
    all.push_str(&value);
}

/// The options in a JSON object: texts, numbers, truth values, and lists of them.
pub(crate) fn object(value: &Value) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Array(values) => {
                values.iter().filter_map(scalar).for_each(|value| add(&mut fields, name.clone(), value));
            }
            value => scalar(value).into_iter().for_each(|value| add(&mut fields, name.clone(), value)),
        }
    }
    fields
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn parse<T: std::str::FromStr>(name: &str, value: &str, expected: &str) -> Result<T, ApiError> {
    value.parse().map_err(|_| ApiError::bad_field(name, value, expected))
}

fn set_flag(fields: &Fields, name: &str, flag: &mut bool) -> Result<(), ApiError> {
    // Python's clients write `True`.
    match fields.get(name).map(|value| value.to_ascii_lowercase()).as_deref() {
        None | Some("") => {}
        Some("true" | "1") => *flag = true,
        Some("false" | "0") => *flag = false,
        Some(found) => return Err(ApiError::bad_field(name, found, "`true` or `false`")),
    }
    Ok(())
}

/// One rule by the names of Kaldi and sherpa-onnx, which `srf transcribe` has too.
fn set_rule(fields: &Fields, number: u32, rule: &mut Rule) -> Result<(), ApiError> {
    set_flag(fields, &format!("rule{number}_must_contain_nonsilence"), &mut rule.must_contain_nonsilence)?;
    for (name, seconds) in [
        (format!("rule{number}_min_trailing_silence"), &mut rule.min_trailing_silence_s),
        (format!("rule{number}_min_utterance_length"), &mut rule.min_utterance_length_s),
    ] {
        if let Some(found) = fields.get(&name) {
            let expected = "seconds from 0 to 3600";
            let value: f64 = parse(&name, found, expected)?;
            if !(0.0..=3600.0).contains(&value) {
                return Err(ApiError::bad_field(&name, found, expected));
            }
            *seconds = value;
        }
    }
    Ok(())
}

/// Values separated by commas or lines.
pub(crate) fn list(value: Option<&String>) -> impl Iterator<Item = String> + '_ {
    value
        .into_iter()
        .flat_map(|text| text.split([',', '\n']))
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
}
