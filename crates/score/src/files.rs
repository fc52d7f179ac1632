//! Scores two files of any known format, and finds the formats.

use std::collections::HashSet;

use crate::encoding::{Encoding, Language};
use crate::formats::{self, ReadTranscriptError, Source, TrnOptions, TrnUtterance, check_unique, id_name};
use crate::network::{Characters, Reading};
use crate::pairing::{PairError, PairOptions, SpeakerId, score_by_segment, score_by_time, score_utterances};
use crate::system::{Heading, System};

/// The format of a file; `Text` is Kaldi's `id words`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the formats")]
pub enum Format {
    Trn,
    Text,
    Stm,
    Ctm,
}

/// What is compared: words, characters without blanks, or phones, which are written like words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Unit {
    #[default]
    Word,
    Character,
    Phone,
}

/// What to do about utterances that the hypothesis lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Scores nothing.
    #[default]
    Refuse,
    /// Counts their words as deletions.
    Count,
    /// Leaves them out.
    Skip,
}

/// How files are scored.
#[derive(Clone, Copy, Default)]
pub struct FileOptions<'a> {
    /// What is compared.
    pub unit: Unit,
    /// Rewrites every line first, for instance to fold phones into fewer classes.
    pub rewrite: Option<&'a dyn Fn(&str) -> String>,
    /// What to do about missing utterances.
    pub missing: Missing,
    /// Whether capitals matter.
    pub is_case_sensitive: bool,
    /// Whether words in brackets may be left out.
    pub optional_words: bool,
    /// Whether fragments match the words they begin or end.
    pub fragments: bool,
}

/// A scored system and its problems.
pub struct ScoredFiles {
    /// The scores.
    pub system: System,
    /// Utterances the hypothesis lacks.
    pub missing: Vec<String>,
    /// Utterances of the hypothesis that the reference lacks; they are not scored.
    pub extra: Vec<String>,
    /// Other remarks.
    pub notes: Vec<String>,
}

/// Why two files could not be scored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message says what its fields are")]
pub enum ScoreFilesError {
    #[error(transparent)]
    Pair(#[from] PairError),
    #[error("`{path}` lacks {n_missing} of {n_reference} utterances, the first is `{first}`")]
    Missing { path: String, n_missing: usize, n_reference: usize, first: String },
    #[error("cannot score {hypothesis:?} against {reference:?}")]
    Formats { reference: Format, hypothesis: Format },
    #[error("`{path}` is not in a known format, or is empty")]
    UnknownFormat { path: String },
}

impl ScoreFilesError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Pair(error) => error.hint(),
            Self::Missing { .. } => {
                Some("`--mode all` counts their words as deleted, `--mode present` leaves them out".into())
            }
            Self::Formats { .. } => Some("possible are ids against ids, ctm against stm, and ctm against ctm".into()),
            Self::UnknownFormat { .. } => {
                Some("known are trn, Kaldi's text, stm and ctm; see `srf score --help`".into())
            }
        }
    }
}

impl From<ReadTranscriptError> for ScoreFilesError {
    fn from(error: ReadTranscriptError) -> Self {
        Self::Pair(error.into())
    }
}

impl Format {
    /// The format the lines of `source` have.
    pub fn detect(source: &Source) -> Option<Self> {
        let lines: Vec<&[u8]> = source.lines().map(|line| line.text).take(200).collect();
        let is_number = |field: Option<&&[u8]>| field.is_some_and(|field| formats::seconds(field).is_some());
        let fields: Vec<Vec<&[u8]>> = lines.iter().map(|line| formats::split_fields(line).take(6).collect()).collect();
        let all = |holds: &dyn Fn(&Vec<&[u8]>) -> bool| !fields.is_empty() && fields.iter().all(holds);
        if lines.iter().all(|line| line.trim_ascii_end().ends_with(b")") && line.contains(&b'(')) && !lines.is_empty() {
            Some(Self::Trn)
        } else if all(&|f| is_number(f.get(3)) && is_number(f.get(4))) {
            Some(Self::Stm)
        } else if all(&|f| f.len() >= 5 && (formats::is_mark(f[4]) || is_number(f.get(2)) && is_number(f.get(3)))) {
            Some(Self::Ctm)
        } else {
            (!lines.is_empty()).then_some(Self::Text)
        }
    }

    fn of(source: &Source) -> Result<Self, ScoreFilesError> {
        Self::detect(source).ok_or_else(|| ScoreFilesError::UnknownFormat { path: source.path.display().to_string() })
    }
}

