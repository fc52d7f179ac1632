//! Programs that the checks of the bindings need and that Rust does not bring along.
//!
//! A machine without them can still build and test everything else: one line says what was not run. In continuous
//! integration they are installed by the name of their package, and it is an error if they cannot be.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

/// A program, by the names that it may have, and how it is found to work.
pub(crate) struct Tool<'a> {
    pub(crate) names: &'a [&'a str],
    pub(crate) args: &'a [&'a str],
    /// Packages of Debian and Ubuntu that have it.
    pub(crate) packages: &'a [&'a str],
}

impl Tool<'_> {
    /// The name of the program if it works; otherwise a line says that `what` was not run.
    pub(crate) fn find(&self, what: &str) -> anyhow::Result<Option<String>> {
        if let Some(found) = self.installed() {
            return Ok(Some(found));
        }
        let (name, packages) = (self.names[0], self.packages.join(" "));
        if !crate::is_ci() {
            eprintln!("{what}: not run, because `{name}` is not installed (Debian: {packages})");
            return Ok(None);
        }
        apt(self.packages).with_context(|| format!("{what}: `{name}` is missing and could not be installed"))?;
        let found = self.installed();
        ensure!(found.is_some(), "{what}: `{name}` does not run although `{packages}` was installed");
        Ok(found)
    }

    fn installed(&self) -> Option<String> {
        self.names.iter().find(|name| runs(Path::new(name), self.args)).map(|name| (*name).to_owned())
    }
}

/// Whether the program starts and succeeds.
pub(crate) fn runs(program: &Path, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

/// Installs packages; the list of packages is fetched only if they are not found without it.
fn apt(packages: &[&str]) -> anyhow::Result<()> {
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    let apt = Path::new("apt-get");
    if runs(apt, &install) || (runs(apt, &["update"]) && runs(apt, &install)) {
        return Ok(());
    }
    bail!("`apt-get {}` failed", install.join(" "))
}
