//! OpenAPI document: it is complete, and its examples work.

use std::collections::BTreeSet;

use edge::Access;
use serde_json::{Map, Value, json};

use crate::client::TestServer;

fn operations(api: &Value) -> Vec<(String, String, Value)> {
    let mut found = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((method.clone(), path.clone(), operation.clone()));
        }
    }
    found
}

/// Resolves a reference; returns other values unchanged.
fn resolved<'a>(api: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => api.pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => value,
    }
}

#[test]
fn every_operation_is_described_completely() {
    let api = TestServer::open().get("/v1/openapi.json").json();
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&api) {
        let what = format!("{method} {path}");
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id.to_owned()), "{what}: {id} is not unique");
        assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 5), "{what}");
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            let response = resolved(&api, response);
            assert!(
                response["description"].as_str().is_some_and(|text| !text.is_empty()),
                "{what}"
            );
            assert!(!response["description"].as_str().unwrap().contains('{'), "{what} {status}");
            assert!(response["headers"].get("X-Request-Id").is_some(), "{what} {status}");
            let is_error = status.starts_with(['4', '5']);
            if is_error {
                let schema = &response["content"]["application/json"]["schema"]["$ref"];
                assert_eq!(*schema, "#/components/schemas/ErrorBody", "{what} {status}");
            }
        }
        if operation["security"] != json!([{}]) {
            for status in ["400", "401", "403", "500", "503"] {
                assert!(responses.contains_key(status), "{what} lacks {status}");
            }
        }
        if operation.get("requestBody").is_some() {
            for status in ["408", "413", "415", "422"] {
                assert!(responses.contains_key(status), "{what} lacks {status}");
            }
        }
    }
    let schemas = api["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        for (field, property) in schema["properties"].as_object().unwrap_or(&Map::new()) {
            if field.ends_with("_at") {
                assert_eq!(property["format"], "date-time", "{name}.{field}");
            }
        }
    }
}

/// Errors that share a code are documented per route, with the values of the route.
#[test]
fn errors_are_described_as_the_route_answers_them() {
    let api = TestServer::open().get("/v1/openapi.json").json();
    for (method, path, status, expect, wrong) in [
        ("put", "/v1/buckets/{bucket}/keys/{key}", "422", "the change is too large", "an integer"),
        ("get", "/readyz", "503", "behind the cluster", "has not reached"),
        ("post", "/v1/batch", "429", "streams and batches", "of this user"),
        ("post", "/v1/users/{user}/stories", "422", "a TTL is 1 to 604800 seconds", "time to live"),
        ("get", "/v1/users", "422", "limit must be between 1 and 100", "\u{2026}"),
        ("post", "/v1/users", "413", "a body is at most 65536 bytes", "\u{2026}"),
        ("post", "/v1/users", "415", "must be application/json", "\u{2026}"),
        ("post", "/v1/users", "403", "needs the scope \u{2026}", "scope}"),
        ("post", "/v1/recognitions", "503", "overloaded", "unconfirmed"),
    ] {
        let response = &api["paths"][path][method]["responses"][status];
        let text = resolved(&api, response)["description"].as_str().unwrap();
        assert!(text.contains(expect) && !text.contains(wrong), "{method} {path}: {text}");
    }
    assert_eq!(api["info"]["license"]["identifier"], "Apache-2.0");
}

#[test]
fn every_body_has_a_limit_that_is_described() {
    let server = TestServer::open();
    let api = server.get("/v1/openapi.json").json();
    let mut limited = 0;
    for (method, path, operation) in operations(&api) {
        let body = &operation["requestBody"];
        let Some(text) = body["description"].as_str() else { continue };
        let Some(bytes) = text.strip_prefix("At most ") else {
            assert_eq!((path.as_str(), text), ("/v1/batch", "A stream of any length."));
            continue;
        };
        let bytes: usize = bytes.strip_suffix(" bytes.").unwrap().parse().unwrap();
        let media_type = body["content"].as_object().unwrap().keys().next().unwrap();
        let segments = path.split('/').map(|part| if part.starts_with('{') { "0" } else { part });
        let path = segments.collect::<Vec<_>>().join("/");
        let headers = [("Content-Type", media_type.as_str())];
        let answer = server.send(&method.to_uppercase(), &path, &headers, &vec![b' '; bytes + 1]);
        answer.assert_error(413, "body_too_large", &format!("{method} {path}"));
        limited += 1;
    }
    assert!(limited > 5);
}

/// Makes an example of a body from the examples of its fields.
fn example(api: &Value, schema: &Value) -> Option<Value> {
    let schema = resolved(api, schema);
    if let Some(example) = schema.get("example") {
        return Some(example.clone());
    }
    let properties = schema["properties"].as_object()?;
    let mut body = Map::new();
    for (name, property) in properties {
        let required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
        match example(api, property) {
            Some(example) => _ = body.insert(name.clone(), example),
            None => assert!(!required, "{name} is required and has no example"),
        }
    }
    Some(Value::Object(body))
}

