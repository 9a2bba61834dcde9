//! Settings of the Mastodon API, and the files of `--about` and `--feeds`.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, ensure};
use edge::BlockingReads;
use feed::accounts::Email;
use feed::{Handle, Language};
use mastodon::{About, MastodonOptions, PICTURE_BYTES_MAX, Picture, Rates, Registrations};
use node::Feeds;
use serde::Deserialize;

use super::sources::syntax;
use super::{Settings, SignUp};

/// Longest file of `--about`, in bytes.
const ABOUT_BYTES_MAX: u64 = 256 << 10;

/// Longest file of `--feeds`, in bytes.
const FEEDS_BYTES_MAX: u64 = 256 << 10;

/// Keys of the file of `--about`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Keys {
    title: Option<String>,
    description: Option<String>,
    text: String,
    rules: Vec<String>,
    contact: Option<String>,
    contact_email: Option<String>,
    languages: Option<Vec<String>>,
    /// Path, relative to the folder of this file.
    picture: Option<PathBuf>,
}

impl Settings {
    /// Operator's description of the server.
    ///
    /// # Errors
    /// If the file of `--about` cannot be read or is wrong.
    pub(crate) fn about(&self) -> anyhow::Result<About> {
        let about = self.about.as_deref().map(|file| {
            about(file)
                .with_context(|| format!("the file of --about, {}, is wrong", file.display()))
        });
        Ok(about.transpose()?.unwrap_or_default())
    }

    /// Ranked feeds.
    ///
    /// # Errors
    /// If the file of feeds cannot be read or is wrong.
    pub(crate) fn ranked_feeds(&self) -> anyhow::Result<Feeds> {
        self.feeds.as_deref().map_or_else(|| Ok(Feeds::default()), |file| Ok(feeds_of(file, "")?.1))
    }

    /// Public URL of the server when it listens on `listen`.
    pub(crate) fn url(&self, listen: SocketAddr) -> String {
        let scheme = if self.is_https() { "https" } else { "http" };
        self.public_url.clone().unwrap_or_else(|| format!("{scheme}://{listen}"))
    }

    /// Options of the Mastodon API. `listen` is the bound address.
    pub(crate) fn mastodon(
        &self,
        about: About,
        listen: SocketAddr,
        reads: &BlockingReads,
    ) -> MastodonOptions {
        let base = self.url(listen);
        MastodonOptions {
            about: about.into(),
            registrations: match self.registrations.unwrap_or(SignUp::Closed) {
                SignUp::Closed => Registrations::Closed,
                SignUp::Invite => Registrations::Invite,
                SignUp::Approval => Registrations::Approval,
                SignUp::Open => Registrations::Open,
            },
            open: self.open.unwrap_or(false),
            password_grant: self.password_grant.unwrap_or(false),
            anonymous_reads: self.anonymous_reads.unwrap_or(false),
            reads: reads.clone(),
            rates: match self.open {
                Some(true) => Rates::of_log_ins(),
                _ => Rates::default(),
            },
            ..MastodonOptions::new(&base)
        }
    }
}

/// Reads the description of the server from a file.
fn about(file: &Path) -> anyhow::Result<About> {
    let text = String::from_utf8(read(file, ABOUT_BYTES_MAX)?).context("it is not UTF-8")?;
    let keys: Keys = toml::from_str(&text).map_err(|error| syntax(&error, &text))?;
    let default = About::default();
    let languages = keys.languages.map(|languages| {
        let parse = |text: &String| {
            Language::parse(text).with_context(|| format!("{text} is not a language code"))
        };
        languages.iter().map(parse).collect::<anyhow::Result<Vec<_>>>()
    });
    let picture = keys.picture.map(|path| {
        let path = file.parent().unwrap_or(Path::new("")).join(path);
        let picture = read(&path, PICTURE_BYTES_MAX as u64)
            .and_then(|bytes| Picture::new(bytes).map_err(anyhow::Error::msg));
        picture.with_context(|| format!("the picture {}", path.display()))
    });
    let contact = keys.contact.map(|handle| {
        Handle::parse(handle.trim_start_matches('@')).context("contact is not a handle")
    });
    let email = keys.contact_email.map(|text| Email::parse(&text).context("contact-email"));
    let about = About {
        title: keys.title.unwrap_or(default.title),
        description: keys.description.unwrap_or(default.description),
        text_ms: if keys.text.is_empty() { 0 } else { changed_ms(file)? },
        text: keys.text,
        rules: keys.rules,
        contact: contact.transpose()?,
        contact_email: email
            .transpose()?
            .map(|email| email.as_str().to_owned())
            .unwrap_or_default(),
        languages: languages.transpose()?.unwrap_or(default.languages),
        picture: picture.transpose()?,
    };
    about.check().map_err(anyhow::Error::msg)?;
    Ok(about)
}

/// Reads a file of `--feeds`, and adds `more` definitions. Returns the text and the feeds.
pub(crate) fn feeds_of(file: &Path, more: &str) -> anyhow::Result<(String, Feeds)> {
    let parsed = read(file, FEEDS_BYTES_MAX).and_then(|bytes| {
        let text = String::from_utf8(bytes)? + more;
        let feeds = Feeds::parse(&text)?;
        Ok((text, feeds))
    });
    parsed.with_context(|| format!("the file of --feeds, {}, is wrong", file.display()))
}

fn read(file: &Path, bytes_max: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= bytes_max, "it has more than {} KiB", bytes_max >> 10);
    Ok(bytes)
}

/// Time of the last change of a file, in milliseconds since 1970.
fn changed_ms(file: &Path) -> anyhow::Result<u64> {
    let since = std::fs::metadata(file)?.modified()?.duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_millis())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> anyhow::Result<About> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cat.gif"), "GIF89a").unwrap();
        let file = folder.path().join("about.toml");
        std::fs::write(&file, text).unwrap();
        about(&file)
    }

    #[test]
    fn a_file_describes_the_server() {
        assert_eq!(of("").unwrap(), About::default());
        let about = of(r#"
            title = "Cats"
            description = "A place for cats"
            text = """
            One.

            Two."""
            rules = ["Be kind", "No dogs"]
            contact = "@ada"
            contact-email = "Ada@example.org"
            languages = ["de", "en-GB"]
            picture = "cat.gif"
        "#)
        .unwrap();
        assert_eq!((about.title.as_str(), about.rules.len()), ("Cats", 2));
        assert!(about.text.contains("One.") && about.text_ms > 0 && about.picture.is_some());
        assert_eq!(about.contact.unwrap().as_str(), "ada");
        assert_eq!(about.contact_email, "ada@example.org");
        assert_eq!(about.languages.iter().map(Language::as_str).collect::<Vec<_>>(), ["de", "en"]);
    }

    #[test]
    fn a_wrong_file_says_what_is_wrong() {
        for (text, why) in [
            ("titel = 'Cats'", "titel"),
            ("nats = 'nats://u:secret@host'", "line 1: unknown field `nats`"),
            ("contact = 'a b'", "contact is not a handle"),
            ("contact-email = 'ada'", "contact-email"),
            ("languages = ['german']", "german is not a language code"),
            ("picture = 'dog.png'", "dog.png"),
            ("picture = 'about.toml'", "a picture must be PNG, JPEG, WebP or GIF"),
            (&format!("title = '{}'", "x".repeat(101)), "the title has 101 characters"),
            (&"#".repeat(300 << 10), "256 KiB"),
        ] {
            let error = format!("{:#}", of(text).unwrap_err());
            assert!(error.contains(why) && !error.contains("secret"), "{text:.40}: {error}");
        }
    }
}
