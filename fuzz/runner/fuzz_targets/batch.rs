//! Runs the fuzz target `batch`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::batch(data));
