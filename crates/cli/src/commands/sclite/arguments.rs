//! Parses the arguments of NIST's sclite.

use anyhow::{Context as _, bail, ensure};
use srf_score::pairing::{PairOptions, SpeakerId};
use srf_score::{Characters, Cost, Encoding, Language};

/// What to score and which reports to write.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) reference: String,
    pub(super) hypotheses: Vec<Hypothesis>,
    pub(super) formats: Formats,
    pub(super) options: PairOptions,
    pub(super) reports: Vec<Report>,
    /// Reports go to stdout instead of to files.
    pub(super) to_stdout: bool,
    /// Alignments for another program go to stdout at the end.
    pub(super) pipes: bool,
    pub(super) directory: Option<String>,
    pub(super) name: Option<String>,
    pub(super) line_width: usize,
    pub(super) feedback: i32,
}

/// A file to score, and what it is called in reports.
#[derive(Debug)]
pub(super) struct Hypothesis {
    pub(super) path: String,
    pub(super) title: String,
    format: String,
}

/// The formats of both sides; sclite knows three pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Formats {
    #[default]
    TrnTrn,
    StmCtm,
    CtmCtm,
}

/// A report, in the order they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Report {
    Percentages,
    Counts,
    Sentences,
    Speakers,
    Details,
    Labelled,
    Alignments,
    FullAlignments,
    Sgml,
    LineSgml,
}

/// The arguments as typed, before they are checked.
#[derive(Default)]
struct Typed {
    plan: Plan,
    reference: Option<String>,
    reference_format: Option<String>,
    speaker_id: Option<String>,
    has_reports: bool,
    has_feedback: bool,
}

/// The words after a flag, up to the next flag.
struct Words<'a> {
    rest: std::iter::Peekable<std::slice::Iter<'a, String>>,
}

impl Words<'_> {
    fn optional(&mut self) -> Option<String> {
        self.rest.next_if(|word| !word.starts_with('-')).cloned()
    }

    fn required(&mut self, flag: &str, what: &str) -> anyhow::Result<String> {
        self.optional().with_context(|| format!("`{flag}` needs {what} after it"))
    }

    /// Also a word that begins with `-`.
    fn any(&mut self, flag: &str, what: &str) -> anyhow::Result<String> {
        self.rest.next().cloned().with_context(|| format!("`{flag}` needs {what} after it"))
    }
}

/// Reads and checks all arguments.
pub(super) fn parse(arguments: &[String]) -> anyhow::Result<Plan> {
    let mut typed = Typed { plan: Plan { line_width: 1000, feedback: 1, ..Plan::default() }, ..Typed::default() };
    let mut words = Words { rest: arguments.iter().peekable() };
    while let Some(flag) = words.rest.next() {
        typed.take(flag, &mut words)?;
    }
    typed.check()
}

impl Typed {
    fn take(&mut self, flag: &str, words: &mut Words<'_>) -> anyhow::Result<()> {
        let plan = &mut self.plan;
        match flag {
            "-r" => {
                self.reference = Some(words.required(flag, "a reference file")?);
                self.reference_format = words.optional();
            }
            "-h" => {
                let path = words.required(flag, "a hypothesis file")?;
                let format = words.optional().unwrap_or_else(|| "trn".to_owned());
                let title = words.optional().unwrap_or_else(|| path.clone());
                plan.hypotheses.push(Hypothesis { path, title, format });
            }
            "-i" => self.speaker_id = Some(words.any(flag, "an id type")?),
            "-l" => {
                let width = words.any(flag, "a line width")?;
                plan.line_width = width.parse().with_context(|| format!("`-l {width}` is not a number"))?;
            }
            "-f" => {
                let level = words.any(flag, "a level")?;
                plan.feedback = level.parse().with_context(|| format!("`-f {level}` is not a number"))?;
                self.has_feedback = true;
            }
            "-o" => self.take_reports(words)?,
            "-O" => plan.directory = Some(words.any(flag, "a directory")?),
            "-n" => plan.name = Some(words.any(flag, "a name")?),
            "-s" => plan.options.is_case_sensitive = true,
            "-F" => plan.options.reading.fragments = true,
            "-D" => plan.options.reading.optional_words = true,
            "-T" => plan.options.cost = Cost::Times,
            "-m" => take_reductions(&mut plan.options, words)?,
            "-c" => plan.options.reading.characters = Some(take_characters(words)?),
            "-e" => plan.options.reading.encoding = take_encoding(words)?,
            "-p" => {
                plan.pipes = true;
                self.has_reports = true;
            }
            _ => return refuse(flag),
        }
        Ok(())
    }

    /// A report named twice is switched off again.
    fn take_reports(&mut self, words: &mut Words<'_>) -> anyhow::Result<()> {
        self.has_reports = true;
        while let Some(name) = words.optional() {
            let named: &[Report] = match name.as_str() {
                "sum" => &[Report::Percentages],
                "rsum" => &[Report::Counts],
                "pralign" | "pra" => &[Report::Alignments],
                "prf" => &[Report::FullAlignments],
                "lur" => &[Report::Labelled],
                "sgml" => &[Report::Sgml],
                "nl.sgml" => &[Report::LineSgml],
                "snt" => &[Report::Sentences],
                "spk" => &[Report::Speakers],
                "dtl" => &[Report::Details],
                "all" => &[Report::Percentages, Report::Counts, Report::Alignments],
                "stdout" => {
                    self.plan.to_stdout = !self.plan.to_stdout;
                    continue;
                }
                "none" => {
                    self.plan.reports.clear();
                    self.plan.to_stdout = false;
                    continue;
                }
                "wws" => bail!("report `wws` is not supported, as there are no word weights"),
                _ => bail!("there is no report `{name}`"),
            };
            for report in named {
                match self.plan.reports.iter().position(|r| r == report) {
                    Some(at) => drop(self.plan.reports.remove(at)),
                    None => self.plan.reports.push(*report),
                }
            }
        }
        Ok(())
    }

