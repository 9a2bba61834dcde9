//! Replays every input in `corpus/`.

#![allow(clippy::unwrap_used, reason = "what fails here is the test")]

use std::fs;
use std::path::Path;

#[test]
fn every_input_of_every_corpus_passes() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in fuzz::TARGETS {
        let mut inputs: Vec<_> =
            fs::read_dir(corpora.join(name)).unwrap().map(|file| file.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{name} has no inputs");
        for input in inputs {
            println!("{}", input.display());
            target(&fs::read(&input).unwrap());
        }
    }
    let folders = fs::read_dir(corpora).unwrap().count();
    assert_eq!(folders, fuzz::TARGETS.len(), "a folder for each target, and no other");
}
