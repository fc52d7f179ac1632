//! Checks that take long or need more than stable Rust: Miri, address sanitizer, NEON under an emulator, the kernels on
//! WebAssembly, fuzzing, the packages built as they would be published, advisories about dependencies, what the
//! Dockerfile builds, and the layer for PyTorch.
//!
//! Each step installs what it needs and has a limit of time. A step that cannot run counts as failed: nobody should take
//! silence for success.

use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// How long each fuzz target runs, in seconds.
const FUZZ_SECONDS: u32 = 60;
/// What fuzz targets start from, besides nothing: files of the repository that the parser accepts.
const SEEDS: &[(&str, &str)] = &[
    ("corpora", "samples"),
    ("labels", "models/en-digits"),
    ("recipe", "recipes/family"),
    ("recording", "crates/audio/tests/data"),
    ("weights", "models/en-digits"),
];
/// Advisories that do not concern us, with the reason.
const ADVISORIES_ARGUED: &[(&str, &str)] = &[(
    "RUSTSEC-2024-0436",
    "`paste` is unmaintained: a small macro of `gemm` that runs only at build time and sees no input",
)];

struct Step {
    name: &'static str,
    /// After this many minutes the step is stopped and has failed.
    max_minutes: u64,
    what: &'static str,
    run: fn(&Job) -> anyhow::Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "miri", max_minutes: 90, what: "small cases of the kernels, every access checked", run: miri },
    Step { name: "sanitizer", max_minutes: 60, what: "all tests of the kernels, address sanitizer", run: sanitizer },
    Step { name: "neon", max_minutes: 120, what: "all tests of the kernels on an emulated processor", run: neon },
    Step { name: "wasm", max_minutes: 30, what: "all tests of the kernels on WebAssembly, in node", run: wasm },
    Step { name: "fuzz", max_minutes: 90, what: "every target in fuzz/ for a minute", run: fuzz },
    Step { name: "package", max_minutes: 60, what: "every package from nothing but its own files", run: package },
    Step { name: "advisories", max_minutes: 20, what: "known faults of dependencies (RustSec)", run: advisories },
    Step { name: "deploy", max_minutes: 60, what: "the build steps of the Dockerfile", run: deploy },
    Step { name: "torch", max_minutes: 60, what: "the tests of srf.torch, and its speed", run: torch },
];

/// Where commands of a step run, and until when.
struct Job<'a> {
    root: &'a Path,
    until: Instant,
}

