//! The recogniser for browsers: builds the module and the page, and tests both.
//!
//! `cargo xtask web` writes the page to `target/web`, which any server of static files can offer. The tests compare
//! transcripts of the module in node with those of the command, and open the page in a headless Chromium. Where node or
//! Chromium is missing one line says what was not run; with `CI=true` they are installed, and it is an error if they
//! cannot be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::build_srf;
use crate::tools::Tool;

/// The models that the page offers, the default first.
const MODELS: [&str; 3] = ["en", "en-phones", "en-digits"];
/// The model that also transcribes the synthetic recordings, whose voices it knows.
const MANY: &str = "en-phones";
/// The files of the page and where they are; the last part of the name is that in the page.
const FILES: [&str; 10] = [
    "bindings/web/connection.js",
    "bindings/web/files.js",
    "bindings/web/srf.d.ts",
    "bindings/web/srf.js",
    "bindings/web/worker.js",
    "crates/server/src/page/app.js",
    "crates/server/src/page/pictures.js",
    "crates/server/src/page/style.css",
    "crates/server/src/page/worklet.js",
    "LICENSE-MIT",
];
const TARGET: &str = "wasm32-unknown-unknown";
/// Has a standard output and arguments, which tests need; the kernels are the same.
const TEST_TARGET: &str = "wasm32-wasip1";

