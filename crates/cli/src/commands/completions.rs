//! `srf completions`: a shell's name in, the script that completes our commands and flags in it out.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::printer::Printer;
use crate::{Cli, Exit};

/// Print the script that completes commands and flags in your shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  srf completions bash > ~/.local/share/bash-completion/completions/srf
  srf completions zsh > ~/.zfunc/_srf
  srf completions fish > ~/.config/fish/completions/srf.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: Args, out: &Printer) -> anyhow::Result<Exit> {
    let Args { shell } = args;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "srf", &mut script);
    out.bytes(&script)?;
    Ok(Exit::Done)
}