/// Runs the steps named, or all of them, each to its end or its limit; fails if one failed or could not run.
pub(crate) fn run(root: &Path, names: &[String]) -> anyhow::Result<()> {
    if names.iter().any(|name| name == "--help" || name == "-h") {
        eprint!("{}", help());
        return Ok(());
    }
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("unknown step `{unknown}`, expected `{}`", known.join("`, `"));
    }
    let mut failed = Vec::new();
    for step in STEPS.iter().filter(|step| names.is_empty() || names.iter().any(|wanted| wanted == step.name)) {
        let start = Instant::now();
        let outcome = (step.run)(&Job { root, until: start + Duration::from_secs(60 * step.max_minutes) });
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => eprintln!("{}: passed in {seconds:.0} s", step.name),
            Err(error) => {
                eprintln!("{}: FAILED or could not run, after {seconds:.0} s: {error:#}", step.name);
                failed.push(step.name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("not passed: {}", failed.join(", "));
    }
    Ok(())
}

fn help() -> String {
    let lines = STEPS
        .iter()
        .map(|Step { name, max_minutes, what, .. }| format!("  {name:<11} {what}; at most {max_minutes} minutes\n"));
    format!("cargo xtask deep [STEP...]\n\nSteps, all unless named:\n{}", lines.collect::<String>())
}

/// The small cases of the kernels in an interpreter that checks every access and every borrow: the scalar row, then the
/// AVX2 row (Miri has the instructions that are enabled at compile time).
fn miri(job: &Job) -> anyhow::Result<()> {
    install_nightly(job)?;
    job.run("rustup", &["component", "add", "--toolchain", "nightly", "miri", "rust-src"], &[])?;
    // Tree borrows, because the queues of rayon do not keep to stacked ones; its threads outlive the test.
    let trees = "-Zmiri-tree-borrows -Zmiri-ignore-leaks -Zmiri-disable-isolation -Zmiri-permissive-provenance";
    let stacked = "-Zmiri-ignore-leaks -Zmiri-disable-isolation -Zmiri-permissive-provenance";
    let run = ["run", "nightly", "cargo", "miri", "test", "-p", "srf-kernels", "--test", "small"];
    for features in ["", "-C target-feature=+avx2,+fma"] {
        let env = [("MIRIFLAGS", trees), ("RUSTFLAGS", features), ("RAYON_NUM_THREADS", "1")];
        job.run("rustup", &run, &env)?;
        let env = [("MIRIFLAGS", stacked), ("RUSTFLAGS", features)];
        for test in ["convolution", "dense"] {
            job.run("rustup", &[&run[..], &[test]].concat(), &env)?;
        }
    }
    Ok(())
}

/// All tests of the kernels with every memory access checked.
fn sanitizer(job: &Job) -> anyhow::Result<()> {
    install_nightly(job)?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let run = ["run", "nightly", "cargo", "test", "-p", "srf-kernels", "--lib", "--tests", "--target", target.as_str()];
    job.run("rustup", &run, &[("RUSTFLAGS", "-Zsanitizer=address"), ("CARGO_TARGET_DIR", "target/sanitizer")])
}

/// All tests of the kernels on the NEON row, under an emulator where the machine is another one.
fn neon(job: &Job) -> anyhow::Result<()> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    job.run("rustup", &["target", "add", TARGET], &[])?;
    install(job, "qemu-aarch64", "qemu-user")?;
    install(job, "aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")?;
    let env = [
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    ];
    job.run("cargo", &["test", "-p", "srf-kernels", "--lib", "--tests", "--target", TARGET], &env)
}

/// Every target in `fuzz/` for [`FUZZ_SECONDS`]. (The tests of `srf-server` send each wire parser a million messages.)
fn fuzz(job: &Job) -> anyhow::Result<()> {
    install_nightly(job)?;
    if !runs("cargo", &["fuzz", "--version"]) {
        job.run("cargo", &["install", "cargo-fuzz", "--locked"], &[])?;
    }
    let list = Command::new("cargo")
        .args(["fuzz", "list"])
        .current_dir(job.root)
        .output()
        .context("could not list targets")?;
    let targets = String::from_utf8_lossy(&list.stdout).into_owned();
    if targets.trim().is_empty() {
        bail!("no fuzz targets found: {}", String::from_utf8_lossy(&list.stderr).trim());
    }
    let limit = format!("-max_total_time={FUZZ_SECONDS}");
    for target in targets.split_whitespace() {
        // Parsers say how much they read at most; more than this is a fault.
        let seeds = SEEDS.iter().find(|(name, _)| *name == target).map(|(_, seeds)| *seeds);
        // What it finds is kept in the first folder.
        let found = format!("fuzz/corpus/{target}");
        std::fs::create_dir_all(job.root.join(&found)).with_context(|| format!("could not create `{found}`"))?;
        let mut run = vec!["run", "nightly", "cargo", "fuzz", "run", target, &found];
        run.extend(seeds);
        run.extend(["--", limit.as_str(), "-rss_limit_mb=1024", "-max_len=65536"]);
        job.run("rustup", &run, &[])?;
    }
    Ok(())
}

/// Advisories of the RustSec database about the versions in the lock file, unmaintained crates among them. `ADVISORY_DB`
/// names a folder with the database where it cannot be downloaded.
fn advisories(job: &Job) -> anyhow::Result<()> {
    if !runs("cargo", &["audit", "--version"]) {
        job.run("cargo", &["install", "cargo-audit", "--locked"], &[])?;
    }
    let mut run = vec!["audit", "--deny", "warnings"];
    for (advisory, reason) in ADVISORIES_ARGUED {
        eprintln!("{advisory} is left out: {reason}");
        run.extend(["--ignore", advisory]);
    }
    let database = std::env::var("ADVISORY_DB").unwrap_or_default();
    if !database.is_empty() {
        run.extend(["--db", &database, "--no-fetch", "--stale"]);
    }
    job.run("cargo", &run, &[]).context("an advisory, or no database (`ADVISORY_DB=DIR` names a copy)")
}

