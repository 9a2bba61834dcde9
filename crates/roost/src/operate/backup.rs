//! `roost backup`: makes a backup of a running server, or of the data directory of a stopped one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use ::backup::{Header, Summary};
use anyhow::Context as _;
use bytesize::ByteSize;
use clap::Args;
use node::NodeOptions;
use sim::client::{Connection, Dial as _, Requests, Target};

use super::{data_unless, describe};
use crate::files::OutputFile;
use crate::output::{note, out};
use crate::permissions;
use crate::simulate::target::{self, SERVER_KEY};

/// Bytes of a backup that are written between two syncs.
const SYNC_BYTES: usize = 1 << 20;
/// The `nice` value of the command while it backs up a running server.
const NICE: i32 = 10;
/// Default of `--rate`.
const RATE: ByteSize = ByteSize::mib(16);
/// Number of received pieces that may wait to be checked and written.
const PIECES_MAX: usize = 64;

/// Make a backup of a running server, or of the data directory of a stopped one.
///
/// A running server keeps serving. The backup contains all data, with every change that was acknowledged before the
/// command started, and the hashes of application keys. It is checked while it is written, and the output file appears
/// when it is complete and synced to disk. Protect a backup like the data directory.
///
/// To back up a running server, set the environment variable ROOST_SERVER_KEY to an application key with the scope
/// `admin`.
///
/// With --data and --archive, the command makes no full backup but adds the groups of the log that the archive lacks.
/// This also works if the store is damaged.
///
/// Use `roost restore` to restore a backup and `roost verify` to check it.
#[derive(Args)]
pub(crate) struct Backup {
    /// URL of the running server [default: http://127.0.0.1:8998, unless there is --data]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Trusted certificate authorities for an https server, in a PEM file [default: those of the system]
    #[arg(long, value_name = "FILE", requires = "server")]
    ca: Option<PathBuf>,
    /// Data directory of a stopped server. --server overrides the environment variable
    #[arg(long, env = "ROOST_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// Highest rate, in bytes per second, at which a running server is backed up; 0 for no limit. A higher rate slows
    /// down other clients of the server [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    rate: Option<ByteSize>,
    /// File to write, or - for standard output. An existing file is replaced
    #[arg(long, value_name = "FILE", required_unless_present = "archive")]
    out: Option<PathBuf>,
    /// Archive to add the log of --data to, instead of a full backup
    #[arg(long, value_name = "DIR", requires = "data", conflicts_with_all = ["out", "server", "rate"])]
    archive: Option<PathBuf>,
}

impl Backup {
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let rate = self.rate.map(|_| "--rate");
        self.data = data_unless(self.data, self.server.as_ref().map(|_| "--server").or(rate))?;
        permissions::keep_new_files_private();
        if let (Some(data), Some(archive)) = (&self.data, &self.archive) {
            return add_to_archive(data, archive);
        }
        let to = self.out.as_deref().context("--out is missing")?;
        let (header, summary) = if to == Path::new("-") {
            self.make(io::stdout(), None).await?
        } else {
            let out = OutputFile::open(to, false)?;
            let cannot = || format!("cannot write {}", to.display());
            let file = out.file().try_clone().with_context(cannot)?;
            // Devices and pipes cannot be synced.
            let synced = out.is_regular().then(|| file.try_clone());
            let synced = synced.transpose().with_context(cannot)?;
            let made = self.make(file, synced).await?;
            out.complete()?;
            made
        };
        let to =
            if to == Path::new("-") { "standard output".into() } else { to.display().to_string() };
        // This goes to standard error, because standard output may be the backup.
        note!("wrote {to}: {} bytes, {}", summary.total_bytes, describe(&header, &summary));
        // The backup contains all readable files. An error makes a scheduled job notice that files are missing.
        anyhow::ensure!(
            summary.lost_files == 0,
            "the backup lacks {} files of pictures, which are missing or damaged in the data directory: see roost verify",
            summary.lost_files
        );
        Ok(())
    }

    async fn make<W: Write + Send + 'static>(
        &self,
        out: W,
        synced: Option<File>,
    ) -> anyhow::Result<(Header, Summary)> {
        match &self.data {
            None => self.fetch(out, synced).await,
            Some(data) => {
                let data = data.clone();
                tokio::task::spawn_blocking(move || of_directory(&data, out)).await?
            }
        }
    }

    async fn fetch<W: Write + Send + 'static>(
        &self,
        out: W,
        synced: Option<File>,
    ) -> anyhow::Result<(Header, Summary)> {
        // The server may run on this machine, and must have priority.
        let _ = rustix::process::nice(NICE);
        let target = target::parse(server(self.server.as_deref()), self.ca.as_deref())?;
        let pace = Pace::new(self.rate.unwrap_or(RATE).as_u64(), synced);
        fetched(&target, move |pieces| {
            ::backup::verify(&mut Tee { pieces, out, pace }).map_err(|error| {
                let what = match error {
                    // The disk may be full, for example.
                    ::backup::BackupError::Io(_) => "cannot write the backup",
                    _ => "the received backup is damaged",
                };
                anyhow::Error::new(error).context(what)
            })
        })
        .await
    }
}

