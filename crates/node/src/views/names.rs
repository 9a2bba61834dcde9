//! Handles and names of users in memory, for rendering.
//!
//! Users whose ids follow each other share a block, of which a user takes 8 bytes beside the text: with an entry for each
//! user, the table would take more than the names. A block has the users that were read so far.
//!
//! A name is current as long as the revision of its user is the one that was read before the name.

use std::sync::Arc;

use feed::{Handle, Name, UserId};
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter, sync::Cache, sync::DefaultLifecycle,
};

/// Users of a block. Their texts have less than 64 KiB, which [`Place`] relies on.
const BLOCK: usize = 64;
/// Bytes of a block in the table, in addition to the block itself.
const ENTRY_BYTES: usize = 64;
/// Bytes of a block whose users all were read, for sizing the table.
const TYPICAL_BYTES: usize = 2_048;

const _: () = assert!(
    BLOCK * (1 + feed::limits::HANDLE_CHARS_MAX + feed::limits::NAME_BYTES_MAX) < u16::MAX as usize
);

/// Names within a budget.
pub(super) struct Names {
    blocks: Cache<u32, Arc<Block>, Bytes>,
}

/// The handle and the name of a user, which posts and stories show.
pub(crate) struct UserNames {
    block: Arc<Block>,
    place: Place,
}

/// Immutable: a user is added to a copy, which replaces it.
struct Block {
    users: [Place; BLOCK],
    /// Of each user: the length of the handle in one byte, the handle, the name.
    texts: Box<[u8]>,
}

/// Where the texts of a user are.
#[derive(Clone, Copy, Default)]
struct Place {
    revision: u32,
    begin: u16,
    /// Equal to `begin` if the user was not read.
    end: u16,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<u32, Arc<Block>> for Bytes {
    fn weight(&self, _: &u32, block: &Arc<Block>) -> u64 {
        (size_of::<Block>() + block.texts.len() + ENTRY_BYTES) as u64
    }
}

/// The number of the block of a user, and the index in it.
fn place_of(user: UserId) -> (u32, usize) {
    (user.0 / BLOCK as u32, user.0 as usize % BLOCK)
}

impl Names {
    /// Keeps at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity((bytes / TYPICAL_BYTES).max(16))
            .weight_capacity(bytes as u64)
            .build();
        let Ok(options) = options else { unreachable!("capacities are set") };
        let (hasher, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Self { blocks: Cache::with_options(options, Bytes, hasher, lifecycle) }
    }

    /// The names of a user, if they were read at `revision`.
    pub(super) fn get(&self, user: UserId, revision: u32) -> Option<UserNames> {
        let (block, index) = place_of(user);
        let block = self.blocks.get(&block)?;
        let place = *block.users.get(index)?;
        (place.begin < place.end && place.revision == revision)
            .then_some(UserNames { block, place })
    }

    /// Adds what was read of a user after the `revision`, and returns it.
    pub(super) fn add(
        &self,
        user: UserId,
        revision: u32,
        handle: &Handle,
        name: &Name,
    ) -> UserNames {
        let (number, index) = place_of(user);
        // Of two users that are added at the same time, one may be missing: it will be read again.
        let block = Arc::new(Block::with(self.blocks.peek(&number).as_deref(), index, |texts| {
            let Ok(length) = u8::try_from(handle.as_str().len()) else {
                unreachable!("a handle has at most 30 bytes");
            };
            texts.push(length);
            texts.extend_from_slice(handle.as_str().as_bytes());
            texts.extend_from_slice(name.as_str().as_bytes());
            revision
        }));
        self.blocks.insert(number, Arc::clone(&block));
        let place = block.users.get(index).copied().unwrap_or_default();
        UserNames { block, place }
    }

