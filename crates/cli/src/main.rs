//! The command `srf`: parses arguments, calls the libraries, prints results and sets the exit code.
//!
//! Exit codes: 0 success, 1 finished but some inputs failed, 2 could not start.

mod commands;
mod help;
mod hint;
mod printer;

use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

use crate::printer::Printer;

/// A speech recogniser made only of capsules.
#[derive(Parser)]
#[command(name = "srf", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// Suppress progress and notes; errors are still printed
    #[arg(long, short, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Transcribe(Box<commands::transcribe::Args>),
    Serve(commands::serve::Args),
    Prepare(commands::prepare::Args),
    Validate(commands::validate::Args),
    Train(commands::train::Args),
    Runs(commands::runs::Args),
    Average(commands::average::Args),
    #[command(alias = "learn-times")]
    FitTiming(commands::fit_timing::Args),
    Evaluate(commands::evaluate::Args),
    Reproduce(commands::reproduce::Args),
    Lm(commands::lm::Args),
    Words(commands::words::Args),
    Score(commands::score::Args),
    Compare(commands::compare::Args),
    Sclite(commands::sclite::Args),
    Models(commands::models::ModelsArgs),
    Recipes(commands::models::RecipesArgs),
    Info(commands::info::Args),
    Analyze(commands::analyze::Args),
    Align(commands::align::Args),
    Gop(commands::align::GopArgs),
    VerifyStream(Box<commands::verify_stream::Args>),
    Bench(commands::bench::Args),
    Convert(commands::convert::Args),
    Features(commands::features::Args),
    Completions(help::CompletionsArgs),
    Man(help::ManArgs),
}

/// How a command that could start finished.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// Some inputs failed and were reported.
    Problems,
}

fn main() -> ExitCode {
    // clap reports bad arguments and exits with code 2.
    let matches = help::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let out = Printer::new(cli.quiet);
    match run(cli.command, &out) {
        Ok(Exit::Done) => ExitCode::SUCCESS,
        Ok(Exit::Problems) => {
            if let Some(text) = hint::misspelt_path(std::env::args_os()) {
                out.hint(&text);
            }
            ExitCode::from(1)
        }
        // The reader of a pipe (`srf ... | head`) has read enough.
        Err(error) if printer::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            out.error(&error);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command, out: &Printer) -> anyhow::Result<Exit> {
    // A misspelt `SRF_ISA` is reported before anything is computed.
    srf_kernels::isa()?;
    match command {
        Command::Demo(args) => commands::demo::run(args, out),
        Command::Transcribe(args) => commands::transcribe::run(*args, out),
        Command::Serve(args) => commands::serve::run(args, out),
        Command::Prepare(args) => commands::prepare::run(args, out),
        Command::Validate(args) => commands::validate::run(args, out),
        Command::Train(args) => commands::train::run(args, out),
        Command::Runs(args) => commands::runs::run(args, out),
        Command::Average(args) => commands::average::run(args, out),
        Command::FitTiming(args) => commands::fit_timing::run(args, out),
        Command::Evaluate(args) => commands::evaluate::run(args, out),
        Command::Reproduce(args) => commands::reproduce::run(args, out),
        Command::Lm(args) => commands::lm::run(args, out),
        Command::Words(args) => commands::words::run(args, out),
        Command::Score(args) => commands::score::run(args, out),
        Command::Compare(args) => commands::compare::run(args, out),
        Command::Sclite(args) => commands::sclite::run(args, out),
        Command::Models(args) => commands::models::run(args, out),
        Command::Recipes(args) => commands::models::run_recipes(args, out),
        Command::Info(args) => commands::info::run(args, out),
        Command::Analyze(args) => commands::analyze::run(args, out),
        Command::Align(args) => commands::align::run(args, out),
        Command::Gop(args) => commands::align::run_gop(args, out),
        Command::VerifyStream(args) => commands::verify_stream::run(*args, out),
        Command::Bench(args) => commands::bench::run(args, out),
        Command::Convert(args) => commands::convert::run(args, out),
        Command::Features(args) => commands::features::run(args, out),
        Command::Completions(args) => help::completions(args, out),
        Command::Man(args) => help::man(args, out),
    }
}
