//! What the demo shows of recordings on a terminal: answers and routing in, lines out.

use std::fmt::Write as _;
use std::io;

use srf_score::{Pair, Verdict, Word};
use srf_train::analyze::{Analysis, times};
use srf_train::corpus::Utterance;
use srf_train::evaluate::Evaluation;

use crate::printer::Printer;

/// Characters in a line.
const WIDTH: usize = 96;
/// Moments of the routing that are shown.
const N_TIMES: usize = 10;
const BAR_WIDTH: f32 = 30.0;

/// What was said over what was heard, and when; errors are in capitals, as scoring tools write them.
pub(super) fn examples(
    evaluation: &Evaluation,
    utterances: &[Utterance],
    chosen: &[usize],
    out: &Printer,
) -> io::Result<()> {
    for at in chosen {
        let (answer, transcript) = (&evaluation.answers[*at], &evaluation.transcripts[*at]);
        let sentence = utterances.iter().find(|u| u.id == answer.id).map_or("", |u| u.sentence.as_str());
        out.line(format_args!("{} ({:.2} s): {sentence}", answer.id, transcript.duration_s))?;
        let system = &evaluation.rate().system;
        let Some(scored) = system.utterances().find(|utterance| utterance.sequence == *at) else { continue };
        let tokens = transcript.segments.iter().flat_map(|segment| &segment.tokens);
        let columns = columns(&scored.alignment.pairs, tokens.map(|token| token.start_s));
        blocks(&columns).iter().try_for_each(|line| out.line(line))?;
        out.line("")?;
    }
    Ok(())
}

/// A label that was said, what was heard, and when that begins.
type Column = [String; 3];

fn columns(pairs: &[Pair], mut starts_s: impl Iterator<Item = f64>) -> Vec<Column> {
    let spell = |word: Option<&Word>, is_right: bool| match word {
        None => "***".to_owned(),
        Some(word) if is_right => String::from_utf8_lossy(&word.text).into_owned(),
        Some(word) => String::from_utf8_lossy(&word.text).to_uppercase(),
    };
    let column = |pair: &Pair| {
        let is_right = pair.verdict == Verdict::Correct;
        let start_s = pair.hypothesis.as_ref().and_then(|_| starts_s.next());
        let time = start_s.map_or_else(String::new, |start_s| format!("{start_s:.2}"));
        [spell(pair.reference.as_ref(), is_right), spell(pair.hypothesis.as_ref(), is_right), time]
    };
    pairs.iter().map(column).collect()
}

/// Three rows, broken where a line is full.
fn blocks(columns: &[Column]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rows = [const { String::new() }; 3];
    let mut flush = |rows: &mut [String; 3]| {
        for (name, row) in ["said", "heard", "at"].iter().zip(rows) {
            lines.push(format!("  {name:<6} {}", row.trim_end()));
            row.clear();
        }
    };
    for column in columns {
        let width = column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0) + 1;
        if WIDTH < rows[0].chars().count() + width {
            flush(&mut rows);
        }
        for (row, cell) in rows.iter_mut().zip(column) {
            let _ = write!(row, "{cell:<width$}");
        }
    }
    if !rows[0].is_empty() {
        flush(&mut rows);
    }
    lines
}

/// At some moments: the likeliest class, and the class that most capsules are routed to.
pub(super) fn routing(analysis: &Analysis, out: &Printer) -> io::Result<()> {
    let Some(routes) = analysis.models.first() else { return Ok(()) };
    let name = |class: usize| routes.classes[class].as_str();
    out.line(format_args!("    time  said   likeliest        most routed to, share of all capsules"))?;
    for time_s in times::choose(analysis, N_TIMES) {
        let slice = routes.slice_at(time_s);
        let (likeliest, heaviest) = (routes.likeliest()[slice], routes.heaviest()[slice]);
        let masses = routes.masses_at(slice);
        let share = masses[heaviest] / masses.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        let probability = format!("{:.2}", routes.probabilities_at(slice)[likeliest]);
        let bar = "#".repeat((share * BAR_WIDTH).round() as usize);
        out.line(format_args!(
            "  {time_s:>4.2} s  {:<6} {:<8} {probability:<7} {:<8} {:>4.1} % {bar}",
            analysis.said_at(time_s).unwrap_or("-"),
            name(likeliest),
            name(heaviest),
            100.0 * share,
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(reference: Option<&str>, hypothesis: Option<&str>, verdict: Verdict) -> Pair {
        let word = |text: &str| Word::new(text.as_bytes());
        Pair { reference: reference.map(word), hypothesis: hypothesis.map(word), verdict }
    }

    #[test]
    fn what_was_heard_stands_below_what_was_said_with_its_time() {
        let pairs = [
            pair(Some("sil"), Some("sil"), Verdict::Correct),
            pair(Some("dh"), Some("d"), Verdict::Substitution),
            pair(Some("ah"), None, Verdict::Deletion),
            pair(None, Some("n"), Verdict::Insertion),
        ];
        let columns = columns(&pairs, [0.0, 0.12, 0.34].into_iter());
        let expected = ["  said   sil  DH   AH  ***", "  heard  sil  D    *** N", "  at     0.00 0.12     0.34"];
        assert_eq!(blocks(&columns), expected);
    }

    #[test]
    fn lines_end_before_the_screen_does() {
        let columns: Vec<Column> = (0..100).map(|k| [format!("p{k}"), "q".to_owned(), "0.00".to_owned()]).collect();
        let lines = blocks(&columns);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH + 9));
        assert_eq!(lines.iter().flat_map(|line| line.split_whitespace()).filter(|cell| *cell == "q").count(), 100);
    }
}
