//! Searches for texts in files. Texts are random letters and digits, so compression hides at most a few of them.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;

use super::clients::{TOKEN_BYTES, Token};

/// Number of bytes read at once.
const PIECE: usize = 4 << 20;

/// Number of `tokens` that are in at least one file below `folder`.
pub(super) fn count(folder: &Path, tokens: &HashSet<Token>) -> anyhow::Result<usize> {
    let (mut found, mut folders) = (HashSet::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                count_in(&entry.path(), tokens, &mut found)?;
            }
        }
    }
    Ok(found.len())
}

fn count_in(
    file: &Path,
    tokens: &HashSet<Token>,
    found: &mut HashSet<Token>,
) -> anyhow::Result<()> {
    let mut file = std::fs::File::open(file)?;
    let mut bytes = Vec::new();
    loop {
        // Keep the end of each piece, because a token may be in two pieces.
        let kept = bytes.len().min(TOKEN_BYTES - 1);
        bytes.drain(..bytes.len() - kept);
        if file.by_ref().take(PIECE as u64).read_to_end(&mut bytes)? == 0 {
            return Ok(());
        }
        let windows = bytes.windows(TOKEN_BYTES).filter_map(|window| Token::try_from(window).ok());
        found.extend(windows.filter(|window| tokens.contains(window)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_texts_in_files_of_any_folder_also_across_pieces() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("below")).unwrap();
        let (there, across, absent) = (*b"abcdefghijklmnop", *b"qrstuvwxyzABCDEF", [b'x'; 16]);
        std::fs::write(folder.path().join("below/one"), [b"..".as_slice(), &there].concat())
            .unwrap();
        let long = [vec![b'.'; PIECE - 5], across.to_vec()].concat();
        std::fs::write(folder.path().join("two"), long).unwrap();
        let tokens = HashSet::from([there, across, absent]);
        assert_eq!(count(folder.path(), &tokens).unwrap(), 2);
    }
}
