//! Samples of a worker of the crash test. The worker has a set; each sample in it is a drawing derived from its label.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::http::{Answer, Client, number};

/// Samples that were acknowledged and are not deleted.
pub(super) struct SampleAdded {
    set: String,
    pub(super) labels: BTreeMap<u64, String>,
}

impl SampleAdded {
    pub(super) fn new(worker: u32) -> Self {
        Self { set: format!("of-worker-{worker}"), labels: BTreeMap::new() }
    }

    pub(super) fn teach(&self, client: &mut Client, label: &str) -> std::io::Result<Answer> {
        let body = json!({"label": label, "sample": drawing(label), "set": self.set});
        client.try_post("/v1/samples", &[], &body)
    }

    pub(super) fn forget(client: &mut Client, id: u64) -> std::io::Result<Answer> {
        client.send("DELETE", &format!("/v1/samples/{id}"), &[], b"")
    }

    /// The sample with this label; `None` if there is none.
    pub(super) fn find(&self, client: &mut Client, label: &str) -> Option<u64> {
        let nearest = self.nearest(client, &[label])?.pop().unwrap();
        (nearest["distance"] == 0).then(|| {
            assert_eq!(nearest["label"], label);
            number(&nearest["id"])
        })
    }

    pub(super) fn is_there(client: &mut Client, id: u64) -> bool {
        client.get(&format!("/v1/samples/{id}")).status == 200
    }

    /// Compares the server's set with the acknowledged samples.
    pub(super) fn check(&self, client: &mut Client) {
        let overview = client.get("/v1/recognitions").expect(200).json();
        let sets = overview["sets"].as_array().unwrap();
        let shown = sets.iter().find(|set| set["set"] == *self.set);
        let count = shown.map_or(0, |set| set["sample_count"].as_u64().unwrap());
        assert_eq!(count, self.labels.len() as u64, "samples of {}", self.set);
        for part in self.labels.iter().collect::<Vec<_>>().chunks(200) {
            let labels: Vec<&str> = part.iter().map(|(_, label)| label.as_str()).collect();
            let nearest = self.nearest(client, &labels).unwrap();
            for ((id, label), nearest) in part.iter().zip(nearest) {
                let expected = json!({"id": id.to_string(), "label": label, "distance": 0});
                assert_eq!(nearest, expected, "{}", self.set);
            }
        }
        if let Some((id, label)) = self.labels.first_key_value() {
            let shown = client.get(&format!("/v1/samples/{id}")).expect(200).json();
            assert_eq!(
                (&shown["label"], &shown["sample"]),
                (&json!(label), &json!(drawing(label)))
            );
        }
    }

    /// The nearest sample for the drawing of each label; `None` if the set is empty.
    fn nearest(&self, client: &mut Client, labels: &[&str]) -> Option<Vec<Value>> {
        let samples: Vec<_> = labels.iter().map(|label| drawing(label)).collect();
        let path = format!("/v1/recognitions?k=1&set={}", self.set);
        let answer = client.try_post(&path, &[], &json!({"samples": samples})).unwrap();
        if answer.status == 404 {
            assert_eq!(answer.json()["error"], "set_not_found");
            return None;
        }
        let answer = answer.expect(200).json();
        let results = answer["recognitions"].as_array().unwrap();
        Some(results.iter().map(|result| result["neighbors"][0].clone()).collect())
    }
}

/// Bytes of a drawing that is unique to the label.
fn drawing(label: &str) -> String {
    let hex: String = label.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex:0>256}")
}
