//! `srf sclite`: takes the arguments of NIST's sclite and writes its files, byte for byte.

mod arguments;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

use anyhow::Context as _;
use srf_score::formats::Source;
use srf_score::pairing::{score_by_id, score_by_segment, score_by_time};
use srf_score::report::Sheet;
use srf_score::report::alignments::{self, Layout, Separators};
use srf_score::report::summaries::{self, Confidences, Numbers};
use srf_score::{Heading, System};

use self::arguments::{Formats, Hypothesis, Plan, Report};
use crate::Exit;
use crate::printer::Printer;

/// Score transcripts with the arguments and the files of NIST's sclite
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "\
Supported: -r FILE [trn|stm|ctm]  -h FILE [trn|ctm [TITLE]]  -i wsj|spu_id|rm|swb|sp
           -o [sum rsum pralign all prf lur snt spk dtl sgml nl.sgml stdout none]
           -O DIR  -n NAME  -f LEVEL  -l WIDTH  -s  -F  -D  -T  -p
           -c [NOASCII DH]  -m [ref hyp]  -e utf-8|ascii|ext_ascii [LANGUAGE]

Examples:
  srf sclite -r test.ref -h test.hyp -i spu_id -o all
  srf sclite -r test.stm stm -h test.ctm ctm -o sum stdout
  srf sclite -r ref.ctm ctm -h hyp.ctm ctm -T -o all prf -O reports"
)]
pub(crate) struct Args {
    /// Print help; `-h` names the hypothesis, as in sclite
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,

    /// Arguments as sclite takes them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { help: _, arguments } = args;
    let plan = arguments::parse(&arguments)?;
    let reference = Source::load(Path::new(&plan.reference))?;
    let mut runner = Runner { plan: &plan, out, sheet: Sheet::default(), sequence: 0 };
    runner.print_progress("sclite: 2.10 TK Version 1.3\n")?;
    let mut systems = Vec::new();
    for hypothesis in &plan.hypotheses {
        let system = runner.score(&reference, hypothesis)?;
        runner.write_reports(&system, hypothesis)?;
        systems.push(system);
    }
    if plan.pipes {
        for system in &systems {
            runner.write_stdout(|out| Ok(alignments::write_sgml(out, system, Separators::PARTS)?))?;
        }
    }
    runner.print_progress("\nSuccessful Completion\n")?;
    Ok(Exit::Done)
}

struct Runner<'a> {
    plan: &'a Plan,
    out: &'a Printer,
    sheet: Sheet,
    sequence: usize,
}

