//! The layer inside the process under test: a seccomp filter that intercepts calls that may change files, and a signal
//! handler that makes these calls and records them.
//!
//! State: variables that are set once, before `main`; then the journal, under its lock. The handler does not allocate,
//! and calls only functions that are safe in a signal handler.
//!
//! **Invariant:** a call that may change a file of the directory is either recorded, or ends the process.

#![expect(unsafe_code, reason = "system calls and a signal handler")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::filter::{install_filter, powerloss_call, system};
use crate::journal::{
    CREATE, Fixed, Head, LINK, MAKE_DIR, REMOVE, RENAME, RESIZE, SYNC, WRITE, map, place,
};
use crate::paths::{PATH_BYTES, path_below};

static MEMORY: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
/// Directory whose files are recorded.
pub(crate) static DIRECTORY: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());
static DEVICE: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn() = init;

/// Runs before `main`, in the only thread of the process. Does nothing unless the environment requests it.
extern "C" fn init() {
    // SAFETY: there is no other thread that could change the environment.
    let (journal, directory) = unsafe {
        (libc::getenv(c"POWERLOSS_JOURNAL".as_ptr()), libc::getenv(c"POWERLOSS_DIRECTORY".as_ptr()))
    };
    if journal.is_null() || directory.is_null() {
        return;
    }
    // SAFETY: these are strings of the environment, which live as long as the process.
    let start = unsafe { begin(journal, directory) };
    if start.is_none() {
        // SAFETY: the call ends the process, because a test must not continue without the layer.
        unsafe { libc::_exit(97) };
    }
}

/// Starts recording.
///
/// # Safety
/// Both arguments are strings that live as long as the process.
unsafe fn begin(journal: *const c_char, directory: *mut c_char) -> Option<()> {
    // SAFETY: these are plain calls with valid strings and structures.
    unsafe {
        let fd = libc::open(journal, libc::O_RDWR | libc::O_CLOEXEC);
        // Begin only once: a process that uses this crate contains the layer twice.
        libc::unsetenv(c"POWERLOSS_JOURNAL".as_ptr());
        let memory = map(fd).ok()?;
        libc::close(fd);
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::stat(directory, &raw mut stat) != 0 {
            return None;
        }
        MEMORY.store(memory, Ordering::Release);
        DIRECTORY.store(directory, Ordering::Release);
        DEVICE.store(stat.st_dev, Ordering::Release);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_call as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        if libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) != 0 {
            return None;
        }
        install_filter()?;
        (*memory.cast::<Head>()).loaded.store(1, Ordering::Release);
    }
    Some(())
}

/// Makes the intercepted call, and puts its result into the register for results.
extern "C" fn on_call(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the context of the call to the handler.
    unsafe {
        let registers = &raw mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let register = |number: c_int| (*registers).as_mut_ptr().add(number as usize);
        let nr = register(libc::REG_RAX).read();
        let args = [
            register(libc::REG_RDI).read(),
            register(libc::REG_RSI).read(),
            register(libc::REG_RDX).read(),
            register(libc::REG_R10).read(),
            register(libc::REG_R8).read(),
            register(libc::REG_R9).read(),
        ];
        register(libc::REG_RAX).write(handle(Call { nr, args }));
    }
}

/// Intercepted call.
#[derive(Clone, Copy)]
struct Call {
    nr: i64,
    args: [i64; 6],
}

/// Makes the call, and records it if it changes the directory. Returns the result, or the negative error.
unsafe fn handle(call: Call) -> i64 {
    let [first, second, third, fourth, fifth, _] = call.args;
    let here = i64::from(libc::AT_FDCWD);
    // SAFETY: the arguments are those that the process passed.
    unsafe {
        match call.nr {
            libc::SYS_open => opened(call, here, first, second),
            libc::SYS_creat => {
                opened(call, here, first, i64::from(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC))
            }
            libc::SYS_openat => opened(call, first, second, third),
            libc::SYS_write | libc::SYS_pwrite64 => {
                let one = libc::iovec { iov_base: second as *mut c_void, iov_len: third as usize };
                let at = (call.nr == libc::SYS_pwrite64).then_some(fourth);
                written(call, &raw const one, 1, at)
            }
            libc::SYS_writev => written(call, second as *const libc::iovec, third, None),
            libc::SYS_pwritev => written(call, second as *const libc::iovec, third, Some(fourth)),
            libc::SYS_ftruncate => resized(call, second),
            libc::SYS_fsync | libc::SYS_fdatasync => synced(call),
            libc::SYS_rename => named(call, RENAME, (here, first), (here, second)),
            libc::SYS_renameat => named(call, RENAME, (first, second), (third, fourth)),
            libc::SYS_renameat2 if fifth == 0 => {
                named(call, RENAME, (first, second), (third, fourth))
            }
            libc::SYS_link => named(call, LINK, (here, first), (here, second)),
            libc::SYS_linkat if fifth == 0 => named(call, LINK, (first, second), (third, fourth)),
            libc::SYS_unlink | libc::SYS_rmdir => changed(call, REMOVE, here, first),
            libc::SYS_unlinkat => changed(call, REMOVE, first, second),
            libc::SYS_mkdir => changed(call, MAKE_DIR, here, first),
            libc::SYS_mkdirat => changed(call, MAKE_DIR, first, second),
            libc::SYS_mmap if !is_ours(fifth) => plain(call),
            libc::SYS_sendfile if !is_ours(first) => plain(call),
            libc::SYS_copy_file_range | libc::SYS_splice if !is_ours(third) => plain(call),
            _ => unknown(call),
        }
    }
}

