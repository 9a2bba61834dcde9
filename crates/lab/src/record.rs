//! Raw data: a line of JSON for each trial, in the order of the trials.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::measured::Measured;
use crate::parameters::Parameters;
use crate::settings::{Settings, Skipped};

/// File with a line for each trial.
pub const TRIALS_FILE: &str = "trials.ndjson";
/// File with the settings of the run.
pub const RUN_FILE: &str = "run.json";
/// Version of both files.
const FORMAT: u32 = 1;

/// Trial with its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the design.
    pub design: String,
    /// All parameters.
    pub parameters: Parameters,
    /// Number of the block, from 0. A block has one trial of every cell.
    pub block: u64,
    /// Number of the trial in the order of all trials.
    pub order: u64,
    /// Seed of the workload, shared by all designs of a block.
    pub seed: u64,
    /// Checksum of the answers of the plain model.
    pub expected: u64,
    /// Time of the calibration loop just before the trial, in nanoseconds.
    pub calibration_ns: u64,
    /// Measurements.
    #[serde(flatten)]
    pub measured: Measured,
    /// Machine and version.
    pub environment: Environment,
}

impl Record {
    /// Experiment, design and parameters. Trials with the same key are repetitions.
    #[must_use]
    pub fn key(&self) -> (&str, &str, &Parameters) {
        (&self.experiment, &self.design, &self.parameters)
    }

    /// Whether the trial does not count, because its answers were wrong.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.measured.checksum != self.expected
    }
}

/// Description of a run, stored next to the trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the files.
    pub format: u32,
    /// Settings of the run.
    pub settings: Settings,
    /// Times of the calibration loop before the first trial, in nanoseconds.
    pub calibrations_ns: Vec<u64>,
    /// Designs that could not run when the run began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

impl Run {
    /// Describes a run in the current version of the files.
    #[must_use]
    pub fn new(settings: Settings, calibrations_ns: Vec<u64>, skipped: Vec<Skipped>) -> Self {
        Self { format: FORMAT, settings, calibrations_ns, skipped }
    }
}

/// Error of reading or writing raw data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file or directory cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Cause.
        error: io::Error,
    },
    /// A line is malformed.
    #[error("{} line {line} is not a trial: {error}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// Cause.
        error: serde_json::Error,
    },
    /// The file of the settings is malformed.
    #[error("{} does not describe a run: {error}", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// Cause.
        error: serde_json::Error,
    },
    /// The files are from a later version.
    #[error("{} has format {format}; this version reads format {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Format of the files.
        format: u32,
    },
    /// The directory already has a run.
    #[error("{} has trials already: continue with --resume, or name another directory", .0.display())]
    Exists(PathBuf),
    /// The directory has no run to resume.
    #[error("{} has no trials to resume", .0.display())]
    NoRun(PathBuf),
    /// The run was begun with other settings.
    #[error("the run in {} was begun with other settings: {was}", path.display())]
    OtherSettings {
        /// The directory.
        path: PathBuf,
        /// Settings of the stored run, as JSON.
        was: String,
    },
    /// Another process writes to the directory.
    #[error("another run writes to {}", .0.display())]
    Locked(PathBuf),
}

/// A run and its trials, read from a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct RawData {
    /// Settings.
    pub run: Run,
    /// Trials, in the order in which they were made.
    pub records: Vec<Record>,
}

impl RawData {
    /// Reads a directory. Ignores an incomplete last line, which a process leaves that ends while it writes.
    ///
    /// # Errors
    /// [`DataError`]
    pub fn read(dir: &Path) -> Result<Self, DataError> {
        Self::read_lines(dir).map(|(data, _)| data)
    }