/// The steps of `deploy/Dockerfile` in a folder with nothing but the files of the repository; then the program from
/// where it was installed.
fn deploy(job: &Job) -> anyhow::Result<()> {
    let dir = job.root.join("target/deploy");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("src"))?;
    // What `COPY . /src` would copy of a fresh clone.
    job.run("bash", &["-ec", "git ls-files -z | tar --null -T - -c | tar -x -C target/deploy/src"], &[])?;
    let build = dir.join("build").display().to_string();
    let out = dir.join("out").display().to_string();
    job.run_in(&dir.join("src"), "deploy/install.sh", &[&out], &[("CARGO_TARGET_DIR", &build)])?;
    let sample = job.root.join("samples/woman-1.wav").display().to_string();
    let args = ["transcribe", "--model", "share/srf/models/en-phones", &sample];
    job.run_in(&dir.join("out"), "bin/srf", &args, &[])?;
    job.run_in(
        &dir.join("out"),
        "bin/srf",
        &["bench", "serve", "--dir", "share/srf/models/en-phones", "--streams", "4", "--seconds", "3"],
        &[],
    )
}

/// Every package with nothing but its own files, built on the packages before it: what `cargo publish` would send.
fn package(job: &Job) -> anyhow::Result<()> {
    job.run(
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

/// The vectors of WebAssembly against the definition of every kernel.
fn wasm(job: &Job) -> anyhow::Result<()> {
    crate::web::test_kernels(job.root)
}

/// The tests of `srf.torch` and its comparison with a layer in PyTorch, which is too large for every change.
fn torch(job: &Job) -> anyhow::Result<()> {
    crate::python::torch(job.root)
}

/// Installs a nightly toolchain unless there is one: another one every day would be another check.
fn install_nightly(job: &Job) -> anyhow::Result<()> {
    if runs("rustup", &["run", "nightly", "rustc", "--version"]) {
        return Ok(());
    }
    job.run("rustup", &["toolchain", "install", "nightly", "--profile", "minimal"], &[])
}

/// Installs a package of Debian and Ubuntu unless its program is there.
fn install(job: &Job, program: &str, package: &str) -> anyhow::Result<()> {
    if runs(program, &["--version"]) {
        return Ok(());
    }
    let installed = job.run("apt-get", &["install", "--yes", package], &[]);
    installed.with_context(|| format!("`{program}` is missing; it is in the package `{package}`"))
}

fn runs(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

impl Job<'_> {
    fn run(&self, program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
        self.run_in(self.root, program, args, env)
    }

    fn run_in(&self, dir: &Path, program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
        let line = format!("{program} {}", args.join(" "));
        eprintln!("$ {line}");
        let mut command = Command::new(program);
        command.args(args).current_dir(dir).envs(env.iter().copied());
        // The toolchain that runs this task must not decide which one these commands use.
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
        let mut child = command.spawn().with_context(|| format!("could not start `{line}`"))?;
        match self.wait(&mut child)? {
            Some(status) if status.success() => Ok(()),
            Some(_) => bail!("`{line}` failed"),
            None => bail!("`{line}` was stopped at the limit of the step"),
        }
    }

    /// Waits for a command; `None` if it had to be stopped.
    fn wait(&self, child: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if self.until < Instant::now() {
                stop(&child.id().to_string());
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Ends a process after those it started, which would otherwise go on.
fn stop(pid: &str) {
    let below = Command::new("pgrep").args(["-P", pid]).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&below).split_whitespace().for_each(stop);
    let _ = Command::new("kill").args(["-KILL", pid]).status();
}
