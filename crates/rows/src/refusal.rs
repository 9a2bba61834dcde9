//! Form of the tables of refusals in `feed` and `kv`. Each row has the class of a refusal, the field that it is about,
//! its code and its sentence. Protocols derive statuses, replies and descriptions from these tables.

/// Class of a refusal, from which a protocol derives a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalClass {
    /// The subject does not exist, or is hidden from the caller.
    NotFound,
    /// The change conflicts with the state of its subject.
    Conflict,
    /// A condition of the request does not hold.
    Precondition,
    /// A rule refuses a value, or the change.
    Invalid,
    /// A limit of the whole server is reached.
    Full,
    /// The same request may succeed a second later.
    Busy,
    /// The rules have an error.
    Internal,
}

/// Declares an enum of refusals from a table with the rows `NAME = CLASS("field") "code": "sentence", values;`, where
/// the field may be absent.
#[macro_export]
macro_rules! refusals {
    ($(#[$about:meta])* pub enum $Refusal:ident {$(
        $(#[$note:meta])*
        $name:ident = $class:ident $(($field:literal))? $code:literal: $sentence:literal $(, $value:expr)*;
    )*}) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Refusal {$(
            #[doc = concat!("`", $code, "`: ", $sentence)]
            $(#[$note])*
            $name,
        )*}

        impl $Refusal {
            /// All refusals.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the class.
            #[must_use]
            pub const fn class(self) -> $crate::RefusalClass {
                match self {$(
                    Self::$name => $crate::RefusalClass::$class,
                )*}
            }

            /// Returns the field that the refusal is about, by its name in `/v1`; `None` if it depends on the request.
            #[must_use]
            pub const fn field(self) -> Option<&'static str> {
                match self {$(
                    Self::$name => $crate::refusals!(@field $($field)?),
                )*}
            }

            /// Returns the stable name in replies.
            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {$(
                    Self::$name => $code,
                )*}
            }
        }

        impl std::fmt::Display for $Refusal {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {$(
                    Self::$name => write!(out, $sentence $(, $value)*),
                )*}
            }
        }

        impl std::error::Error for $Refusal {}
    };
    (@field) => { None };
    (@field $field:literal) => { Some($field) };
}
