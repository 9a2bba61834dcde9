//! Tests of the memory of a parser: it grows only with the bytes that have arrived, and common commands allocate
//! nothing. This is a separate test binary because it replaces the global allocator.
//!
//! The allocator counts separately for each thread, so tests do not affect each other.
#![allow(unsafe_code, reason = "only a counting allocator can measure this")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use resp::{Encoder, Limits, Parser, Protocol};

thread_local! {
    /// Bytes that this thread has allocated so far.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
    /// Bytes that this thread has freed so far.
    static GIVEN: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system allocator does all the work. The counters have no destructor, so using them does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.set(TAKEN.get() + layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        GIVEN.set(GIVEN.get() + layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of bytes that `work` allocates.
fn taken(work: impl FnOnce()) -> usize {
    let before = TAKEN.get();
    work();
    TAKEN.get() - before
}

fn pipeline(arguments: usize, commands: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
    for _ in 0..commands {
        encoder.array(arguments);
        (0..arguments).for_each(|_| encoder.bulk(b"argument"));
    }
    out
}

fn parse_all(parser: &mut Parser, mut stream: &[u8]) {
    while parser.next(&mut stream).expect("well-formed").is_some() {}
    assert!(stream.is_empty(), "whole commands");
}

#[test]
fn an_announced_length_takes_no_memory() {
    let limits = Limits { arguments_max: 1 << 30, bulk_bytes_max: 1 << 31, ..Limits::REDIS };
    let limits = Limits { command_bytes_max: u32::MAX as usize, ..limits };
    for stream in
        ["*1000000000\r\n", "*2\r\n$1\r\na\r\n$2147483647\r\nb", "*1000000000\r\n$1\r\na\r\n"]
    {
        let mut parser = Parser::new(limits);
        let bytes = taken(|| {
            let mut rest = stream.as_bytes();
            assert!(parser.next(&mut rest).expect("within the limits").is_none());
            assert_eq!(rest.len(), stream.len(), "unfinished, not refused");
        });
        assert!(bytes < 256, "{stream:?} used {bytes} bytes");
    }
}

#[test]
fn usual_commands_take_no_memory() {
    let mut parser = Parser::new(Limits::REDIS);
    let stream = [pipeline(3, 16).as_slice(), b"SET key \"a value\"\r\nPING\r\n"].concat();
    parse_all(&mut parser, &stream);
    assert_eq!(taken(|| parse_all(&mut parser, &stream)), 0);
}

#[test]
fn memory_for_many_arguments_is_proportional_to_their_bytes_and_is_freed() {
    let mut parser = Parser::new(Limits::REDIS);
    let held = || TAKEN.get().wrapping_sub(GIVEN.get());
    let (large, small) = (pipeline(100_000, 1), pipeline(3, 1));
    let before = held();
    parse_all(&mut parser, &large);
    let at_most = large.len() * 2;
    assert!((1..at_most).contains(&held().wrapping_sub(before)), "holds less than {at_most} bytes");
    parse_all(&mut parser, &small);
    assert!(held().wrapping_sub(before) <= 16_384, "keeps little");
}
