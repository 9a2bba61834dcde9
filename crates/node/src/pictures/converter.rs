//! Conversion of uploaded pictures, each in a separate process. Decoders are large and read untrusted data. The
//! operating system limits the memory and time of a process, and a failing process affects nothing else.
//!
//! **Invariant:** no decoder of uploaded pictures runs in the process of a server.

use std::io::{self, Read as _, Write as _};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use media::{
    ANSWER_BYTES_MAX, CONVERSION_BYTES_MAX, FILE_BYTES_MAX, Head, MediaError, Picture, Shape,
};
use parking_lot::Mutex;

/// First argument of the converter program; the second is the name of the shape. The program limits itself, reads the
/// file from its standard input to the end, and writes [`media::to_bytes`].
pub const CONVERT: &str = "convert-picture";
/// Memory limit that a converter process sets for itself, in bytes: a conversion, the file twice, and 16 MiB for the
/// program.
pub const CONVERTER_MEMORY: u64 = CONVERSION_BYTES_MAX + 2 * FILE_BYTES_MAX as u64 + (16 << 20);
/// Environment of the converter. The allocator must not reserve addresses, which would count as memory.
pub const CONVERTER_ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_ARENA_RESERVE", "0")];

/// Starts converter processes, one at a time.
#[derive(Default)]
pub(crate) struct Converter {
    /// Converter program; `None` converts in this process.
    program: Option<PathBuf>,
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    child: Option<Child>,
    has_ended: bool,
}

impl Converter {
    pub(crate) fn new(program: Option<PathBuf>) -> Self {
        Self { program, running: Mutex::default() }
    }

    /// Converts a file. Blocks.
    ///
    /// # Errors
    /// Outer: no process could be started. Inner: an error of [`media::convert`]; [`MediaError::Damaged`] also if the
    /// process reached a limit.
    pub(crate) fn convert(
        &self,
        file: &[u8],
        head: &Head,
        shape: Shape,
    ) -> io::Result<Result<Picture, MediaError>> {
        match &self.program {
            Some(program) => self.in_process(program, file, shape),
            // After a panic, which is logged with its message, the picture counts as damaged.
            None => Ok(catch_unwind(|| media::convert(file, head, shape))
                .unwrap_or(Err(MediaError::Damaged))),
        }
    }

    fn in_process(
        &self,
        program: &Path,
        file: &[u8],
        shape: Shape,
    ) -> io::Result<Result<Picture, MediaError>> {
        let mut command = Command::new(program);
        // The server's environment may contain keys, so the process gets another one.
        command.args([CONVERT, shape.name()]).env_clear().envs(CONVERTER_ENVIRONMENT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        {
            let mut running = self.running.lock();
            running.child = Some(child);
            if running.has_ended {
                running.kill();
            }
        }
        // The process writes nothing before it has read the whole file. If the process ends early, this write ends too.
        let _ = input.map(|mut input| input.write_all(file));
        let mut answer = Vec::new();
        if let Some(output) = output {
            let _ = output.take(ANSWER_BYTES_MAX as u64).read_to_end(&mut answer);
        }
        self.running.lock().kill();
        Ok(media::from_bytes(&answer))
    }

    /// Ends the running process, and each one that is started later.
    pub(crate) fn end(&self) {
        let mut running = self.running.lock();
        running.has_ended = true;
        // The thread that started the process waits for its end.
        if let Some(child) = &mut running.child {
            let _ = child.kill();
        }
    }
}

impl Running {
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = (child.kill(), child.wait());
        }
    }
}
