//! Application keys and their scopes.
//!
//! The code that opened the data directory owns the set of keys, and may replace it at any time. All other code only
//! checks keys. **Invariant:** only hashes of keys are stored here, and a comparison takes the same time for every key.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Permission of an application key. No scope includes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Requests that change nothing.
    Read,
    /// Changes, except those of `Admin`.
    Write,
    /// Deletion of whole users and buckets, and control of the server.
    Admin,
}

impl Scope {
    /// All scopes, in display order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// Name of the scope: `read`, `write` or `admin`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// Parses the name of a scope.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// Set of scopes, displayed as comma-separated names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope.
    pub const ALL: Self = Self(0b111);

    /// Whether `scope` is in the set.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u8))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scopes = Scope::ALL.into_iter().filter(|scope| self.contains(*scope));
        let names: Vec<_> = scopes.map(Scope::name).collect();
        out.write_str(&names.join(","))
    }
}

/// Hash of an application key, its name and its scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHash {
    /// Name of the key, for the log; may be empty.
    pub name: Arc<str>,
    /// SHA-256 of the key.
    pub sha256: [u8; 32],
    /// Scopes of the key.
    pub scopes: Scopes,
}

impl KeyHash {
    /// Hashes `key`.
    #[must_use]
    pub fn new(key: &[u8], scopes: Scopes) -> Self {
        Self { name: Arc::default(), sha256: Sha256::digest(key).into(), scopes }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }
}

/// Keys that are valid now. When the owner replaces them, all holders of the `Arc` see the change immediately.
#[derive(Debug)]
pub struct KeySet(ArcSwap<Versioned>);

#[derive(Debug)]
struct Versioned {
    /// Version of the keys. Every replacement increments it.
    version: u64,
    keys: Vec<KeyHash>,
}

impl KeySet {
    /// Creates a set with these keys.
    #[must_use]
    pub fn new(keys: Vec<KeyHash>) -> Arc<Self> {
        Arc::new(Self(ArcSwap::from_pointee(Versioned { version: 0, keys })))
    }

    /// Replaces all keys of the set by these.
    pub fn replace(&self, keys: &[KeyHash]) {
        self.0.rcu(|now| Versioned { version: now.version + 1, keys: keys.to_vec() });
    }

    fn find(&self, sha256: [u8; 32]) -> Option<Grant> {
        let now = self.0.load();
        let mut found = None;
        // Compare all keys, so that the time does not depend on which key matches.
        for key in &now.keys {
            if key.sha256.ct_eq(&sha256).into() {
                found = Some(Grant { scopes: key.scopes, sha256, version: now.version });
            }
        }
        found
    }
}

/// Error for a repeated header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeated;

/// Value of a header that may be given at most once.
///
/// # Errors
/// If the header is repeated.
pub fn only<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h HeaderValue>, Repeated> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_none() { Ok(first) } else { Err(Repeated) }
}

/// Key or token of `Authorization: Bearer KEY`, if the header is given once. The scheme is case-insensitive (RFC 9110).
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = only(headers, &AUTHORIZATION).ok()??;
    let (scheme, key) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| key.trim_ascii())
}

/// Rule for the access of clients.
#[derive(Clone, Debug)]
pub enum Access {
    /// Every client on this machine has access, except web pages of other origins. A listener in this mode must be
    /// bound to a loopback address. Only this mode has the URLs of the 2014 report.
    Open,
    /// Clients with a valid application key have access.
    Keys(Arc<KeySet>),
}

/// Permissions of an authorized client.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    scopes: Scopes,
    sha256: [u8; 32],
    version: u64,
}

impl Grant {
    const OPEN: Self = Self { scopes: Scopes::ALL, sha256: [0; 32], version: 0 };

    /// Scopes of the client.
    #[must_use]
    pub const fn scopes(&self) -> Scopes {
        self.scopes
    }

    /// Identity of the client: the hash of its key. In open mode, all clients have the same identity.
    #[must_use]
    pub const fn client(&self) -> [u8; 32] {
        self.sha256
    }

    /// Whether the client has `scope`.
    #[must_use]
    pub const fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// Whether the client has all of `scopes`.
    #[must_use]
    pub const fn allows_all(&self, scopes: Scopes) -> bool {
        self.scopes.0 & scopes.0 == scopes.0
    }
}

impl Access {
    /// Creates the rule that a client needs one of these keys.
    #[must_use]
    pub fn with_keys(keys: Vec<KeyHash>) -> Self {
        Self::Keys(KeySet::new(keys))
    }

    /// Name of the client's key; `None` in open mode, and if the key was revoked or has no name.
    #[must_use]
    pub fn key_name(&self, grant: &Grant) -> Option<Arc<str>> {
        let Self::Keys(keys) = self else { return None };
        let now = keys.0.load();
        let key = now.keys.iter().find(|key| key.sha256 == grant.sha256)?;
        (!key.name.is_empty()).then(|| Arc::clone(&key.name))
    }

