//! `/v1/users/{user}/tokens` and `/v1/tokens`

use edge::{Access, KeyHash, Scopes};
use serde_json::{Value, json};

use crate::client::{Answer, TestServer};

#[test]
fn the_tokens_of_a_key_are_listed_with_its_name_and_revoked_together() {
    let keys = ["shop", "forum"].map(|key| KeyHash::new(key.as_bytes(), Scopes::ALL).named(key));
    let server = TestServer::start(Access::with_keys(keys.into()), |_, _| ());
    let send = |key: &str, method: &str, path: &str, body: Value| -> Answer {
        let key = format!("Bearer {key}");
        server.with_json(method, path, &[("Authorization", key.as_str())], &body)
    };
    let tokens = |user: &str| -> Vec<Value> {
        let answer = send("shop", "GET", &format!("/v1/users/{user}/tokens"), Value::Null);
        let page = answer.json();
        page["items"].as_array().unwrap().iter().map(|token| token["key"].clone()).collect()
    };
    for user in ["ada", "bob"] {
        assert_eq!(send("shop", "POST", "/v1/users", json!({"handle": user})).status, 201);
        for key in ["shop", "forum", "shop"] {
            let token = json!({"scopes": ["read"], "ttl_s": 60});
            let path = format!("/v1/users/@{user}/tokens");
            let answer = send(key, "POST", &path, token);
            assert_eq!((answer.status, &answer.json()["key"]), (201, &json!(key)));
        }
        assert_eq!(tokens(&format!("@{user}")), ["shop", "forum", "shop"]);
    }
    for (name, left) in [("none", vec!["shop", "forum", "shop"]), ("shop", vec!["forum"])] {
        let path = format!("/v1/tokens?key={name}");
        assert_eq!(send("forum", "DELETE", &path, Value::Null).status, 204, "{name}");
        assert_eq!(tokens("@ada"), left, "{name}");
        assert_eq!(tokens("@bob"), left, "{name}");
    }
    send("shop", "DELETE", "/v1/tokens", Value::Null).assert_error(400, "bad_request", "no name");
}