/// Swagger UI's default requests work on a server with users, such as `roost demo`.
#[test]
fn examples_work() {
    let changes_max = node::changes::BYTES_MIN;
    let server = TestServer::start(Access::Open, |node, _| node.changes_max = changes_max);
    server.register(&["one", "two"]);
    server.befriend("one", "two");
    server.with_json("PATCH", "/v1/users/@one", &[], &json!({"locked": true}));
    server.follow("two", "one");
    let api = server.get("/v1/openapi.json").json();
    let mut all = operations(&api);
    // Reads and changes come first, then deletions, and the deletion of the user is the very last request. A block
    // forbids follows, so it comes just before the deletions.
    all.sort_by_key(|(method, path, _)| {
        let methods = ["put", "post", "patch", "get", "delete"];
        let at = methods.iter().position(|known| known == method);
        match (method.as_str(), path.as_str()) {
            ("put", "/v1/users/{user}/blocks/{other}") => (Some(methods.len()), 0),
            ("delete", "/v1/users/{user}/blocks/{other}") => (Some(methods.len()), 1),
            ("delete", "/v1/users/{user}") => (Some(methods.len()), 2),
            _ => (at, 0),
        }
    });
    for (method, path, operation) in all {
        let mut filled = path.clone();
        for parameter in operation["parameters"].as_array().unwrap_or(&Vec::new()) {
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] == "query" && parameter["required"] == true {
                filled = format!("{filled}?{name}={}", parameter["example"].as_str().unwrap());
            }
            if parameter["in"] != "path" {
                continue;
            }
            // Posts, stories and samples are created here, because no example can contain their ids.
            let example = if name == "id" {
                made(&server, &path)
            } else {
                let example = parameter.get("example").unwrap_or_else(|| panic!("{path}: {name}"));
                example.as_str().unwrap().to_owned()
            };
            filled = filled.replace(&format!("{{{name}}}"), &example);
        }
        if path.ends_with("/events") {
            drop(server.events(&filled, None));
            continue;
        }
        let mut headers = Vec::new();
        let mut body = String::new();
        if let Some(content) = operation["requestBody"]["content"].as_object() {
            let media =
                content.keys().find(|media| media.contains("json")).or(content.keys().next());
            headers.push(("Content-Type", media.unwrap().as_str()));
            let example = example(&api, &content[media.unwrap()]["schema"]);
            body = example.unwrap_or(json!("value")).to_string();
        }
        let answer = server.send(&method.to_uppercase(), &filled, &headers, body.as_bytes());
        let documented = operation["responses"].as_object().unwrap();
        assert!(
            documented.contains_key(&answer.status.to_string()),
            "{method} {filled}: {answer:?}"
        );
        let expected = match (method.as_str(), path.as_str()) {
            // Numbered buckets cannot be deleted, only named ones.
            ("delete", "/v1/buckets/{bucket}") => 409,
            // An earlier example has accepted the request.
            ("delete", "/v1/users/{user}/follow_requests/{other}") => 404,
            // This server is not a node of a cluster.
            ("get", "/v1/cluster") => 404,
            _ => answer.status.min(299),
        };
        assert_eq!(answer.status, expected, "{method} {filled} {body}: {answer:?}");
        if path == "/v1/batch" {
            assert_eq!(answer.lines()[0]["ok"], true, "{answer:?}");
        }
    }
}

fn made(server: &TestServer, path: &str) -> String {
    if path.contains("stories") {
        return server.post_story("one", "x", 60);
    }
    if path.contains("samples") {
        let body = json!({"label": "x", "sample": "0".repeat(256)});
        return server.post("/v1/samples", &body).json()["id"].as_str().unwrap().to_owned();
    }
    if path.contains("/quotes/{id}") {
        let body = json!({"text": "look", "quote_id": server.publish("one", "x")});
        return server.post("/v1/users/@two/posts", &body).json()["id"]
            .as_str()
            .unwrap()
            .to_owned();
    }
    // A notification of a mention has the id of the post that mentions the user.
    let author = if path.contains("notifications") { "two" } else { "one" };
    server.publish(author, "hi @one")
}

#[test]
fn the_example_of_each_error_response_is_one_of_its_errors() {
    let api = TestServer::open().get("/v1/openapi.json").json();
    let operations = api["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|path| path.as_object().unwrap().values());
    let of_operations = operations.map(|operation| &operation["responses"]);
    let all = of_operations.chain([&api["components"]["responses"]]);
    let mut codes = BTreeSet::new();
    for response in all.flat_map(|responses| responses.as_object().unwrap().values()) {
        let content = &response["content"]["application/json"];
        if content["schema"]["$ref"] != "#/components/schemas/ErrorBody" {
            continue;
        }
        let [code, message] =
            ["error", "message"].map(|name| content["example"][name].as_str().unwrap());
        let text = response["description"].as_str().unwrap();
        assert!(text.contains(&format!("`{code}`: {message}")), "{code} in {text}");
        codes.insert(code.to_owned());
    }
    assert!(codes.len() > 20, "{codes:?}");
}