    /// Whether no key is needed.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// Permissions of a client without a key; `None` if a key is needed.
    #[must_use]
    pub const fn without_key(&self) -> Option<Grant> {
        match self {
            Self::Open => Some(Grant::OPEN),
            Self::Keys(_) => None,
        }
    }

    /// Permissions of a client with this key; `None` if the key is invalid. The time depends only on the number of
    /// valid keys and the length of `key`.
    #[must_use]
    pub fn admit(&self, key: &[u8]) -> Option<Grant> {
        match self {
            Self::Open => Some(Grant::OPEN),
            Self::Keys(keys) => keys.find(Sha256::digest(key).into()),
        }
    }

    /// Current permissions of a client with an earlier grant; `None` if its key was revoked. If the keys have not
    /// changed, this takes a few nanoseconds, so long-lived connections can call it often.
    #[must_use]
    pub fn renew(&self, grant: &Grant) -> Option<Grant> {
        match self {
            Self::Open => Some(*grant),
            Self::Keys(keys) if keys.0.load().version == grant.version => Some(*grant),
            Self::Keys(keys) => keys.find(grant.sha256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_is_the_rest_of_the_only_header() {
        for (given, expect) in [
            (&["Bearer key"][..], Some("key")),
            (&["bEARER  key "], Some("key")),
            (&["Bearer "], Some("")),
            (&["Bearer"], None),
            (&["Basic key"], None),
            (&["Bearer key", "Bearer key"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for value in given {
                headers.append(AUTHORIZATION, HeaderValue::from_static(value));
            }
            assert_eq!(bearer(&headers), expect.map(str::as_bytes), "{given:?}");
        }
    }

    #[test]
    fn only_the_whole_key_is_accepted() {
        let access = Access::with_keys(vec![
            KeyHash::new(b"other", Scopes::ALL),
            KeyHash::new(b"secret", Scopes::ALL),
        ]);
        for (key, expect) in
            [("secret", true), ("other", true), ("secre", false), ("secrets", false), ("", false)]
        {
            assert_eq!(access.admit(key.as_bytes()).is_some(), expect, "{key:?}");
        }
        assert!(access.without_key().is_none());
        assert!(Access::with_keys(vec![]).admit(b"").is_none());
        for grant in [Access::Open.admit(b""), Access::Open.without_key()] {
            assert!(Scope::ALL.iter().all(|scope| grant.unwrap().allows(*scope)));
        }
    }

    #[test]
    fn a_grant_has_the_name_of_its_key_while_the_key_is_valid() {
        let keys = KeySet::new(vec![
            KeyHash::new(b"a", Scopes::ALL).named("backup"),
            KeyHash::new(b"b", Scopes::ALL),
        ]);
        let access = Access::Keys(Arc::clone(&keys));
        let [a, b] = [b"a", b"b"].map(|key| access.admit(key).unwrap());
        assert_eq!(access.key_name(&a).as_deref(), Some("backup"));
        assert_eq!(access.key_name(&b), None);
        keys.replace(&[]);
        assert_eq!(access.key_name(&a), None);
        assert_eq!(Access::Open.key_name(&Grant::OPEN), None);
    }

    #[test]
    fn a_key_allows_its_scopes_and_no_other() {
        for (scopes, expect) in [
            (vec![], ""),
            (vec![Scope::Read], "read"),
            (vec![Scope::Admin, Scope::Write, Scope::Admin], "write,admin"),
            (Scope::ALL.to_vec(), "read,write,admin"),
        ] {
            let set: Scopes = scopes.iter().copied().collect();
            assert_eq!(set.to_string(), expect);
            let grant = Access::with_keys(vec![KeyHash::new(b"k", set)]).admit(b"k").unwrap();
            for scope in Scope::ALL {
                assert_eq!(grant.allows(scope), scopes.contains(&scope), "{expect}: {scope:?}");
            }
        }
        assert_eq!(Scope::ALL.into_iter().collect::<Scopes>(), Scopes::ALL);
        assert!(Scope::ALL.iter().all(|scope| Scope::parse(scope.name()) == Some(*scope)));
        assert_eq!(Scope::parse("Read"), None);
    }

    #[test]
    fn a_grant_ends_when_its_key_is_revoked_and_follows_its_scopes() {
        let key = |name: &[u8], scopes| KeyHash::new(name, scopes);
        let keys = KeySet::new(vec![key(b"a", Scopes::ALL), key(b"b", Scopes::ALL)]);
        let access = Access::Keys(Arc::clone(&keys));
        let (a, b) = (access.admit(b"a").unwrap(), access.admit(b"b").unwrap());
        assert!(access.renew(&a).is_some());
        keys.replace(&[key(b"c", Scopes::ALL), key(b"b", [Scope::Read].into_iter().collect())]);
        assert!(access.renew(&a).is_none() && access.admit(b"a").is_none());
        let b = access.renew(&b).unwrap();
        assert!(b.allows(Scope::Read) && !b.allows(Scope::Write));
        assert!(access.renew(&b).is_some() && access.admit(b"c").is_some());
    }
}