    fn check(self) -> anyhow::Result<Plan> {
        let Self { mut plan, reference, reference_format, speaker_id, has_reports, has_feedback } = self;
        plan.reference = reference.context("no reference, give one with `-r FILE [trn|stm|ctm]`")?;
        ensure!(!plan.hypotheses.is_empty(), "no hypothesis, give one with `-h FILE [trn|ctm [TITLE]]`");
        plan.formats = formats(reference_format.as_deref().unwrap_or("trn"), &plan.hypotheses)?;
        ensure!(
            speaker_id.is_some() || plan.formats != Formats::TrnTrn,
            "transcripts need `-i wsj`, `-i spu_id`, `-i rm`, `-i swb` or `-i sp`: which part of an id names the speaker"
        );
        if let Some(id) = speaker_id {
            plan.options.speaker_id = parse_speaker_id(&id)?;
        }
        let options = &plan.options;
        let reduces = options.reduces_reference || options.reduces_hypothesis;
        ensure!(options.cost != Cost::Times || plan.formats == Formats::CtmCtm, "`-T` needs two files of format ctm");
        ensure!(!reduces || plan.formats == Formats::StmCtm, "`-m` needs a reference of format stm");
        ensure!(!(plan.pipes && plan.to_stdout), "`-p` and `-o stdout` both write to stdout");
        if plan.reports.is_empty() && !has_reports {
            plan.reports.push(Report::Percentages);
            plan.to_stdout = true;
        } else if plan.pipes || (plan.to_stdout && !has_feedback) {
            plan.feedback = 0;
        }
        plan.reports.sort();
        Ok(plan)
    }
}

fn formats(reference: &str, hypotheses: &[Hypothesis]) -> anyhow::Result<Formats> {
    let mut found = None;
    for hypothesis in hypotheses {
        let formats = match (reference, hypothesis.format.as_str()) {
            ("trn", "trn") => Formats::TrnTrn,
            ("stm", "ctm") => Formats::StmCtm,
            ("ctm", "ctm") => Formats::CtmCtm,
            (reference, hypothesis) => {
                bail!("cannot score `{hypothesis}` against `{reference}`, only trn/trn, stm/ctm and ctm/ctm")
            }
        };
        found = Some(formats);
    }
    found.context("no hypothesis was given")
}

fn parse_speaker_id(id: &str) -> anyhow::Result<SpeakerId> {
    Ok(match id {
        "wsj" => SpeakerId::FirstThree,
        "rm" | "swb" | "spu_id" => SpeakerId::BeforeSeparator,
        "sp" => SpeakerId::All,
        _ => bail!("there is no id type `{id}`, only wsj, spu_id, rm, swb and sp"),
    })
}

fn take_reductions(options: &mut PairOptions, words: &mut Words<'_>) -> anyhow::Result<()> {
    (options.reduces_reference, options.reduces_hypothesis) = (false, false);
    while let Some(side) = words.optional() {
        match side.as_str() {
            "ref" => options.reduces_reference = true,
            "hyp" => options.reduces_hypothesis = true,
            _ => bail!("`-m {side}` is unknown, only `ref` and `hyp` are"),
        }
    }
    options.reduces_reference |= !options.reduces_hypothesis;
    Ok(())
}

fn take_characters(words: &mut Words<'_>) -> anyhow::Result<Characters> {
    let mut characters = Characters::default();
    while let Some(word) = words.optional() {
        match word.as_str() {
            "NOASCII" => characters.keep_ascii = true,
            "DH" => characters.drop_hyphens = true,
            _ => bail!("`-c {word}` is unknown, only `NOASCII` and `DH` are"),
        }
    }
    Ok(characters)
}

fn take_encoding(words: &mut Words<'_>) -> anyhow::Result<Encoding> {
    let name = words.required("-e", "an encoding")?;
    let language = words.optional();
    let language = match &language {
        Some(name) => Language::from_name(name).with_context(|| format!("`{name}` is no language of sclite's"))?,
        None => Language::Generic,
    };
    match name.to_ascii_lowercase().as_str() {
        "utf-8" => Ok(Encoding::Utf8(language)),
        "ascii" => Ok(Encoding::Ascii),
        "ext_ascii" => Ok(Encoding::Latin1),
        "gb" | "euc" => bail!("encoding `{name}` is not supported: convert the files to UTF-8 and use `-e utf-8`"),
        _ => bail!("there is no encoding `{name}`, only utf-8, ascii and ext_ascii"),
    }
}

fn refuse(flag: &str) -> anyhow::Result<()> {
    match flag {
        "-d" => bail!("`-d` (alignment by diff) is not supported: without it words are aligned at least cost"),
        "-S" => bail!("`-S` (guessing where words begin) is not supported: `-c` compares characters instead"),
        "-L" | "-w" => bail!("`{flag}` (weights of words) is not supported"),
        "-C" => bail!("`-C` (curves of confidences) is not supported"),
        "-P" => bail!("`-P` (alignments from a pipe) is not supported: give the files with `-r` and `-h`"),
        _ => bail!("there is no argument `{flag}`; `srf help sclite` lists them"),
    }
}
