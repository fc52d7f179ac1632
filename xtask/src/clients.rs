//! Clients that people use, the page in a browser, the examples of docs/SERVER.md and the systemd unit, on a server
//! that runs as its users run it.
//!
//! Every client is installed as it is published, into `target/clients`. Where a program is missing, a line says what was
//! not run. In continuous integration it is installed (Debian and Ubuntu, as root), and what cannot be had is a failure.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};

use crate::cargo;

const SAMPLE: &str = "samples/woman-1.wav";
/// Where the clients are, and the requirements that were installed.
const FOLDER: &str = "target/clients";

/// Runs everything that can be run here.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let start = Instant::now();
    // With the features that the tests are built with, so that nothing is compiled twice; a test needs the program.
    cargo(root, &["test", "--workspace", "--locked", "--no-run", "--test", "live"])?;
    let srf = target(root).join("debug/srf");
    unit(root, &srf)?;
    if !has("python3", &["-c", "import ensurepip, venv"], "python3-venv")? {
        return Ok(());
    }
    let Some(python) = environment(root)? else { return Ok(()) };
    let here = Here { root, python, srf };
    let server = Served::start(&here.srf)?;
    for name in ["woman-1", "woman-2", "man-1", "man-2"] {
        let sample = root.join(format!("samples/{name}.wav"));
        here.clients(&server, &sample, &here.transcribe(&sample)?)?;
    }
    let sample = root.join(SAMPLE);
    let text = here.transcribe(&sample)?;
    let examples = Examples::read(root)?;
    if has("curl", &["--version"], "curl")? {
        examples.run(&here, &server, &text)?;
    }
    if has("chromium", &["--version"], "chromium")? && has("chromedriver", &["--version"], "chromium-driver")? {
        here.page(&server, &sample, &text, &examples)?;
    }
    server.stop()?;
    eprintln!("clients: passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// Whether `program` can be had; in continuous integration it is installed.
fn has(program: &str, args: &[&str], package: &str) -> anyhow::Result<bool> {
    let runs = || Command::new(program).args(args).output().is_ok_and(|output| output.status.success());
    if runs() {
        return Ok(true);
    }
    if !crate::is_ci() {
        eprintln!("clients: what needs `{program}` was not run; it is in the package `{package}`");
        return Ok(false);
    }
    // Only root may install, and only these systems have the packages by these names.
    let quiet = |args: &[&str]| Command::new("apt-get").args(args).output().is_ok_and(|output| output.status.success());
    let install = ["install", "--yes", "--no-install-recommends", package];
    let is_there = (quiet(&install) || (quiet(&["update"]) && quiet(&install))) && runs();
    ensure!(is_there, "`{program}` is missing and could not be installed; it is in the package `{package}`");
    Ok(true)
}

/// A Python with the clients; its path, or `None` where they cannot be had.
fn environment(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    let requirements = root.join("crates/server/tests/clients/requirements.txt");
    let wanted = fs::read_to_string(&requirements)?;
    let folder = root.join(FOLDER);
    let (installed, python) = (folder.join("installed.txt"), folder.join("venv/bin/python"));
    if python.exists() && fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(Some(python));
    }
    fs::create_dir_all(&folder)?;
    let venv = folder.join("venv");
    succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&requirements);
    match succeed(&mut pip).context("the clients could not be installed") {
        Err(error) if !crate::is_ci() => {
            let reason = format!("{error:#}");
            eprintln!("clients: not run: {}", reason.lines().next().unwrap_or_default());
            return Ok(None);
        }
        outcome => drop(outcome?),
    }
    fs::write(&installed, wanted)?;
    Ok(Some(python))
}

/// Runs a command; its output if it succeeds.
fn succeed(command: &mut Command) -> anyhow::Result<Output> {
    let line = format!("{command:?}");
    let output = command.output().with_context(|| format!("could not start {line}"))?;
    if !output.status.success() {
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        bail!("{line} failed: {}{}", stdout.trim(), stderr.trim());
    }
    Ok(output)
}

fn text_of(output: Output) -> anyhow::Result<String> {
    Ok(String::from_utf8(output.stdout).context("the output is not UTF-8")?.trim_end().to_owned())
}

/// The systemd unit, with the program that was built in place of the one that would be installed.
fn unit(root: &Path, srf: &Path) -> anyhow::Result<()> {
    if !has("systemd-analyze", &["--version"], "systemd")? {
        return Ok(());
    }
    let text = fs::read_to_string(root.join("deploy/srf.service"))?;
    let start = "ExecStart=/usr/bin/srf ";
    ensure!(text.contains(start), "deploy/srf.service has no line that begins with `{start}`");
    // Bounds on what the system has to be able to check; the documentation is not installed here either.
    let copy = text.replace(start, &format!("ExecStart={} ", srf.display()));
    let path = root.join(FOLDER).join("srf.service");
    fs::create_dir_all(root.join(FOLDER))?;
    fs::write(&path, copy)?;
    let output = succeed(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path))?;
    let remarks = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours: Vec<&str> = remarks.lines().filter(|line| line.contains("srf.service")).collect();
    ensure!(ours.is_empty(), "systemd-analyze verify: {}", ours.join("; "));
    eprintln!("clients: systemd accepts deploy/srf.service");
    Ok(())
}

/// What the steps share.
struct Here<'a> {
    root: &'a Path,
    python: PathBuf,
    srf: PathBuf,
}

