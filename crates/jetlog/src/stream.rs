//! Required configuration of the stream, and the command of the `nats` program that restores it.
//!
//! **Invariant:** no advice removes the stream of the log, or anything in it.

use async_nats::jetstream::stream::{
    Compression, Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType,
};

use commitlog::ClusterId;

use crate::JetLogOptions;
use crate::error::JetLogError;

/// Field of a stream's metadata with the cluster to which it belongs.
pub(crate) const CLUSTER: &str = "roost_cluster";

/// Remedy for a stream that can never be used.
const CANNOT_CHANGE: &str = "that cannot be changed: stop the nodes with SIGTERM and make a new cluster of one of them, \
    with another stream, as docs/cluster.md says";

/// Returns the configuration of a new stream whose first group is at `first`.
pub(crate) fn desired(options: &JetLogOptions, cluster: ClusterId, first: u64) -> Config {
    Config {
        name: options.stream.clone(),
        description: Some("The log of a roost cluster: do not delete or change messages".into()),
        subjects: vec![options.subject()],
        num_replicas: options.replicas,
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::New,
        deny_delete: true,
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_message_size: -1,
        max_consumers: -1,
        metadata: [(CLUSTER.to_owned(), cluster.to_string())].into(),
        first_sequence: (first > 1).then_some(first),
        ..Config::default()
    }
}

/// Requirement for the configuration of a stream.
pub(crate) struct Requirement {
    /// Description of the requirement.
    what: String,
    /// Current value in the stream; empty if it is obvious.
    found: String,
    is_met: bool,
    /// Flag of `nats stream edit` that corrects the value, unless `is_fixed`.
    flag: String,
    /// Whether the value cannot be changed in an existing stream.
    is_fixed: bool,
}

pub(crate) fn need(what: &str, found: &str, is_met: bool, flag: &str) -> Requirement {
    let (what, found, flag) = (what.to_owned(), found.to_owned(), flag.to_owned());
    Requirement { what, found, is_met, flag, is_fixed: false }
}

pub(crate) fn fixed(requirement: Requirement) -> Requirement {
    Requirement { is_fixed: true, ..requirement }
}

fn requirements(config: &Config, options: &JetLogOptions) -> Vec<Requirement> {
    let (subject, replicas) = (options.subject(), options.replicas);
    let is_work_queue = config.retention == RetentionPolicy::WorkQueue;
    let retention = need(
        "retention limits",
        &format!("{:?}", config.retention).to_lowercase(),
        config.retention == RetentionPolicy::Limits,
        "--retention=limits",
    );
    let copies = config.mirror.is_some()
        || config.sources.as_ref().is_some_and(|sources| !sources.is_empty())
        || config.subject_transform.is_some();
    let compression = config.compression.clone().unwrap_or(Compression::None);
    vec![
        need(
            &format!("subjects {subject}"),
            &config.subjects.join(" "),
            config.subjects == [subject.clone()],
            &format!("--subjects={subject}"),
        ),
        need(
            &format!("{replicas} replicas or more"),
            &config.num_replicas.to_string(),
            config.num_replicas >= replicas,
            &format!("--replicas={replicas}"),
        ),
        fixed(need("storage file", "memory", config.storage == StorageType::File, "")),
        Requirement { is_fixed: is_work_queue, ..retention },
        need("discard new", "old", config.discard == DiscardPolicy::New, "--discard=new"),
        unlimited("messages", config.max_messages <= 0, "--max-msgs=-1"),
        unlimited(
            "messages per subject",
            config.max_messages_per_subject <= 0,
            "--max-msgs-per-subject=-1",
        ),
        unlimited("age", config.max_age.is_zero(), "--max-age=0s"),
        unlimited("length of messages", config.max_message_size <= 0, "--max-msg-size=-1"),
        need("no deletion of messages", "allowed", config.deny_delete, "--deny-delete"),
        fixed(need("purge", "denied", !config.deny_purge, "")),
        need("no rollup", "allowed", !config.allow_rollup, "--no-allow-rollup"),
        need("no compression", "s2", compression == Compression::None, "--compression=none"),
        need("acknowledgements", "none", !config.no_ack, "--ack"),
        fixed(need(
            "persist mode default",
            "async",
            config.persist_mode != Some(PersistenceMode::Async),
            "",
        )),
        fixed(need("no copies of other streams", "some", !copies, "")),
        fixed(need("not sealed", "sealed", !config.sealed, "")),
    ]
}

pub(crate) fn unlimited(what: &str, is_met: bool, flag: &str) -> Requirement {
    need(&format!("no limit of {what}"), "one", is_met, flag)
}

