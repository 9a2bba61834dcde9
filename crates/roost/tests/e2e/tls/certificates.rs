//! Tests of wrong certificates, replaced certificates, and self-signed ones.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;

use super::{Files, Pair, check_serves, connect, sha256, shown, start, trusting};
use crate::support::process::{Process, serve};

#[test]
fn a_certificate_that_cannot_be_served_ends_the_start_with_what_to_do() {
    let (right, other) = (Pair::valid(), Pair::valid());
    let damaged = right.cert.replace("MII", "AII");
    let encrypted = right.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    for (cert, key, says) in [
        (None, Some(&right.key), "cannot read the certificate file"),
        (Some(&right.cert), None, "cannot read the key file"),
        (Some(&String::new()), Some(&right.key), "has no certificate in PEM form"),
        (Some(&right.key), Some(&right.key), "has no certificate in PEM form"),
        (Some(&damaged), Some(&right.key), "the certificate file is damaged"),
        (Some(&right.cert), Some(&right.cert), "has no private key in PEM form"),
        (Some(&right.cert), Some(&encrypted), "openssl pkey"),
        (Some(&right.cert), Some(&other.key), "does not belong to the certificate"),
        (Some(&Pair::new(-2, 1).cert), Some(&right.key), "does not belong"),
        (Some(&right.cert.repeat(100)), Some(&right.key), "more than 16 KiB"),
        (Some(&"x".repeat(300 << 10)), Some(&right.key), "longer than 256 KiB"),
    ] {
        let files = Files::new(&right);
        for (path, text) in [(&files.cert, cert), (&files.key, key)] {
            match text {
                Some(text) => fs::write(path, text).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
        check_refused(&files, says);
    }
    for (from, until, says) in [(-2, -1, "expired on 20"), (1, 2, "is not valid before 20")] {
        check_refused(&Files::new(&Pair::new(from, until)), says);
    }
}

fn check_refused(files: &Files, says: &str) {
    let ended = Process::start(&mut files.serve(&[])).ended();
    assert_eq!(ended.status.code(), Some(2), "{says}: {ended:#?}");
    assert!(ended.err.contains(says) && ended.out.is_empty(), "{says}: {ended:#?}");
    assert!(!files.data().exists(), "nothing is made by a start that is refused");
}

#[test]
fn settings_of_tls_that_contradict_each_other_are_refused() {
    let data = tempfile::tempdir().unwrap();
    for (flags, says) in [
        (&["--tls-cert", "a"][..], "--tls-cert needs --tls-key"),
        (&["--tls-key", "a"], "--tls-key needs --tls-cert"),
        (&["--tls-self-signed", "--tls-key", "a"], "--tls-self-signed makes its own certificate"),
        (&["--tls-self-signed", "--public-url", "https://a..b"], "see --public-url"),
    ] {
        let ended = Process::start(&mut serve(&data.path().join("data"), flags)).ended();
        assert_eq!(ended.status.code(), Some(2), "{ended:#?}");
        assert!(ended.err.contains(says) && ended.out.is_empty(), "{ended:#?}");
        assert!(!data.path().join("data").exists());
    }
}

#[test]
fn a_replaced_certificate_is_served_without_a_restart_and_a_broken_one_is_not() {
    let files = Files::new(&Pair::valid());
    let (server, address) = start(&mut files.serve(&["--open"]));
    let old = files.directory.path().join("old.pem");
    fs::copy(&files.cert, &old).unwrap();
    let first = sha256(&server.logged("using a TLS certificate").unwrap());
    let mut connection = connect(&trusting(&[&old]), address, "localhost").unwrap();

    files.replace(&Pair::valid());
    let second = server
        .logged_line(|line| line.contains("using a TLS certificate") && sha256(line) != first);
    assert!(second.is_some());
    let before = shown(address, &[&old, &files.cert]);
    check_serves(address, &[&files.cert]);
    assert_eq!(super::ask(&mut connection, "GET", "/healthz", &[], b"").0, 200, "it goes on");

    let trusted = files.directory.path().join("new.pem");
    fs::copy(&files.cert, &trusted).unwrap();
    let broken = Pair { key: Pair::valid().key, ..Pair::valid() };
    files.replace(&broken);
    server.logged("does not belong to the certificate").unwrap();
    assert_eq!(shown(address, &[&trusted]), before);
    fs::remove_file(&files.key).unwrap();
    server.logged("cannot read the key file").unwrap();
    assert_eq!(shown(address, &[&trusted]), before);
    files.replace(&Pair::new(-3, 1));
    server.logged("expires soon").unwrap();
    check_serves(address, &[&files.cert]);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().status.code(), Some(0));
}

#[test]
fn hup_reads_the_certificate_and_the_keys_again() {
    let files = Files::new(&Pair::valid());
    let (server, address) = start(&mut files.serve(&[]));
    let first = server.logged("using a TLS certificate").unwrap();
    // Files that did not change are read again only after a signal.
    server.signal(Signal::HUP);
    server.logged("SIGHUP: reading application keys, webhooks, the certificate").unwrap();
    let again = |line: &String| line.contains("using a TLS certificate") && *line != first;
    server.logged_line(again).unwrap();
    fs::write(files.data().join("keys.json"), "nonsense").unwrap();
    server.signal(Signal::HUP);
    server.logged("the keys loaded before stay valid").unwrap();
    check_serves(address, &[&files.cert]);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().status.code(), Some(0));
}

/// Starts a server with a self-signed certificate. Returns the digest in the log.
fn self_signed(data: &Path, more: &[&str], check: impl FnOnce(SocketAddr)) -> String {
    let mut command = serve(data, &["--open", "--tls-self-signed"]);
    let (server, address) = start(command.args(more));
    check(address);
    let line = server.logged("using a TLS certificate").unwrap();
    server.signal(Signal::TERM);
    assert_eq!(server.ended().status.code(), Some(0));
    sha256(&line)
}

#[test]
fn a_self_signed_certificate_is_kept_until_its_names_or_its_end_require_another() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let [cert, key] = ["tls-cert.pem", "tls-key.pem"].map(|name| data.join(name));
    let names = |address: SocketAddr, names: &[&str]| {
        for name in names {
            connect(&trusting(&[&cert]), address, name).unwrap();
        }
    };
    let known = ["localhost", "127.0.0.1", "::1"];
    let first = self_signed(&data, &[], |address| names(address, &known));
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let stored = fs::read(&key).unwrap();
    assert_eq!(self_signed(&data, &[], |address| names(address, &known)), first);

    let public = ["--public-url", "https://social.example:8443"];
    let check = |address| {
        names(address, &known);
        names(address, &["social.example"]);
        connect(&trusting(&[&cert]), address, "other.example").unwrap_err();
    };
    let second = self_signed(&data, &public, check);
    assert!(second != first && fs::read(&key).unwrap() != stored, "a new key");
    assert_eq!(self_signed(&data, &[], |_| ()), second, "it is also for fewer names");

    // The first certificate expires within a month; then files do not belong together; then there are none.
    let short = Pair::new(-1, 29);
    fs::write(&cert, &short.cert).unwrap();
    fs::write(&key, &short.key).unwrap();
    let third = self_signed(&data, &[], |address| names(address, &known));
    fs::write(&key, &short.key).unwrap();
    let fourth = self_signed(&data, &[], |address| names(address, &known));
    fs::remove_file(&cert).unwrap();
    let fifth = self_signed(&data, &[], |address| names(address, &known));
    let mut all = vec![first, second, third, fourth, fifth];
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 5);
}
