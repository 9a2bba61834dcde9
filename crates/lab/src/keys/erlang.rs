//! Peer in Erlang that implements the designs with actors. It separates the cost of a design from that of the runtime.
//!
//! The program is `peers/erlang/keys.erl`. It is compiled for each trial, gets the same operations in a file, and
//! writes its answers to a file. The answers are checked like those of the other designs.

use std::fs;
use std::process::Command;

use crate::answers::Answers;
use crate::keys::workload::{Op, Workload, add};
use crate::keys::{VALUE_BYTES, Value};
use crate::measured::Measured;
use crate::peer::{are_installed, printed, times};
use crate::trial::TrialError;

/// Source of the program.
const PROGRAM: &str = include_str!("../../peers/erlang/keys.erl");

/// Reason why the peer cannot run here.
pub(super) fn absent() -> Option<&'static str> {
    (!are_installed(&["erl", "erlc"]))
        .then_some("Erlang is not installed (apt-get install erlang-base)")
}

/// Runs a trial of a design, by its name in the program, with `threads` schedulers.
pub(super) fn run(design: &str, threads: u32, workload: &Workload) -> Result<Measured, TrialError> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    fs::write(file("keys.erl"), PROGRAM)?;
    fs::write(file("first"), first_values(workload))?;
    fs::write(file("operations"), operations(workload))?;
    printed(Command::new("erlc").arg("keys.erl"), folder.path())?;
    let mut erl = Command::new("erl");
    erl.args(["-noshell", "-noinput", "+S", &format!("{threads}:{threads}")]);
    erl.args(["-run", "keys", "main", design, &workload.buckets.to_string()]);
    // `-run` passes all words to the function, as one list.
    let (wall_ns, cpu_ns) =
        times(&printed(erl.args(["first", "operations", "answers"]), folder.path())?)?;
    Ok(Measured {
        wall_ns,
        cpu_ns,
        operations: u64::from(workload.clients) * u64::from(workload.operations),
        checksum: checksum(&fs::read(file("answers"))?),
        ..Measured::default()
    })
}

fn first_values(workload: &Workload) -> Vec<u8> {
    let write = |(bucket, key, value)| Op::Write { bucket, key, value };
    by_client(workload, |client| workload.keys_of(client).map(write).collect())
}

fn operations(workload: &Workload) -> Vec<u8> {
    by_client(workload, |client| workload.operations_of(client))
}

/// Operations of all clients, in the program's format.
fn by_client(workload: &Workload, operations: impl Fn(u32) -> Vec<Op>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for client in 0..workload.clients {
        let of_client: Vec<u8> = operations(client).iter().flat_map(encode).collect();
        bytes.extend((of_client.len() as u64).to_le_bytes());
        bytes.extend(of_client);
    }
    bytes
}

fn encode(op: &Op) -> Vec<u8> {
    let (kind, bucket, key, value) = match op {
        Op::Read { bucket, key } => (0, bucket, key, &[0; VALUE_BYTES]),
        Op::Write { bucket, key, value } => (1, bucket, key, value),
    };
    [&[kind][..], &bucket.to_le_bytes(), &key.to_le_bytes(), value].concat()
}

/// Checksum of the program's answers. If the file is cut short, the checksum is wrong.
fn checksum(mut bytes: &[u8]) -> u64 {
    let mut clients = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (mut of_client, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        let mut answers = Answers::default();
        while let Some((has_value, after)) = of_client.split_first() {
            of_client = after;
            if *has_value == 0 {
                add(&mut answers, None);
            } else if let Some((value, after)) = of_client.split_first_chunk::<VALUE_BYTES>() {
                let value: Value = *value;
                add(&mut answers, Some(value));
                of_client = after;
            }
        }
        clients.push(answers);
        bytes = rest;
    }
    Answers::checksum(clients)
}
