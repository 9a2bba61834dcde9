//! Versions, for nodes that share a log and do not all run the same version of roost, as during an update one by one.
//!
//! **Invariant:** a command keeps the version in which it was added, and a node of that version or a later one can apply
//! it. No node proposes a command that a live one cannot apply; see [`crate::applier`].

use feed::Command;
use kv::KeyOp;
use xxhash_rust::xxh3::xxh3_64;

use super::Changes;

/// The version of the commands that this program knows: the highest of [`of_command`] and [`of_op`].
pub(crate) const COMMANDS: u32 = 1;
/// Since this version nodes fetch the files of pictures that others add.
pub(crate) const PICTURES: u32 = 1;

/// The version in which a command was added, or the last one of its parts. What is new begins with a version that was
/// never released.
fn of_command(_: &Command) -> u32 {
    1
}

/// The version in which an operation on keys was added.
fn of_op(_: &KeyOp<'_>) -> u32 {
    1
}

/// The version that a node must have to apply changes; 0 for none.
pub(crate) fn needed_for(changes: &Changes) -> u32 {
    let needed = match changes {
        Changes::Requests(requests) => {
            requests.iter().map(|request| of_command(&request.command)).max()
        }
        Changes::Keys { ops, .. } => ops.iter().map(|op| of_op(&op)).max(),
    };
    needed.unwrap_or(0)
}

/// Identifies the rules by which this program applies commands: nodes with the same rules make the same rows of the same
/// log. Other builds may make others, so it is a digest of the release and of the sources of the rules (`build.rs`).
pub(crate) fn rules() -> u64 {
    xxh3_64(concat!(env!("CARGO_PKG_VERSION"), " ", env!("ROOST_RULES")).as_bytes())
}

#[cfg(test)]
mod tests {
    use feed::accounts::AccountCommand;
    use feed::media::MediaCommand;
    use feed::schedule::ScheduleCommand;
    use feed::{Draft, Patch};
    use serde::de::{Deserialize, Deserializer, Error as _, Visitor, value::Error};

    use super::*;

    /// Deserializes nothing, but fails with the names of the variants of an enum.
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

    /// If this fails, there is a new command, or a new part of one: say in [`of_command`] or [`of_op`] since which version
    /// it exists, raise [`COMMANDS`] if the last version was released, and correct the numbers.
    #[test]
    fn every_command_has_its_version() {
        let known = [
            variants::<Command>(),
            variants::<AccountCommand>(),
            variants::<KeyOp<'_>>(),
            variants::<MediaCommand>(),
            variants::<ScheduleCommand>(),
        ];
        assert_eq!((COMMANDS, known.join(" ").as_str()), (1, "40 14 20 5 3"));
        assert_eq!((Draft::TAGS.len(), Patch::TAGS.len()), (9, 7));
    }
}
