//! `BUCKET CREATE | USE | LIST | DELETE`: buckets by name, beside the numbered ones of SELECT.

use kv::{BucketName, KeyAnswer, KeyOp};
use resp::Encoder;

use super::client::Client;
use super::command::{Flag, Group, Run, Spec, Wait, Words, number};
use super::failure::Failure;
use super::keys::help;
use super::numbers::{integer, is};
use edge::Length;

/// Names that LIST tells if it is not said how many.
const LIST_DEFAULT: usize = 1_000;
/// Most names that LIST tells at a time.
const LIST_MAX: usize = 100_000;
/// Names up to this number are listed among the quick reads.
const LIST_SHORT: usize = 1_000;
/// Most bytes of a name in a list, or in a reply.
const LIST_ROW_BYTES: usize = 96;
/// Bytes of a change to buckets.
const CHANGE_BYTES: usize = 128;
const BAD_NAME: Failure = Failure::said("ERR the name of a bucket is 1 to 64 of a-z A-Z 0-9 _ -");

pub(crate) const COMMANDS: &[Spec] = &[Spec {
    name: "bucket",
    arity: -2,
    flags: &[Flag::Write, Flag::NoMulti],
    keys: (0, 0, 0),
    group: Group::Bucket,
    summary: "Makes, chooses, lists and deletes buckets with names.",
    since: "roost 0.1.0",
    run: Run::Wait(Wait::Bucket),
}];

const HELP: &[&str] = &[
    "BUCKET CREATE name",
    "    Makes a bucket. 1 if it is new, 0 if there is one of this name.",
    "BUCKET USE name",
    "    Lets the commands of this connection work on a bucket. SELECT goes back to a numbered one.",
    "BUCKET LIST [AFTER name] [COUNT n]",
    "    Names of buckets in order, 1000 if not said how many.",
    "BUCKET DELETE name",
    "    Deletes a bucket with all its keys. 1 if there was one, 0 if not.",
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
        [sub, ..] if ["create", "use", "delete"].iter().any(|known| is(sub, known)) => {
            return Err(Failure::arity("bucket"));
        }
        [sub, ..] => return Err(Failure::subcommand("bucket", sub)),
        [] => return Err(Failure::arity("bucket")),
    }
    Ok(())
}

fn name(given: &[u8]) -> Result<BucketName, Failure> {
    std::str::from_utf8(given).ok().and_then(BucketName::parse).ok_or(BAD_NAME)
}

/// 1 if it is new; the number that it got is nobody's concern.
fn created(answer: &KeyAnswer, reply: &mut Encoder<'_>) {
    match answer {
        KeyAnswer::Number(_) => reply.integer(1),
        answer => number(answer, reply),
    }
}

/// 1 if there was one.
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
