//! The public items of every library, listed in `docs/api`, so that a change of an API shows in a diff.
//!
//! A listing by the source, not by the compiler: `pub` items with their signatures, in the order of files and lines.
//! Items of private modules are listed too where they are `pub`, because they may be re-exported.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::sources;

/// Words that begin a public item.
const ITEMS: &[&str] =
    &["fn", "const fn", "unsafe fn", "struct", "enum", "trait", "union", "const", "static", "type", "mod", "use"];

/// Writes the listings.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    for (path, text) in listings(root)? {
        fs::create_dir_all(path.parent().expect("it lies in docs/api"))?;
        fs::write(&path, text).with_context(|| format!("could not write `{}`", path.display()))?;
    }
    Ok(())
}

/// Fails if a listing is not that of the source.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    for (path, text) in listings(root)? {
        if fs::read_to_string(&path).unwrap_or_default() != text {
            bail!("`{}` is not up to date: run `cargo xtask api` and look at the diff", path.display());
        }
    }
    Ok(())
}

fn listings(root: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let libraries = crate::crates(root)?.into_iter().filter(|dir| dir.join("src/lib.rs").exists());
    let listing = |dir: PathBuf| {
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut text = String::new();
        for file in sources(&dir.join("src"))? {
            let module = module(&dir.join("src"), &file);
            for item in items(&fs::read_to_string(&file)?) {
                let _ = writeln!(text, "{module}: {item}");
            }
        }
        Ok((root.join(format!("docs/api/srf-{name}.txt")), text))
    };
    libraries.map(listing).collect()
}

/// `src/features/cmvn.rs` is `features::cmvn`; the root is `crate`.
fn module(src: &Path, file: &Path) -> String {
    let inside = file.strip_prefix(src).unwrap_or(file).with_extension("");
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
    if parts == ["lib"] { "crate".to_owned() } else { parts.join("::") }
}

/// The public items of one file, each on one line.
pub(crate) fn items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    // What is open: the depth of braces it was opened at, its name, and whether its members are public by themselves.
    let mut open: Vec<(usize, String, bool)> = Vec::new();
    let mut depth = 0usize;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let line = code(line);
        if line == "#[cfg(test)]" {
            // Tests inside the file are at its end; others are a line somewhere.
            if lines.next().is_none_or(|tests| tests.ends_with('{')) {
                break;
            }
            continue;
        }
        let is_member = open.last().is_some_and(|(at, _, is_public)| *is_public && *at + 1 == depth);
        let is_item = ITEMS
            .iter()
            .any(|item| line.strip_prefix("pub ").is_some_and(|rest| rest.starts_with(&format!("{item} "))));
        let is_field = line.starts_with("pub ") && line.contains(": ") && !is_item;
        let is_header = line.starts_with("impl") && depth == 0;
        let mut whole = line.to_owned();
        if is_item || is_header || (is_member && line.starts_with("fn ")) {
            while !ends(&whole) && lines.peek().is_some() {
                whole = format!("{whole} {}", code(lines.next().unwrap_or_default()));
            }
        }
        if is_item || is_field || (is_member && !line.is_empty() && !line.starts_with('#') && !line.starts_with('}')) {
            let place = open.last().map_or(String::new(), |(_, name, _)| format!("{name}: "));
            items.push(format!("{place}{}", tidy(&whole)));
        }
        let is_public_block = line.starts_with("pub enum") || line.starts_with("pub trait");
        if (is_header || is_item) && whole.ends_with('{') {
            open.push((depth, tidy(&whole), is_public_block));
        }
        let bare = without_literals(&whole);
        depth = (depth + bare.matches('{').count()).saturating_sub(bare.matches('}').count());
        while open.last().is_some_and(|(at, ..)| depth <= *at) {
            open.pop();
        }
    }
    items
}

/// Code without the texts and characters in it, which may hold braces.
fn without_literals(code: &str) -> String {
    let code = code.replace(r"\\", "").replace(r#"\""#, "").replace("'\"'", "").replace("'{'", "").replace("'}'", "");
    code.split('"').step_by(2).collect()
}

/// A line without its comment.
fn code(line: &str) -> &str {
    let line = line.trim();
    line.find("//").filter(|at| !line[..*at].contains('"')).map_or(line, |at| line[..at].trim_end())
}

/// Whether an item's signature is complete.
fn ends(line: &str) -> bool {
    line.ends_with(['{', ';', '}'])
}

/// Without the brace that opens the body, and without breaks inside parentheses.
fn tidy(item: &str) -> String {
    let item = item.trim_end_matches(['{', ';', ',']).trim_end();
    item.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(", )", ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_are_listed_with_their_places() {
        let text = "//! Docs.\npub struct Point {\n    /// The x.\n    pub x: f32,\n    y: f32,\n}\n\nimpl Point {\n    pub fn new(\n        x: f32, // why\n    ) -> Self {\n        Self { x, y: 0.0 }\n    }\n    fn hidden(&self) {}\n}\npub enum Kind {\n    A,\n    B { n: usize },\n}\n#[cfg(test)]\nmod tests {\n    pub fn no() {}\n}\n";
        let expected = [
            "pub struct Point",
            "pub struct Point: pub x: f32",
            "impl Point: pub fn new(x: f32) -> Self",
            "pub enum Kind",
            "pub enum Kind: A",
            "pub enum Kind: B { n: usize }",
        ];
        assert_eq!(items(text), expected);
    }

    #[test]
    fn neither_tests_elsewhere_nor_braces_in_texts_end_the_listing() {
        let text = "#[cfg(test)]\nmod tests;\npub enum Kind {\n    #[error(\"a `{\")]\n    A,\n}\nconst C: char = '{';\npub fn f() {}\n";
        assert_eq!(items(text), ["pub enum Kind", "pub enum Kind: A", "pub fn f() {}"]);
    }

    #[test]
    fn the_program_of_the_tutorial_is_compiled() {
        let root = crate::root();
        let tutorial = fs::read_to_string(root.join("docs/TUTORIAL.md")).unwrap();
        let (_, program) = tutorial.split_once("```rust,no_run\n").unwrap();
        let (program, _) = program.split_once("```\n").unwrap();
        let example = fs::read_to_string(root.join("crates/asr/examples/tutorial.rs")).unwrap();
        assert!(example.ends_with(program), "copy the program of docs/TUTORIAL.md to crates/asr/examples/tutorial.rs");
    }
}
