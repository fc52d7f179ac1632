//! `cargo xtask c`: the C library, its header, and programs in C that use it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::tools::Tool;
use crate::{build_srf, cargo};

const HEADER: &str = "bindings/c/srf.h";

/// The model and the recording of the programs.
const MODEL: &str = "models/en-phones";
const RECORDING: &str = "samples/woman-1.wav";

/// Builds the library, compares its header with its source (or writes it, with `--write`), and compiles and runs the
/// example and the test of misuse.
pub(crate) fn run(root: &Path, args: &[&str]) -> anyhow::Result<()> {
    // Together with the program and the Python package, so that all of them share their dependencies.
    cargo(root, &["build", "--locked", "-p", "srf-cli", "-p", "srf-c", "-p", "srf-python"])?;
    check_header(root, args == ["--write"])?;
    let compiler = Tool { names: &["cc", "gcc", "clang"], args: &["--version"], packages: &["gcc", "libc6-dev"] };
    let Some(compiler) = compiler.find("the example and the test in C")? else { return Ok(()) };
    let compiler = compiler.as_str();
    let example = compile(root, compiler, "bindings/c/examples/transcribe.c")?;
    let text = output(root, &example, &[MODEL, RECORDING])?;
    let srf = build_srf(root)?;
    let expected = output(root, &srf, &["--quiet", "transcribe", "--model", MODEL, RECORDING])?;
    ensure!(text == expected, "the example in C wrote `{}`, expected `{}`", text.trim(), expected.trim());
    let misuse = compile(root, compiler, "bindings/c/tests/misuse.c")?;
    output(root, &misuse, &[MODEL])?;
    eprintln!("C: header, example and misuse passed");
    Ok(())
}

fn check_header(root: &Path, is_written: bool) -> anyhow::Result<()> {
    let args = ["run", "--quiet", "-p", "xtask", "--example", "header", "--locked"];
    let made = Command::new(env!("CARGO")).args(args).current_dir(root).output().context("could not start cargo")?;
    ensure!(made.status.success(), "cbindgen failed: {}", String::from_utf8_lossy(&made.stderr).trim());
    let path = root.join(HEADER);
    if is_written {
        return fs::write(&path, &made.stdout).with_context(|| format!("could not write `{HEADER}`"));
    }
    let is_current = fs::read(&path).is_ok_and(|found| found == made.stdout);
    ensure!(is_current, "`{HEADER}` is not that of the source: run `cargo xtask c --write` and look at the diff");
    Ok(())
}

/// Compiles a program and returns where it is.
fn compile(root: &Path, compiler: &str, source: &str) -> anyhow::Result<std::path::PathBuf> {
    let name = Path::new(source).file_stem().context("a source has a name")?;
    let program = root.join("target/debug").join(name);
    let status = Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-Ibindings/c", source, "-Ltarget/debug", "-lsrf_c", "-o"])
        .arg(&program)
        .current_dir(root)
        .status()
        .with_context(|| format!("could not start `{compiler}`"))?;
    ensure!(status.success(), "`{source}` does not compile");
    Ok(program)
}

fn output(root: &Path, program: &Path, args: &[&str]) -> anyhow::Result<String> {
    let run =
        Command::new(program).args(args).current_dir(root).env("LD_LIBRARY_PATH", root.join("target/debug")).output();
    let run = run.with_context(|| format!("could not start `{}`", program.display()))?;
    if !run.status.success() {
        bail!("`{}` failed: {}", program.display(), String::from_utf8_lossy(&run.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}
