//! Tests that each option or command of roost that a document names is in the help of the program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::documents::blocks;
use crate::support::process::run;

/// Options of other programs that documents name without the program.
const OTHERS: [&str; 10] = [
    "--disk",
    "--example",
    "--health-cmd",
    "--install",
    "--no-healthcheck",
    "--no-ssl-verify",
    "--read-only",
    "--release",
    "--runs",
    "--seconds",
];
/// Internal command, which no help lists.
const HIDDEN: &str = "convert-picture";

/// Help of each command, by the words of the command, for example `key create`.
fn helps() -> BTreeMap<String, String> {
    let mut helps = BTreeMap::new();
    let mut left = vec![String::new()];
    while let Some(command) = left.pop() {
        let ended = run(command.split_whitespace().chain(["--help"]));
        assert!(ended.status.success(), "{ended:#?}");
        // A line with a name begins with two spaces. A line with an option begins with more, or with `-` after them.
        for name in commands(&ended.out) {
            left.push(format!("{command} {name}").trim().to_owned());
        }
        helps.insert(command, ended.out);
    }
    assert!(helps.contains_key("serve") && helps.contains_key("key create"), "{:?}", helps.keys());
    helps
}

/// Names in the sections `Commands` and `Tools` of a help page.
fn commands(help: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in help.lines() {
        if !line.starts_with(' ') {
            inside = line.to_lowercase().ends_with("commands:")
                || line == "Tools:"
                || (inside && line.is_empty());
        } else if let Some(name) = line.strip_prefix("  ").filter(|_| inside) {
            let name = name.split(' ').next().unwrap_or_default();
            if name.starts_with(|c: char| c.is_ascii_lowercase()) && name != "help" {
                found.push(name.to_owned());
            }
        }
    }
    found
}

/// Long options in a text.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '-';
    let words = text.split(|c: char| c.is_whitespace() || c == '[' || c == '(');
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(move |word| {
        let end = word.find(is_end).unwrap_or(word.len());
        &word[..end]
    })
}

/// Texts between backticks on one or two lines, and commands in blocks that run the program. In a block that is a
/// table, more than one space follows the name.
fn spans(text: &str) -> Vec<String> {
    let plain = text.split('`').skip(1).step_by(2).filter(|span| !span.contains("\n\n"));
    let blocks = blocks(text).into_iter().map(|block| block.replace("\\\n", " "));
    let lines: Vec<String> =
        blocks.flat_map(|block| block.lines().map(command).collect::<Vec<_>>()).collect();
    let lines = lines
        .iter()
        .map(String::as_str)
        .filter(|line| line.starts_with("roost ") && !line.starts_with("roost  "));
    plain.chain(lines).map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The first command in a line that runs the program.
fn command(line: &str) -> String {
    let end = ["|", "#", ";", "&&", ">"].into_iter().filter_map(|end| line.find(end)).min();
    let line = line.get(..end.unwrap_or(line.len())).unwrap_or_default().trim();
    let line = line.strip_prefix("sudo -u roost ").unwrap_or(line);
    let folders = ["target/release/", "target/dist/"];
    folders.into_iter().find_map(|folder| line.strip_prefix(folder)).unwrap_or(line).to_owned()
}

/// Description of the fault of a text, if it names an unknown option or command of roost.
fn fault(span: &str, helps: &BTreeMap<String, String>) -> Option<String> {
    let has = |help: &String, name: &str| options(help).any(|option| option == name);
    let Some(words) = span.strip_prefix("roost ") else {
        let mut named = options(span).filter(|_| span.starts_with("--"));
        let unknown =
            |name: &&str| !OTHERS.contains(name) && !helps.values().any(|help| has(help, name));
        return named.find(unknown).map(|name| format!("no command has {name}"));
    };
    let mut command = String::new();
    for word in words.split(' ') {
        let longer = format!("{command} {word}").trim().to_owned();
        if !helps.contains_key(&longer) {
            let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            if command.is_empty() && is_name && !word.starts_with('-') && word != HIDDEN {
                return Some(format!("there is no command {word}"));
            }
            break;
        }
        command = longer;
    }
    let unknown = options(words).find(|name| !has(&helps[&command], name));
    unknown.map(|name| format!("roost {command} has no {name}"))
}

#[test]
fn every_option_that_a_document_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let in_folder = |folder: PathBuf| {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.extension().is_some_and(|ending| ending == "md"))
    };
    let helps = helps();
    let (mut faults, mut count) = (Vec::new(), 0);
    for document in in_folder(root.clone()).chain(in_folder(root.join("docs"))) {
        for span in spans(&std::fs::read_to_string(&document).unwrap()) {
            count += usize::from(span.starts_with("roost ") || span.starts_with("--"));
            let fault = fault(&span, &helps);
            faults.extend(fault.map(|fault| format!("{}: `{span}`: {fault}", document.display())));
        }
    }
    assert!(count > 200, "only {count} were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let block = "    target/release/roost serve \\\n        --nothing | cat --all\n";
    assert_eq!(spans(&format!("Run\n\n{block}")), ["roost serve --nothing"]);
    for (span, expect) in [
        ("roost serve --nothing", "roost serve has no --nothing"),
        ("roost nothing", "there is no command nothing"),
        ("--nothing 5", "no command has --nothing"),
    ] {
        assert_eq!(fault(span, &helps).as_deref(), Some(expect));
    }
}