const ENCODING: Encoding = Encoding::Utf8(Language::Any);

/// Scores `hypothesis` against `reference`, whatever their formats.
///
/// ```
/// use srf_score::files::{FileOptions, Format, KnownTest, Missing, ScoreFilesError, ScoredFiles, Unit, score};
/// use srf_score::formats::Source;
///
/// let source = |name: &str, text: &str| Source { path: name.into(), bytes: text.into() };
/// let reference = source("ref.trn", "the cat sat (ann-1)\nyes (ann-2)\n");
/// let hypothesis = source("hyp.trn", "the cat sat down (ann-1)\n");
/// assert_eq!(Format::detect(&reference), Some(Format::Trn));
///
/// let refused = score(&reference, &hypothesis, "mine", FileOptions::default());
/// assert!(matches!(refused, Err(ScoreFilesError::Missing { n_missing: 1, .. })));
/// let options = FileOptions { unit: Unit::Word, missing: Missing::Count, ..FileOptions::default() };
/// let ScoredFiles { system, missing, .. } = score(&reference, &hypothesis, "mine", options)?;
/// assert_eq!((system.counts().n_errors(), missing.len()), (2, 1));
/// if let Some(KnownTest { name, n_reference, .. }) = KnownTest::find(&system, Unit::Word) {
///     println!("{name} should have {n_reference} words");
/// }
/// # Ok::<(), ScoreFilesError>(())
/// ```
pub fn score(
    reference: &Source,
    hypothesis: &Source,
    title: &str,
    options: FileOptions<'_>,
) -> Result<ScoredFiles, ScoreFilesError> {
    let formats = (Format::of(reference)?, Format::of(hypothesis)?);
    let heading = Heading {
        title: title.to_owned(),
        reference: reference.path.display().to_string(),
        hypothesis: hypothesis.path.display().to_string(),
        ..Heading::default()
    };
    let pair_options = pair_options(options);
    match formats {
        (r @ (Format::Trn | Format::Text), h @ (Format::Trn | Format::Text)) => {
            score_by_id((reference, r), (hypothesis, h), heading, options)
        }
        (Format::Stm, Format::Ctm) => {
            let segments = formats::parse_stm(reference, ENCODING, options.is_case_sensitive)?;
            formats::check_times(reference, &segments)?;
            let notes = order_problems(&[hypothesis], options)?;
            let scores = score_by_segment(reference, hypothesis, heading, &pair_options, &mut 0)?;
            let (system, missing) = (scores.system, scores.missing);
            refuse_missing(hypothesis, &missing, system.n_utterances(), options)?;
            Ok(ScoredFiles { system, missing, extra: Vec::new(), notes })
        }
        (Format::Ctm, Format::Ctm) => {
            let notes = order_problems(&[reference, hypothesis], options)?;
            let system = score_by_time(reference, hypothesis, heading, &pair_options, &mut 0)?.system;
            Ok(ScoredFiles { system, missing: Vec::new(), extra: Vec::new(), notes })
        }
        (reference, hypothesis) => Err(ScoreFilesError::Formats { reference, hypothesis }),
    }
}

/// Words out of order are scored as they are, but reported.
fn order_problems(sources: &[&Source], options: FileOptions<'_>) -> Result<Vec<String>, ScoreFilesError> {
    let mut notes = Vec::new();
    for source in sources {
        let words = formats::parse_ctm(source, ENCODING, options.is_case_sensitive)?;
        notes.extend(formats::check_order(source, &words).err().map(|error| error.to_string()));
    }
    Ok(notes)
}

fn pair_options(options: FileOptions<'_>) -> PairOptions {
    let characters = (options.unit == Unit::Character).then(Characters::default);
    let FileOptions { fragments, optional_words, .. } = options;
    let reading = Reading { fragments, optional_words, characters, encoding: ENCODING };
    PairOptions { reading, is_case_sensitive: options.is_case_sensitive, ..PairOptions::default() }
}

fn refuse_missing(
    hypothesis: &Source,
    missing: &[String],
    n_reference: usize,
    options: FileOptions<'_>,
) -> Result<(), ScoreFilesError> {
    match missing.first() {
        Some(first) if options.missing == Missing::Refuse => Err(ScoreFilesError::Missing {
            path: hypothesis.path.display().to_string(),
            n_missing: missing.len(),
            n_reference,
            first: first.clone(),
        }),
        _ => Ok(()),
    }
}

