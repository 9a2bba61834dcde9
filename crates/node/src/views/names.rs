//! Handles and names of users for rendering, in blocks of neighboring users: a few bytes per user who was read.
//!
//! A name is current while its user has the revision that was read before the name.

use feed::{Facts, User, UserId};
use rows::{Rows, Subject};

use super::entities::{Entities, Entity, EntityKey, MadeOf, Revisions};

/// Number of users per block.
const BLOCK: usize = 64;
/// Size of a user's entry in a block, in bytes: the count of the user's revision, and the begin and end of the user's
/// texts. Begin and end are equal for a user who was not read.
const PLACE_BYTES: usize = 8;
/// Size of all entries of a block in bytes. The texts follow: per user one byte with the length of the handle and
/// [`UNDISCOVERABLE`], the handle, the name.
const PLACES_BYTES: usize = BLOCK * PLACE_BYTES;
/// Bit that is set for users who opted out of suggestions.
const UNDISCOVERABLE: u8 = 1 << 7;
const TEXT_BYTES_MAX: usize = 1 + feed::limits::HANDLE_CHARS_MAX + feed::limits::NAME_BYTES_MAX;

const _: () = assert!(feed::limits::HANDLE_CHARS_MAX < UNDISCOVERABLE as usize);
const _: () = assert!(PLACES_BYTES + BLOCK * TEXT_BYTES_MAX < u16::MAX as usize);

/// Handle and name of a user, as posts and stories show them, and whether the user may be suggested to others.
pub struct UserNames {
    block: Entity,
    index: usize,
}

/// Returns the block of a user and the index in it.
fn place_of(user: UserId) -> (EntityKey, usize) {
    (EntityKey::Names(user.0 / BLOCK as u32), user.0 as usize % BLOCK)
}

/// Returns the count of a user's revision in a block, and the texts; `None` if the user was not read.
fn found(block: &[u8], index: usize) -> Option<(u32, &[u8])> {
    let (places, _) = block.as_chunks::<PLACE_BYTES>();
    let [a, b, c, d, begin @ .., e, f] = *places.get(index)?;
    let (begin, end) = (u16::from_le_bytes(begin), u16::from_le_bytes([e, f]));
    let texts = block.get(begin.into()..end.into()).filter(|texts| !texts.is_empty())?;
    Some((u32::from_le_bytes([a, b, c, d]), texts))
}

/// Returns a copy of the block `old` in which the user at `index` has these texts.
fn with(old: &[u8], index: usize, user: (u32, &[u8])) -> Vec<u8> {
    let mut block = Vec::with_capacity(old.len().max(PLACES_BYTES) + user.1.len());
    let mut texts = Vec::with_capacity(old.len());
    for at in 0..BLOCK {
        let (count, text) = if at == index { user } else { found(old, at).unwrap_or_default() };
        let begin = PLACES_BYTES + texts.len();
        texts.extend_from_slice(text);
        block.extend_from_slice(&count.to_le_bytes());
        for at in [begin, PLACES_BYTES + texts.len()] {
            let Ok(at) = u16::try_from(at) else { unreachable!("a block has less than 64 KiB") };
            block.extend_from_slice(&at.to_le_bytes());
        }
    }
    block.extend_from_slice(&texts);
    block
}

impl Entities {
    /// Returns the names of a user if they are cached and current.
    pub(super) fn names(&self, revisions: &impl Revisions, user: UserId) -> Option<UserNames> {
        let revision = revisions.revision(Subject::Profile(user.0.into()));
        let (key, index) = place_of(user);
        self.read(key, |block| {
            let (count, _) = found(block.bytes(), index)?;
            (count == revision.count).then(|| UserNames { block: block.clone(), index })
        })
    }

    /// Returns the names of a user, from the facts if they are not cached.
    pub(crate) fn names_of<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        user: UserId,
    ) -> Option<UserNames> {
        let count = revisions.revision(Subject::Profile(user.0.into())).count;
        self.names(revisions, user).or_else(|| {
            // Deleted users are included, because posts still mention them.
            let stored = facts.stored_user(user)?;
            Some(self.add_names(user, count, &stored))
        })
    }

    /// Caches the names of a user, with the count of the revision that was read before them, and returns them.
    pub(super) fn add_names(&self, user: UserId, count: u32, stored: &User) -> UserNames {
        let (key, index) = place_of(user);
        let (handle, name) = (stored.handle.as_str().as_bytes(), stored.name.as_str().as_bytes());
        let Ok(length) = u8::try_from(handle.len()) else {
            unreachable!("a handle has at most 30 bytes");
        };
        let first = if stored.undiscoverable { length | UNDISCOVERABLE } else { length };
        let texts = [&[first], handle, name].concat();
        // If two threads add users at the same time, one user may be lost, and is then read again.
        let old = self.read(key, |block| Some(block.clone()));
        let old = old.as_ref().map_or(&[][..], Entity::bytes);
        let block = Entity::new(&MadeOf::default(), &with(old, index, (count, &texts)));
        self.keep(key, block.clone());
        UserNames { block, index }
    }
}

