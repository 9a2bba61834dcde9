//! Runs the fuzz target `redis`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::redis(data));
