//! Runs the fuzz target `drawings`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::drawings(data));
