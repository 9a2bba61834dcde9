//! Runs the fuzz target `rows`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::rows(data));
