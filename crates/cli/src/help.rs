//! The overview page of `srf --help`, and the commands `srf completions` and `srf man`.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

use crate::printer::Printer;
use crate::{Cli, Exit};

/// All commands by purpose, in the order in which people need them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start here", &["demo", "transcribe", "serve"]),
    ("Train your own", &["prepare", "validate", "train", "runs", "average", "fit-timing", "lm", "words"]),
    ("Measure", &["evaluate", "reproduce", "score", "compare", "sclite", "bench", "verify-stream"]),
    ("Look closer", &["models", "recipes", "info", "analyze", "align", "gop"]),
    ("Sound", &["convert", "features"]),
    ("Shell", &["completions", "man"]),
];

const END: &str = "\
Options:
  -q, --quiet    Suppress progress and notes; errors are still printed
  -h, --help     Print this page; `srf COMMAND --help` describes a command, with examples
  -V, --version  Print the version

Data goes to stdout, messages to stderr. Colours and progress bars appear on terminals only; NO_COLOR turns
colours off. SRF_MODEL names the default model, SRF_ISA the instruction set (`srf bench kernels` prints it).
Exit codes: 0 success, 1 finished but some inputs failed (each is reported), 2 could not start.
";

/// The command line of the program, with the overview page.
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

/// Print a script that completes commands, options and their values in your shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf completions bash > ~/.local/share/bash-completion/completions/srf
  srf completions zsh > ~/.zfunc/_srf
  srf completions fish > ~/.config/fish/completions/srf.fish")]
pub(crate) struct CompletionsArgs {
    shell: Shell,
}

/// Values of options whose types do not list them: command path, option, values.
const VALUES: &[(&[&str], &str, &[&str])] = &[
    (&["transcribe"], "format", &["text", "json", "ctm", "trn", "srt", "vtt", "textgrid", "csv"]),
    (&["align"], "format", &["textgrid", "ctm", "json", "csv", "srt", "vtt"]),
    (&["evaluate"], "map", &["timit48", "timit39", "shared37"]),
];

pub(crate) fn completions(args: CompletionsArgs, out: &Printer) -> anyhow::Result<Exit> {
    let CompletionsArgs { shell } = args;
    let mut command = Cli::command();
    for (path, option, values) in VALUES {
        let subcommand = path.iter().try_fold(&mut command, |command, name| command.find_subcommand_mut(name));
        let subcommand = subcommand.with_context(|| format!("there is no command `{}`", path.join(" ")))?;
        *subcommand = subcommand.clone().mut_arg(option, |arg| arg.value_parser(PossibleValuesParser::new(*values)));
    }
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "srf", &mut script);
    out.bytes(&script)?;
    Ok(Exit::Done)
}

/// Write man pages, one per command
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf man ~/.local/share/man/man1
  man srf-transcribe")]