    /// Whether more than an eighth of the budget is unused.
    pub(super) fn has_room(&self) -> bool {
        self.blocks.weight() < self.blocks.capacity() / 8 * 7
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.weight()
    }
}

impl Block {
    /// The users of `old`, and the one at `index`, of whom `write` appends the texts and returns the revision.
    fn with(old: Option<&Self>, index: usize, write: impl FnOnce(&mut Vec<u8>) -> u32) -> Self {
        let mut texts = Vec::with_capacity(old.map_or(0, |old| old.texts.len()) + 64);
        let mut write = Some(write);
        let users = std::array::from_fn(|at| {
            let begin = texts.len();
            let revision = if at == index {
                write.take().map_or(0, |write| write(&mut texts))
            } else {
                let place = old.and_then(|old| old.users.get(at)).copied().unwrap_or_default();
                texts.extend_from_slice(old.map_or(&[], |old| old.texts_of(place)));
                place.revision
            };
            let (Ok(begin), Ok(end)) = (u16::try_from(begin), u16::try_from(texts.len())) else {
                unreachable!("a block has less than 64 KiB");
            };
            Place { revision, begin, end }
        });
        Self { users, texts: texts.into() }
    }

    fn texts_of(&self, place: Place) -> &[u8] {
        self.texts.get(usize::from(place.begin)..usize::from(place.end)).unwrap_or_default()
    }
}

impl UserNames {
    /// The handle.
    pub(crate) fn handle(&self) -> &str {
        self.split().0
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        self.split().1
    }

    fn split(&self) -> (&str, &str) {
        let split = || {
            let (length, texts) = self.block.texts_of(self.place).split_first()?;
            let (handle, name) = texts.split_at_checked(usize::from(*length))?;
            Some((str::from_utf8(handle).ok()?, str::from_utf8(name).ok()?))
        };
        let Some(split) = split() else { unreachable!("a handle and a name were added") };
        split
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(names: &Names, user: u32, revision: u32, handle: &str, name: &str) -> UserNames {
        names.add(
            UserId(user),
            revision,
            &Handle::parse(handle).unwrap(),
            &Name::parse(name).unwrap(),
        )
    }

    fn get(names: &Names, user: u32, revision: u32) -> Option<(String, String)> {
        let known = names.get(UserId(user), revision)?;
        Some((known.handle().into(), known.name().into()))
    }

    fn both(handle: &str, name: &str) -> Option<(String, String)> {
        Some((handle.into(), name.into()))
    }

    #[test]
    fn users_of_a_block_are_added_one_by_one_in_any_order() {
        let names = Names::new(1 << 20);
        for user in [70, 64, 127, 65, 3] {
            let added = add(&names, user, 0, &format!("user{user}"), "Ada ☕");
            assert_eq!((added.handle(), added.name()), (&*format!("user{user}"), "Ada ☕"));
        }
        for user in [3, 64, 65, 70, 127] {
            assert_eq!(get(&names, user, 0), both(&format!("user{user}"), "Ada ☕"));
        }
        for user in [0, 63, 66, 126, 128, u32::MAX] {
            assert_eq!(get(&names, user, 0), None, "{user}");
        }
    }

    #[test]
    fn a_name_without_characters_is_known_nevertheless() {
        let names = Names::new(1 << 20);
        add(&names, 5, 0, "ada", "");
        assert_eq!(get(&names, 5, 0), both("ada", ""));
    }

    #[test]
    fn a_name_of_an_earlier_revision_is_not_known() {
        let names = Names::new(1 << 20);
        add(&names, 5, 1, "ada", "Ada");
        assert_eq!(get(&names, 5, 2), None);
        add(&names, 5, 2, "ada", "Ada Lovelace");
        add(&names, 6, 1, "bob", "Bob");
        assert_eq!(get(&names, 5, 2), both("ada", "Ada Lovelace"));
        assert_eq!(get(&names, 6, 1), both("bob", "Bob"));
    }

    #[test]
    fn a_block_of_the_longest_texts_fits() {
        let names = Names::new(1 << 20);
        let (handle, name) = ("h".repeat(30), "👩".repeat(50));
        for user in 0..64 {
            add(&names, user, 0, &handle, &name);
        }
        assert_eq!(get(&names, 63, 0), both(&handle, &name));
    }

    #[test]
    fn names_are_kept_within_the_budget() {
        let names = Names::new(64 << 10);
        for user in 0..100_000 {
            add(&names, user, 0, "ada", "Ada");
        }
        assert!(names.bytes() <= 64 << 10, "{}", names.bytes());
        assert!(names.bytes() > 32 << 10, "{}", names.bytes());
    }
}
