//! Versions of commands, for nodes that share a log but run different versions of roost, as during a rolling update.
//!
//! **Invariant:** a command keeps the version in which it was added, and a node of that version or a later one can
//! apply it. No node proposes a command that a live node cannot apply; see [`crate::applier`].

use feed::Command;
use kv::KeyOp;
use xxhash_rust::xxh3::xxh3_64;

use super::Changes;

/// Version of the commands of this program: the highest of [`of_command`] and [`of_op`].
pub(crate) const COMMANDS: u32 = 1;
/// Version since which nodes fetch the files of pictures that others add.
pub(crate) const PICTURES: u32 = 1;

/// Returns the version in which a command, or the last of its parts, was added. New commands begin with an unreleased
/// version.
fn of_command(_: &Command) -> u32 {
    1
}

/// Returns the version in which an operation on keys was added.
fn of_op(_: &KeyOp<'_>) -> u32 {
    1
}

/// Returns the version that a node needs to apply changes; 0 for none.
pub(crate) fn needed_for(changes: &Changes) -> u32 {
    let needed = match changes {
        Changes::Requests(requests) => {
            requests.iter().map(|request| of_command(&request.command)).max()
        }
        Changes::Keys { ops, .. } => ops.iter().map(|op| of_op(&op)).max(),
    };
    needed.unwrap_or(0)
}

/// Returns an identifier of the rules by which this program applies commands: nodes with the same rules make the same
/// rows of the same log. Other builds may have other rules, so the identifier is a digest of the release and of the
/// sources of the rules (`build.rs`).
pub(crate) fn rules() -> u64 {
    xxh3_64(concat!(env!("CARGO_PKG_VERSION"), " ", env!("ROOST_RULES")).as_bytes())
}

#[cfg(test)]
mod tests {
    use feed::accounts::AccountCommand;
    use feed::media::MediaCommand;
    use feed::schedule::ScheduleCommand;
    use feed::{Content, Draft, Patch};
    use serde::de::{Deserialize, Deserializer, Error as _, Visitor, value::Error};

    use super::*;

    /// Deserializer that fails with the names of the variants of an enum.
    struct Variants;

    impl<'de> Deserializer<'de> for Variants {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(Error::custom("it is no enum"))
        }

        fn deserialize_enum<V: Visitor<'de>>(
            self,
            _: &'static str,
            variants: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Error> {
            Err(Error::custom(variants.len()))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
        }
    }

    fn variants<'de, T: Deserialize<'de>>() -> String {
        T::deserialize(Variants).err().map_or_else(String::new, |error| error.to_string())
    }

    /// Fails when there is a new command, or a new part of one. If so, return its version from [`of_command`] or
    /// [`of_op`], raise [`COMMANDS`] if the last version was released, and correct the numbers in this test.
    #[test]
    fn every_command_has_its_version() {
        let known = [
            variants::<Command>(),
            variants::<AccountCommand>(),
            variants::<KeyOp<'_>>(),
            variants::<MediaCommand>(),
            variants::<ScheduleCommand>(),
        ];
        assert_eq!((COMMANDS, known.join(" ").as_str()), (1, "43 14 20 5 3"));
        let parts = [Draft::TAGS, Content::TAGS, Patch::TAGS].map(<[u8]>::len);
        assert_eq!(parts, [6, 5, 9]);
    }
}