/// URL of the running server: the named one or the default.
pub(super) fn server(named: Option<&str>) -> &str {
    named.unwrap_or("http://127.0.0.1:8998")
}

fn add_to_archive(data: &Path, archive: &Path) -> anyhow::Result<()> {
    crate::key::check_owner(data)?;
    let added = node::archive_stopped(data, archive);
    let (last, added) = added.with_context(|| format!("cannot archive {}", data.display()))?;
    out!("added {added} groups to {}, up to group {last}", archive.display());
    Ok(())
}

/// Passes a backup of the server to `read`, which runs on a thread for blocking work.
///
/// # Errors
/// Errors of the server or the connection; or the error of `read`, if it ended before the backup did.
pub(crate) async fn fetched<T: Send + 'static>(
    target: &Target,
    read: impl FnOnce(Pieces) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (sender, pieces) = sync_channel::<Vec<u8>>(PIECES_MAX);
    let reading = tokio::task::spawn_blocking(move || read(Pieces::new(pieces)));
    let mut ended_first = false;
    let mut each = |bytes: &[u8]| {
        sender.send(bytes.to_vec()).map_err(|_| {
            ended_first = true;
            io::ErrorKind::BrokenPipe.into()
        })
    };
    let fetched = fetch(target, &mut each).await;
    drop(sender);
    match (fetched, reading.await?) {
        (Err(error), _) if !ended_first => Err(error).context("cannot receive the backup"),
        (_, read) => read,
    }
}

/// Passes the bytes of a backup of the server to `each`.
async fn fetch(
    target: &Target,
    each: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
) -> anyhow::Result<()> {
    let key = target::key(target);
    let stream = target.dial().await;
    let stream = stream.with_context(|| format!("cannot connect to {target:?}"))?;
    let mut request = Vec::new();
    Requests::new(target.authority(), key.as_deref()).get("/v1/backup", &mut request);
    let mut connection = Connection::over(stream);
    let answer = connection.download(&request, each).await?;
    match answer.status {
        200..300 => Ok(()),
        401 | 403 => anyhow::bail!(
            "the server refused the request: set {SERVER_KEY} to an application key with the scope admin \
             (roost key create NAME --scope admin)"
        ),
        status => anyhow::bail!("the server returned {status}: {}", message(answer.body)),
    }
}

/// Message of an error response of the API.
fn message(body: &[u8]) -> String {
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = body.as_ref().and_then(|body| body.get("message")?.as_str());
    message.unwrap_or("no message").to_owned()
}

fn of_directory<W: Write>(data: &Path, out: W) -> anyhow::Result<(Header, Summary)> {
    let keys = match std::fs::read(crate::key::path(data)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        keys => Some(keys.context("cannot read the application keys")?),
    };
    crate::key::check_owner(data)?;
    let options = NodeOptions::new(data);
    let written = node::Backup::of_stopped(&options, env!("CARGO_PKG_VERSION"), |backup| {
        let header = backup.header().clone();
        let (mut out, summary) = backup.write(keys.as_deref(), io::BufWriter::new(out))?;
        out.flush().map_err(::backup::BackupError::Io)?;
        Ok((header, summary))
    });
    let written = written?;
    node::note_backup(data, written.0.made_ms);
    Ok(written)
}

/// Received pieces as a stream.
pub(crate) struct Pieces {
    receiver: Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl Pieces {
    fn new(receiver: Receiver<Vec<u8>>) -> Self {
        Self { receiver, piece: Vec::new(), at: 0 }
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            let Ok(piece) = self.receiver.recv() else { return Ok(0) };
            (self.piece, self.at) = (piece, 0);
        }
        let mut rest = self.piece.get(self.at..).unwrap_or_default();
        let read = rest.read(into)?;
        self.at += read;
        // An empty piece does not end the stream.
        if read == 0 && !into.is_empty() { self.read(into) } else { Ok(read) }
    }
}

/// Reader that also writes what it reads.
struct Tee<W> {
    pieces: Pieces,
    out: W,
    pace: Pace,
}

impl<W: Write> Read for Tee<W> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.pieces.read(into)?;
        self.out.write_all(into.get(..read).unwrap_or_default())?;
        if read == 0 {
            self.out.flush()?;
        }
        self.pace.wrote(read)?;
        Ok(read)
    }
}

/// Limit of the rate of a backup. It also syncs the backup's file in small parts: syncs of the server's log would wait
/// while the system writes a large part.
struct Pace {
    start: Instant,
    per_second: u64,
    written: u64,
    synced: Option<File>,
    unsynced: usize,
}

impl Pace {
    fn new(per_second: u64, synced: Option<File>) -> Self {
        Self { start: Instant::now(), per_second, written: 0, synced, unsynced: 0 }
    }

    fn wrote(&mut self, bytes: usize) -> io::Result<()> {
        self.written += bytes as u64;
        self.unsynced += bytes;
        if self.unsynced >= SYNC_BYTES
            && let Some(file) = &self.synced
        {
            file.sync_data()?;
            self.unsynced = 0;
        }
        if self.per_second > 0 {
            let due = Duration::from_secs_f64(self.written as f64 / self.per_second as f64);
            std::thread::sleep(due.saturating_sub(self.start.elapsed()));
        }
        Ok(())
    }
}