fn score_by_id(
    (reference, r_format): (&Source, Format),
    (hypothesis, h_format): (&Source, Format),
    heading: Heading,
    options: FileOptions<'_>,
) -> Result<ScoredFiles, ScoreFilesError> {
    let references = read_utterances(reference, r_format, options)?;
    let mut hypotheses = read_utterances(hypothesis, h_format, options)?;
    check_unique(reference, &references)?;
    check_unique(hypothesis, &hypotheses)?;
    let ids = |utterances: &[TrnUtterance]| utterances.iter().map(|u| u.id.clone()).collect::<HashSet<_>>();
    let (r_ids, h_ids) = (ids(&references), ids(&hypotheses));
    let lacking: Vec<&TrnUtterance> = references.iter().filter(|r| !h_ids.contains(&r.id)).collect();
    let missing: Vec<String> = lacking.iter().map(|r| id_name(&r.id).into_owned()).collect();
    refuse_missing(hypothesis, &missing, references.len(), options)?;
    let is_extra = |h: &TrnUtterance| !r_ids.contains(&h.id);
    let extra = hypotheses.iter().filter(|h| is_extra(h)).map(|h| id_name(&h.id).into_owned()).collect();
    hypotheses.retain(|h| !is_extra(h));
    if options.missing == Missing::Count {
        hypotheses.extend(lacking.iter().map(|r| TrnUtterance { text: [].into(), ..(*r).clone() }));
    }
    let has_separator = |h: &TrnUtterance| h.id.iter().any(|b| matches!(b, b'-' | b'_'));
    let is_split = !hypotheses.is_empty() && hypotheses.iter().all(has_separator);
    let speaker_id = if is_split { SpeakerId::BeforeSeparator } else { SpeakerId::FirstThree };
    let options = PairOptions { speaker_id, ..pair_options(options) };
    let system = score_utterances((reference, &references), (hypothesis, &hypotheses), heading, &options, &mut 0)?;
    Ok(ScoredFiles { system, missing, extra, notes: Vec::new() })
}

fn read_utterances(
    source: &Source,
    format: Format,
    options: FileOptions<'_>,
) -> Result<Vec<TrnUtterance>, ReadTranscriptError> {
    let is_case_sensitive = options.is_case_sensitive;
    let mut utterances = if format == Format::Trn {
        formats::parse_trn(source, TrnOptions { encoding: ENCODING, is_case_sensitive, drops_unfinished_line: false })?
    } else {
        read_text(source, is_case_sensitive)?
    };
    if let Some(rewrite) = options.rewrite {
        for utterance in &mut utterances {
            utterance.text = rewrite(&String::from_utf8_lossy(&utterance.text)).into_bytes().into();
        }
    }
    Ok(utterances)
}

/// Kaldi's `id words`.
fn read_text(source: &Source, is_case_sensitive: bool) -> Result<Vec<TrnUtterance>, ReadTranscriptError> {
    source.check(ENCODING)?;
    let fold = |text: &[u8]| if is_case_sensitive { text.to_vec() } else { ENCODING.lower(text) };
    let utterances = source.lines().map(|line| {
        let text = line.text.trim_ascii();
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let id = [b"(", &*fold(&text[..end]), b")"].concat().into();
        TrnUtterance { id, text: fold(&text[end..]).into(), line: line.number }
    });
    Ok(utterances.collect())
}

/// A test whose number of reference tokens is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownTest {
    /// What it is called.
    pub name: &'static str,
    /// How many utterances it has.
    pub n_utterances: usize,
    /// How many words or phones its reference has.
    pub n_reference: usize,
    unit: Unit,
}

const KNOWN: [KnownTest; 4] = [
    KnownTest { name: "TIMIT development, 39 phones", n_utterances: 400, n_reference: 15_057, unit: Unit::Phone },
    KnownTest { name: "TIMIT core test, 39 phones", n_utterances: 192, n_reference: 7_215, unit: Unit::Phone },
    KnownTest { name: "WSJ dev93", n_utterances: 503, n_reference: 8_234, unit: Unit::Word },
    KnownTest { name: "WSJ eval92", n_utterances: 333, n_reference: 5_643, unit: Unit::Word },
];

impl KnownTest {
    /// The test that has as many utterances as `system`, where one is known.
    pub fn find(system: &System, unit: Unit) -> Option<Self> {
        KNOWN.into_iter().find(|test| test.unit == unit && test.n_utterances == system.n_utterances())
    }
}
