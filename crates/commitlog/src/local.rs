//! Local log: groups in segment files of one directory, as [`crate::format`] describes.
//!
//! State: the last segment, to which groups are written; the list of older segments; and the next file, which is filled
//! with zeros in advance. The caller ensures that a directory belongs to one log at a time.
//! - An append is one write to a file that already has its full length. A sync is one fdatasync of that file.
//! - **Invariant:** everything in a segment is durable before the next segment gets its name.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bytes::Bytes;

use crate::disk::{Disk, DiskFile};
use crate::format::{NewGroup, PAYLOAD_BYTES_MAX, SECTOR_BYTES, Sector, write_group};
use crate::recover::{EachGroup, Recovered, read_groups, recover};
use crate::segment::{Blank, Segment, install, make_blank};
use crate::{
    Arrived, Durability, GroupId, Log, LogError, Placed, Position, SyncPoint, Unsynced, disk_error,
};

/// Length of a segment file in bytes, unless a single group needs a longer one.
pub const SEGMENT_BYTES: u64 = 16 << 20;
/// Number of groups whose memory is reused after a replay.
const SPARE_GROUPS: usize = 64;
/// Capacity of the buffer for building groups that is kept for reuse, in sectors: 1 MiB.
const BUFFER_SECTORS: usize = (1 << 20) / SECTOR_BYTES;

/// Options of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Length of new segments in bytes: a multiple of 512, at least 1,024. Existing segments keep their length.
    pub segment_bytes: u64,
    /// Whether a separate thread fills the next segment with zeros. Otherwise an append does it; this is for a
    /// simulator, in which everything happens on one thread.
    pub prepares_on_thread: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { segment_bytes: SEGMENT_BYTES, prepares_on_thread: true }
    }
}

/// Log in the files of one directory.
pub struct LocalLog {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: LogOptions,
    closed: VecDeque<Segment>,
    /// Size of the closed segments in bytes.
    closed_bytes: u64,
    tail: Segment,
    file: Arc<dyn DiskFile>,
    /// Offset of the next group in `file`, in bytes.
    end: u64,
    last: u64,
    last_at_open: u64,
    /// Last group that `next` has returned; later ones are in memory.
    delivered: u64,
    arrived: VecDeque<Arrived>,
    durability: Arc<Durability>,
    next: Option<Next>,
    buffer: Vec<Sector>,
}

/// Next segment.
enum Next {
    Filling(JoinHandle<Result<Blank, LogError>>),
    Filled(Result<Blank, LogError>),
}

impl Next {
    fn is_filled(&self) -> bool {
        match self {
            Self::Filling(thread) => thread.is_finished(),
            Self::Filled(_) => true,
        }
    }

    /// Waits until the segment is filled.
    fn join(self) -> Result<Blank, LogError> {
        match self {
            Self::Filling(thread) => match thread.join() {
                Ok(made) => made,
                Err(panic) => std::panic::resume_unwind(panic),
            },
            Self::Filled(made) => made,
        }
    }
}