impl Runner<'_> {
    /// What sclite prints on stdout while it works.
    fn print_progress(&self, text: &str) -> anyhow::Result<()> {
        if self.plan.feedback >= 1 {
            self.out.bytes(text.as_bytes())?;
        }
        Ok(())
    }

    fn score(&mut self, reference: &Source, hypothesis: &Hypothesis) -> anyhow::Result<System> {
        let plan = self.plan;
        self.print_progress(&format!(
            "Begin alignment of Ref File: '{}' and Hyp File: '{}'\n",
            plan.reference, hypothesis.path
        ))?;
        let source = Source::load(Path::new(&hypothesis.path))?;
        let heading = Heading {
            title: hypothesis.title.clone(),
            reference: plan.reference.clone(),
            hypothesis: hypothesis.path.clone(),
            created: date(SystemTime::now()),
            fragments: plan.options.reading.fragments,
            optional_words: plan.options.reading.optional_words,
        };
        match plan.formats {
            Formats::TrnTrn => self.score_by_id(reference, &source, heading),
            Formats::StmCtm => self.score_by_segment(reference, &source, heading),
            Formats::CtmCtm => self.score_by_time(reference, &source, heading),
        }
    }

    fn score_by_id(&mut self, reference: &Source, source: &Source, heading: Heading) -> anyhow::Result<System> {
        let system = score_by_id(reference, source, heading, &self.plan.options, &mut self.sequence)?;
        self.print_progress(&utterance_progress(&system))?;
        Ok(system)
    }

    fn score_by_segment(&mut self, reference: &Source, source: &Source, heading: Heading) -> anyhow::Result<System> {
        let scores = score_by_segment(reference, source, heading, &self.plan.options, &mut self.sequence)?;
        for note in &scores.notes {
            self.out.note(note);
        }
        for channel in &scores.channels {
            self.print_progress(&format!("    Performing alignments for file '{}'.\n", channel.file))?;
            for segment in &channel.segments {
                self.print_progress(&segment.progress)?;
                self.out.bytes(segment.forced.as_bytes())?;
            }
            self.print_progress("\n")?;
        }
        Ok(scores.system)
    }

    fn score_by_time(&mut self, reference: &Source, source: &Source, heading: Heading) -> anyhow::Result<System> {
        let options = &self.plan.options;
        let scores = score_by_time(reference, source, heading, options, &mut self.sequence)?;
        let kind = if options.cost == srf_score::Cost::Times { "Time-mediated" } else { "Word" };
        for file in &scores.files {
            self.print_progress(&format!("    Performing {kind} alignments for file '{file}'.\n"))?;
        }
        Ok(scores.system)
    }

    fn write_reports(&mut self, system: &System, hypothesis: &Hypothesis) -> anyhow::Result<()> {
        let root = self.root(hypothesis);
        for report in &self.plan.reports {
            let is_summary = matches!(report, Report::Percentages | Report::Counts);
            if is_summary && Confidences::of(system) == Confidences::OfSome {
                self.out.note("Warning: Ignoring confidence scores in output");
            }
            match report {
                Report::Sentences | Report::Speakers => self.write_speakers(system, *report, &root)?,
                _ => self.write_report(system, *report, &root)?,
            }
        }
        Ok(())
    }

    /// The path of reports without their endings.
    fn root(&self, hypothesis: &Hypothesis) -> String {
        let (directory, file) = hypothesis.path.rsplit_once('/').unwrap_or((".", &hypothesis.path));
        let name = self.plan.name.as_deref().unwrap_or(file);
        match self.plan.directory.as_deref() {
            Some(directory) => format!("{directory}/{name}"),
            None if directory != "." => format!("{directory}/{name}"),
            None => name.to_owned(),
        }
    }

    fn write_report(&mut self, system: &System, report: Report, root: &str) -> anyhow::Result<()> {
        let encoding = self.plan.options.reading.encoding;
        let layout = Layout { line_width: self.plan.line_width, encoding };
        let (ending, what) = match report {
            Report::Percentages => ("sys", "Writing scoring report to"),
            Report::Counts => ("raw", "Writing raw scoring report to"),
            Report::Details => ("dtl", "Writing overall detailed scoring report"),
            Report::Labelled => ("lur", "Writing LUR scoring report to"),
            Report::Alignments => ("pra", "Writing string alignments to"),
            Report::FullAlignments => ("prf", "Writing string alignments to"),
            Report::Sgml => ("sgml", "Writing SGML string alignments to"),
            Report::LineSgml => ("nl.sgml", "Writing Newline Separated SGML string alignments to"),
            Report::Sentences | Report::Speakers => return self.write_speakers(system, report, root),
        };
        let mut sheet = std::mem::take(&mut self.sheet);
        let written = self.write(&format!("{root}.{ending}"), what, |out| {
            match report {
                Report::Percentages => summaries::write_summary(out, system, Numbers::Percentages, &mut sheet)?,
                Report::Counts => summaries::write_summary(out, system, Numbers::Counts, &mut sheet)?,
                Report::Labelled => summaries::write_groups(out, system, &mut sheet)?,
                Report::Alignments => alignments::write_short(out, system, layout)?,
                Report::FullAlignments => alignments::write_full(out, system, layout)?,
                Report::Sgml => alignments::write_sgml(out, system, Separators::LINES)?,
                Report::LineSgml => alignments::write_sgml(out, system, Separators::PARTS)?,
                _ => alignments::write_details(out, system)?,
            }
            Ok(())
        });
        self.sheet = sheet;
        written
    }

    fn write_speakers(&self, system: &System, report: Report, root: &str) -> anyhow::Result<()> {
        let encoding = self.plan.options.reading.encoding;
        for speaker in &system.speakers {
            let name = String::from_utf8_lossy(&speaker.name);
            if report == Report::Sentences {
                let what = format!("Writing sentence scoring report for speaker '{name}' to");
                self.write(&format!("{root}.snt.{name}"), &what, |out| {
                    Ok(alignments::write_sentences(out, system, speaker, encoding)?)
                })?;
            } else {
                let what = format!("Writing speaker scoring report for '{name}' to");
                self.write(&format!("{root}.spk.{name}"), &what, |out| {
                    Ok(alignments::write_speaker_details(out, system, speaker)?)
                })?;
            }
        }
        Ok(())
    }

    fn write(
        &self,
        path: &str,
        what: &str,
        report: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if self.plan.to_stdout {
            return self.write_stdout(report);
        }
        self.print_progress(&format!("    {what} '{path}'\n"))?;
        let written = || -> anyhow::Result<()> {
            let mut out = BufWriter::new(File::create(path)?);
            report(&mut out)?;
            Ok(out.flush()?)
        };
        written().with_context(|| format!("could not write `{path}`"))
    }

    fn write_stdout(&self, report: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        report(&mut bytes)?;
        Ok(self.out.bytes(&bytes)?)
    }
}

/// The counter sclite prints for each utterance.
fn utterance_progress(system: &System) -> String {
    let mut shown = String::new();
    let mut last = 0;
    for (at, number, _) in system.in_sequence() {
        if at != last {
            shown.push('\n');
            last = at;
        }
        let name = String::from_utf8_lossy(&system.speakers[at].name);
        let _ = write!(shown, "\r    Alignment# {} for speaker {name}          ", number + 1);
    }
    shown + "\n\n"
}

/// A moment as C's `ctime` writes it, in universal time.
fn date(moment: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (name, month) = (DAYS[(days % 7) as usize], MONTHS[month]);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{name} {month} {:2} {hour:02}:{minute:02}:{second:02} {year}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_ctime() {
        let at = |seconds| date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(at(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(at(1_659_541_544), "Wed Aug  3 15:45:44 2022");
    }
}
