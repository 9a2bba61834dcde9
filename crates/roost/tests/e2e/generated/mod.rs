//! The description of the API against tools that others wrote: a validator of OpenAPI 3.1, and generators of
//! clients in TypeScript and Python, whose clients compile and work.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::process::{Server, serve};
use crate::support::{fetched, said, skipped};

/// A server with two users, and its description in a file.
fn described(data: &Path) -> Server {
    let server = Server::open(&data.join("data"), &[]);
    let mut client = server.client();
    assert_eq!([client.register("one"), client.register("two")], [0, 1]);
    let description = client.get("/v1/openapi.json").expect(200);
    std::fs::write(data.join("openapi.json"), description.text()).unwrap();
    server
}

fn python(library: &Path, folder: &Path) -> Command {
    let mut python = Command::new("python3");
    let path = std::env::var("PATH").unwrap_or_default();
    // The generator calls a formatter that was installed beside it.
    python.env("PATH", format!("{}:{path}", library.join("bin").display()));
    python.env("PYTHONPATH", library).current_dir(folder);
    python
}

#[test]
fn the_description_is_valid_and_its_python_client_works() {
    let library = fetched("openapi-python");
    if !library.is_dir() {
        return skipped("openapi-python-client is not here (cargo xtask test fetches it)");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = described(folder.path());
    let validate = ["-m", "openapi_spec_validator", "--schema", "3.1", "openapi.json"];
    said(&python(&library, folder.path()).args(validate).output().unwrap());
    let generate = ["-m", "openapi_python_client", "generate", "--path", "openapi.json"];
    let mut generator = python(&library, folder.path());
    generator.args(generate).args(["--meta", "none", "--output-path", "roost_client"]);
    let generated = generator.output().unwrap();
    let report = said(&generated) + &String::from_utf8_lossy(&generated.stderr);
    let warnings: BTreeSet<_> =
        report.lines().filter_map(|line| line.strip_prefix("WARNING parsing ")).collect();
    // It knows no media types of images, lines and metrics, and says so.
    let known = [
        "GET /metrics within operations.",
        "POST /v1/batch within batch. Endpoint will not be generated.",
        "POST /v1/recognitions within recognizer.",
    ];
    assert_eq!(warnings, BTreeSet::from(known), "{report}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/generated/client.py");
    let url = format!("http://{}", server.address);
    let mut used = python(&library, folder.path());
    used.args([script, &url]);
    used.env("PYTHONPATH", format!("{}:{}", library.display(), folder.path().display()));
    assert_eq!(said(&used.output().unwrap()).trim_end(), "done");
    server.stop();
}

#[test]
fn a_typescript_client_compiles() {
    let library = fetched("openapi-typescript").join("node_modules");
    if !library.is_dir() {
        return skipped("openapi-typescript is not here (cargo xtask test fetches it)");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = described(folder.path());
    let node = |arguments: &[&str]| {
        let mut node = Command::new("node");
        node.current_dir(folder.path()).arg(library.join(arguments[0])).args(&arguments[1..]);
        said(&node.output().unwrap())
    };
    node(&["openapi-typescript/bin/cli.js", "openapi.json", "-o", "schema.ts"]);
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/generated/client.ts");
    std::fs::copy(client, folder.path().join("client.ts")).unwrap();
    let options = ["--strict", "--noEmit", "--target", "es2022", "--module", "nodenext"];
    let types = ["--lib", "es2022,dom", "client.ts"];
    node(&[&["typescript/bin/tsc"], &options[..], &types].concat());
    server.stop();
}

#[test]
fn the_requests_of_the_guide_work_when_they_are_pasted() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("curl is not installed (apt-get install curl)");
    }
    let data = tempfile::tempdir().unwrap();
    let server = Server::open(data.path(), &[]);
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    assert!(guide.lines().count() <= 220, "a guide is read in one go");
    let blocks = guide.split("```sh\n").skip(1);
    let pasted: String = blocks.map(|block| block.split("```").next().unwrap()).collect();
    assert!(pasted.matches("curl").count() > 20, "{pasted}");
    let pasted = pasted.replace("127.0.0.1:8998", &server.address.to_string());
    // Whatever is not answered with success ends the shell, with the answer.
    let strict = "set -eu\ncurl() { command curl --fail-with-body -sS \"$@\"; echo; }\n";
    let shell = Command::new("sh").args(["-c", &(strict.to_owned() + &pasted)]).output().unwrap();
    let answers = said(&shell);
    assert!(!answers.contains("\"error\""), "a line of a batch failed: {answers}");
    assert!(answers.contains("idempotent-replayed: true"), "{answers}");
    server.stop();
}

#[test]
fn the_lines_of_the_readme_work_when_they_are_pasted() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("curl is not installed (apt-get install curl)");
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&mut serve(&folder.path().join("roost-data"), &[]));
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    assert!(readme.lines().count() <= 100, "the README is read in one go");
    let (_, rest) = readme.split_once("these lines register").unwrap();
    let lines = rest.lines().skip_while(|line| !line.starts_with("    "));
    let pasted: Vec<&str> = lines.take_while(|line| line.starts_with("    ")).collect();
    assert!(pasted.len() >= 5, "{pasted:?}");
    let pasted = pasted.join("\n").replace("127.0.0.1:8998", &server.address.to_string());
    let strict = "set -eu\ncurl() { command curl --fail-with-body \"$@\"; }\n";
    let mut shell = Command::new("sh");
    shell.args(["-c", &(strict.to_owned() + &pasted)]).current_dir(folder.path());
    let answers = said(&shell.output().unwrap());
    assert!(answers.contains("\"text\":\"hello @ada\""), "{answers}");
    server.stop();
}
