//! Fuzz target of configuration files: a file is refused, or gives settings with which a node can be opened.

use std::fs;
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::settings::Settings;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

/// Input: the text of a configuration file. Texts with names of hosts are skipped, because names would be looked up.
pub fn config(data: &[u8]) {
    if data.windows(6).any(|word| word.eq_ignore_ascii_case(b"listen")) {
        return;
    }
    let path = FOLDER.path().join(format!("{:?}.toml", std::thread::current().id()));
    fs::write(&path, data).unwrap();
    let Ok(settings) = Settings::of_file(&path) else { return };
    // The first byte selects the available memory, up to 4 GiB in steps of 16 MiB.
    let available = data.first().map(|byte| u64::from(*byte) << 24);
    if let Ok(memory) = settings.memory(available) {
        drop(settings.node_options(&memory));
    }
    drop(settings.pages());
}
