//! Checks that the licences of all dependencies allow redistribution. Advisories about them need a database from the
//! network, so they are a step of `cargo xtask deep`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Licences that allow redistribution of a program under MIT or Apache-2.0, as source and as binary.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    // Only requires that changes to its own files stay open.
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks every crate that any target or feature of the workspace can depend on.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .context("could not start cargo for the licences")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let refused: Vec<String> = packages.iter().filter_map(refusal).collect();
    for line in &refused {
        eprintln!("{line}");
    }
    if !refused.is_empty() {
        bail!("licences: {} crates may not be redistributed", refused.len());
    }
    eprintln!("licences: {} crates, all may be redistributed", packages.len());
    Ok(())
}

/// The reason why a crate may not be used, if there is one.
fn refusal(package: &Value) -> Option<String> {
    let name = package["name"].as_str().unwrap_or("?");
    match package["license"].as_str() {
        Some(expression) if is_allowed(expression) => None,
        Some(expression) => Some(format!("{name}: licence `{expression}`, expected one of {ALLOWED:?}")),
        None => Some(format!("{name}: no licence, expected one of {ALLOWED:?}")),
    }
}

/// Whether an SPDX expression can be satisfied with allowed licences; `/` is an old notation for OR.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.trim();
    if let Some(parts) = split(expression, &[" OR ", "/"]) {
        return parts.into_iter().any(is_allowed);
    }
    if let Some(parts) = split(expression, &[" AND "]) {
        return parts.into_iter().all(is_allowed);
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => ALLOWED.contains(&expression),
    }
}

/// The parts between separators outside parentheses; `None` without such separators.
fn split<'a>(expression: &'a str, separators: &[&str]) -> Option<Vec<&'a str>> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in expression.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        let here = expression.get(at..).unwrap_or_default();
        let separator = separators.iter().find(|separator| depth == 0 && at >= start && here.starts_with(**separator));
        if let Some(separator) = separator {
            parts.push(&expression[start..at]);
            start = at + separator.len();
        }
    }
    parts.push(&expression[start..]);
    (parts.len() > 1).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_when_a_choice_of_ours_meets_it() {
        for expression in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR GPL-2.0) AND Unicode-3.0"] {
            assert!(is_allowed(expression), "{expression}");
        }
        for expression in ["GPL-3.0", "MIT AND GPL-3.0", "", "(GPL-3.0 OR LGPL-2.1) AND MIT"] {
            assert!(!is_allowed(expression), "{expression}");
        }
    }

    #[test]
    fn a_crate_without_a_licence_is_refused_by_name() {
        let package = serde_json::json!({"name": "orphan", "license": null});
        assert!(refusal(&package).is_some_and(|line| line.starts_with("orphan: no licence")));
    }
}
