//! Runs the fuzz target `resp`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::resp(data));
