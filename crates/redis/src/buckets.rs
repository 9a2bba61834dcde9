//! `BUCKET CREATE | USE | LIST | DELETE`: named buckets, in addition to the numbered ones of SELECT.

use kv::{BucketName, KeyAnswer, KeyOp};
use resp::Encoder;

use super::client::Client;
use super::command::{Flag, Group, Run, Spec, Wait, Words, number};
use super::failure::Failure;
use super::keys::help;
use super::numbers::{integer, is};
use edge::Length;

/// Default number of names that LIST returns.
const LIST_DEFAULT: usize = 1_000;
/// Maximum number of names that LIST returns.
const LIST_MAX: usize = 100_000;
/// Maximum number of names for which LIST runs as a short read.
const LIST_SHORT: usize = 1_000;
/// Maximum size of a name in a list or in a reply, in bytes.
const LIST_ROW_BYTES: usize = 96;
/// Size of a change of buckets, in bytes.
const CHANGE_BYTES: usize = 128;
const BAD_NAME: Failure = Failure::said("ERR the name of a bucket is 1 to 64 of a-z A-Z 0-9 _ -");

pub(crate) const COMMANDS: &[Spec] = &[Spec {
    name: "bucket",
    arity: -2,
    flags: &[Flag::Write, Flag::NoMulti],
    keys: (0, 0, 0),
    group: Group::Bucket,
    summary: "Creates, selects, lists and deletes named buckets.",
    since: "roost 0.1.0",
    run: Run::Wait(Wait::Bucket),
}];

const SUBCOMMANDS: &[&str] = &["help", "create", "use", "delete"];

const HELP: &[&str] = &[
    "BUCKET CREATE name",
    "    Create a bucket. Return 1 if it was created, 0 if it exists.",
    "BUCKET USE name",
    "    Select a named bucket for this connection. SELECT selects a numbered one.",
    "BUCKET LIST [AFTER name] [COUNT n]",
    "    Return names of buckets in order, at most n (default 1000).",
    "BUCKET DELETE name",
    "    Delete a bucket with all its keys. Return 1 if it existed, 0 if not.",
];

pub(crate) async fn bucket(client: &mut Client, words: &Words<'_>) -> Result<(), Failure> {
    match words {
        [sub] if is(sub, "help") => help(&mut client.reply(), HELP),
        [sub, given] if is(sub, "create") => {
            let name = name(given)?;
            client.add(&KeyOp::Create { name }, Some(created), CHANGE_BYTES).await?;
            client.flush_changes().await;
        }
        [sub, given] if is(sub, "use") => {
            let name = name(given)?;
            let found =
                client.block(Length::Quick, move |node, _| node.bucket_named(&name)).await?;
            let bucket = found.ok_or(Failure::NO_BUCKET)?;
            client.bucket = bucket;
            client.reply().simple("OK");
        }
        [sub, given] if is(sub, "delete") => {
            let name = name(given)?;
            client.add(&KeyOp::Drop { name }, Some(dropped), CHANGE_BYTES).await?;
            client.flush_changes().await;
        }
        [sub, options @ ..] if is(sub, "list") => list(client, options).await?,
        [sub, ..] => return Err(Failure::subcommand("bucket", sub, SUBCOMMANDS)),
        [] => return Err(Failure::arity("bucket")),
    }
    Ok(())
}

fn name(given: &[u8]) -> Result<BucketName, Failure> {
    std::str::from_utf8(given).ok().and_then(BucketName::parse).ok_or(BAD_NAME)
}

/// Replies 1 if the bucket is new. The number of the bucket is internal.
fn created(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Number(_) => reply.integer(1),
        answer => number(answer, reply),
    }
}

/// Replies 1 if the bucket existed, otherwise 0.
fn dropped(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Refused(kv::KeyRefusal::BucketNotFound) => reply.integer(0),
        answer => number(answer, reply),
    }
}

async fn list(client: &mut Client, options: &Words<'_>) -> Result<(), Failure> {
    let (mut after, mut count) = (None, LIST_DEFAULT);
    let (options, []) = options.as_chunks() else { return Err(Failure::SYNTAX) };
    for [option, given] in options {
        if is(option, "after") {
            after = Some(name(given)?);
        } else if is(option, "count") {
            let given = usize::try_from(integer(given)?).ok().filter(|count| *count > 0);
            count = given.ok_or(Failure::SYNTAX)?.min(LIST_MAX);
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    client.admit(count * LIST_ROW_BYTES)?;
    let held = client.memory.budget.try_reserve(count * LIST_ROW_BYTES).ok_or(Failure::BUSY)?;
    let read = move |node: &node::Node| {
        (node.buckets_after(after.as_ref().map(BucketName::as_str), count), held)
    };
    let length = if count > LIST_SHORT { Length::Long } else { Length::Quick };
    let (names, _held) = client.block(length, move |node, _| read(node)).await?;
    let mut reply = client.reply();
    reply.array(names.len());
    names.iter().for_each(|(name, _)| reply.bulk(name.as_str().as_bytes()));
    Ok(())
}
