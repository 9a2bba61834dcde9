//! The memory allocator of the programs: mimalloc, which is faster when several threads make many small allocations,
//! and returns memory to the system. A program with `use allocator as _;` allocates with it.
//!
//! The compiler generates the allocator's code in the crate that declares the static. This is a crate of its own, so
//! that profiles that do not optimize the programs still optimize the allocator.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