pub(crate) struct ManArgs {
    /// The directory to write to; created if missing
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(crate) fn man(args: ManArgs, out: &Printer) -> anyhow::Result<Exit> {
    let ManArgs { directory } = args;
    let failed = || format!("could not write man pages to `{}`", directory.display());
    std::fs::create_dir_all(&directory).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), &directory).with_context(failed)?;
    out.note(format_args!("wrote the man pages to `{}`", directory.display()));
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use srf_model::config::{Override, Recipe};

    use super::*;
    use crate::commands::models::bundled_recipe;

    fn all() -> Vec<clap::Command> {
        Cli::command().get_subcommands().cloned().collect()
    }

    #[test]
    fn every_command_is_on_the_overview_page_once() {
        let shown: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut sorted = shown.clone();
        sorted.sort_unstable();
        let mut names: Vec<String> = all().iter().map(|command| command.get_name().to_owned()).collect();
        names.sort_unstable();
        assert_eq!(sorted, names);
    }

    #[test]
    fn lines_of_the_overview_page_fit_a_terminal() {
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
                .filter(|argument| !argument.is_hide_set())
                .map(|argument| argument.get_help().map(ToString::to_string).unwrap_or_default())
                .map(|help| help.replace("Threads; the result does not depend on it", "Threads"))
                .collect();
            assert!(helps.windows(2).all(|pair| pair[0] == pair[1]), "--{flag}: {helps:#?}");
        }
    }

    /// The example lines in the help of a command and its subcommands.
    fn help_examples(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = help.split_once("Examples:\n").map_or("", |(_, examples)| examples);
        let own = own.lines().map(|line| line.trim().to_owned());
        own.chain(command.get_subcommands().flat_map(help_examples)).collect()
    }

    /// The lines of shell blocks in the documents and the commands in the heads of recipes and in README's table.
    fn document_examples() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let documents =
            ["README.md", "samples/README.md", "docs/TUTORIAL.md", "docs/RESULTS.md", "docs/CONTRIBUTING.md"];
        let mut lines = Vec::new();
        for document in documents {
            let text = fs::read_to_string(root.join(document)).expect(document).replace("\\\n", " ");
            for block in text.split("```sh\n").skip(1) {
                lines.extend(block.split("```").next().unwrap_or_default().lines().map(str::to_owned));
            }
            let cells = text.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`'));
            lines.extend(cells.filter(|cell| cell.starts_with("srf ")).map(|cell| cell.replace("\\|", "|")));
        }
        let comments = srf_train::recipes::ALL.iter().flat_map(|(_, text)| text.lines());
        lines.extend(comments.filter_map(|line| line.strip_prefix("#   srf ")).map(|line| format!("srf {line}")));
        lines
    }

    /// The commands of a shell line that run `srf`, as words.
    fn srf_commands(line: &str) -> Vec<Vec<String>> {
        let words = shlex::split(line).unwrap_or_else(|| panic!("cannot be split: {line}"));
        let ends = |word: &String| ["|", "&&", ";", ">", "<"].contains(&word.as_str());
        let commands = words.split(ends).map(|words| words.iter().skip_while(|word| word.contains('=')));
        let commands = commands.map(|words| words.skip_while(|word| *word == "time").cloned().collect::<Vec<_>>());
        commands.filter(|words| words.first().is_some_and(|word| word == "srf")).collect()
    }

    /// Checks that `srf train` can use its recipe with the changes, if the recipe is bundled.
    fn check_training(words: &[String]) {
        let Some(text) = words.get(2).map(Path::new).and_then(bundled_recipe_even_here) else { return };
        let is_change = |word: &&String| word.contains('=') && !word.starts_with('-');
        let changes: Result<Vec<Override>, _> = words[3..].iter().filter(is_change).map(|word| word.parse()).collect();
        let changes = changes.unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let path = Path::new(&words[2]);
        let n_classes = Recipe::parse(text, path).map_or(63, |recipe| recipe.model.n_classes());
        let recipe = Recipe::parse_with(text, path, &changes, n_classes);
        assert!(recipe.is_ok(), "{words:?}: {:?}", recipe.err());
    }

    /// In the source tree `recipes/own/srf.toml` is a file, elsewhere it is bundled.
    fn bundled_recipe_even_here(path: &Path) -> Option<&'static str> {
        bundled_recipe(&Path::new("recipes/").join(path.strip_prefix("recipes").unwrap_or(path)))
    }

    #[test]
    fn every_example_in_help_and_documents_is_accepted() {
        let commands = all();
        let lines = commands.iter().flat_map(help_examples).chain(document_examples());
        let commands: Vec<Vec<String>> = lines.flat_map(|line| srf_commands(&line)).collect();
        assert!(150 < commands.len(), "only {} examples were found", commands.len());
        for words in commands {
            if let Err(error) = Cli::command().try_get_matches_from(&words) {
                panic!("{}\n{error}", words.join(" "));
            }
            if words[1] == "train" {
                check_training(&words);
            }
        }
    }
}
