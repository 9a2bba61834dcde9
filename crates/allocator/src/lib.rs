//! The memory allocator of the programs: mimalloc, which is faster under many small allocations from several threads, and gives
//! memory back. A program that has `use allocator as _;` allocates with it.
//!
//! It is a crate of its own so that every profile can optimize it: the compiler makes its functions where the static is declared,
//! and a program is built without optimization where that saves time.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
