//! Runs the fuzz target `mastodon`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::targets::mastodon(data));
