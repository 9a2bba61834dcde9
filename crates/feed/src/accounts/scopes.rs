//! Scopes of access tokens, as in Mastodon's API.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::names;
use crate::refusal::Refusal;

/// Defines the enum of scopes. Variants are stored as bits in this order: add new ones at the end.
macro_rules! scopes {
    ($($scope:ident = $name:literal,)*) => {
        /// A scope of Mastodon's API. `read` and `write` include their parts; `follow` includes the scopes of blocks,
        /// follows and mutes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names of Mastodon's documentation")]
        pub enum AccessScope { $($scope,)* }

        names!(AccessScope { $($scope = $name),* });
    };
}

scopes! {
    Profile = "profile",
    Read = "read",
    ReadAccounts = "read:accounts",
    ReadBlocks = "read:blocks",
    ReadBookmarks = "read:bookmarks",
    ReadFavourites = "read:favourites",
    ReadFilters = "read:filters",
    ReadFollows = "read:follows",
    ReadLists = "read:lists",
    ReadMutes = "read:mutes",
    ReadNotifications = "read:notifications",
    ReadSearch = "read:search",
    ReadStatuses = "read:statuses",
    Write = "write",
    WriteAccounts = "write:accounts",
    WriteBlocks = "write:blocks",
    WriteBookmarks = "write:bookmarks",
    WriteConversations = "write:conversations",
    WriteFavourites = "write:favourites",
    WriteFilters = "write:filters",
    WriteFollows = "write:follows",
    WriteLists = "write:lists",
    WriteMedia = "write:media",
    WriteMutes = "write:mutes",
    WriteNotifications = "write:notifications",
    WriteReports = "write:reports",
    WriteStatuses = "write:statuses",
    Follow = "follow",
    Push = "push",
}

const _: () = assert!(AccessScope::ALL.len() <= 64);

impl AccessScope {
    const fn bit(self) -> u64 {
        1 << self as u8
    }

    /// Bits of the scopes that include this one.
    fn wider(self) -> u64 {
        let group = match self.name().split_once(':') {
            Some(("read", _)) => Self::Read.bit(),
            Some(("write", _)) => Self::Write.bit(),
            _ => 0,
        };
        let relations = match self {
            Self::ReadBlocks
            | Self::ReadFollows
            | Self::ReadMutes
            | Self::WriteBlocks
            | Self::WriteFollows
            | Self::WriteMutes => Self::Follow.bit(),
            _ => 0,
        };
        self.bit() | group | relations
    }
}

/// Scopes of Mastodon's API for features that roost lacks, other than those of administration.
const NEVER_GRANTED: [&str; 3] = ["crypto", "read:collections", "write:collections"];

/// Whether a known scope is never granted, because roost lacks its feature. Apps may ask for it.
fn is_never_granted(name: &str) -> bool {
    let is_of_admins = |name: &str| {
        let (group, part) = name.split_once(':').unwrap_or((name, "all"));
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        matches!(group, "read" | "write") && !part.is_empty() && part.bytes().all(is_word)
    };
    NEVER_GRANTED.contains(&name) || name.strip_prefix("admin:").is_some_and(is_of_admins)
}

/// A set of scopes, displayed as names with spaces between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessScopes(u64);

impl AccessScopes {
    /// Parses names separated by spaces or `+`. Scopes that are never granted, such as those of administration, are
    /// left out, so the set may be empty.
    ///
    /// # Errors
    /// [`Refusal::BadScope`] if one does not exist, or there is none.
    pub fn parse(names: &str) -> Result<Self, Refusal> {
        let mut names = names.split([' ', '+']).filter(|name| !name.is_empty()).peekable();
        names.peek().ok_or(Refusal::BadScope)?;
        let mut set = 0;
        for name in names.filter(|name| !is_never_granted(name)) {
            set |= AccessScope::named(name).ok_or(Refusal::BadScope)?.bit();
        }
        Ok(Self(set))
    }

    /// Parses the scopes of a token as [`AccessScopes::parse`] does, and refuses an empty set.
    ///
    /// # Errors
    /// [`Refusal::BadScope`] if one does not exist, or none of them is left.
    pub fn parse_for_grant(names: &str) -> Result<Self, Refusal> {
        Self::parse(names).and_then(|set| if set.0 == 0 { Err(Refusal::BadScope) } else { Ok(set) })
    }

    /// Whether the set includes `scope` or a wider scope.
    #[must_use]
    pub fn allows(self, scope: AccessScope) -> bool {
        self.0 & scope.wider() != 0
    }

    /// Whether the set permits everything that `other` does.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        other.scopes().all(|scope| self.allows(scope))
    }

    /// Scopes of the set.
    pub fn scopes(self) -> impl Iterator<Item = AccessScope> {
        AccessScope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }
}

impl FromIterator<AccessScope> for AccessScopes {
    fn from_iter<I: IntoIterator<Item = AccessScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | scope.bit()))
    }
}

impl fmt::Display for AccessScopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, scope) in self.scopes().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(out, "{space}{}", scope.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(names: &str) -> AccessScopes {
        AccessScopes::parse(names).unwrap()
    }

    #[test]
    fn a_scope_includes_its_parts_and_nothing_else() {
        for (given, asked, expect) in [
            ("read", "read:accounts", true),
            ("read", "read", true),
            ("read", "write:accounts", false),
            ("read", "profile", false),
            ("read:accounts", "read", false),
            ("read:accounts", "read:accounts", true),
            ("write", "write:statuses", true),
            ("write", "push", false),
            ("follow", "write:follows", true),
            ("follow", "read:mutes", true),
            ("follow", "read:accounts", false),
            ("read write", "follow", false),
            ("read write follow push", "write:media push", true),
        ] {
            assert_eq!(scopes(given).includes(scopes(asked)), expect, "{given}: {asked}");
        }
    }

    #[test]
    fn names_are_read_and_shown() {
        assert_eq!(scopes("write read:accounts read").to_string(), "read read:accounts write");
        assert_eq!(scopes("read+write").to_string(), "read write");
        for bad in [
            "",
            " ",
            "reads",
            "read:",
            "READ",
            "read,write",
            "write:",
            "admin",
            "admin:",
            "admin:read:",
            "admin:follow",
            "admin:read:a:b",
            "admin:reads",
        ] {
            assert_eq!(AccessScopes::parse(bad), Err(Refusal::BadScope), "{bad:?}");
        }
    }

    #[test]
    fn scopes_that_nobody_gets_are_accepted_and_left_out() {
        for (names, expect) in [
            ("read write admin:read admin:write", "read write"),
            ("read:accounts admin:read:domain_blocks+admin:write:ip_blocks", "read:accounts"),
            ("read:collections follow crypto write:collections", "follow"),
            ("admin:read", ""),
        ] {
            assert_eq!(scopes(names).to_string(), expect, "{names}");
            let granted = AccessScopes::parse_for_grant(names);
            assert_eq!(granted.is_ok(), !expect.is_empty(), "{names}");
        }
    }
}