/// Returns the cluster to which the stream belongs.
pub(crate) fn cluster(config: &Config, options: &JetLogOptions) -> Result<ClusterId, JetLogError> {
    let id = config.metadata.get(CLUSTER).and_then(|id| u128::from_str_radix(id, 16).ok());
    id.map(ClusterId).ok_or_else(|| JetLogError::NotOurs { stream: options.stream.clone() })
}

/// Checks that the stream is the log of this cluster, and that its configuration loses nothing.
pub(crate) fn check(
    config: &Config,
    options: &JetLogOptions,
    cluster: ClusterId,
) -> Result<(), JetLogError> {
    let stream = options.stream.clone();
    let Some(found) = config.metadata.get(CLUSTER) else {
        return Err(JetLogError::NotOurs { stream });
    };
    if *found != cluster.to_string() {
        let (found, expected) = (found.clone(), cluster.to_string());
        return Err(JetLogError::OtherCluster { stream, found, expected });
    }
    refuse_unmet(requirements(config, options), (stream, "changes"), CANNOT_CHANGE)
}

/// Refuses a stream that could lose data because a requirement is not met.
pub(crate) fn refuse_unmet(
    requirements: Vec<Requirement>,
    (stream, what): (String, &'static str),
    cannot_change: &str,
) -> Result<(), JetLogError> {
    let unmet: Vec<Requirement> = requirements.into_iter().filter(|one| !one.is_met).collect();
    if unmet.is_empty() {
        return Ok(());
    }
    let advice = if unmet.iter().any(|one| one.is_fixed) {
        cannot_change.to_owned()
    } else {
        let flags: Vec<&str> = unmet.iter().map(|one| one.flag.as_str()).collect();
        format!("change it back with: nats stream edit {stream} --force {}", flags.join(" "))
    };
    let wrong = unmet.iter().map(|one| format!("{} instead of {}", one.found, one.what));
    Err(JetLogError::Config { stream, what, wrong: wrong.collect(), advice })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER_ID: ClusterId = ClusterId(0xc1);

    fn options() -> JetLogOptions {
        JetLogOptions::new("nats://127.0.0.1:4222")
    }

    /// Checks the faults and the advice for a changed configuration; both are empty if there is no fault.
    #[track_caller]
    fn expect(change: impl FnOnce(&mut Config), wrong: &str, advice: &str) {
        let mut config = desired(&options(), CLUSTER_ID, 1);
        change(&mut config);
        match check(&config, &options(), CLUSTER_ID) {
            Ok(()) => assert_eq!((wrong, advice), ("", "")),
            Err(JetLogError::Config { wrong: found, advice: given, .. }) => {
                assert_eq!(found.join(", "), wrong);
                assert_eq!(given, advice);
                assert!(!given.contains("stream rm"), "{given}");
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_stream_that_could_lose_changes_is_refused_with_the_command() {
        expect(|_| (), "", "");
        expect(|config| config.num_replicas = 5, "", "");
        expect(|config| config.max_bytes = 1 << 40, "", "");
        let edit =
            |flags: &str| format!("change it back with: nats stream edit roost --force {flags}");
        expect(
            |config| config.num_replicas = 1,
            "1 instead of 3 replicas or more",
            &edit("--replicas=3"),
        );
        expect(
            |config| {
                config.discard = DiscardPolicy::Old;
                config.max_age = std::time::Duration::from_secs(1);
            },
            "old instead of discard new, one instead of no limit of age",
            &edit("--discard=new --max-age=0s"),
        );
        expect(
            |config| config.subjects.push("orders".into()),
            "roost.groups orders instead of subjects roost.groups",
            &edit("--subjects=roost.groups"),
        );
        expect(
            |config| config.retention = RetentionPolicy::Interest,
            "interest instead of retention limits",
            &edit("--retention=limits"),
        );
        expect(
            |config| config.deny_delete = false,
            "allowed instead of no deletion of messages",
            &edit("--deny-delete"),
        );
        expect(
            |config| config.storage = StorageType::Memory,
            "memory instead of storage file",
            CANNOT_CHANGE,
        );
    }

    #[test]
    fn a_stream_of_others_is_refused() {
        let mut config = desired(&options(), CLUSTER_ID, 1);
        let other = check(&config, &options(), ClusterId(7));
        assert!(matches!(other, Err(JetLogError::OtherCluster { .. })), "{other:?}");
        config.metadata.clear();
        let other = check(&config, &options(), CLUSTER_ID);
        assert!(matches!(other, Err(JetLogError::NotOurs { .. })), "{other:?}");
    }
}
