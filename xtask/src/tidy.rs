//! The rules of the project that no compiler checks: crate dependencies, file and function sizes, `unsafe`, wording.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// The crates that each crate may use.
const EDGES: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("kernels", &["base"]),
    ("audio", &["base"]),
    ("score", &["base"]),
    ("text", &["base", "score"]),
    ("lm", &["base"]),
    ("model", &["base", "kernels", "audio"]),
    ("asr", &["base", "audio", "model", "text"]),
    ("server", &["base", "audio", "text", "asr"]),
    ("train", &["base", "audio", "model", "text", "score", "asr"]),
    ("cli", &["base", "kernels", "audio", "model", "text", "score", "lm", "asr", "train", "server"]),
];

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 70;
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "base", "helpers", "misc", "manager"];

/// Private dialect that does not belong into code or documents, and plain words for it.
const PHRASES: &[(&str, &str)] = &[
    ("beside", "next to, along with, compared with"),
    ("likeliest", "most probable"),
    ("is told", "is reported, is printed"),
    ("are told", "are reported, are printed"),
    ("told of", "reported"),
    ("the way back", "the backward pass"),
    ("for nothing", "say what happens"),
    ("as they please", "say what happens"),
    ("as it pleases", "say what happens"),
    ("made speech", "synthetic speech"),
    ("made voices", "synthetic voices"),
    ("in the box", "bundled"),
    ("one a line", "one per line"),
    ("a line each", "one per line"),
    ("frames a second", "frames per second"),
    ("samples a second", "samples per second"),
    ("updates a second", "updates per second"),
];

/// Checks every rule and fails with the number of violations.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut problems = Vec::new();
    check_edges(root, &mut problems)?;
    for path in texts(root)? {
        let text = fs::read_to_string(&path).with_context(|| format!("could not read `{}`", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if path.extension().is_some_and(|e| e == "rs") {
            check_source(&name, &text, &mut problems);
        }
        check_wording(&name, &text, &mut problems);
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    if !problems.is_empty() {
        bail!("tidy: {} violations", problems.len());
    }
    Ok(())
}

fn check_edges(root: &Path, problems: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join("crates"))? {
        let dir = entry?.path();
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((_, allowed)) = EDGES.iter().find(|(crate_name, _)| *crate_name == name) else {
            problems.push(format!("crates/{name}: not in the list of crates (xtask/src/tidy.rs)"));
            continue;
        };
        let manifest = fs::read_to_string(dir.join("Cargo.toml"))?;
        if !manifest.contains(&format!("name = \"srf-{name}\"\n")) {
            problems.push(format!("crates/{name}/Cargo.toml: expected the package name `srf-{name}`"));
        }
        for used in EDGES.iter().map(|(used, _)| *used).filter(|used| uses(&manifest, used)) {
            if !allowed.contains(&used) {
                problems.push(format!("crates/{name}/Cargo.toml: may not use `{used}`, only {allowed:?}"));
            }
        }
    }
    Ok(())
}

/// Whether a crate uses another one, tests aside.
fn uses(manifest: &str, name: &str) -> bool {
    let is_code = |line: &&str| *line != "[dev-dependencies]";
    manifest.lines().take_while(is_code).any(|line| {
        line.strip_prefix("srf-")
            .and_then(|line| line.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('.') || rest.starts_with(" ="))
            && !line.starts_with("name")
    })
}

/// All source files and documents.
fn texts(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    let mut pending: Vec<PathBuf> =
        ["bindings", "crates", "xtask", "docs", "samples", "models"].map(|dir| root.join(dir)).into();
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == "rs" || e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn check_source(name: &str, text: &str, problems: &mut Vec<String>) {
    let n_lines = text.lines().count();
    if n_lines > MAX_FILE_LINES {
        problems.push(format!("{name}: {n_lines} lines, at most {MAX_FILE_LINES} are allowed"));
    }
    if !text.starts_with("//!") {
        problems.push(format!("{name}:1: expected module docs (`//!`): what the module is for"));
    }
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if EMPTY_NAMES.contains(&stem.as_str()) {
        problems.push(format!("{name}: `{stem}` says nothing, name the file for what it holds"));
    }
    // Bindings export functions by name, which is an unsafe attribute; the compiler forbids them anything else.
    let may_be_unsafe = name.starts_with("crates/kernels/") || name.starts_with("bindings/");
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let is_code = !line.trim_start().starts_with("//") && !name.starts_with("xtask/");
        if is_code && !may_be_unsafe && line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "unsafe") {
            problems.push(format!("{name}:{at}: `unsafe` outside `kernels` and the C library"));
        }
    }
    if !name.contains("/tests") {
        check_functions(name, text, problems);
    }
}

/// Phrases of [`PHRASES`], as whole words; this file, which lists them, is exempt.
fn check_wording(name: &str, text: &str, problems: &mut Vec<String>) {
    if name == "xtask/src/tidy.rs" {
        return;
    }
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        for (phrase, better) in PHRASES.iter().filter(|(phrase, _)| has_phrase(line, phrase)) {
            problems.push(format!("{name}:{at}: instead of `{phrase}` write: {better}"));
        }
    }
    let headline = text.lines().next().unwrap_or_default();
    let is_riddle = [" in, ", " in; "].iter().any(|mark| headline.contains(mark)) && text.starts_with("//!");
    if is_riddle && headline_of(text).ends_with(" out.") {
        problems.push(format!("{name}:1: instead of `X in, Y out` say what the module is for"));
    }
}

/// The first paragraph of the module docs.
fn headline_of(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//! "));
    lines.collect::<Vec<_>>().join(" ")
}

fn has_phrase(line: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let lower = line.to_lowercase();
    lower.match_indices(phrase).any(|(start, _)| {
        let (before, after) = (lower[..start].chars().next_back(), lower[start + phrase.len()..].chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Function lengths, read off rustfmt's layout: a body ends at the first `}` indented like its `fn`.
fn check_functions(name: &str, text: &str, problems: &mut Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    let tests_start = lines.iter().position(|l| l.trim() == "mod tests {").unwrap_or(lines.len());
    for (index, line) in lines[..tests_start].iter().enumerate() {
        let code = line.trim_start();
        if !is_function(code) || code.ends_with(';') {
            continue;
        }
        let indent = line.len() - code.len();
        let close = format!("{}}}", " ".repeat(indent));
        let n_lines = lines[index..].iter().position(|l| **l == close).map_or(0, |n| n + 1);
        if n_lines > MAX_FUNCTION_LINES {
            let at = index + 1;
            problems.push(format!("{name}:{at}: function of {n_lines} lines, at most {MAX_FUNCTION_LINES}"));
        }
    }
}

fn is_function(code: &str) -> bool {
    let mut words = code.split_whitespace();
    words.by_ref().find(|w| !matches!(*w, "pub" | "pub(crate)" | "pub(super)" | "unsafe" | "const" | "async"))
        == Some("fn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_whole_words_only() {
        assert!(has_phrase("/// The likeliest label.", "likeliest"));
        assert!(has_phrase("Beside the network", "beside"));
        assert!(!has_phrase("`n_likeliest` slices, besides", "likeliest"));
        assert!(!has_phrase("besides", "beside"));
    }

    #[test]
    fn riddles_as_headlines_are_found() {
        let mut problems = Vec::new();
        check_wording("a.rs", "//! Samples in, frames\n//! out.\n", &mut problems);
        check_wording("b.rs", "//! Computes frames, in windows.\n", &mut problems);
        assert_eq!(problems, ["a.rs:1: instead of `X in, Y out` say what the module is for"]);
    }
}
