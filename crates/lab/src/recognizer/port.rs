//! The port design: an external process computes the answers. An actor owns the process and the pipes to it, and
//! handles one request at a time.
//!
//! A request is a drawing of 128 bytes. An answer has 12 bytes for each of the nearest samples: the distance in 4 bytes
//! and the id in 8, little endian.

use std::io::{self, Read, Write};
use std::process::Stdio;

use knn::{BYTES, Bits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::actor::{Address, Mailbox, ReplyTo, spawn};
use crate::recognizer::inline::Inline;
use crate::recognizer::{Design, NEIGHBORS, Nearest};

/// Arguments with which this program is the external process.
pub(crate) const ARGUMENTS: [&str; 2] = ["lab", "port"];
/// Bytes of one neighbor in an answer.
const NEIGHBOR_BYTES: usize = 12;

/// Answers requests until the input ends, in the external process. Blocks.
///
/// # Errors
/// If the pipes break.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let samples = Inline::best();
    let mut query = [0; BYTES];
    loop {
        match input.read_exact(&mut query) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let mut answer = Vec::with_capacity(NEIGHBORS.count() * NEIGHBOR_BYTES);
        for (distance, id) in samples.compute(&Bits::from_bytes(&query)) {
            answer.extend_from_slice(&distance.to_le_bytes());
            answer.extend_from_slice(&id.to_le_bytes());
        }
        output.write_all(&answer)?;
        output.flush()?;
    }
}

struct Recognize {
    query: Bits,
    reply_to: ReplyTo<Nearest>,
}

/// External process and its pipes. The process is killed with the actor.
struct Process {
    input: ChildStdin,
    output: ChildStdout,
    _child: Child,
}

impl Process {
    fn start() -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(ARGUMENTS).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped")
        };
        Ok(Self { input, output, _child: child })
    }

    async fn nearest(&mut self, query: &Bits) -> io::Result<Nearest> {
        self.input.write_all(&query.to_bytes()).await?;
        let mut answer = vec![0; NEIGHBORS.count() * NEIGHBOR_BYTES];
        self.output.read_exact(&mut answer).await?;
        let (neighbors, _) = answer.as_chunks::<NEIGHBOR_BYTES>();
        let neighbor = |[a, b, c, d, id @ ..]: &[u8; NEIGHBOR_BYTES]| {
            (u32::from_le_bytes([*a, *b, *c, *d]), u64::from_le_bytes(*id))
        };
        Ok(neighbors.iter().map(neighbor).collect())
    }
}

async fn port(mut mailbox: Mailbox<Recognize>, mut process: Process) {
    while let Some(Recognize { query, reply_to }) = mailbox.recv().await {
        match process.nearest(&query).await {
            Ok(nearest) => reply_to.send(nearest),
            Err(error) => panic!("the external process does not answer: {error}"),
        }
    }
}

/// The actor that owns the process.
pub(super) struct Port(Address<Recognize>);

impl Port {
    /// Starts the actor on the runtime of the caller.
    ///
    /// # Panics
    /// If the process cannot be started, which makes the trial impossible.
    pub(super) fn start() -> Self {
        match Process::start() {
            Ok(process) => Self(spawn(|mailbox| port(mailbox, process))),
            Err(error) => panic!("cannot start the external process: {error}"),
        }
    }
}

impl Design for Port {
    async fn nearest(&self, query: Bits) -> Nearest {
        self.0.ask(|reply_to| Recognize { query, reply_to }).await
    }
}
