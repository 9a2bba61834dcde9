//! Keys of a worker of the crash test. The worker has a few keys in a bucket, and changes their values repeatedly.

use std::collections::BTreeMap;

use crate::support::http::{Answer, Client, at};

/// Bucket that all workers share.
const BUCKET: &str = "/v1/buckets/3/keys";

/// Acknowledged values, by key.
pub(super) struct Kept {
    prefix: String,
    pub(super) values: BTreeMap<String, String>,
}

impl Kept {
    pub(super) fn new(worker: u32) -> Self {
        Self { prefix: format!("w{worker}-"), values: BTreeMap::new() }
    }

    /// One of the worker's keys.
    pub(super) fn key(&self, number: u32) -> String {
        format!("{}{number}", self.prefix)
    }

    pub(super) fn put(client: &mut Client, key: &str, value: &str) -> std::io::Result<Answer> {
        client.send("PUT", &format!("{BUCKET}/{key}"), &[], value.as_bytes())
    }

    pub(super) fn remove(client: &mut Client, key: &str) -> std::io::Result<Answer> {
        client.send("DELETE", &format!("{BUCKET}/{key}"), &[], b"")
    }

    pub(super) fn read(client: &mut Client, key: &str) -> Option<String> {
        let answer = client.get(&format!("{BUCKET}/{key}"));
        if answer.status == 404 {
            assert_eq!(answer.json()["error"], "key_not_found");
            return None;
        }
        Some(answer.expect(200).text())
    }

    /// Compares the server's values with the acknowledged ones.
    pub(super) fn check(&self, client: &mut Client) {
        let mut path = Some(format!("{BUCKET}?prefix={}&limit=100", self.prefix));
        let mut keys = Vec::new();
        while let Some(next) = path {
            let page = client.get(&next).expect(200).json();
            let items = page["items"].as_array().unwrap().iter();
            keys.extend(items.map(|item| item["key"].as_str().unwrap().to_owned()));
            path = page["next"].as_str().map(|cursor| at(&next, cursor));
        }
        keys.sort();
        let mut expected: Vec<&String> = self.values.keys().collect();
        expected.sort();
        assert_eq!(keys.iter().collect::<Vec<_>>(), expected);
        for (key, value) in &self.values {
            assert_eq!(Self::read(client, key).as_ref(), Some(value), "{key}");
        }
    }
}
