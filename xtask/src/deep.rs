//! Checks that take long or need more than stable Rust: Miri, address sanitizer, NEON under an emulator, fuzzing, the
//! packages built as they would be published, what the Dockerfile builds, and the layer for PyTorch.
//!
//! Each step installs what it needs. A step that cannot run counts as failed: nobody should take silence for success.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail};

/// How long each fuzz target runs, in seconds.
const FUZZ_SECONDS: u32 = 60;

type Step = fn(&Path) -> anyhow::Result<()>;

const STEPS: &[(&str, Step)] = &[
    ("miri", miri),
    ("sanitizer", sanitizer),
    ("neon", neon),
    ("fuzz", fuzz),
    ("package", package),
    ("deploy", deploy),
    ("torch", torch),
];

/// Runs the steps named, or all of them, each to its end; fails if one failed or could not run.
pub(crate) fn run(root: &Path, names: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|(step, _)| step != name)) {
        let known: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        bail!("unknown step `{unknown}`, expected `{}`", known.join("`, `"));
    }
    let mut failed = Vec::new();
    for (name, step) in STEPS.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|wanted| wanted == name)) {
        let start = Instant::now();
        let outcome = step(root);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => eprintln!("{name}: passed in {seconds:.0} s"),
            Err(error) => {
                eprintln!("{name}: FAILED or could not run, after {seconds:.0} s: {error:#}");
                failed.push(*name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("not passed: {}", failed.join(", "));
    }
    Ok(())
}

/// The small cases of the kernels in an interpreter that checks every access and every borrow: the scalar row, then the
/// AVX2 row (Miri has the instructions that are enabled at compile time).
fn miri(root: &Path) -> anyhow::Result<()> {
    install_nightly(root)?;
    command(root, "rustup", &["component", "add", "--toolchain", "nightly", "miri", "rust-src"], &[])?;
    // Tree borrows, because the queues of rayon do not keep to stacked ones; its threads outlive the test.
    let trees = "-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-disable-isolation -Zmiri-permissive-provenance";
    let stacked = "-Zmiri-ignore-leaks -Zmiri-disable-isolation -Zmiri-permissive-provenance";
    let run = ["run", "nightly", "cargo", "miri", "test", "-p", "srf-kernels", "--test", "small"];
    for features in ["", "-C target-feature=+avx2,+fma"] {
        let env = [("MIRIFLAGS", trees), ("RUSTFLAGS", features), ("RAYON_NUM_THREADS", "1")];
        command(root, "rustup", &run, &env)?;
        let env = [("MIRIFLAGS", stacked), ("RUSTFLAGS", features)];
        for test in ["convolution", "dense"] {
            command(root, "rustup", &[&run[..], &[test]].concat(), &env)?;
        }
    }
    Ok(())
}

/// All tests of the kernels with every memory access checked.
fn sanitizer(root: &Path) -> anyhow::Result<()> {
    install_nightly(root)?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let run = ["run", "nightly", "cargo", "test", "-p", "srf-kernels", "--lib", "--tests", "--target", target.as_str()];
    command(root, "rustup", &run, &[("RUSTFLAGS", "-Zsanitizer=address"), ("CARGO_TARGET_DIR", "target/sanitizer")])
}

/// All tests of the kernels on the NEON row, under an emulator where the machine is another one.
fn neon(root: &Path) -> anyhow::Result<()> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    command(root, "rustup", &["target", "add", TARGET], &[])?;
    install("qemu-aarch64", "qemu-user")?;
    install("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")?;
    let env = [
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    ];
    command(root, "cargo", &["test", "-p", "srf-kernels", "--lib", "--tests", "--target", TARGET], &env)
}

/// Every target in `fuzz/` for [`FUZZ_SECONDS`]. (The tests of `srf-server` send each wire parser a million messages.)
fn fuzz(root: &Path) -> anyhow::Result<()> {
    install_nightly(root)?;
    if !runs("cargo", &["fuzz", "--version"]) {
        command(root, "cargo", &["install", "cargo-fuzz", "--locked"], &[])?;
    }
    let list =
        Command::new("cargo").args(["fuzz", "list"]).current_dir(root).output().context("could not list targets")?;
    let targets = String::from_utf8_lossy(&list.stdout).into_owned();
    if targets.trim().is_empty() {
        bail!("no fuzz targets found: {}", String::from_utf8_lossy(&list.stderr).trim());
    }
    let limit = format!("-max_total_time={FUZZ_SECONDS}");
    for target in targets.split_whitespace() {
        // Parsers say how much they read at most; more than this is a fault.
        let run = ["run", "nightly", "cargo", "fuzz", "run", target, "--", limit.as_str(), "-rss_limit_mb=1024"];
        command(root, "rustup", &run, &[])?;
    }
    Ok(())
}

/// The steps of `deploy/Dockerfile` in a folder with nothing but the files of the repository; then the program from
/// where it was installed.
fn deploy(root: &Path) -> anyhow::Result<()> {
    let dir = root.join("target/deploy");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("src"))?;
    // What `COPY . /src` would copy of a fresh clone.
    command(root, "bash", &["-ec", "git ls-files -z | tar --null -T - -c | tar -x -C target/deploy/src"], &[])?;
    let build = dir.join("build").display().to_string();
    let out = dir.join("out").display().to_string();
    command(&dir.join("src"), "deploy/install.sh", &[&out], &[("CARGO_TARGET_DIR", &build)])?;
    let sample = root.join("samples/woman-1.wav").display().to_string();
    let args = ["transcribe", "--model", "share/srf/models/en-phones", &sample];
    command(&dir.join("out"), "bin/srf", &args, &[])?;
    command(
        &dir.join("out"),
        "bin/srf",
        &["bench", "serve", "--dir", "share/srf/models/en-phones", "--streams", "4", "--seconds", "3"],
        &[],
    )
}

/// Every package with nothing but its own files, built on the packages before it: what `cargo publish` would send.
fn package(root: &Path) -> anyhow::Result<()> {
    command(
        root,
        "cargo",
        &[
            "package",
            "--workspace",
            "--exclude",
            "xtask",
            "--exclude",
            "srf-c",
            "--exclude",
            "srf-python",
            "--locked",
            "--allow-dirty",
        ],
        &[],
    )
}

/// The tests of `srf.torch` and its comparison with a layer in PyTorch, which is too large for every change.
fn torch(root: &Path) -> anyhow::Result<()> {
    crate::python::torch(root)
}

/// Installs a nightly toolchain unless there is one: another one every day would be another check.
fn install_nightly(root: &Path) -> anyhow::Result<()> {
    if runs("rustup", &["run", "nightly", "rustc", "--version"]) {
        return Ok(());
    }
    command(root, "rustup", &["toolchain", "install", "nightly", "--profile", "minimal"], &[])
}

/// Installs a package of Debian and Ubuntu unless its program is there.
fn install(program: &str, package: &str) -> anyhow::Result<()> {
    if runs(program, &["--version"]) {
        return Ok(());
    }
    let installed = command(Path::new("/"), "apt-get", &["install", "--yes", package], &[]);
    installed.with_context(|| format!("`{program}` is missing; it is in the package `{package}`"))
}

fn runs(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

fn command(root: &Path, program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let line = format!("{program} {}", args.join(" "));
    eprintln!("$ {line}");
    let status = Command::new(program)
        .args(args)
        .current_dir(root)
        // The toolchain that runs this task must not decide which one these commands use.
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("CARGO")
        .envs(env.iter().copied())
        .status()
        .with_context(|| format!("could not start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed");
    }
    Ok(())
}