unsafe fn plain(call: Call) -> i64 {
    // SAFETY: the process requested this call with these arguments.
    unsafe { powerloss_call(call.nr, call.args.as_ptr()) }
}

/// Ends the process, because its call cannot be recorded.
unsafe fn unknown(call: Call) -> i64 {
    // SAFETY: the journal is mapped.
    unsafe {
        head().unknown.store(call.nr as u64 + 1, Ordering::Release);
        die()
    }
}

/// Ends the process as a power loss does: no thread executes anything more.
unsafe fn die() -> i64 {
    // SAFETY: the call has no arguments in memory.
    unsafe {
        let process = system(libc::SYS_getpid, [0; 6]);
        system(libc::SYS_kill, [process, i64::from(libc::SIGKILL), 0, 0, 0, 0]);
        loop {
            system(libc::SYS_sched_yield, [0; 6]);
        }
    }
}

unsafe fn head() -> &'static Head {
    // SAFETY: the address was set before the filter was installed, and is never unmapped.
    unsafe { &*MEMORY.load(Ordering::Acquire).cast::<Head>() }
}

/// Lock that puts the calls of all threads in order; released on drop.
struct Turn;

impl Turn {
    unsafe fn take() -> Self {
        // SAFETY: the journal is mapped.
        unsafe {
            while head().lock.swap(1, Ordering::Acquire) != 0 {
                system(libc::SYS_sched_yield, [0; 6]);
            }
        }
        Self
    }

    /// Whether the process must end during this call.
    unsafe fn is_last(&self) -> bool {
        // SAFETY: the journal is mapped.
        let head = unsafe { head() };
        let die_at = head.die_at.load(Ordering::Acquire);
        die_at != 0 && head.records.load(Ordering::Relaxed) + 1 >= die_at
    }

    /// Appends a record, whose payload is the concatenated parts. Then ends the process if this was its last call.
    unsafe fn record(&self, mut fixed: Fixed, parts: &[(*const u8, usize)]) {
        // SAFETY: the parts are readable, and `place` checks the space.
        unsafe {
            fixed.payload = parts.iter().map(|part| part.1 as u64).sum();
            let head = head();
            let end = head.end.load(Ordering::Relaxed);
            let Some(to) = place(MEMORY.load(Ordering::Acquire), end, fixed.payload) else {
                head.unknown.store(u64::MAX, Ordering::Release);
                die();
                return;
            };
            to.cast::<Fixed>().write(fixed);
            let mut to = to.add(size_of::<Fixed>());
            for (from, bytes) in parts {
                to.copy_from_nonoverlapping(*from, *bytes);
                to = to.add(*bytes);
            }
            let bytes = size_of::<Fixed>() as u64 + fixed.payload.next_multiple_of(8);
            let last = self.is_last();
            head.end.store(end + bytes, Ordering::Release);
            head.records.fetch_add(1, Ordering::Release);
            if last {
                die();
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: the journal is mapped.
        unsafe { head().lock.store(0, Ordering::Release) };
    }
}

/// The inode and mode of an open file or directory, if it is on the same device as the directory.
unsafe fn ours(fd: i64) -> Option<(u64, u32)> {
    // SAFETY: the structure has the right size.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if system(libc::SYS_fstat, [fd, (&raw mut stat) as i64, 0, 0, 0, 0]) != 0 {
            return None;
        }
        let kind = stat.st_mode & libc::S_IFMT;
        let known = kind == libc::S_IFREG || kind == libc::S_IFDIR;
        (known && stat.st_dev == DEVICE.load(Ordering::Acquire)).then_some((stat.st_ino, kind))
    }
}

unsafe fn is_ours(fd: i64) -> bool {
    // SAFETY: the call has no arguments in memory.
    unsafe { ours(fd).is_some() }
}

const EMPTY: Fixed = Fixed { kind: 0, inode: 0, first: 0, second: 0, payload: 0 };

unsafe fn opened(call: Call, dir: i64, path: i64, flags: i64) -> i64 {
    let flags = flags as c_int;
    let changes = flags & (libc::O_CREAT | libc::O_TRUNC) != 0;
    let strange = flags & libc::O_DSYNC != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE;
    if !changes && !strange {
        // SAFETY: the process requested this call.
        return unsafe { plain(call) };
    }
    let mut buffer = [0; PATH_BYTES];
    // SAFETY: the path is from the process.
    unsafe {
        let Some(bytes) = path_below(dir, path, &mut buffer) else { return plain(call) };
        if strange {
            return unknown(call);
        }
        let turn = Turn::take();
        let fd = plain(call);
        if let Some((inode, _)) = ours(fd) {
            let emptied = u64::from(flags & libc::O_TRUNC != 0);
            let fixed = Fixed { kind: CREATE, inode, first: emptied, ..EMPTY };
            turn.record(fixed, &[(buffer.as_ptr(), bytes)]);
        }
        fd
    }
}

