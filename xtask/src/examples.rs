//! Checks that every public item of the libraries is used in an example, which `cargo test` compiles.
//!
//! Examples are code in doc comments and READMEs, and the programs in `examples/`; an item counts as used if its name
//! is a word of one of them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use anyhow::bail;

use crate::{api, sources};

/// The libraries that other programs use; the others are made for the command `srf`.
const LIBRARIES: [&str; 7] = ["asr", "audio", "base", "lm", "model", "score", "text"];

const KINDS: [&str; 7] = ["fn", "struct", "enum", "trait", "const", "static", "type"];

/// Fails if an item is in no example, and names all of them.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let mut words = HashSet::new();
    for dir in crate::crates(root)? {
        for file in sources(&dir.join("src"))? {
            words.extend(words_of(&doc_examples(&fs::read_to_string(&file)?)));
        }
        let programs = dir.join("examples");
        for file in if programs.is_dir() { sources(&programs)? } else { Vec::new() } {
            words.extend(words_of(&fs::read_to_string(&file)?));
        }
        let readme = fs::read_to_string(dir.join("README.md")).unwrap_or_default();
        let programs = readme.split("```rust").skip(1).filter_map(|rest| rest.split("```").next());
        programs.for_each(|program| words.extend(words_of(program)));
    }
    let mut n_missing = 0;
    for library in LIBRARIES {
        let src = root.join("crates").join(library).join("src");
        for file in sources(&src)? {
            let items = api::items(&fs::read_to_string(&file)?);
            let mut names: Vec<&str> = items.iter().filter_map(|item| name(item)).collect();
            names.dedup();
            for name in names.into_iter().filter(|name| !words.contains(*name)) {
                eprintln!("{}: `{name}` is in no example", file.strip_prefix(root).unwrap_or(&file).display());
                n_missing += 1;
            }
        }
    }
    if n_missing > 0 {
        bail!("{n_missing} public items are in no example");
    }
    Ok(())
}

/// The name of an item of a listing; `None` for fields, variants and modules.
fn name(item: &str) -> Option<&str> {
    let item = item.rsplit(": pub ").next()?;
    let item = item.strip_prefix("pub ").unwrap_or(item);
    let item = item.strip_prefix("const fn").map_or(item, |_| &item["const ".len()..]);
    let (kind, rest) = item.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    // A trait that nobody can name has no example.
    KINDS.contains(&kind).then_some(&rest[..end]).filter(|name| *name != "Sealed")
}

/// The code in the doc comments of a file.
fn doc_examples(text: &str) -> String {
    let mut code = String::new();
    // The language of the block that is open.
    let mut open: Option<&str> = None;
    for line in text.lines().map(str::trim_start) {
        let Some(line) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).map(str::trim_start) else {
            open = None;
            continue;
        };
        match (line.strip_prefix("```"), open) {
            (Some(language), None) => open = Some(language),
            (Some(_), Some(_)) => open = None,
            (None, Some(language)) if language != "text" => code.extend([line, "\n"]),
            _ => {}
        }
    }
    code
}

fn words_of(code: &str) -> impl Iterator<Item = String> + '_ {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_items() {
        let listed = ["pub struct Point", "pub struct Point: pub x: f32", "impl Point: pub const fn new() -> Self"];
        assert_eq!(listed.map(name), [Some("Point"), None, Some("new")]);
        assert_eq!(name("pub enum Kind: A"), Some("Kind"));
    }

    #[test]
    fn examples_are_code_and_not_diagrams() {
        let text = "//! ```text\n//! not\n//! ```\n/// ```no_run\n/// yes();\n/// ```\nfn no() {}\n";
        assert_eq!(doc_examples(text), "yes();\n");
    }
}
