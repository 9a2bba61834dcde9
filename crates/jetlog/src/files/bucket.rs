//! Required configuration of the stream of files, and the commands of the `nats` program that create or correct it.
//!
//! The stream keeps the last message of each subject for two weeks. Storing a part of a file again replaces its
//! message, and so extends the time.

use std::time::Duration;

use async_nats::jetstream::stream::{
    Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType,
};

use crate::JetLogOptions;
use crate::error::JetLogError;
use crate::stream::{Requirement, fixed, need, refuse_unmet, unlimited};

/// Minimum time for which the servers keep a file. A node that was stopped for longer asks the other nodes for files.
const KEPT_FOR: Duration = Duration::from_secs(14 * 86_400);
const KEPT_FOR_TEXT: &str = "14d";

/// Remedy for a wrong stream. If no node lacks a file, the stream can be removed without loss, because the nodes have
/// all files.
const CANNOT_CHANGE: &str = "that cannot be changed: once `missing_files` in GET /v1/cluster is 0 on all nodes, remove \
    this stream and start a node again, which creates it again";

/// Returns the configuration of a new stream.
pub(super) fn desired(options: &JetLogOptions) -> Config {
    Config {
        name: options.files_stream(),
        description: Some("Files of pictures in transit between the nodes of roost".into()),
        subjects: vec![subjects(options)],
        num_replicas: options.replicas,
        storage: StorageType::File,
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::New,
        deny_delete: true,
        allow_direct: true,
        max_age: KEPT_FOR,
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: 1,
        max_message_size: -1,
        max_consumers: -1,
        ..Config::default()
    }
}

/// Returns the command that creates the stream.
pub(super) fn command(options: &JetLogOptions) -> String {
    format!(
        "nats stream add {} --subjects='{}' --replicas={} --storage=file --retention=limits --discard=new \
         --max-msgs-per-subject=1 --max-age={KEPT_FOR_TEXT} --deny-delete --allow-direct --defaults",
        options.files_stream(),
        subjects(options),
        options.replicas
    )
}

fn subjects(options: &JetLogOptions) -> String {
    format!("{}.>", options.files_subject())
}

fn requirements(config: &Config, options: &JetLogOptions) -> Vec<Requirement> {
    let (subjects, replicas) = (subjects(options), options.replicas);
    let copies = config.mirror.is_some()
        || config.sources.as_ref().is_some_and(|sources| !sources.is_empty())
        || config.subject_transform.is_some();
    let keeps = config.max_age.is_zero() || config.max_age >= KEPT_FOR;
    vec![
        need(
            &format!("subjects {subjects}"),
            &config.subjects.join(" "),
            config.subjects == [subjects.clone()],
            &format!("--subjects='{subjects}'"),
        ),
        need(
            &format!("{replicas} replicas or more"),
            &config.num_replicas.to_string(),
            config.num_replicas >= replicas,
            &format!("--replicas={replicas}"),
        ),
        fixed(need("storage file", "memory", config.storage == StorageType::File, "")),
        fixed(need("retention limits", "another", config.retention == RetentionPolicy::Limits, "")),
        need("discard new", "old", config.discard == DiscardPolicy::New, "--discard=new"),
        need(
            "new messages instead of old ones of a subject",
            "no",
            !config.discard_new_per_subject,
            "--no-discard-per-subject",
        ),
        need(
            "1 message per subject",
            &config.max_messages_per_subject.to_string(),
            config.max_messages_per_subject == 1,
            "--max-msgs-per-subject=1",
        ),
        need(
            &format!("an age of {KEPT_FOR_TEXT} or more"),
            &format!("{} s", config.max_age.as_secs()),
            keeps,
            &format!("--max-age={KEPT_FOR_TEXT}"),
        ),
        unlimited("length of messages", config.max_message_size <= 0, "--max-msg-size=-1"),
        need("no deletion of messages", "allowed", config.deny_delete, "--deny-delete"),
        need("direct reads", "none", config.allow_direct, "--allow-direct"),
        need("no rollup", "allowed", !config.allow_rollup, "--no-allow-rollup"),
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

/// Checks that the stream does not lose acknowledged data.
pub(super) fn check(config: &Config, options: &JetLogOptions) -> Result<(), JetLogError> {
    let stream = (options.files_stream(), "files of pictures");
    refuse_unmet(requirements(config, options), stream, CANNOT_CHANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect(change: impl FnOnce(&mut Config), wrong: &str, flags: &str) {
        let options = JetLogOptions::new("nats://127.0.0.1:4222");
        let mut config = desired(&options);
        change(&mut config);
        match check(&config, &options) {
            Ok(()) => assert_eq!((wrong, flags), ("", "")),
            Err(JetLogError::Config { wrong: found, advice, .. }) => {
                assert_eq!(found.join(", "), wrong);
                assert!(advice.ends_with(flags), "{advice}");
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_stream_that_could_lose_files_is_refused_with_the_command() {
        expect(|_| (), "", "");
        expect(|config| config.num_replicas = 5, "", "");
        expect(|config| config.max_age = Duration::ZERO, "", "");
        expect(|config| config.max_bytes = 1 << 40, "", "");
        expect(
            |config| config.max_age = KEPT_FOR - Duration::from_secs(1),
            "1209599 s instead of an age of 14d or more",
            "nats stream edit roost-files --force --max-age=14d",
        );
        expect(
            |config| {
                config.num_replicas = 1;
                config.max_messages_per_subject = -1;
            },
            "1 instead of 3 replicas or more, -1 instead of 1 message per subject",
            "--force --replicas=3 --max-msgs-per-subject=1",
        );
        expect(
            |config| config.storage = StorageType::Memory,
            "memory instead of storage file",
            "which creates it again",
        );
    }
}
