//! Checks the data directory of a stopped node.

use std::path::Path;

use commitlog::{Checked, Position};
use feed::Facts;
use store::{RowsReport, Store, unless_unreadable};

use crate::lock::DataLock;
use crate::media_check::FilesReport;
use crate::media_files::MediaFiles;
use crate::open_error::OpenError;
use crate::options::NodeOptions;
use crate::repair::check;

/// Result of a check.
#[derive(Debug)]
pub struct DataReport {
    /// The store, or why it cannot be opened.
    pub store: Result<RowsReport, OpenError>,
    /// The log, or its first damage.
    pub log: Result<Checked, OpenError>,
    /// The files of pictures; none if the rows cannot be read.
    pub files: Option<FilesReport>,
}

/// Checks every row of the store and every group of the log in `data`. Changes no row and no group. Blocks.
///
/// # Errors
/// [`OpenError`] if another process uses the directory, or it cannot be used at all.
pub fn verify(data: &Path) -> Result<DataReport, OpenError> {
    let options = NodeOptions::new(data);
    if !options.log_dir().is_dir() && !options.store_dir().is_dir() {
        let what = "it has neither a log nor a store";
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, what);
        return Err(OpenError::Directory(data.to_owned(), error));
    }
    let _lock = DataLock::take_to_read(data)?;
    let mut files = None;
    let mut store = store::verify(&options.store_dir()).map_err(OpenError::from);
    if let Ok(report) = store.as_mut()
        && report.damage.is_empty()
    {
        let checked = unless_unreadable(|| {
            let (mut rows, _) = Store::open(&options.store_dir(), options.store())?;
            check(&mut rows, &mut |finding| report.damage.push(finding.what))?;
            let read = MediaFiles::new(data).check(Facts::new(&rows));
            files = Some(read.map_err(|error| OpenError::Directory(data.to_owned(), error))?);
            Ok(())
        });
        let checked: Option<Result<(), OpenError>> = checked;
        match checked {
            Some(Ok(())) => {}
            Some(Err(error)) => report.damage.push(error.to_string()),
            None => report.damage.push("rows cannot be read".to_owned()),
        }
    }
    // Without the position of the store, the groups that exist can still be checked.
    let applied = store.as_ref().map(|report| Position(report.applied));
    let log = match applied {
        Ok(applied) => commitlog::check(&options.log_dir(), applied),
        Err(_) => commitlog::check_all(&options.log_dir()),
    };
    Ok(DataReport { store, log: log.map_err(OpenError::from), files })
}
