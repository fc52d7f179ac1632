//! Counts the source lines of every crate without its tests, to see whether a change made the code smaller.
//!
//! Tests are files and folders named `tests` or `testing`, modules in `mod tests { ... }`, and examples in doc
//! comments, which `cargo test` runs too.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::sources;

/// What one crate, or all of them, consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    files: usize,
    lines: usize,
    /// Lines that are neither empty nor only a comment.
    code: usize,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.lines += other.lines;
        self.code += other.code;
    }
}

/// Prints the counts of every crate and their sum.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut total = Count::default();
    let mut print = |name: &str, src: &Path| -> anyhow::Result<()> {
        let mut sum = Count::default();
        for file in sources(src)? {
            let text = fs::read_to_string(&file).with_context(|| format!("could not read `{}`", file.display()))?;
            sum += count(&text);
        }
        println!("{name:<9} files {:4}  lines {:6}  code {:6}", sum.files, sum.lines, sum.code);
        total += sum;
        Ok(())
    };
    for dir in crate::crates(root)? {
        print(&dir.file_name().unwrap_or_default().to_string_lossy(), &dir.join("src"))?;
    }
    print("xtask", &root.join("xtask/src"))?;
    println!("{:<9} files {:4}  lines {:6}  code {:6}", "total", total.files, total.lines, total.code);
    Ok(())
}

fn count(text: &str) -> Count {
    let mut count = Count { files: 1, ..Count::default() };
    let (mut is_example, mut is_diagram, mut is_test) = (false, false, false);
    for line in text.lines() {
        let code = line.trim_start();
        // rustfmt closes a module at the margin.
        is_test |= line == "mod tests {" || line == "mod testing {";
        let comment = code.strip_prefix("//!").or_else(|| code.strip_prefix("///")).map(str::trim_start);
        let is_fence = comment.is_some_and(|comment| comment.starts_with("```"));
        let opens_example = is_fence && !is_example && !is_diagram && comment != Some("```text");
        is_diagram ^= is_fence && !is_example && !opens_example;
        if opens_example || is_example || is_test {
            is_example = opens_example || (is_example && !is_fence);
            is_test &= line != "}";
            continue;
        }
        count.lines += 1;
        count.code += usize::from(!code.is_empty() && !code.starts_with("//"));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_examples_do_not_count() {
        let text = "//! What for.\n\n/// Doubles.\n///\n/// ```\n/// assert_eq!(double(1), 2);\n/// ```\nfn double(x: u8) -> u8 {\n    2 * x\n}\n\n#[cfg(test)]\nmod tests {\n    fn no() {}\n}\n";
        assert_eq!(count(text), Count { files: 1, lines: 9, code: 4 });
    }

    #[test]
    fn diagrams_count() {
        assert_eq!(count("//! ```text\n//! a -> b\n//! ```\nfn f() {}\n"), Count { files: 1, lines: 4, code: 1 });
    }
}
