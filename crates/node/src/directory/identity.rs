//! Identity of a data directory: a random id in the file `identity`. Backups and archives contain the identity of their
//! directory. A restored directory gets a new one, because its history differs from then on.

use std::io;
use std::path::Path;

use commitlog::NodeId;

use super::open_error::OpenError;

const FILE: &str = "identity";
/// Number of hexadecimal digits of an id.
const DIGITS: usize = 32;

/// Returns the id of the directory `data`; `None` if there is no file, or its content is no id.
///
/// # Errors
/// [`OpenError::Directory`]
pub(crate) fn read(data: &Path) -> Result<Option<String>, OpenError> {
    let found = super::read(data, FILE);
    let found = found.map_err(|error| OpenError::Directory(data.to_owned(), error))?;
    Ok(found.and_then(|bytes| id(&bytes)))
}

/// Returns the id of the directory `data`, creating it if necessary.
///
/// # Errors
/// [`OpenError::Directory`]
pub(crate) fn read_or_make(data: &Path) -> Result<String, OpenError> {
    if let Some(id) = read(data)? {
        return Ok(id);
    }
    make(data).map_err(|error| OpenError::Directory(data.to_owned(), error))
}

/// Returns the node id of a directory with this identity, for a shared log.
pub(crate) fn node(id: &str) -> NodeId {
    let Ok(number) = u128::from_str_radix(id, 16) else {
        unreachable!("an id has hexadecimal digits")
    };
    NodeId(number)
}

fn make(data: &Path) -> io::Result<String> {
    let mut random = [0; DIGITS / 2];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let id = format!("{:032x}", u128::from_be_bytes(random));
    super::replace(data, FILE, &format!("{id}\n"))?;
    Ok(id)
}

fn id(bytes: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (id.len() == DIGITS && id.bytes().all(is_digit)).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_id_and_another_has_another() {
        let [one, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        assert_eq!(read(one.path()).unwrap(), None);
        let made = read_or_make(one.path()).unwrap();
        assert_eq!(read_or_make(one.path()).unwrap(), made);
        assert_eq!(read(one.path()).unwrap(), Some(made.clone()));
        assert_ne!(read_or_make(other.path()).unwrap(), made);
        for text in ["", "x\n", &made, &made.to_uppercase(), &format!("{made}0\n")] {
            std::fs::write(one.path().join(FILE), text).unwrap();
            assert_eq!(read(one.path()).unwrap(), None, "{text:?}");
        }
    }
}
