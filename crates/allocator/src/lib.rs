//! The memory allocator of the programs: mimalloc, which is faster under many small allocations from several threads,
//! and returns memory to the system. A program with `use allocator as _;` allocates with it.
//!
//! It is a separate crate so that every profile can optimize it: the compiler generates its functions where the static
//! is declared, and a program is built without optimization where that saves time.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
