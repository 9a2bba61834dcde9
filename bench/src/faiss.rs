//! FAISS as a child process, if the given Python has it.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use knn::{Bits, K};

use crate::kernels::Answered;

const SCRIPT: &str = include_str!("faiss.py");

/// Index of references, and the connection for queries.
pub(crate) struct Faiss {
    child: Child,
    ask: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    pub(crate) version: String,
}

impl Faiss {
    /// Starts FAISS. `None` if `python` does not exist, or does not have FAISS.
    pub(crate) fn start(
        python: &Path,
        references: &[Bits],
        queries: &[Bits],
        k: K,
    ) -> anyhow::Result<Option<Self>> {
        let mut known = Command::new(python);
        known.args(["-c", "import faiss"]).stderr(Stdio::null());
        if !known.status().is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]);
        for (name, vectors) in [("references", references), ("queries", queries)] {
            let file = folder.path().join(name);
            let bytes: Vec<u8> = vectors.iter().flat_map(Bits::to_bytes).collect();
            std::fs::write(&file, bytes)?;
            command.arg(file);
        }
        // Otherwise, threads of FAISS would spin for a while after every answer, and use processor time that others
        // need.
        command.env("OMP_WAIT_POLICY", "passive");
        command.arg(k.count().to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (ask, replies) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let mut answers = BufReader::new(replies).lines();
        // FAISS prints its version after it has read the files.
        let version = answers.next().context("FAISS did not start")??;
        Ok(Some(Self { child, ask, answers, version }))
    }

    /// Answers all queries with the given method of the script.
    pub(crate) fn answer(&mut self, way: &str) -> anyhow::Result<Answered> {
        writeln!(self.ask, "{way}")?;
        let line = self.answers.next().context("FAISS has ended")??;
        let (seconds, distances) = line.split_once(' ').context("not an answer of FAISS")?;
        Ok(Answered { seconds: seconds.parse()?, distances: Some(distances.parse()?) })
    }
}

impl Drop for Faiss {
    fn drop(&mut self) {
        // Ignore the error: the process may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
