//! `cargo xtask python`: builds the Python package, installs it into a virtual environment and runs its tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::build_srf;
use crate::tools::{Tool, runs};

/// The environment, kept between runs.
const VENV: &str = "target/python";

/// What the tests need besides the package.
const REQUIREMENTS: &str = "bindings/python/tests/requirements.txt";

/// Needed as well, but without what they ask for: they would force old versions of numpy on all others.
const UNBOUND: &[&str] = &["pyctcdecode", "pygtrie"];

/// Runs the tests of the package; on a machine without Python says that they were not run.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let Some(python) = environment(root)? else { return Ok(()) };
    let python = python.as_path();
    pip(root, python, &["--requirement", REQUIREMENTS])?;
    pip(root, python, &[&["--no-deps"], UNBOUND].concat())?;
    // The tests compare with what the command writes.
    let srf = build_srf(root)?;
    install(root, python, "--profile dev --features as-in-workspace")?;
    pytest(root, python, &srf, &["bindings/python/tests", "--ignore", "bindings/python/tests/torch"])
}

/// Runs the tests of `srf.torch`, with PyTorch, and that torchaudio's decoder reads our log-probabilities.
pub(crate) fn torch(root: &Path) -> anyhow::Result<()> {
    let python = environment(root)?.context("there is no Python")?;
    pip(root, &python, &["--requirement", REQUIREMENTS, "torch", "torchaudio"])?;
    install(root, &python, "--release")?;
    pytest(root, &python, Path::new("srf"), &["bindings/python/tests/torch"])?;
    let status = Command::new(&python).arg("bindings/python/benchmarks/routing.py").current_dir(root).status()?;
    ensure!(status.success(), "the comparison with the layer in PyTorch failed");
    Ok(())
}

/// The interpreter of the environment, which is made if it is not there; `None` without Python.
fn environment(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let python = root.join(VENV).join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !runs(&python, &["-m", "pip", "--version"]) {
        let tool = Tool {
            names: &["python3", "python"],
            args: &["-c", "import ensurepip, venv"],
            packages: &["python3", "python3-venv"],
        };
        let Some(system) = tool.find("the tests of the Python package")? else { return Ok(None) };
        let status = Command::new(&system).args(["-m", "venv", "--clear", VENV]).current_dir(root).status()?;
        ensure!(status.success(), "`{system} -m venv {VENV}` failed");
    }
    Ok(Some(python))
}

fn pip(root: &Path, python: &Path, args: &[&str]) -> anyhow::Result<()> {
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let mut command = Command::new(python);
    command.args(pip).args(args).current_dir(root);
    // Without isolation the build finds `maturin` on the path.
    let programs = python.parent().map(Path::to_owned).into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env("PATH", std::env::join_paths(programs.chain(std::env::split_paths(&path)))?);
    let status = command.status().context("could not start pip")?;
    if status.success() { Ok(()) } else { bail!("`pip install {}` failed", args.join(" ")) }
}

/// Builds the package with these arguments and installs it.
fn install(root: &Path, python: &Path, build: &str) -> anyhow::Result<()> {
    let arguments = format!("build-args={build} --locked");
    // Maturin is in the environment already; without isolation it is not downloaded again.
    let how = ["--no-build-isolation", "--no-deps", "--force-reinstall", "--config-settings", &arguments];
    pip(root, python, &[&how[..], &["./bindings/python"]].concat())
}

fn pytest(root: &Path, python: &Path, srf: &Path, args: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(python)
        .args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"])
        .args(args)
        .current_dir(root)
        .env("SRF_COMMAND", srf)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status()
        .context("could not start pytest")?;
    if status.success() { Ok(()) } else { bail!("pytest failed") }
}
