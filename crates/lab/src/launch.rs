//! Trials as processes: each trial runs this program again, so trials do not affect each other.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::calibration;
use crate::environment::Environment;
use crate::measured::Measured;
use crate::runner::Launch;
use crate::trial::Request;

/// Timeout of a trial.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Starts a process for each trial.
pub struct Processes {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments that make the program call [`serve`](crate::trial::serve).
    pub arguments: Vec<String>,
    /// Version to record.
    pub version: String,
}

impl Launch for Processes {
    async fn trial(&mut self, request: &Request) -> Result<Measured, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = timeout(PATIENCE, answer(command, request)).await;
        output.map_err(|_| format!("it did not end within {} s", PATIENCE.as_secs()))?
    }

    fn calibrate(&mut self) -> u64 {
        calibration::measure()
    }

    fn environment(&mut self) -> Environment {
        Environment::here(&self.version)
    }
}

/// Starts the command, sends it the request and reads the answer.
async fn answer(mut command: Command, request: &Request) -> Result<Measured, String> {
    let plain = |error: std::io::Error| error.to_string();
    let mut child = command.spawn().map_err(plain)?;
    let line = serde_json::to_vec(request).map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // Ignore the error: a process that ends early reports the reason on its standard error.
        let _ended = input.write_all(&line).await;
    }
    let output = child.wait_with_output().await.map_err(plain)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, said.trim()));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("it returned an invalid result: {error}"))
}
