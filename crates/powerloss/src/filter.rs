//! The filter of system calls, and the only code whose own calls the filter permits.

#![expect(unsafe_code, reason = "system calls")]

/// System calls that raise a signal. If `handle` does not know one of them, the process ends.
const STOPPED: [i64; 34] = [
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_creat,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rmdir,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_mknod,
    libc::SYS_mknodat,
    libc::SYS_mmap,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_io_uring_setup,
    libc::SYS_io_submit,
];

unsafe extern "C" {
    /// Makes a system call. The filter permits it because the call instruction is at this place.
    pub(crate) fn powerloss_call(nr: i64, args: *const i64) -> i64;
    /// The address after the permitted call instruction.
    static powerloss_call_end: u8;
}

std::arch::global_asm!(
    ".global powerloss_call",
    ".global powerloss_call_end",
    "powerloss_call:",
    "mov rax, rdi",
    "mov r11, rsi",
    "mov rdi, [r11]",
    "mov rsi, [r11 + 8]",
    "mov rdx, [r11 + 16]",
    "mov r10, [r11 + 24]",
    "mov r8, [r11 + 32]",
    "mov r9, [r11 + 40]",
    "syscall",
    "powerloss_call_end:",
    "ret",
);

/// Makes a system call for the layer itself.
pub(crate) unsafe fn system(nr: i64, args: [i64; 6]) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe { powerloss_call(nr, args.as_ptr()) }
}

/// Installs the filter. Calls of [`STOPPED`] raise SIGSYS unless [`powerloss_call`] makes them.
pub(crate) fn install_filter() -> Option<()> {
    const NR: u32 = 0;
    const POINTER: u32 = 8;
    const ARGUMENTS: u32 = 16;
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let load = |at: u32| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at);
    let jump = |kind: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | kind | libc::BPF_K) as u16,
        jt,
        jf,
        k,
    };
    let answer = |what: u32| statement(libc::BPF_RET | libc::BPF_K, what);
    let from = (&raw const powerloss_call_end) as u64;
    let mut filter = vec![load(NR)];
    for (index, call) in STOPPED.into_iter().enumerate() {
        let left = (STOPPED.len() - index) as u8;
        // For `mmap`, jump to the check of its arguments; for other calls, jump to the check of the address.
        let skip = if call == libc::SYS_mmap { left } else { left + 5 };
        filter.push(jump(libc::BPF_JEQ, call as u32, skip, 0));
    }
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    // Only a shared, writable mapping can change a file.
    filter.push(load(ARGUMENTS + 2 * 8));
    filter.push(jump(libc::BPF_JSET, libc::PROT_WRITE as u32, 1, 0));
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    filter.push(load(ARGUMENTS + 3 * 8));
    filter.push(jump(libc::BPF_JSET, libc::MAP_SHARED as u32, 0, 5));
    filter.push(load(POINTER));
    filter.push(jump(libc::BPF_JEQ, from as u32, 0, 2));
    filter.push(load(POINTER + 4));
    filter.push(jump(libc::BPF_JEQ, (from >> 32) as u32, 1, 0));
    filter.push(answer(libc::SECCOMP_RET_TRAP));
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid for the duration of the call.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return None;
        }
        let mode = libc::SECCOMP_MODE_FILTER;
        (libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) == 0).then_some(())
    }
}
