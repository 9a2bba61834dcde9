//! Web pages: an HTML document at `/`, its assets at `/assets/`, and a document for unknown addresses. All are embedded
//! in the program.
//!
//! The pages contain no data. They load it from the public API like any other client, so they need no key of their own.
//!
//! The modules in `js` use no framework and no build step. `main.js` is the frame: for the address after `#`, it loads
//! a module of `pages`. `api.js`, `sse.js` and `live.js` connect to the server. `feed.js`, `story_list.js` and
//! `paper.js` manage the content that they display; `dom.js` creates every node. `session.js`, `route.js`, `drafts.js`
//! and `compose.js` keep the user, scroll positions, unsent texts, and requests without a response. After a time in
//! which live updates may have been missed, displayed lists are compared with those of the server.
//!
//! **Invariant:** a window with a session acts only for the session's user, and no script can read the session's
//! secret. The displayed content is removed before the browser keeps the page for *Back*.
//! **Invariant:** a page loads nothing from other hosts, runs no inline script, and never interprets text as markup.
//! The Content-Security-Policy makes browsers prevent all three.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use edge::{FileSource, Lookup, StaticFile};

/// Document of all pages.
const SHELL: &str = "index.html";
const HTML: &str = "text/html; charset=utf-8";
/// The Content-Security-Policy of the document and its assets.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
/// A file of this folder.
struct Asset {
    name: &'static str,
    bytes: &'static [u8],
    /// The file as it is served, prepared at the first request.
    ready: OnceLock<Arc<StaticFile>>,
}

macro_rules! assets {
    ($($name:literal,)*) => {
        static ASSETS: [Asset; [$($name),*].len()] = [$(Asset {
            name: $name,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $name)),
            ready: OnceLock::new(),
        }),*];
    };
}

assets! {
    "css/base.css",
    "css/forms.css",
    "css/pages.css",
    "css/parts.css",
    "css/tools.css",
    "fonts/inter-license.txt",
    "fonts/inter.woff2",
    "icon.png",
    "icon.svg",
    "index.html",
    "js/api.js",
    "js/audience.js",
    "js/bitmap.js",
    "js/complete.js",
    "js/compose.js",
    "js/confirm.js",
    "js/dom.js",
    "js/drafts.js",
    "js/feed.js",
    "js/history.js",
    "js/icons.js",
    "js/lines.js",
    "js/live.js",
    "js/lookup.js",
    "js/main.js",
    "js/metrics.js",
    "js/pages/buckets.js",
    "js/pages/dashboard.js",
    "js/pages/draw.js",
    "js/pages/for-you.js",
    "js/pages/home.js",
    "js/pages/lock.js",
    "js/pages/mentions.js",
    "js/pages/missing.js",
    "js/pages/notifications.js",
    "js/pages/post.js",
    "js/pages/profile.js",
    "js/pages/stories.js",
    "js/pages/tags.js",
    "js/pages/tools.js",
    "js/pages/who.js",
    "js/paper.js",
    "js/people.js",
    "js/pictures.js",
    "js/plot.js",
    "js/post.js",
    "js/reactions.js",
    "js/reasons.js",
    "js/route.js",
    "js/say.js",
    "js/seen.js",
    "js/session.js",
    "js/sse.js",
    "js/story_list.js",
    "js/text.js",
    "js/time.js",
    "js/tray.js",
    "js/uploads.js",
    "js/value.js",
    "js/viewer.js",
    "missing.html",
}

/// Source of the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Embedded in the program.
    Embedded,
    /// A folder, which is read again at every request; for development of the pages.
    Folder(PathBuf),
}

impl FileSource for Pages {
    /// Finds a file by its name. The empty name is the document of the pages.
    fn find(&self, name: &str) -> Lookup {
        let name = if name.is_empty() { SHELL } else { name };
        match self {
            Self::Embedded => embedded(name),
            Self::Folder(folder) => in_folder(folder, name),
        }
    }
}

fn embedded(name: &str) -> Lookup {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Lookup::Absent;
    };
    let make = || Arc::new(file(asset.name, Bytes::from_static(asset.bytes)));
    Lookup::Found(Arc::clone(asset.ready.get_or_init(make)))
}

fn in_folder(folder: &Path, name: &str) -> Lookup {
    let inside = |part| matches!(part, Component::Normal(_));
    if !Path::new(name).components().all(inside) {
        return Lookup::Absent;
    }
    let (path, name) = (folder.join(name), name.to_owned());
    Lookup::Load(Box::new(move || Some(Arc::new(file(&name, std::fs::read(path).ok()?.into())))))
}

fn file(name: &str, bytes: Bytes) -> StaticFile {
    let media_type = media_type(name);
    StaticFile::new(media_type, (media_type == HTML).then_some(POLICY), bytes)
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => HTML,
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum compressed size of all files together, in bytes.
    const COMPRESSED_BYTES_MAX: usize = 160_000;
    /// Maximum size of the font, in bytes.
    const FONT_BYTES_MAX: usize = 60_000;
    /// Maximum length of a module, in lines.
    const LINES_MAX: usize = 400;

    fn files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                files(&entry.path(), &format!("{name}/"), found);
            } else {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let mut found = Vec::new();
        files(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut found);
        found.retain(|name| name != "Cargo.toml" && !name.starts_with("src/"));
        found.sort_unstable();
        let mut known: Vec<&str> = ASSETS.iter().map(|asset| asset.name).collect();
        known.sort_unstable();
        assert_eq!(known, found);
        for name in known {
            assert_ne!(media_type(name), "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn all_files_together_are_small() {
        let ready = ASSETS.iter().map(|asset| file(asset.name, Bytes::from_static(asset.bytes)));
        let bytes: usize = ready.map(|ready| ready.compressed_len()).sum();
        assert!(bytes < COMPRESSED_BYTES_MAX, "{bytes}");
        let font = ASSETS.iter().filter(|asset| asset.name.ends_with(".woff2"));
        let bytes: usize = font.map(|asset| asset.bytes.len()).sum();
        assert!(bytes < FONT_BYTES_MAX, "{bytes}");
    }

    #[test]
    fn modules_are_short_and_begin_with_a_comment() {
        let text = |name: &str| [".css", ".html", ".js"].iter().any(|end| name.ends_with(end));
        for asset in ASSETS.iter().filter(|asset| text(asset.name)) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            assert!(text.lines().count() <= LINES_MAX, "{}", asset.name);
            let start = if asset.name.ends_with(".js") { "// " } else { "" };
            let start = if asset.name.ends_with(".css") { "/* " } else { start };
            assert!(text.starts_with(start), "{}", asset.name);
        }
    }
}
