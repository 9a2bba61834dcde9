//! Names of enum variants in interfaces.

/// Declares the name of each variant of an enum, in the order of the enum.
macro_rules! names {
    ($enum:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $enum {
            /// All variants, in the order of the enum.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Name in interfaces.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Variant with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }
    };
}
pub(crate) use names;