impl UserNames {
    /// Returns the handle.
    #[must_use]
    pub fn handle(&self) -> &str {
        self.split().0
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.split().1
    }

    /// Whether the user opted out of suggestions.
    pub(crate) fn is_undiscoverable(&self) -> bool {
        self.split().2
    }

    fn split(&self) -> (&str, &str, bool) {
        let split = || {
            let (first, texts) = found(self.block.bytes(), self.index)?.1.split_first()?;
            let length = usize::from(first & !UNDISCOVERABLE);
            let (handle, name) = texts.split_at_checked(length)?;
            let is_undiscoverable = first & UNDISCOVERABLE != 0;
            Some((str::from_utf8(handle).ok()?, str::from_utf8(name).ok()?, is_undiscoverable))
        };
        let Some(split) = split() else { unreachable!("a handle and a name were added") };
        split
    }
}

#[cfg(test)]
#[cfg(not(feature = "loom"))]
mod tests {
    use feed::{Handle, Name};
    use rows::Stamp;
    use store::Revision;

    use super::*;

    /// Revisions that all have this count.
    struct At(u32);

    impl Revisions for At {
        fn revision(&self, _: Subject) -> Revision {
            Revision { place: 0, count: self.0 }
        }

        fn is_current(&self, revision: Revision) -> bool {
            revision.count == self.0
        }
    }

    fn add(names: &Entities, user: u32, count: u32, handle: &str, name: &str) -> UserNames {
        let mut stored = User::of(Handle::parse(handle).unwrap(), Stamp(1));
        stored.name = Name::parse(name).unwrap();
        stored.undiscoverable = user.is_multiple_of(2);
        names.add_names(UserId(user), count, &stored)
    }

    fn get(names: &Entities, user: u32, count: u32) -> Option<(String, String)> {
        let known = names.names(&At(count), UserId(user))?;
        Some((known.handle().into(), known.name().into()))
    }

    fn both(handle: &str, name: &str) -> Option<(String, String)> {
        Some((handle.into(), name.into()))
    }

    #[test]
    fn users_of_a_block_are_added_one_by_one_in_any_order() {
        let names = Entities::new(1 << 20);
        for user in [70, 64, 127, 65, 3] {
            let added = add(&names, user, 0, &format!("user{user}"), "Ada ☕");
            assert_eq!((added.handle(), added.name()), (&*format!("user{user}"), "Ada ☕"));
        }
        for user in [3, 64, 65, 70, 127] {
            assert_eq!(get(&names, user, 0), both(&format!("user{user}"), "Ada ☕"));
            let known = names.names(&At(0), UserId(user)).unwrap();
            assert_eq!(known.is_undiscoverable(), user % 2 == 0);
        }
        for user in [0, 63, 66, 126, 128, u32::MAX] {
            assert_eq!(get(&names, user, 0), None, "{user}");
        }
    }

    #[test]
    fn a_name_without_characters_is_known_nevertheless() {
        let names = Entities::new(1 << 20);
        add(&names, 5, 0, "ada", "");
        assert_eq!(get(&names, 5, 0), both("ada", ""));
    }

    #[test]
    fn a_name_of_an_earlier_revision_is_not_known() {
        let names = Entities::new(1 << 20);
        add(&names, 5, 1, "ada", "Ada");
        assert_eq!(get(&names, 5, 2), None);
        add(&names, 5, 2, "ada", "Ada Lovelace");
        add(&names, 6, 1, "bob", "Bob");
        assert_eq!(get(&names, 5, 2), both("ada", "Ada Lovelace"));
        assert_eq!(get(&names, 6, 1), both("bob", "Bob"));
    }

    #[test]
    fn a_block_of_the_longest_texts_fits() {
        let names = Entities::new(4 << 20);
        let (handle, name) = ("h".repeat(30), "👩".repeat(50));
        for user in 0..64 {
            add(&names, user, 0, &handle, &name);
        }
        assert_eq!(get(&names, 63, 0), both(&handle, &name));
    }

    #[test]
    fn names_are_kept_within_the_budget() {
        let names = Entities::new(4 << 20);
        for user in 0..100_000 {
            add(&names, user, 0, "ada", "Ada");
        }
        assert!(names.bytes() <= 1 << 20, "{}", names.bytes());
        assert!(names.bytes() > 512 << 10, "{}", names.bytes());
    }
}
