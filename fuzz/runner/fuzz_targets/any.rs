//! Runs the fuzz target that the environment variable `ROOST_FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("ROOST_FUZZ_TARGET").expect("ROOST_FUZZ_TARGET names a target");
    fuzz::target(&name).unwrap_or_else(|| panic!("there is no target {name}"))
});

fuzz_target!(|data: &[u8]| TARGET(data));
