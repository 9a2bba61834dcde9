//! Webhooks of a data directory: `webhooks.json`.
//!
//! `roost webhook` changes the file, one command at a time (`webhooks.lock`), and replaces the whole file. It contains
//! secrets, so only its owner may read it, and backups do not include it.

use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use webhooks::{WEBHOOKS_MAX, Webhook};

use crate::files::{lock, read_small, replace};

const FILE: &str = "webhooks.json";
const LOCK: &str = "webhooks.lock";
const VERSION: u32 = 1;
/// Maximum file size in bytes: more than that of a file with [`WEBHOOKS_MAX`] webhooks.
const FILE_BYTES_MAX: u64 = 256 << 10;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WebhooksFile {
    version: u32,
    webhooks: Vec<Webhook>,
}

/// Reads the webhooks of the data directory.
///
/// # Errors
/// If the file cannot be read, or a webhook is wrong.
pub(super) fn load(data: &Path) -> anyhow::Result<Vec<Webhook>> {
    let path = data.join(FILE);
    let read = || -> anyhow::Result<Vec<Webhook>> {
        let Some(text) = read_small(&path, FILE_BYTES_MAX)? else { return Ok(Vec::new()) };
        let WebhooksFile { version, webhooks } = serde_json::from_str(&text)?;
        anyhow::ensure!(version == VERSION, "its version is {version}, not {VERSION}");
        anyhow::ensure!(webhooks.len() <= WEBHOOKS_MAX, "it has more than {WEBHOOKS_MAX} webhooks");
        for (index, webhook) in webhooks.iter().enumerate() {
            super::check(webhook)?;
            let is_new = webhooks.iter().take(index).all(|other| other.name != webhook.name);
            anyhow::ensure!(is_new, "there are two webhooks {:?}", webhook.name);
        }
        Ok(webhooks)
    };
    read().with_context(|| format!("cannot read the webhooks in {}", path.display()))
}

/// Changes the webhooks under the lock. If `change` fails, nothing is written.
///
/// # Errors
/// Those of `change`, or if files cannot be read or written.
pub(super) fn change<T>(
    data: &Path,
    change: impl FnOnce(&mut Vec<Webhook>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let _locked = lock(&data.join(LOCK))?;
    let mut webhooks = load(data)?;
    let done = change(&mut webhooks)?;
    let file = WebhooksFile { version: VERSION, webhooks };
    replace(&data.join(FILE), &serde_json::to_vec_pretty(&file)?)?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn files_that_are_wrong_are_refused_with_their_name() {
        let data = tempfile::tempdir().unwrap();
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let webhook = |name: &str, url: &str, secret: &str, kind: &str| {
            json!({"name": name, "url": url, "secret": secret, "kinds": [kind], "ids_only": false,
                "allow_private": false})
        };
        let file = |webhooks: &[serde_json::Value]| {
            json!({"version": 1, "webhooks": webhooks}).to_string()
        };
        let (url, kind) = ("https://a.example/x", "followed");
        let good = |name: &str| webhook(name, url, secret, kind);
        let many: Vec<_> = (0..=WEBHOOKS_MAX).map(|number| good(&format!("w{number}"))).collect();
        for (text, right) in [
            (file(&[]), true),
            (file(&many[1..]), true),
            (file(&many), false),
            (file(&[good("a"), good("a")]), false),
            (file(&[good("../a")]), false),
            (file(&[webhook("a", "http://a.example", secret, kind)]), false),
            (file(&[webhook("a", "https://u:p@a.example", secret, kind)]), false),
            (file(&[webhook("a", url, "short", kind)]), false),
            (file(&[webhook("a", url, secret, "unknown")]), false),
            (json!({"version": 2, "webhooks": []}).to_string(), false),
            (String::new(), false),
            (file(&[]) + &" ".repeat(FILE_BYTES_MAX as usize), false),
        ] {
            fs::write(data.path().join(FILE), &text).unwrap();
            match load(data.path()) {
                Ok(_) => assert!(right, "{text:.300}"),
                Err(error) => {
                    let error = format!("{error:#}");
                    assert!(!right && error.contains(FILE), "{error}");
                    assert!(!error.contains("MfKQ9") && !error.contains("u:p"), "{error}");
                }
            }
        }
    }

    #[test]
    fn the_file_is_private_and_a_change_that_fails_changes_nothing() {
        let data = tempfile::tempdir().unwrap();
        change(data.path(), |_| Ok(())).unwrap();
        let path = data.path().join(FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let before = fs::read(&path).unwrap();
        change(data.path(), |_| -> anyhow::Result<()> { anyhow::bail!("no") }).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}
