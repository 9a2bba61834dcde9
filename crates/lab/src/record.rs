//! The raw data: a line of JSON for each trial, in the order in which they were made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::measured::Measured;
use crate::parameters::Parameters;
use crate::settings::{Settings, Skipped};

/// The file with a line for each trial.
pub const TRIALS_FILE: &str = "trials.ndjson";
/// The file with the settings of the run.
pub const RUN_FILE: &str = "run.json";
/// Version of both files.
const FORMAT: u32 = 1;

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the design.
    pub design: String,
    /// All parameters.
    pub parameters: Parameters,
    /// Which repetition it is, from 0; one of every cell belongs to the same block.
    pub block: u64,
    /// Its place in the order in which all trials were made.
    pub order: u64,
    /// Seed of the workload, which all designs of a block share.
    pub seed: u64,
    /// Checksum that the plain model expects.
    pub expected: u64,
    /// Time of the calibration loop just before the trial, in nanoseconds.
    pub calibration_ns: u64,
    /// What was measured.
    #[serde(flatten)]
    pub measured: Measured,
    /// Where it was measured.
    pub environment: Environment,
}

impl Record {
    /// Experiment, design and parameters: trials that have the same are repetitions.
    #[must_use]
    pub fn key(&self) -> (&str, &str, &Parameters) {
        (&self.experiment, &self.design, &self.parameters)
    }

    /// Whether the answers were wrong: the trial does not count.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.measured.checksum != self.expected
    }
}

/// What is stored beside the trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the files.
    pub format: u32,
    /// What the run measures.
    pub settings: Settings,
    /// Times of the calibration loop before the first trial, in nanoseconds.
    pub calibrations_ns: Vec<u64>,
    /// Designs that could not run when the run began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
}

impl Run {
    /// Of the current version.
    #[must_use]
    pub fn new(settings: Settings, calibrations_ns: Vec<u64>, skipped: Vec<Skipped>) -> Self {
        Self { format: FORMAT, settings, calibrations_ns, skipped }
    }
}

/// Why raw data cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A file or directory cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// A line is not what this version writes.
    #[error("{} line {line} is not a trial: {error}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The file of the settings is not what this version writes.
    #[error("{} does not describe a run: {error}", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// The files are those of a later version.
    #[error("{} has format {format}; this version reads format {FORMAT}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// There is a run already.
    #[error("{} has trials already: continue with --resume, or name another directory", .0.display())]
    Exists(PathBuf),
    /// There is no run to resume.
    #[error("{} has no trials to resume", .0.display())]
    NoRun(PathBuf),
    /// The run was begun with other settings.
    #[error("the run in {} was begun with other settings: {was}", path.display())]
    OtherSettings {
        /// The directory.
        path: PathBuf,
        /// Those settings, as JSON.
        was: String,
    },
    /// Another process writes there.
    #[error("another run writes to {}", .0.display())]
    Locked(PathBuf),
}

/// A run and its trials, as they are in a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct RawData {
    /// The settings.
    pub run: Run,
    /// The trials, in the order in which they were made.
    pub records: Vec<Record>,
}

impl RawData {
    /// Reads a directory. A last line without an end is ignored: the process ended while it was written.
    ///
    /// # Errors
    /// [`DataError`]
    pub fn read(dir: &Path) -> Result<Self, DataError> {
        Self::read_lines(dir).map(|(data, _)| data)
    }

    /// Reads a directory; also returns the length of all whole lines in bytes.
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

/// The trials, and the length of their lines in bytes.
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

/// A directory that trials are written to. Only one process at a time has it.
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Begins a run in a directory, which is created. Checks that everything can be written.
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
        // Made now, so that an error comes now.
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

    /// Continues the run in a directory: returns what was measured, without a line that was not finished.
    ///
    /// # Errors
    /// [`DataError`]; also if the settings differ.
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

    /// Adds a trial. It survives the end of this process, also by a signal.
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
