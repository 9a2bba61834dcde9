//! Checks that the license of every dependency is compatible with Apache-2.0.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Checks all packages in the lock file.
///
/// # Errors
/// A list of those without an allowed license.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    println!("\n==> licences");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
    let mut faults = Vec::new();
    for package in packages {
        let text = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default();
        let licence = text("license");
        if !is_allowed(licence) {
            faults.push(format!("{} {}: {licence:?}", text("name"), text("version")));
        }
    }
    if faults.is_empty() {
        println!("{} packages", packages.len());
        return Ok(());
    }
    bail!("not under an allowed licence:\n{}", faults.join("\n"))
}

/// Whether an SPDX expression allows the use: at least one operand of an `OR`, and every operand of an `AND`. Brackets,
/// which are rare, are ignored, and `AND` counts as the outermost operator.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    expression
        .split(" AND ")
        .all(|part| part.split(" OR ").any(|licence| ALLOWED.contains(&licence.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_if_one_choice_is() {
        for (expression, allowed) in [
            ("MIT", true),
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression), allowed, "{expression}");
        }
    }
}
