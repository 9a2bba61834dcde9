//! External sort: sorted runs in unnamed files, which are merged when they are read.
//!
//! **Invariant:** the memory of a sorter is a chunk and one record, and a buffer and one record for each merged file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

/// Number of runs that are merged into one. Each may be an open file.
const FAN_IN: usize = 32;
/// Size of the buffer for writing or reading a file, in bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// Record that can be sorted by `Ord`.
pub trait Record: Ord + Sized {
    /// Returns the approximate memory of the record in bytes.
    fn bytes(&self) -> usize;
    /// Appends the record to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    fn write(&self, out: &mut impl Write) -> io::Result<()>;
    /// Reads the next record; `None` at the end of the file.
    ///
    /// # Errors
    /// The file cannot be read or ends within a record.
    fn read(input: &mut impl Read) -> io::Result<Option<Self>>;
}

/// Collects and sorts records.
pub struct Sorter<R> {
    folder: PathBuf,
    chunk: Vec<R>,
    chunk_bytes: usize,
    chunk_bytes_max: usize,
    /// Runs in files. The first level has sorted chunks, each further level merged runs of the level before.
    levels: Vec<Vec<File>>,
}

impl<R: Record> Sorter<R> {
    /// Creates a sorter with unnamed files in `folder`. It writes a file when its records take `chunk_bytes_max` bytes
    /// of memory.
    pub fn new(folder: &Path, chunk_bytes_max: usize) -> Self {
        let folder = folder.to_owned();
        Self { folder, chunk: Vec::new(), chunk_bytes: 0, chunk_bytes_max, levels: Vec::new() }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn push(&mut self, record: R) -> io::Result<()> {
        self.chunk_bytes += record.bytes();
        self.chunk.push(record);
        if self.chunk_bytes < self.chunk_bytes_max {
            return Ok(());
        }
        self.chunk.sort_unstable();
        let mut run = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(&self.folder)?);
        self.chunk.drain(..).try_for_each(|record| record.write(&mut run))?;
        self.chunk_bytes = 0;
        self.keep(0, finish(run)?)
    }

    fn keep(&mut self, level: usize, run: File) -> io::Result<()> {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        let Some(runs) = self.levels.get_mut(level) else { unreachable!("the level was made") };
        runs.push(run);
        if runs.len() < FAN_IN {
            return Ok(());
        }
        let runs = std::mem::take(runs);
        let mut merged =
            BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile_in(&self.folder)?);
        for record in Merge::<R>::new(Vec::new(), runs)? {
            record?.write(&mut merged)?;
        }
        self.keep(level + 1, finish(merged)?)
    }

    /// Returns all records in ascending order, including equal ones. Empties the sorter.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn sorted(&mut self) -> io::Result<Merge<R>> {
        self.chunk.sort_unstable();
        self.chunk_bytes = 0;
        let levels = std::mem::take(&mut self.levels);
        Merge::new(std::mem::take(&mut self.chunk), levels.into_iter().flatten().collect())
    }
}

/// Rewinds a written run for reading.
fn finish(run: BufWriter<File>) -> io::Result<File> {
    let mut file = run.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

/// Records of several runs in ascending order.
pub struct Merge<R> {
    chunk: std::vec::IntoIter<R>,
    files: Vec<BufReader<File>>,
    /// Next record of each run, and the number of the run. The run in memory comes after those in files.
    heads: BinaryHeap<Reverse<(R, usize)>>,
}

impl<R: Record> Merge<R> {
    fn new(chunk: Vec<R>, files: Vec<File>) -> io::Result<Self> {
        let files = files.into_iter().map(|file| BufReader::with_capacity(BUFFER_BYTES, file));
        let mut merge =
            Self { chunk: chunk.into_iter(), files: files.collect(), heads: BinaryHeap::new() };
        for run in 0..=merge.files.len() {
            if let Some(record) = read(&mut merge.chunk, &mut merge.files, run)? {
                merge.heads.push(Reverse((record, run)));
            }
        }
        Ok(merge)
    }
}

fn read<R: Record>(
    chunk: &mut std::vec::IntoIter<R>,
    files: &mut [BufReader<File>],
    run: usize,
) -> io::Result<Option<R>> {
    match files.get_mut(run) {
        Some(file) => R::read(file),
        None => Ok(chunk.next()),
    }
}

impl<R: Record> Iterator for Merge<R> {
    type Item = io::Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = self.heads.peek_mut()?;
        match read(&mut self.chunk, &mut self.files, head.0.1) {
            Err(error) => Some(Err(error)),
            Ok(None) => Some(Ok(PeekMut::pop(head).0.0)),
            Ok(Some(next)) => Some(Ok(std::mem::replace(&mut head.0.0, next))),
        }
    }
}

/// Pair of 32-bit numbers. The first number is in the upper half.
impl Record for u64 {
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.to_le_bytes())
    }

    fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut bytes = [0; 8];
        match input.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(Self::from_le_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Key and value. Rows are ordered by key, then by line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SortedRow {
    /// Key.
    pub key: Box<[u8]>,
    /// Number of the line of input that produced the row.
    pub line: u64,
    /// Value.
    pub value: Box<[u8]>,
}

impl Record for SortedRow {
    fn bytes(&self) -> usize {
        // The allocator adds some bytes to each allocation.
        size_of::<Self>() + self.key.len() + self.value.len() + 32
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.line.to_le_bytes())?;
        for bytes in [&self.key, &self.value] {
            let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            out.write_all(&length.to_le_bytes())?;
            out.write_all(bytes)?;
        }
        Ok(())
    }

    fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(line) = u64::read(input)? else { return Ok(None) };
        let mut next = || -> io::Result<Box<[u8]>> {
            let mut length = [0; 4];
            input.read_exact(&mut length)?;
            let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
            input.read_exact(&mut bytes)?;
            Ok(bytes.into())
        };
        Ok(Some(Self { key: next()?, line, value: next()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_order_however_many_runs_there_are() {
        let folder = tempfile::tempdir().unwrap();
        // With 16 bytes, a run has two numbers, so there are several rounds of merging.
        for (count, chunk) in [(0, 16), (1, 16), (1_000, 1 << 20), (5_001, 16)] {
            let mut sorter = Sorter::new(folder.path(), chunk);
            let numbers = (0..count).map(|at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54);
            numbers.clone().for_each(|number| sorter.push(number).unwrap());
            let mut expect: Vec<u64> = numbers.collect();
            expect.sort_unstable();
            let found: Vec<u64> = sorter.sorted().unwrap().map(Result::unwrap).collect();
            assert_eq!(found, expect, "{count}");
            assert_eq!(sorter.sorted().unwrap().count(), 0);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files have no names");
    }

    #[test]
    fn rows_keep_their_bytes_and_equal_keys_the_order_of_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(folder.path(), 1);
        let row = |key: &[u8], line, value: &[u8]| SortedRow {
            key: key.into(),
            line,
            value: value.into(),
        };
        let rows =
            [row(b"b", 1, b""), row(b"", 2, b"x"), row(b"b\0", 3, &[0; 9]), row(b"b", 0, b"y")];
        rows.iter().for_each(|row| sorter.push(row.clone()).unwrap());
        let found: Vec<_> = sorter.sorted().unwrap().map(Result::unwrap).collect();
        let [one, two, three, four] = rows;
        assert_eq!(found, [two, four, one, three]);
    }
}