    /// Reads a directory. Also returns the total length of its complete lines, in bytes.
    fn read_lines(dir: &Path) -> Result<(Self, u64), DataError> {
        let path = dir.join(RUN_FILE);
        let text = fs::read_to_string(&path).map_err(|error| io_error(&path, error))?;
        let run: Run = serde_json::from_str(&text)
            .map_err(|error| DataError::Run { path: path.clone(), error })?;
        if run.format != FORMAT {
            return Err(DataError::Format { path, format: run.format });
        }
        let path = dir.join(TRIALS_FILE);
        let file = File::open(&path).map_err(|error| io_error(&path, error))?;
        let (records, bytes) = read_trials(&path, file)?;
        Ok((Self { run, records }, bytes))
    }
}

/// Reads the trials. Also returns the length of their lines, in bytes.
fn read_trials(path: &Path, file: File) -> Result<(Vec<Record>, u64), DataError> {
    let (mut records, mut bytes, mut file) = (Vec::new(), 0, BufReader::new(file));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = file.read_until(b'\n', &mut line).map_err(|error| io_error(path, error))?;
        if !line.ends_with(b"\n") {
            return Ok((records, bytes));
        }
        bytes += read as u64;
        let number = records.len() + 1;
        let record = serde_json::from_slice(&line).map_err(|error| DataError::Line {
            path: path.to_owned(),
            line: number,
            error,
        })?;
        records.push(record);
    }
}

/// Directory to which trials are written. Other processes are locked out.
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Creates a directory for a run, and checks that everything can be written.
    ///
    /// # Errors
    /// [`DataError`]
    pub fn create(dir: &Path) -> Result<Self, DataError> {
        fs::create_dir_all(dir).map_err(|error| io_error(dir, error))?;
        let path = dir.join(TRIALS_FILE);
        let file = open(&path)?;
        if file.metadata().map_err(|error| io_error(&path, error))?.len() > 0 {
            return Err(DataError::Exists(dir.to_owned()));
        }
        // Open the file now, so that an error is reported before the first trial.
        open(&dir.join(RUN_FILE))?;
        Ok(Self { file, path })
    }

    /// Writes the settings of the run.
    ///
    /// # Errors
    /// [`DataError::Io`]
    pub fn begin(&self, run: &Run) -> Result<(), DataError> {
        let path = self.path.with_file_name(RUN_FILE);
        let json = serde_json::to_string_pretty(run).map_err(io::Error::from);
        json.and_then(|json| fs::write(&path, json + "\n")).map_err(|error| io_error(&path, error))
    }

    /// Continues the run in a directory. Returns its measurements, and removes an incomplete last line.
    ///
    /// # Errors
    /// [`DataError`], also if the settings differ.
    pub fn resume(dir: &Path, settings: &Settings) -> Result<(Self, RawData), DataError> {
        if !dir.join(TRIALS_FILE).exists() || !dir.join(RUN_FILE).exists() {
            return Err(DataError::NoRun(dir.to_owned()));
        }
        let path = dir.join(TRIALS_FILE);
        let file = open(&path)?;
        let (data, bytes) = RawData::read_lines(dir)?;
        if data.run.settings != *settings {
            let was = serde_json::to_string(&data.run.settings).unwrap_or_default();
            return Err(DataError::OtherSettings { path: dir.to_owned(), was });
        }
        file.set_len(bytes).map_err(|error| io_error(&path, error))?;
        Ok((Self { file, path }, data))
    }

    /// Appends a trial. The trial survives the end of this process, even by a signal.
    ///
    /// # Errors
    /// [`DataError::Io`]
    pub fn add(&mut self, record: &Record) -> Result<(), DataError> {
        let line = serde_json::to_vec(record).map_err(io::Error::from);
        let written = line.and_then(|mut line| {
            line.push(b'\n');
            self.file.write_all(&line)
        });
        written.map_err(|error| io_error(&self.path, error))
    }
}

/// Opens a file to append to, and locks it.
fn open(path: &Path) -> Result<File, DataError> {
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create(true).open(path);
    let file = file.map_err(|error| io_error(path, error))?;
    if file.try_lock().is_err() {
        return Err(DataError::Locked(path.to_owned()));
    }
    Ok(file)
}

fn io_error(path: &Path, error: io::Error) -> DataError {
    DataError::Io { path: path.to_owned(), error }
}
