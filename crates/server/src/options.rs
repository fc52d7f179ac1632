//! What a client may ask for, the same in every dialect.

use std::collections::HashMap;
use std::sync::Arc;

use srf::endpoint::EndpointRules;
use srf::{Recognizer, Stream, StreamOptions};
use srf_text::fusion::{DEFAULT_HOTWORD_SCORE, Fusion, Hotword, Phrases, Sources};

use crate::http::ApiError;

/// Longer lists of phrases or hotwords are refused: each request builds its own search tree.
const MAX_LIST: usize = 10_000;

/// The options of one request or stream.
#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    /// A model by name; `None` is the default one.
    pub(crate) model: Option<String>,
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
    /// Takes the options that have the same name in every dialect from a query string or form:
    /// `model`, `n_best`, `hotwords` and `phrases` (separated by commas or lines), `endpoint_silence` (seconds),
    /// `endpoint` (`off`), `evidence`.
    pub(crate) fn set_common(&mut self, fields: &HashMap<String, String>) -> Result<(), ApiError> {
        if let Some(model) = fields.get("model") {
            self.model = Some(model.clone());
        }
        if let Some(n_best) = fields.get("n_best") {
            self.n_best = parse("n_best", n_best, "a number from 1 to 100")?;
        }
        self.hotwords.extend(list(fields.get("hotwords")));
        self.phrases.extend(list(fields.get("phrases")));
        match fields.get("endpoint").map(String::as_str) {
            None | Some("on" | "true") => {}
            Some("off" | "false") => self.endpoint = None,
            Some(found) => return Err(ApiError::bad_field("endpoint", found, "`on` or `off`")),
        }
        if let Some(silence) = fields.get("endpoint_silence") {
            let expected = "seconds from 0.1 to 60";
            self.set_trailing_silence(parse("endpoint_silence", silence, expected)?)
                .map_err(|()| ApiError::bad_field("endpoint_silence", silence, expected))?;
        }
        if let Some(evidence) = fields.get("evidence") {
            self.evidence = parse("evidence", evidence, "`true` or `false`")?;
        }
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
        if let Some(fusion) = self.fusion(recognizer)? {
            options.decoder.fusion = Some(Arc::new(fusion));
        }
        recognizer.stream(&options).map_err(|error| ApiError::bad_request("invalid_options", &error.to_string()))
    }

    fn fusion(&self, recognizer: &Recognizer) -> Result<Option<Fusion>, ApiError> {
        if self.hotwords.is_empty() && self.phrases.is_empty() {
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
        let sources = Sources { hotwords, phrases, ..Sources::default() };
        let fusion = Fusion::new(recognizer.labels(), sources);
        fusion.map(Some).map_err(|error| wrong("phrases", error.to_string()))
    }
}

fn parse<T: std::str::FromStr>(name: &str, value: &str, expected: &str) -> Result<T, ApiError> {
    value.parse().map_err(|_| ApiError::bad_field(name, value, expected))
}

fn list(value: Option<&String>) -> impl Iterator<Item = String> + '_ {
    value
        .into_iter()
        .flat_map(|text| text.split([',', '\n']))
        .map(str::trim)
        .filter(|s| !s.is_empty())
        .map(str::to_owned)
}
