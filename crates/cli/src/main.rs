//! The command `srf`: arguments in, one library call, printing and an exit code out.
//!
//! Exit codes: 0 done, 1 done with problems, 2 could not start.

mod commands;
mod help;
mod hint;
mod printer;
mod watch;

use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

use crate::printer::Printer;

/// A speech recogniser made only of capsules.
#[derive(Parser)]
#[command(name = "srf", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// No progress and no remarks on stderr; errors are still told
    #[arg(long, short, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Transcribe(Box<commands::transcribe::Args>),
    Prepare(commands::prepare::Args),
    Validate(commands::validate::Args),
    Train(commands::train::Args),
    Runs(commands::runs::Args),
    Average(commands::average::Args),
    LearnTimes(commands::learn_times::Args),
    Evaluate(commands::evaluate::Args),
    Reproduce(commands::reproduce::Args),
    Score(commands::score::Args),
    Compare(commands::compare::Args),
    Sclite(commands::sclite::Args),
    Info(commands::info::Args),
    Analyze(commands::analyze::Args),
    Align(commands::align::Args),
    Gop(commands::gop::Args),
    VerifyStream(Box<commands::verify_stream::Args>),
    Bench(commands::bench::Args),
    Convert(commands::convert::Args),
    Features(commands::features::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

/// How a command that could start ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All of it was done.
    Done,
    /// It went to the end, and told of problems on the way.
    Problems,
}

fn main() -> ExitCode {
    // What clap finds wrong with the arguments ends here, with code 2.
    let matches = help::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let out = Printer::new(cli.quiet);
    match run(cli.command, &out) {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::Problems) => ExitCode::from(1),
        // A closed pipe (`srf ... | head`) is how a reader says it has enough.
        Err(error) if printer::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out.error(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command, out: &Printer) -> anyhow::Result<Exit> {
    match command {
        Command::Demo(args) => commands::demo::run(args, out),
        Command::Transcribe(args) => commands::transcribe::run(*args, out),
        Command::Prepare(args) => commands::prepare::run(args, out),
        Command::Validate(args) => commands::validate::run(args, out),
        Command::Train(args) => commands::train::run(args, out),
        Command::Runs(args) => commands::runs::run(args, out),
        Command::Average(args) => commands::average::run(args, out),
        Command::LearnTimes(args) => commands::learn_times::run(args, out),
        Command::Evaluate(args) => commands::evaluate::run(args, out),
        Command::Reproduce(args) => commands::reproduce::run(args, out),
        Command::Score(args) => commands::score::run(args, out),
        Command::Compare(args) => commands::compare::run(args, out),
        Command::Sclite(args) => commands::sclite::run(args, out),
        Command::Info(args) => commands::info::run(args, out),
        Command::Analyze(args) => commands::analyze::run(args, out),
        Command::Align(args) => commands::align::run(args, out),
        Command::Gop(args) => commands::gop::run(args, out),
        Command::VerifyStream(args) => commands::verify_stream::run(*args, out),
        Command::Bench(args) => commands::bench::run(args, out),
        Command::Convert(args) => commands::convert::run(args, out),
        Command::Features(args) => commands::features::run(args, out),
        Command::Completions(args) => commands::completions::run(args, out),
        Command::Man(args) => commands::man::run(args, out),
    }
}
