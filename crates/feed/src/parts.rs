//! Records with optional parts. The encoding has the fixed fields, then each part that differs from its default, after
//! its tag. A new part changes neither the encoding of other records nor code that does not use it.
//!
//! **Invariant:** tags and defaults of parts belong to the format, and to the digests that recognize retries: an absent
//! part means its default.

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
            /// Tags of the parts.
            pub const TAGS: &[u8] = &[$($tag),+];

            /// Creates a record with default parts.
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

/// Whether the tags are in ascending order.
pub(crate) const fn ascend(tags: &[u8]) -> bool {
    match tags {
        [first, second, ..] if *first >= *second => false,
        [_, rest @ ..] => ascend(rest),
        [] => true,
    }
}

/// Reads the next field or part.
pub(crate) fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(
    seq: &mut A,
) -> Result<T, A::Error> {
    seq.next_element()?.ok_or_else(|| A::Error::custom("it ends too early"))
}
