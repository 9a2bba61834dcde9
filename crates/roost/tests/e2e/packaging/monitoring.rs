//! Tests of the dashboard and the alert rules: their queries can be parsed, and every metric in them exists.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use super::{packaging, read, tool};
use crate::support::process::{Process, Server, roost};
use crate::support::redis::Redis;
use crate::support::said;

/// Area of a panel on the dashboard. Areas must not overlap.
#[derive(Clone, Copy)]
struct Place {
    x: u64,
    y: u64,
    width: u64,
    height: u64,
}

impl Place {
    fn of(panel: &Value) -> Self {
        let number = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        Self { x: number("x"), y: number("y"), width: number("w"), height: number("h") }
    }

    fn overlaps(self, other: Self) -> bool {
        let meet = |a: u64, long: u64, b: u64, other_long: u64| a < b + other_long && b < a + long;
        meet(self.x, self.width, other.x, other.width)
            && meet(self.y, self.height, other.y, other.height)
    }
}

fn dashboard() -> Value {
    serde_json::from_str(&read("monitoring/dashboard.json")).unwrap()
}

/// Queries of all panels.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// Names of metrics of roost in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split(|letter| !is_name(letter))
        .filter(|word| word.starts_with("roost_") || word.starts_with("process_"))
        .collect()
}

/// Names of all samples that a server exposes after all its features were used.
fn exposed() -> BTreeSet<String> {
    let data = tempfile::tempdir().unwrap();
    let webhook = ["webhook", "add", "a", "http://127.0.0.1:1", "--allow-private", "--data"];
    let added = Process::start(roost(webhook).arg(data.path())).ended();
    assert!(added.status.success(), "{added:?}");
    let more = ["--redis-listen", "127.0.0.1:0", "--changes-max", "8MiB"];
    let server = Server::open(data.path(), &more);
    let redis = server.process.said("roost serves redis://").unwrap();
    Redis::new(redis.parse().unwrap()).line("SET a b");
    let mut client = server.client();
    client.post("/v1/users", &json!({"handle": "ada"})).expect(201);
    let text = client.get("/metrics").expect(200).text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()).collect()
}

#[test]
fn every_metric_of_the_dashboard_and_the_alerts_exists() {
    let exposed = exposed();
    let (dashboard, alerts) = (read("monitoring/dashboard.json"), read("monitoring/alerts.yml"));
    let tests = read("monitoring/alerts.test.yml");
    let used: BTreeSet<&str> =
        [&dashboard, &alerts, &tests].into_iter().flat_map(|text| metrics_in(text)).collect();
    assert!(used.len() > 30, "{used:?}");
    let missing: Vec<_> = used.iter().filter(|name| !exposed.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {exposed:?}");
    // The dashboard also shows every metric.
    let shown = metrics_in(&dashboard);
    let derived = ["_bucket", "_sum", "_count"];
    let of_histograms = |name: &&String| derived.iter().any(|end| name.ends_with(end));
    let hidden: Vec<_> = exposed
        .iter()
        .filter(|name| !of_histograms(name) && !shown.contains(name.as_str()))
        .collect();
    assert!(hidden.is_empty(), "{hidden:?} are on no panel");
}

#[test]
fn the_panels_of_the_dashboard_are_complete_and_beside_each_other() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    for (number, panel) in panels.iter().enumerate() {
        assert!(!panel["title"].as_str().unwrap().is_empty(), "{panel}");
        let place = Place::of(panel);
        assert!(place.x + place.width <= 24, "{panel}");
        for other in &panels[number + 1..] {
            assert!(!place.overlaps(Place::of(other)), "{panel} and {other}");
        }
        if panel["type"] != "row" {
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{panel}");
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
        }
    }
}

#[test]
fn prometheus_parses_every_query_of_the_dashboard() {
    // The queries are checked as rules. Variables of Grafana are replaced.
    let rules = queries(&dashboard()).into_iter().enumerate().map(|(number, query)| {
        let query = query.replace("$__rate_interval", "5m").replace("$instance", ".*");
        json!({"record": format!("panel:{number}"), "expr": query})
    });
    let rules: Vec<Value> = rules.collect();
    assert!(rules.len() > 30, "{} queries", rules.len());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yml");
    // JSON is also valid YAML.
    let groups = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    std::fs::write(&file, groups.to_string()).unwrap();
    let mut promtool = Command::new("promtool");
    if let Some(output) = tool(promtool.args(["check", "rules"]).arg(file)) {
        said(&output);
    }
}

#[test]
fn alerts_fire_when_a_server_is_in_trouble_and_only_then() {
    let promtool = |words: [&str; 2], file: &str| {
        tool(Command::new("promtool").args(words).arg(packaging(file)))
    };
    let Some(checked) = promtool(["check", "rules"], "monitoring/alerts.yml") else { return };
    said(&checked);
    said(&promtool(["test", "rules"], "monitoring/alerts.test.yml").unwrap());
    let (rules, tests) = (read("monitoring/alerts.yml"), read("monitoring/alerts.test.yml"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let tested = format!("alertname=\"{alert}\"");
        assert!(tests.contains(&tested), "no test lets {alert} fire");
        assert!(tests.contains(&format!("alertname: {alert}}}")), "{alert} may fire always");
    }
}
