//! Runs the fuzz target `globs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::globs(data));
