//! Runs the fuzz target `log`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::log(data));
