//! Tests of the OpenAPI document with third-party tools: a validator of OpenAPI 3.1, and generators of clients in
//! TypeScript and Python. The generated clients compile and work.

mod examples;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::process::Server;
use crate::support::{fetched, said, skipped};

/// Starts a server with two users, and writes its OpenAPI document to a file.
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
    // The generator runs a formatter, which is installed next to it.
    python.env("PATH", format!("{}:{path}", library.join("bin").display()));
    python.env("PYTHONPATH", library).current_dir(folder);
    python
}

#[test]
fn the_description_is_valid_and_its_python_client_works() {
    let library = fetched("openapi-python");
    if !library.is_dir() {
        return skipped(
            "openapi-python-client is not here (cargo xtask test --install fetches it)",
        );
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
    // The generator warns about media types that it does not know: those of images, lines and metrics.
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
        return skipped("openapi-typescript is not here (cargo xtask test --install fetches it)");
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