impl Here<'_> {
    /// The text of a recording, by the program without a server.
    fn transcribe(&self, path: &Path) -> anyhow::Result<String> {
        let model = self.root.join("models/en-phones");
        let mut command = Command::new(&self.srf);
        command.args(["--quiet", "transcribe", "--model"]).arg(model).arg(path).current_dir(self.root);
        let text = text_of(succeed(&mut command)?)?.lines().collect::<Vec<_>>().join(" ");
        ensure!(text.split(' ').count() > 10, "`{}` gives only `{text}`", path.display());
        Ok(text)
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.root.join("crates/server/tests/clients").join(name)).current_dir(self.root);
        command
    }

    fn clients(&self, server: &Served, sample: &Path, text: &str) -> anyhow::Result<()> {
        let mut command = self.script("clients.py");
        command.args([server.address.as_str(), server.wyoming_port.as_str()]).arg(sample).arg(text);
        eprintln!("{}", text_of(succeed(&mut command)?)?);
        Ok(())
    }

    fn page(&self, server: &Served, sample: &Path, text: &str, examples: &Examples) -> anyhow::Result<()> {
        let folder = self.root.join(FOLDER);
        let spoken = folder.join("spoken.wav");
        succeed(self.script("spoken.py").arg(sample).arg(&spoken))?;
        let program = folder.join("example.js");
        fs::write(&program, server.localized(examples.javascript()?))?;
        let mut command = self.script("page.py");
        command.arg(&server.address).arg(sample).arg(text).arg(&spoken).arg(self.transcribe(&spoken)?);
        command.arg(program).arg(folder).arg(&self.srf);
        command.args(["--quiet", "transcribe", "--model", "models/en-phones"]);
        eprintln!("{}", text_of(succeed(&mut command)?)?);
        Ok(())
    }
}

/// A server that runs until it is stopped.
struct Served {
    process: Child,
    /// `host:port`.
    address: String,
    wyoming_port: String,
}

impl Served {
    fn start(srf: &Path) -> anyhow::Result<Self> {
        let root = crate::root();
        let mut process = Command::new(srf)
            .args(["serve", "--listen", "127.0.0.1:0", "--wyoming", "0", "--model", "models/en-phones"])
            .current_dir(root)
            .stderr(Stdio::piped())
            .spawn()
            .context("could not start the server")?;
        let mut lines = BufReader::new(process.stderr.take().context("the server has no stderr")?).lines();
        let mut after = |mark: &str| -> anyhow::Result<String> {
            let found = lines
                .by_ref()
                .map_while(Result::ok)
                .find_map(|line| line.split_once(mark).map(|(_, address)| address.trim().to_owned()));
            found.with_context(|| format!("the server ended before it printed `{mark}`"))
        };
        let address = after("listening on http://")?;
        let wyoming = after("Wyoming on tcp://")?;
        // Logs that nobody reads would block the server once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        let wyoming_port = wyoming.rsplit(':').next().unwrap_or_default().to_owned();
        Ok(Self { process, address, wyoming_port })
    }

    /// An example of the documents, with the ports of this server.
    fn localized(&self, example: &str) -> String {
        let port = self.address.rsplit(':').next().unwrap_or_default();
        example.replace("2700", port).replace("10300", &self.wyoming_port)
    }

    /// Stops it as systemd would; it has to end by itself.
    fn stop(mut self) -> anyhow::Result<()> {
        succeed(Command::new("kill").args(["-TERM", &self.process.id().to_string()]))?;
        let status = self.process.wait()?;
        ensure!(status.success(), "the server ended with {status} after SIGTERM");
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Only after a failure: a server that was stopped is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The programs in the section on clients of docs/SERVER.md: language and text.
struct Examples(Vec<(String, String)>);

impl Examples {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(root.join("docs/SERVER.md"))?;
        let clients = text.split("\n## ").find(|part| part.starts_with("Clients")).context("no section `Clients`")?;
        // Text and blocks take turns; the first line of a block is its language.
        let blocks = clients.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
        let all: Vec<_> = blocks.map(|(language, text)| (language.to_owned(), text.to_owned())).collect();
        ensure!(all.len() > 8, "docs/SERVER.md has only {} examples of clients", all.len());
        Ok(Self(all))
    }

    /// The program for browsers.
    fn javascript(&self) -> anyhow::Result<&str> {
        let found = self.0.iter().find(|(language, _)| language == "js");
        found.map(|(_, text)| text.as_str()).context("docs/SERVER.md has no example in JavaScript")
    }

    /// Runs all but the one for browsers; the output of each has to contain the text.
    fn run(&self, here: &Here<'_>, server: &Served, text: &str) -> anyhow::Result<()> {
        let bin = here.python.parent().context("no folder of programs")?;
        let path = std::env::join_paths(
            [bin.to_owned()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        )?;
        for (language, example) in &self.0 {
            let program = match language.as_str() {
                "sh" => "bash",
                "python" => "python",
                "js" => continue,
                other => bail!("docs/SERVER.md: an example in `{other}`, expected sh, python or js"),
            };
            let flag = if program == "bash" { "-ec" } else { "-c" };
            let mut command = Command::new(if program == "bash" { "bash".into() } else { here.python.clone() });
            command.args([flag, &server.localized(example)]).current_dir(here.root).env("PATH", &path);
            let output = succeed(&mut command)?;
            let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let found = without_times(&printed.concat());
            ensure!(found.contains(text), "docs/SERVER.md: expected `{text}` from\n{example}\nfound `{found}`");
        }
        eprintln!("clients: {} examples of docs/SERVER.md give the text of the program", self.0.len() - 1);
        Ok(())
    }
}

/// The lines of an output in one, without those that only number or time subtitles.
fn without_times(text: &str) -> String {
    let is_text = |line: &&str| !line.contains("-->") && line.parse::<u32>().is_err() && !line.trim().is_empty();
    text.lines().filter(is_text).collect::<Vec<_>>().join(" ")
}
