//! When utterances end, as typed: flags with the names that are usual in the field in, rules out.

use anyhow::ensure;
use srf::endpoint::{EndpointRules, Rule};

/// When an utterance ends by itself.
#[derive(clap::Args)]
#[command(next_help_heading = "Ends of utterances")]
pub(crate) struct EndpointArgs {
    /// A recording is one utterance, however long its pauses are
    #[arg(long)]
    no_endpoint: bool,

    /// The end-of-sentence label does not end an utterance
    #[arg(long)]
    no_end_of_sentence: bool,

    /// Silence that ends an utterance, even if nothing was said [default: 2.4 s]
    #[arg(long, value_name = "S")]
    rule1_min_trailing_silence: Option<f64>,
    /// Whether rule 1 needs something to have been said [default: false]
    #[arg(long, value_name = "BOOL")]
    rule1_must_contain_nonsilence: Option<bool>,
    /// How long an utterance must be for rule 1 [default: 0 s]
    #[arg(long, value_name = "S")]
    rule1_min_utterance_length: Option<f64>,

    /// Silence that ends an utterance in which something was said [default: 1.2 s]
    #[arg(long, value_name = "S")]
    rule2_min_trailing_silence: Option<f64>,
    /// Whether rule 2 needs something to have been said [default: true]
    #[arg(long, value_name = "BOOL")]
    rule2_must_contain_nonsilence: Option<bool>,
    /// How long an utterance must be for rule 2 [default: 0 s]
    #[arg(long, value_name = "S")]
    rule2_min_utterance_length: Option<f64>,

    /// Silence that ends a long utterance [default: 0 s, any]
    #[arg(long, value_name = "S")]
    rule3_min_trailing_silence: Option<f64>,
    /// Whether rule 3 needs something to have been said [default: false]
    #[arg(long, value_name = "BOOL")]
    rule3_must_contain_nonsilence: Option<bool>,
    /// How long an utterance is long [default: 20 s]
    #[arg(long, value_name = "S")]
    rule3_min_utterance_length: Option<f64>,
}

impl EndpointArgs {
    pub(crate) fn resolve(self) -> anyhow::Result<Option<EndpointRules>> {
        let usual = EndpointRules::default();
        let rule1 = rule(
            1,
            usual.rule1,
            self.rule1_must_contain_nonsilence,
            self.rule1_min_trailing_silence,
            self.rule1_min_utterance_length,
        )?;
        let rule2 = rule(
            2,
            usual.rule2,
            self.rule2_must_contain_nonsilence,
            self.rule2_min_trailing_silence,
            self.rule2_min_utterance_length,
        )?;
        let rule3 = rule(
            3,
            usual.rule3,
            self.rule3_must_contain_nonsilence,
            self.rule3_min_trailing_silence,
            self.rule3_min_utterance_length,
        )?;
        let rules = EndpointRules { rule1, rule2, rule3, end_of_sentence: !self.no_end_of_sentence };
        Ok((!self.no_endpoint).then_some(rules))
    }
}

/// Rule `number` with what was typed in place of what is usual.
fn rule(
    number: u32,
    usual: Rule,
    must: Option<bool>,
    silence: Option<f64>,
    length: Option<f64>,
) -> anyhow::Result<Rule> {
    for (name, seconds) in [("trailing-silence", silence), ("utterance-length", length)] {
        let seconds = seconds.unwrap_or(0.0);
        ensure!((0.0..=1e9).contains(&seconds), "--rule{number}-min-{name} is {seconds}, expected seconds, 0 or more");
    }
    Ok(Rule {
        must_contain_nonsilence: must.unwrap_or(usual.must_contain_nonsilence),
        min_trailing_silence_s: silence.unwrap_or(usual.min_trailing_silence_s),
        min_utterance_length_s: length.unwrap_or(usual.min_utterance_length_s),
    })
}
