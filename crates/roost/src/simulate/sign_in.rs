//! Credentials of the users of `--api mastodon`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use sim::{ApiOptions, Credential, MastodonOptions, Population};

use super::Simulate;
use super::arguments::Api;
use crate::account;
use crate::running::RunningServer;

/// Longest file of `--tokens`, in bytes: enough for 4 million tokens of roost.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Number of characters of the password of a signed-up user.
const PASSWORD_CHARS: usize = 32;

impl Simulate {
    /// Selects how users authenticate. `server` is the server that this process has started, if any. `has_key` says
    /// whether there is an application key for another server.
    pub(super) async fn api(
        &self,
        server: Option<&RunningServer>,
        has_key: bool,
    ) -> anyhow::Result<ApiOptions> {
        if self.api == Api::Roost {
            return Ok(ApiOptions::Roost);
        }
        let credentials = match (server, &self.tokens) {
            (Some(server), _) => {
                let tokens =
                    account::test_tokens(server.data(), self.people.seed, self.users()?).await?;
                Some(tokens.into_iter().map(Credential::Token).collect())
            }
            (None, Some(file)) => {
                let read = || format!("cannot use {}", file.display());
                Some(credentials(file).with_context(read)?)
            }
            (None, None) => None,
        };
        let secret = node::Secret::random().context("no random bytes")?;
        let password = secret.as_str().chars().take(PASSWORD_CHARS).collect();
        let own_api = server.is_some() || has_key;
        Ok(ApiOptions::Mastodon(MastodonOptions { credentials, password, own_api }))
    }

    /// Number of simulated users.
    fn users(&self) -> anyhow::Result<u32> {
        Ok(match &self.people.graph {
            Some(path) => Population::from_edges(path)?.people(),
            None => self.people.users,
        })
    }
}

/// Reads the lines of a file of credentials.
fn credentials(file: &Path) -> anyhow::Result<Arc<[Credential]>> {
    let mut text = String::new();
    File::open(file)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= FILE_BYTES_MAX, "it has more than {} MiB", FILE_BYTES_MAX >> 20);
    let lines = (1..).zip(text.lines().map(str::trim));
    let found = lines.map(|(number, line)| {
        credential(line).with_context(|| {
            format!("line {number} is neither an access token nor a name, a space and a password")
        })
    });
    found.collect()
}

/// Parses a line. Refuses control characters and characters beyond ASCII: no token contains them, and they could change
/// the meaning of the request.
fn credential(line: &str) -> Option<Credential> {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    match line.split_once(' ') {
        None => is_word(line).then(|| Credential::Token(line.to_owned())),
        Some((name, password)) => {
            let is_right = is_word(name) && !password.trim().is_empty();
            is_right.then(|| Credential::Password(name.to_owned(), password.trim().to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_token_or_a_name_and_a_password() {
        let check = |line: &str, expect: &[&str]| {
            let parts = match credential(line) {
                None => vec![],
                Some(Credential::Token(token)) => vec![token],
                Some(Credential::Password(name, password)) => vec![name, password],
            };
            assert_eq!(parts, expect, "{line:?}");
        };
        check("abc-_/+=123", &["abc-_/+=123"]);
        check("ann correct horse", &["ann", "correct horse"]);
        check("ann@example.org  pass", &["ann@example.org", "pass"]);
        for wrong in ["", "a\rb", "a\u{e9}", "a\tb", " x", "\u{e9} pass", "a\0"] {
            check(wrong, &[]);
        }
    }

    #[test]
    fn the_line_that_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tokens");
        std::fs::write(&file, "one\ntwo\n").unwrap();
        assert_eq!(credentials(&file).unwrap().len(), 2);
        std::fs::write(&file, "one\n\ntwo\n").unwrap();
        let error = credentials(&file).map(|found| found.len()).unwrap_err().to_string();
        assert!(error.contains("line 2 is neither"), "{error}");
        assert!(credentials(Path::new("no/such/file")).is_err());
    }
}