/// Builds everything and runs all tests that can run here; with `only_build`, no tests.
pub(crate) fn run(root: &Path, only_build: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    let out = build(root)?;
    eprintln!("web: the page is in `{}`", out.strip_prefix(root).unwrap_or(&out).display());
    if !only_build {
        test(root, &out)?;
        eprintln!("web: passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

fn test(root: &Path, out: &Path) -> anyhow::Result<()> {
    let node = Tool { names: &["node"], args: &["--version"], packages: &["nodejs"] };
    if node.find("the tests of the page and its module")?.is_none() {
        return Ok(());
    }
    let expected = write_expected(root)?;
    let test = |name: &str| root.join("bindings/web/tests").join(name).display().to_string();
    let arguments = [out.display().to_string(), expected.display().to_string()];
    command(
        root,
        "node",
        &["--test", &test("module.mjs")],
        &[("SRF_WEB", &arguments[0]), ("EXPECTED", &arguments[1])],
    )?;
    let names = &["chromium", "chromium-browser", "google-chrome"];
    let chromium = Tool { names, args: &["--version"], packages: &["chromium"] };
    let Some(browser) = chromium.find("the page in a browser")? else { return Ok(()) };
    let screenshots = root.join("target/web-tests").display().to_string();
    command(root, "node", &[&test("browser.mjs"), &browser, &arguments[0], &arguments[1], &screenshots], &[])
}

/// Compiles the module and puts the page together.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    command(root, "rustup", &["target", "add", TARGET], &[])?;
    let args = ["build", "--release", "--locked", "--quiet", "-p", "srf-web", "--target", TARGET];
    command(root, env!("CARGO"), &args, &[])?;
    let out = root.join("target/web");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(out.join("models"))?;
    let module = fs::read(root.join("target").join(TARGET).join("release/srf_web.wasm"))?;
    fs::write(out.join("srf.wasm"), without_custom_sections(&module)?)?;
    let mut names = vec!["srf.wasm".to_owned(), "models/models.json".to_owned(), "index.html".to_owned()];
    for file in FILES {
        let name = file.rsplit('/').next().unwrap_or(file);
        fs::copy(root.join(file), out.join(name)).with_context(|| format!("could not copy `{file}`"))?;
        names.push(name.to_owned());
    }
    fs::write(out.join("index.html"), page(root)?)?;
    fs::write(out.join("models/models.json"), models(root)?.to_string())?;
    for model in MODELS {
        copy_model(&root.join("models").join(model), &out.join("models").join(model))?;
    }
    fs::write(out.join("service-worker.js"), service_worker(root, &out, &names)?)?;
    Ok(out)
}

/// The list of models, as the server's page knows it.
fn models(root: &Path) -> anyhow::Result<Value> {
    let model = |name: &&str| -> anyhow::Result<Value> {
        let dir = root.join("models").join(name);
        let labels = fs::read_to_string(dir.join("labels.txt"))?;
        let units = labels.lines().next().and_then(|line| line.strip_prefix("# units: "));
        let units = units.with_context(|| format!("models/{name}/labels.txt names no units"))?;
        Ok(json!({ "id": name, "units": units, "has_words": dir.join("words.bin").exists() }))
    };
    MODELS.iter().map(model).collect()
}

/// The page with the controls of the server's page.
fn page(root: &Path) -> anyhow::Result<String> {
    let read = |name: &str| fs::read_to_string(root.join(name)).with_context(|| format!("could not read `{name}`"));
    let (page, servers) = (read("bindings/web/index.html")?, read("crates/server/src/page/index.html")?);
    let between = |text: &str, from: &str, to: &str| -> anyhow::Result<(usize, usize)> {
        let start = text.find(from).with_context(|| format!("the page has no `{from}`"))?;
        let length = text[start..].find(to).with_context(|| format!("the page has no `{to}`"))?;
        Ok((start, start + length + to.len()))
    };
    let (start, end) = between(&servers, "<main", "</main>")?;
    let (mark_start, mark_end) = between(&page, "<!-- MAIN", "-->")?;
    Ok([&page[..mark_start], &servers[start..end], &page[mark_end..]].concat())
}

/// Copies a model and lists its files with their sizes and hashes.
fn copy_model(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    let mut paths: Vec<PathBuf> = fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let content = fs::read(&path).with_context(|| format!("could not read `{}`", path.display()))?;
        files.push(json!({ "name": name, "bytes": content.len(), "hash": hash(&[&content]) }));
        fs::write(to.join(name), content)?;
    }
    Ok(fs::write(to.join("files.json"), Value::from(files).to_string())?)
}

/// The service worker with the names of the page's files and a hash of all of them.
fn service_worker(root: &Path, out: &Path, names: &[String]) -> anyhow::Result<String> {
    let contents: Vec<Vec<u8>> = names.iter().map(|name| fs::read(out.join(name))).collect::<Result<_, _>>()?;
    let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    let kept: Vec<&str> = std::iter::once("./").chain(names.iter().map(String::as_str)).collect();
    let text = fs::read_to_string(root.join("bindings/web/service-worker.js"))?;
    let version = format!("'srf-page-{}'", hash(&contents));
    let filled = text.replace("'VERSION'", &version).replace("['FILES']", &json!(kept).to_string());
    ensure!(filled.contains(&version) && !filled.contains("FILES']"), "service-worker.js has no place for its files");
    Ok(filled)
}

/// FNV-1a: tells versions of a file apart, no more.
fn hash(parts: &[&[u8]]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", parts.iter().copied().flatten().fold(0xcbf2_9ce4_8422_2325, step))
}

/// A module without names and debug information, which are larger than its code.
fn without_custom_sections(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    let (header, mut rest) = module.split_at_checked(8).context("the module is cut off")?;
    let mut kept = header.to_vec();
    while let Some((&id, after)) = rest.split_first() {
        let (size, n_bytes) = leb128(after).context("the size of a section is cut off")?;
        let length = 1 + n_bytes + size;
        let section = rest.get(..length).context("a section is cut off")?;
        if id != 0 {
            kept.extend_from_slice(section);
        }
        rest = &rest[length..];
    }
    Ok(kept)
}

/// A number in seven bits a byte, the lowest first, and how many bytes it has.
fn leb128(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        number |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    None
}

/// The suite of the kernels, which compares every row with the definition, on WebAssembly; a step of `cargo xtask deep`.
pub(crate) fn test_kernels(root: &Path) -> anyhow::Result<()> {
    command(root, "rustup", &["target", "add", TEST_TARGET], &[])?;
    let runner = format!("node --no-warnings {}", root.join("bindings/web/tests/wasi.mjs").display());
    // Debug information would only make the build slower.
    let env = [("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner.as_str()), ("CARGO_PROFILE_TEST_DEBUG", "0")];
    let args = ["test", "--locked", "--quiet", "-p", "srf-kernels", "--lib", "--target", TEST_TARGET];
    command(root, env!("CARGO"), &args, &env)
}

/// What the command writes for the samples and for synthetic speech, one JSON object per line.
fn write_expected(root: &Path) -> anyhow::Result<PathBuf> {
    let dir = root.join("target/web-tests");
    let corpus = dir.join("corpus").display().to_string();
    fs::create_dir_all(&dir)?;
    let srf = build_srf(root)?;
    let prepare = ["prepare", "builtin", &corpus, "--hours", "0.1", "--speakers", "10", "--seed", "18", "--force"];
    command(root, &srf.display().to_string(), &prepare, &[])?;
    let mut lines = String::new();
    for model in MODELS {
        let mut lists = vec!["samples/samples.jsonl".to_owned()];
        if model == MANY {
            lists.extend(["train", "dev", "test"].map(|part| format!("{corpus}/{part}.jsonl")));
        }
        let model = format!("models/{model}");
        for list in lists {
            let transcribe = ["transcribe", "--quiet", "--model", &model, &list, "--format", "json"];
            let output = Command::new(&srf).args(transcribe).current_dir(root).output()?;
            ensure!(output.status.success(), "`srf transcribe` failed: {}", String::from_utf8_lossy(&output.stderr));
            for line in String::from_utf8(output.stdout)?.lines() {
                let mut object: Value = serde_json::from_str(line)?;
                object["model"] = model.as_str().into();
                lines += &(object.to_string() + "\n");
            }
        }
    }
    let path = dir.join("expected.jsonl");
    fs::write(&path, lines)?;
    Ok(path)
}

fn command(dir: &Path, program: &str, args: &[&str], env: &[(&str, &str)]) -> anyhow::Result<()> {
    let line = format!("{program} {}", args.join(" "));
    let status = Command::new(program).args(args).current_dir(dir).envs(env.iter().copied()).status();
    if !status.with_context(|| format!("could not start `{line}`"))?.success() {
        bail!("`{line}` failed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_sections_are_left_out() {
        let module = [b"\0asm\x01\0\0\0", &[1, 1, 9][..], &[0, 0x82, 0x00, 7, 7], &[3, 0]].concat();
        assert_eq!(without_custom_sections(&module).ok(), Some(b"\0asm\x01\0\0\0\x01\x01\x09\x03\x00".to_vec()));
        assert!(without_custom_sections(&module[..module.len() - 1]).is_err());
        assert!(without_custom_sections(&[&module[..], &[1, 5, 0]].concat()).is_err());
    }
}
