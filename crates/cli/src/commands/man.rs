//! `srf man`: a directory in, a man page for `srf` and one for each command out.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::printer::Printer;
use crate::{Cli, Exit};

/// Write man pages, one for each command
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf man ~/.local/share/man/man1
  man srf-transcribe")]
pub(crate) struct Args {
    /// Where to write them; made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { directory } = args;
    let could_not = || format!("could not write man pages into `{}`", directory.display());
    std::fs::create_dir_all(&directory).with_context(could_not)?;
    clap_mangen::generate_to(Cli::command(), &directory).with_context(could_not)?;
    out.note(format_args!("wrote the man pages into `{}`", directory.display()));
    Ok(Exit::Done)
}
