//! The first page of help: all commands in, grouped in the order in which people need them out.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use crate::Cli;

/// Every command, under what it is for.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start here", &["demo", "transcribe"]),
    ("Train your own", &["prepare", "validate", "train", "runs", "average", "learn-times"]),
    ("Measure", &["evaluate", "reproduce", "score", "compare", "sclite", "bench", "verify-stream"]),
    ("Look closer", &["info", "analyze", "align", "gop"]),
    ("Sound", &["convert", "features"]),
    ("Shell", &["completions", "man"]),
];

const END: &str = "\
Options:
  -q, --quiet    No progress and no remarks on stderr; errors are still told
  -h, --help     This page; `srf COMMAND --help` tells all about a command, with examples
  -V, --version  The version

Data goes to stdout, talk to stderr. Colours and progress are for terminals only; NO_COLOR turns colours off.
Exit codes: 0 done, 1 done with problems (each is told), 2 could not start.
";

/// The command line of the program, with its first page of help.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let page = page(&command);
    command.override_help(page)
}

fn page(command: &clap::Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = format!("{about}\n\nUsage: srf [OPTIONS] COMMAND\n");
    for (heading, names) in GROUPS {
        let _ = writeln!(page, "\n{heading}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(page, "  {name:<14} {about}");
        }
    }
    page + "\n" + END
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<clap::Command> {
        Cli::command().get_subcommands().cloned().collect()
    }

    #[test]
    fn every_command_stands_on_the_first_page_once_and_in_this_order() {
        let shown: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut sorted = shown.clone();
        sorted.sort_unstable();
        let mut names: Vec<String> = all().iter().map(|command| command.get_name().to_owned()).collect();
        names.sort_unstable();
        assert_eq!(sorted, names);
    }

    #[test]
    fn lines_of_the_first_page_fit_a_terminal() {
        let page = page(&Cli::command());
        let long: Vec<&str> = page.lines().filter(|line| 110 < line.chars().count()).collect();
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn every_command_says_what_it_does_without_a_full_stop_and_ends_with_examples() {
        for command in all() {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && !about.ends_with('.'), "{name}: {about}");
            let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(end.contains("Examples:\n") && end.contains(&format!("srf {name}")), "{name}: {end}");
        }
    }

    #[test]
    fn the_same_flag_has_the_same_words_in_every_command() {
        for flag in ["json", "threads", "model", "quiet"] {
            let arguments = all();
            let arguments =
                arguments.iter().filter(|command| !["bench", "analyze", "gop"].contains(&command.get_name()));
            let helps: Vec<String> = arguments
                .filter_map(|command| command.get_arguments().find(|argument| argument.get_long() == Some(flag)))
                .map(|argument| argument.get_help().map(ToString::to_string).unwrap_or_default())
                .map(|help| help.replace("Threads; the result does not depend on it", "Threads"))
                .collect();
            assert!(helps.windows(2).all(|pair| pair[0] == pair[1]), "--{flag}: {helps:#?}");
        }
    }
}