impl LocalLog {
    /// Opens the log in `dir`, and creates it if it does not exist. Checks every group. Erases groups that a power loss
    /// left incomplete; none of them was durable. Any other damage is an error.
    ///
    /// `from` is the last group that the caller already has; 0 for none. The caller must have called `sync` before it
    /// stored the effects of this group durably elsewhere.
    ///
    /// # Errors
    /// [`LogError`], for example if the log lacks the group after `from`, or ends before `from`.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, from: Position) -> Result<LocalLog, LogError> {
        LocalLog::open_with(disk, dir, LogOptions::default(), from)
    }

    /// Opens the log like [`LocalLog::open`], with options.
    ///
    /// # Errors
    /// Those of [`LocalLog::open`].
    pub fn open_with(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: LogOptions,
        from: Position,
    ) -> Result<LocalLog, LogError> {
        let Recovered { closed, tail, file, end, last } =
            recover(&*disk, dir, options.segment_bytes, from)?;
        Ok(LocalLog {
            disk,
            dir: dir.to_owned(),
            options,
            closed_bytes: closed.iter().map(|segment| segment.bytes).sum(),
            closed,
            tail,
            file,
            end,
            last,
            last_at_open: last,
            delivered: from.0,
            arrived: VecDeque::new(),
            durability: Arc::new(Durability::up_to(Position(last))),
            next: None,
            buffer: Vec::new(),
        })
    }

    /// Writes a group that [`Log::next`] does not return, for a log that is only written.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn write_group(&mut self, payload: &[u8], time_ms: u64) -> Result<Placed, LogError> {
        let bytes = payload.len();
        if !(1..=PAYLOAD_BYTES_MAX).contains(&bytes) {
            return Err(LogError::Length { bytes });
        }
        self.guarded(|log| log.write(payload, time_ms))
    }

    /// Drops the oldest segment if the log is larger than `bytes`, but never the last one. Returns the freed bytes.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn shrink(&mut self, bytes: u64) -> Result<u64, LogError> {
        if self.size() <= bytes {
            return Ok(0);
        }
        self.guarded(Self::remove_oldest)
    }

    /// Returns the position of the last group; 0 if there has never been one.
    #[must_use]
    pub fn last(&self) -> Position {
        Position(self.last)
    }

    /// Returns the position of the first group of the newest segment, even if it has no group yet.
    #[must_use]
    pub fn newest_segment(&self) -> Position {
        Position(self.tail.first)
    }

    /// Reads groups that were found at the opening and not yet returned, one segment at a time.
    fn read_on(&mut self) -> Result<(), LogError> {
        let next = self.delivered + 1;
        let segments = self.closed.iter().chain([&self.tail]);
        let segment = segments.rev().find(|segment| segment.first <= next);
        let Some(first) = segment.map(|segment| segment.first) else { return Ok(()) };
        let (up_to, arrived) = (self.last_at_open, &mut self.arrived);
        read_groups(&*self.disk, &self.dir, first, &mut Vec::new(), &mut |group| {
            if (next..=up_to).contains(&group.position.0) {
                arrived.push_back(Arrived {
                    position: group.position,
                    time_ms: group.time_ms,
                    sent_ms: group.time_ms,
                    id: GroupId::ALONE,
                    is_own: false,
                    payload: Bytes::copy_from_slice(group.payload),
                });
            }
            Ok(())
        })?;
        if self.arrived.is_empty() {
            // The group is missing, although it existed when the log was opened.
            let (file, position) = (self.dir.clone(), Position(next));
            return Err(LogError::Damaged {
                file,
                offset: 0,
                position,
                what: "it was removed after the opening",
            });
        }
        Ok(())
    }

    /// Passes every group after `after` to `each`, in order. Stops when `each` fails.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn read(&self, after: Position, each: EachGroup<'_>) -> Result<(), LogError> {
        let mut sectors = Vec::new();
        let mut segments = self.closed.iter().chain([&self.tail]).peekable();
        while let Some(segment) = segments.next() {
            let next = segments.peek().map_or(self.last + 1, |next| next.first);
            // Skip segments whose groups the caller has.
            if next <= after.0.saturating_add(1) {
                continue;
            }
            let mut each = |group: crate::Group<'_>| {
                if group.position > after { each(group) } else { Ok(()) }
            };
            read_groups(&*self.disk, &self.dir, segment.first, &mut sectors, &mut each)?;
        }
        Ok(())
    }

    /// Runs `act` unless the log is poisoned. Poisons the log if `act` fails.
    fn guarded<T>(
        &mut self,
        act: impl FnOnce(&mut LocalLog) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        self.durability.check()?;
        let done = act(self);
        if done.is_err() {
            self.durability.poison();
        }
        done
    }

    fn write(&mut self, payload: &[u8], time_ms: u64) -> Result<Placed, LogError> {
        let position = self.last + 1;
        let durable = self.durability.last().0;
        self.buffer.clear();
        write_group(&NewGroup { position, durable, time_ms, payload }, &mut self.buffer);
        let bytes = (self.buffer.len() * SECTOR_BYTES) as u64;
        if self.end + bytes > self.tail.bytes {
            self.begin_segment(bytes)?;
        }
        self.file
            .write_all_at(self.buffer.as_flattened(), self.end)
            .map_err(disk_error("write to", &self.tail.path))?;
        self.buffer.truncate(BUFFER_SECTORS);
        self.buffer.shrink_to(BUFFER_SECTORS);
        self.end += bytes;
        self.last = position;
        if self.next.is_none() && self.end > self.tail.bytes / 2 {
            self.next = Some(self.make_next()?);
        }
        Ok(Placed { position: Position(position), time_ms })
    }

    /// Continues in a new segment, with space for a group of `group_bytes` bytes.
    fn begin_segment(&mut self, group_bytes: u64) -> Result<(), LogError> {
        if !crate::has_bug("no-segment-sync") {
            self.sync()?;
        }
        let needed = SECTOR_BYTES as u64 + group_bytes;
        let blank = if needed > self.options.segment_bytes {
            make_blank(&*self.disk, &self.dir, "long", needed)?
        } else if let Some(next) = self.next.take() {
            next.join()?
        } else {
            make_blank(&*self.disk, &self.dir, "now", self.options.segment_bytes)?
        };
        let (segment, file) = install(&*self.disk, &self.dir, blank, self.last + 1)?;
        let full = std::mem::replace(&mut self.tail, segment);
        // With the same name, the new, longer segment has replaced one without groups.
        if full.first != self.tail.first {
            self.closed_bytes += full.bytes;
            self.closed.push_back(full);
        }
        self.file = file;
        self.end = SECTOR_BYTES as u64;
        Ok(())
    }

    /// Begins to fill the next segment with zeros.
    fn make_next(&self) -> Result<Next, LogError> {
        let (disk, dir, bytes) = (self.disk.clone(), self.dir.clone(), self.options.segment_bytes);
        let make = move || make_blank(&*disk, &dir, "next", bytes);
        if !self.options.prepares_on_thread {
            return Ok(Next::Filled(make()));
        }
        let thread = thread::Builder::new().name("log-next".into()).spawn(make);
        thread.map(Next::Filling).map_err(disk_error("start the thread that prepares", &self.dir))
    }

    fn remove_oldest(&mut self) -> Result<u64, LogError> {
        let Some(oldest) = self.closed.pop_front() else {
            return Ok(0);
        };
        self.closed_bytes -= oldest.bytes;
        self.disk.remove(&oldest.path).map_err(disk_error("remove", &oldest.path))?;
        // Remove one file at a time: if the power fails, an older segment must not be left without a newer one.
        self.disk.sync_dir(&self.dir).map_err(disk_error("sync", &self.dir))?;
        Ok(oldest.bytes)
    }
}

