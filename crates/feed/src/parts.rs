//! Records of optional parts. Stored are the fields that come first, then each part that is not its default, after its tag:
//! a part that a record lacks is absent, so a new one changes no other record, and no code but its own.
//!
//! **Invariant:** the tags and the defaults of parts are a part of the format, and of the digests by which retries are
//! recognized: a part that is absent means its default.

use serde::de::{Deserialize, Error, SeqAccess};

/// Declares a record with its serialized form. Tags ascend and are never reused.
macro_rules! parts {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$first_about:meta])* pub $first:ident: $first_type:ty,)*
        }
        parts {
            $($(#[$part_about:meta])* pub $part:ident: $part_type:ty = $tag:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$first_about])* pub $first: $first_type,)*
            $($(#[$part_about])* pub $part: $part_type,)+
        }

        const _: () = assert!($crate::parts::ascend($name::TAGS), "each tag is higher than the one before");

        impl $name {
            /// The tags of the parts.
            pub const TAGS: &[u8] = &[$($tag),+];

            /// Has none of the parts.
            #[must_use]
            pub fn of($($first: $first_type),*) -> Self {
                Self { $($first,)* $($part: <$part_type>::default(),)+ }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeSeq as _;
                const FIRST: usize = <[&str]>::len(&[$(stringify!($first)),*]);
                let has_part = [$(self.$part != <$part_type>::default()),+];
                let parts = has_part.iter().filter(|has| **has).count();
                let mut seq = serializer.serialize_seq(Some(FIRST + 2 * parts))?;
                $(seq.serialize_element(&self.$first)?;)*
                $(if self.$part != <$part_type>::default() {
                    seq.serialize_element::<u8>(&$tag)?;
                    seq.serialize_element(&self.$part)?;
                })+
                seq.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Read;
                impl<'de> serde::de::Visitor<'de> for Read {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(stringify!($name))
                    }

                    fn visit_seq<A: serde::de::SeqAccess<'de>>(
                        self,
                        mut seq: A,
                    ) -> Result<$name, A::Error> {
                        $(let $first = $crate::parts::next(&mut seq)?;)*
                        let mut found = $name::of($($first),*);
                        let mut last = None;
                        while let Some(tag) = seq.next_element::<u8>()? {
                            if last.replace(tag) >= Some(tag) {
                                return Err(serde::de::Error::custom("the parts are not in order"));
                            }
                            match tag {
                                $($tag => found.$part = $crate::parts::next(&mut seq)?,)+
                                _ => return Err(serde::de::Error::custom("there is no such part")),
                            }
                        }
                        Ok(found)
                    }
                }
                deserializer.deserialize_seq(Read)
            }
        }
    };
}
pub(crate) use parts;

/// Whether each tag is higher than the one before.
pub(crate) const fn ascend(tags: &[u8]) -> bool {
    match tags {
        [first, second, ..] if *first >= *second => false,
        [_, rest @ ..] => ascend(rest),
        [] => true,
    }
}

/// The next field or part.
pub(crate) fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
    seq: &mut A,
) -> Result<T, A::Error> {
    seq.next_element()?.ok_or_else(|| A::Error::custom("it ends too early"))
}