/// Makes a write of `count` parts, at the offset `at` or at the current position.
unsafe fn written(call: Call, parts: *const libc::iovec, count: i64, at: Option<i64>) -> i64 {
    let [fd, ..] = call.args;
    // SAFETY: the parts are from the process.
    unsafe {
        let Some((inode, _)) = ours(fd) else { return plain(call) };
        // A record takes at most 64 parts. Writes to files never have more.
        let mut copied = [(std::ptr::null(), 0); 64];
        let flags = system(libc::SYS_fcntl, [fd, i64::from(libc::F_GETFL), 0, 0, 0, 0]);
        let appends = flags & i64::from(libc::O_APPEND) != 0;
        if count > 64 || (appends && at.is_some()) {
            return unknown(call);
        }
        let turn = Turn::take();
        let bytes = plain(call);
        if bytes <= 0 {
            return bytes;
        }
        let offset = match at {
            Some(at) => at,
            None => {
                let now = i64::from(libc::SEEK_CUR);
                system(libc::SYS_lseek, [fd, 0, now, 0, 0, 0]) - bytes
            }
        };
        let mut left = bytes as usize;
        let mut zeros = true;
        for (index, part) in copied.iter_mut().enumerate().take(count as usize) {
            let given = parts.add(index).read();
            let length = given.iov_len.min(left);
            left -= length;
            *part = (given.iov_base.cast::<u8>().cast_const(), length);
            zeros &= std::slice::from_raw_parts(part.0, length).iter().all(|byte| *byte == 0);
        }
        let (first, second) = (offset as u64, bytes as u64);
        let fixed = Fixed { kind: WRITE, inode, first, second, ..EMPTY };
        let used = if zeros { 0 } else { count as usize };
        turn.record(fixed, copied.get(..used).unwrap_or_default());
        bytes
    }
}

unsafe fn resized(call: Call, bytes: i64) -> i64 {
    let [fd, ..] = call.args;
    // SAFETY: the call has no arguments in memory.
    unsafe {
        let Some((inode, _)) = ours(fd) else { return plain(call) };
        let turn = Turn::take();
        let done = plain(call);
        if done == 0 {
            turn.record(Fixed { kind: RESIZE, inode, first: bytes as u64, ..EMPTY }, &[]);
        }
        done
    }
}

/// Records a sync without making it, because only the journal decides what is durable. A sync during which the process
/// ends has no effect.
unsafe fn synced(call: Call) -> i64 {
    let [fd, ..] = call.args;
    // SAFETY: the call has no arguments in memory.
    unsafe {
        let Some((inode, _)) = ours(fd) else { return plain(call) };
        let turn = Turn::take();
        if turn.is_last() {
            return die();
        }
        turn.record(Fixed { kind: SYNC, inode, ..EMPTY }, &[]);
        0
    }
}

/// Makes a call that creates or removes a file or directory.
unsafe fn changed(call: Call, kind: u64, dir: i64, path: i64) -> i64 {
    let mut buffer = [0; PATH_BYTES];
    // SAFETY: the path is from the process.
    unsafe {
        let Some(bytes) = path_below(dir, path, &mut buffer) else { return plain(call) };
        let turn = Turn::take();
        let done = plain(call);
        if done != 0 {
            return done;
        }
        let mut inode = 0;
        if kind == MAKE_DIR {
            let mut stat: libc::stat = std::mem::zeroed();
            let args = [buffer.as_ptr() as i64, (&raw mut stat) as i64, 0, 0, 0, 0];
            if system(libc::SYS_stat, args) != 0 {
                return unknown(call);
            }
            inode = stat.st_ino;
        }
        turn.record(Fixed { kind, inode, ..EMPTY }, &[(buffer.as_ptr(), bytes)]);
        0
    }
}

/// Makes a rename or link.
unsafe fn named(call: Call, kind: u64, from: (i64, i64), to: (i64, i64)) -> i64 {
    let (mut old, mut new) = ([0; PATH_BYTES], [0; PATH_BYTES]);
    // SAFETY: the paths are from the process.
    unsafe {
        let olds = path_below(from.0, from.1, &mut old);
        let news = path_below(to.0, to.1, &mut new);
        let (olds, news) = match (olds, news) {
            (Some(olds), Some(news)) => (olds, news),
            (None, None) => return plain(call),
            // This is a move into the directory or out of it.
            _ => return unknown(call),
        };
        let turn = Turn::take();
        let done = plain(call);
        if done == 0 {
            let fixed = Fixed { kind, first: olds as u64, ..EMPTY };
            turn.record(fixed, &[(old.as_ptr(), olds), (new.as_ptr(), news)]);
        }
        done
    }
}