impl Log for LocalLog {
    fn append(&mut self, payload: Bytes, time_ms: u64) -> Result<(), LogError> {
        let Placed { position, time_ms } = self.write_group(&payload, time_ms)?;
        let (id, sent_ms, is_own) = (GroupId::ALONE, time_ms, true);
        self.arrived.push_back(Arrived { position, time_ms, sent_ms, id, is_own, payload });
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Arrived>, LogError> {
        if self.arrived.is_empty() && self.delivered < self.last_at_open {
            self.guarded(Self::read_on)?;
        }
        let next = self.arrived.pop_front();
        if let Some(group) = &next {
            self.delivered = group.position.0;
        }
        if self.arrived.is_empty() {
            self.arrived.shrink_to(SPARE_GROUPS);
        }
        Ok(next)
    }

    fn sync_point(&self) -> SyncPoint {
        // Older segments are durable, so only the last file needs a sync.
        let unsynced = Unsynced {
            file: self.file.clone(),
            path: self.tail.path.clone(),
            durability: self.durability.clone(),
        };
        SyncPoint { last: Position(self.last), unsynced: Some(unsynced) }
    }

    fn delivered(&self) -> Position {
        Position(self.delivered)
    }

    fn last_at_open(&self) -> Position {
        Position(self.last_at_open)
    }

    fn cut(&mut self, up_to: Position) -> Result<u64, LogError> {
        let up_to = Position(up_to.0 + if crate::has_bug("cut-too-much") { 20 } else { 0 });
        self.guarded(|log| {
            let mut freed = 0;
            loop {
                let second = log.closed.get(1).unwrap_or(&log.tail).first;
                if log.closed.is_empty() || second > up_to.0.saturating_add(1) {
                    return Ok(freed);
                }
                freed += log.remove_oldest()?;
            }
        })
    }

    fn renew(&mut self) -> Result<bool, LogError> {
        self.guarded(|log| {
            if log.is_renewed() {
                return Ok(true);
            }
            let Some(next) = &log.next else {
                log.next = Some(log.make_next()?);
                return Ok(false);
            };
            if next.is_filled() {
                log.begin_segment(0)?;
            }
            Ok(log.is_renewed())
        })
    }

    fn is_renewed(&self) -> bool {
        self.end == SECTOR_BYTES as u64
    }

    fn size(&self) -> u64 {
        self.closed_bytes + self.end
    }
}

impl Drop for LocalLog {
    fn drop(&mut self) {
        // Wait for the other thread, because the directory may be opened again at once.
        if let Some(next) = self.next.take() {
            drop(next.join());
        }
    }
}
