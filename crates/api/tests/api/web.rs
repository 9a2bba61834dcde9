//! The pages at `/`: their files, caching and sources.

use std::sync::Arc;

use edge::Access;
use web::Pages;

use crate::client::TestServer;

fn with_pages(pages: Option<Pages>) -> TestServer {
    TestServer::start(Access::Open, |_, options| {
        options.pages = pages.map(|pages| Arc::new(pages) as _);
    })
}

#[test]
fn pages_are_public_and_have_a_content_security_policy() {
    for server in [TestServer::open(), TestServer::with_key()] {
        for (path, media_type) in [
            ("/", "text/html; charset=utf-8"),
            ("/assets/js/main.js", "text/javascript; charset=utf-8"),
            ("/assets/css/base.css", "text/css; charset=utf-8"),
            ("/assets/icon.png", "image/png"),
            ("/assets/icon.svg", "image/svg+xml"),
        ] {
            let page = server.get(path);
            assert_eq!(page.status, 200, "{path}");
            assert_eq!(page.header("content-type"), Some(media_type));
            assert_eq!(page.header("cache-control"), Some("no-cache"), "{path}");
            assert_eq!(page.header("x-content-type-options"), Some("nosniff"), "{path}");
            assert_eq!(page.header("referrer-policy"), Some("no-referrer"), "{path}");
            let policy = page.header("content-security-policy");
            assert_eq!(policy.is_some(), path == "/", "{path}");
        }
        let page = server.get("/");
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        // A page of the server itself sends these headers.
        let own = format!("http://{}", server.address);
        let headers = [("Origin", own.as_str()), ("Sec-Fetch-Site", "same-origin")];
        assert_eq!(server.send("GET", "/assets/js/main.js", &headers, b"").status, 200);
    }
}

#[test]
fn a_cached_page_is_not_sent_again() {
    let server = TestServer::open();
    let page = server.get("/");
    let tag = page.header("etag").unwrap().to_owned();
    for (tags, status) in [
        (tag.clone(), 304),
        (format!("\"other\", {tag}"), 304),
        ("\"other\"".to_owned(), 200),
        (String::new(), 200),
    ] {
        let again = server.send("GET", "/", &[("If-None-Match", &tags)], b"");
        assert_eq!(again.status, status, "{tags}");
        assert_eq!(again.header("etag"), Some(tag.as_str()));
        assert_eq!(again.body.is_empty(), status == 304, "{tags}");
    }
    assert_ne!(server.get("/assets/js/main.js").header("etag"), Some(tag.as_str()));
}

#[test]
fn files_are_compressed_for_clients_that_accept_gzip() {
    let server = TestServer::open();
    let plain = server.get("/assets/js/main.js");
    assert_eq!(plain.header("content-encoding"), None);
    let headers = [("Accept-Encoding", "br, gzip")];
    let packed = server.send("GET", "/assets/js/main.js", &headers, b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.header("vary"), Some("accept-encoding"));
    assert!(packed.body.starts_with(b"\x1f\x8b") && packed.body.len() < plain.body.len() / 2);
}

#[test]
fn the_api_works_without_pages() {
    let server = with_pages(None);
    for path in ["/", "/assets/js/main.js"] {
        server.get(path).assert_error(404, "not_found", path);
    }
    assert_eq!(server.get("/v1/users").status, 200);
}

#[test]
fn a_folder_is_read_at_every_request_and_nothing_outside_it() {
    let outside = tempfile::tempdir().unwrap();
    let folder = outside.path().join("web");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(outside.path().join("secret.js"), "secret").unwrap();
    let server = with_pages(Some(Pages::Folder(folder.clone())));
    for text in ["one", "two"] {
        std::fs::write(folder.join("index.html"), text).unwrap();
        assert_eq!(server.get("/").body, text.as_bytes());
    }
    for path in ["/assets/../secret.js", "/assets/%2e%2e/secret.js", "/assets//secret.js"] {
        server.get(path).assert_error(404, "not_found", path);
    }
    let absolute = outside.path().join("secret.js");
    let absolute = format!("/assets/{}", absolute.display());
    server.get(&absolute).assert_error(404, "not_found", &absolute);
    server.get("/assets/none.js").assert_error(404, "not_found", "no such file");
}

#[test]
fn unknown_files_are_not_found() {
    let server = TestServer::open();
    for path in ["/assets/none.js", "/assets/", "/assets/js", "/index.html", "/assets/../lib.rs"] {
        server.get(path).assert_error(404, "not_found", path);
    }
    server.send("POST", "/", &[], b"").assert_error(405, "method_not_allowed", "POST /");
}
