//! Tests of `roost population` as other tools use it.

use std::collections::HashSet;
use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::support::process::{Process, roost};

#[test]
fn every_line_is_a_user_who_follows_others() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("users.ndjson");
    fs::write(&file, "an earlier one").unwrap();
    let ended = Process::start(roost(["population", "--users", "400", "--out"]).arg(&file)).ended();
    assert!(ended.status.success(), "{ended:#?}");
    for part in
        ["400 users with ", "following   requested", "reciprocity       0.220", "communities"]
    {
        assert!(ended.err.contains(part), "{part}? {}", ended.err);
    }
    let text = fs::read_to_string(&file).unwrap();
    let (mut handles, mut follows) = (HashSet::new(), 0);
    for (id, line) in text.lines().enumerate() {
        let user: Value = serde_json::from_str(line).unwrap();
        assert_eq!(user["id"], id, "ids are in order");
        assert!(handles.insert(user["handle"].as_str().unwrap().to_owned()), "{line}");
        assert!(!user["name"].as_str().unwrap().is_empty() && user["community"].is_u64());
        assert!(!user["interests"].as_array().unwrap().is_empty(), "{line}");
        let following = user["following"].as_array().unwrap();
        let following: Vec<u64> = following.iter().map(|id| id.as_u64().unwrap()).collect();
        assert!(following.is_sorted_by(|a, b| a < b), "no user twice: {line}");
        assert!(following.iter().all(|&other| other < 400 && other != id as u64), "{line}");
        follows += following.len();
    }
    assert_eq!(handles.len(), 400);
    assert!(ended.err.starts_with(&format!("400 users with {follows} follows")), "{}", ended.err);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn the_same_options_write_the_same_bytes_and_others_do_not() {
    let written = |arguments: &[&str]| {
        let arguments = ["population", "--users", "200"].iter().chain(arguments);
        let ended = Process::start(&mut roost(arguments)).ended();
        assert!(ended.status.success(), "{ended:#?}");
        ended.out
    };
    let usual = written(&[]);
    assert_eq!(usual.lines().count(), 200);
    assert_eq!(usual, written(&["--seed", "1", "--out", "-", "--reciprocity", "0.22"]));
    assert_ne!(usual, written(&["--seed", "2"]));
    assert_ne!(usual, written(&["--reciprocity", "0.05"]));
}

#[test]
fn a_graph_is_written_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let graph = directory.path().join("edges.txt");
    fs::write(&graph, "0 2\n1 2\n").unwrap();
    let ended = Process::start(roost(["population", "--graph"]).arg(&graph)).ended();
    let lists: Vec<Value> = ended
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["following"].take())
        .collect();
    assert_eq!(Value::from(lists), serde_json::json!([[2], [2], [0, 1]]));
}

#[test]
fn invalid_options_are_refused_and_the_file_is_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("users.ndjson");
    fs::write(&file, "an earlier one").unwrap();
    let check = |arguments: &[&str], message: &str| {
        let arguments = ["population"].iter().chain(arguments);
        let ended = Process::start(roost(arguments).arg("--out").arg(&file)).ended();
        assert!(!ended.status.success(), "{ended:#?}");
        assert!(ended.err.contains(message), "{message}? {}", ended.err);
        assert_eq!(fs::read_to_string(&file).unwrap(), "an earlier one");
    };
    check(&["--reciprocity", "0.9"], "reciprocity can be from 0 to 0.3, not 0.9");
    check(&["--clustering", "NaN"], "clustering can be from 0 to 0.2, not NaN");
    check(&["--users", "0"], "--users");
    check(&["--graph", "no/such/file"], "cannot read the graph");
    check(&["--graph", "x", "--clustering", "0.1"], "cannot be used with");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = roost(["population", "--users", "5000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
