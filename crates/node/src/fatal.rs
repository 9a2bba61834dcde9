//! The end of the process when going on would lie.

/// Reports `error` and ends the process at once.
///
/// After a failed write or fsync of the log nobody knows what the disk holds; retrying could report
/// as durable what is not. The next start reads the log and knows.
pub(crate) fn fatal(what: &str, error: &(dyn std::error::Error + 'static)) -> ! {
    let mut causes = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        causes.push_str(": ");
        causes.push_str(&error.to_string());
        cause = error.source();
    }
    let reason = format!("{what}{causes}; stopping: going on could lose acknowledged changes");
    tracing::error!("{reason}");
    if !tracing::dispatcher::has_been_set() {
        eprintln!("{reason}");
    }
    std::process::abort();
}
