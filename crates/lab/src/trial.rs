//! One trial in its own process. It reads a request from standard input and writes the measurements to standard output,
//! each as a line of JSON.

use std::io;
use std::pin::Pin;

use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use crate::experiment::Experiment;
use crate::measured::Measured;
use crate::parameters::Parameters;
use crate::settings::AGAIN;

/// Request for a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the design.
    pub design: String,
    /// All parameters.
    pub parameters: Parameters,
    /// Seed of the workload.
    pub seed: u64,
}

/// Error of a trial.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The input is not a valid line of JSON.
    #[error("the request of a trial cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Standard input or output failed.
    #[error("the trial cannot be made: {0}")]
    Io(#[from] io::Error),
    /// The experiment does not exist.
    #[error("there is no experiment {0}")]
    UnknownExperiment(String),
    /// The experiment has no such design.
    #[error("the experiment has no design {0}")]
    UnknownDesign(String),
    /// The parameters do not match the experiment.
    #[error("{0}")]
    BadParameters(String),
}

/// Runs the trial that a line of `input` requests, and writes a line to `output`. Blocks. This process must not have a
/// runtime.
///
/// # Errors
/// [`TrialError`]
pub fn serve(input: impl io::Read, mut output: impl io::Write) -> Result<(), TrialError> {
    let request: Request = serde_json::from_reader(input)?;
    let measured = run(&request)?;
    serde_json::to_writer(&mut output, &measured)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}

/// Runs a trial in this process. Blocks.
///
/// # Errors
/// [`TrialError`]
pub fn run(request: &Request) -> Result<Measured, TrialError> {
    let experiment = Experiment::named(&request.experiment)
        .ok_or_else(|| TrialError::UnknownExperiment(request.experiment.clone()))?;
    experiment.validate(&request.parameters).map_err(TrialError::BadParameters)?;
    let design = request.design.strip_suffix(AGAIN).unwrap_or(&request.design);
    (experiment.run)(design, &request.parameters, request.seed)
}

/// Runs a future on a runtime with this many worker threads.
pub(crate) fn block_on(
    threads: u32,
    future: impl Future<Output = Measured> + Send + 'static,
) -> Result<Measured, TrialError> {
    block_on_boxed(threads, boxed(future))
}

/// Future without its type. For each type of future, the compiler generates about 2,000 lines of code of the runtime,
/// and each design has several types.
pub(crate) fn boxed<T>(
    future: impl Future<Output = T> + Send + 'static,
) -> Pin<Box<dyn Future<Output = T> + Send>> {
    Box::pin(future)
}

fn block_on_boxed(
    threads: u32,
    future: Pin<Box<dyn Future<Output = Measured> + Send>>,
) -> Result<Measured, TrialError> {
    let runtime =
        Builder::new_multi_thread().worker_threads(threads as usize).enable_all().build()?;
    // Spawn the future on a worker thread: this thread would be an additional one.
    Ok(runtime.block_on(async { tokio::spawn(future).await }).map_err(io::Error::other)?)
}
