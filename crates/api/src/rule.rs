//! What a route requires of its clients.

use edge::SessionUse;

use crate::auth::Needs;

/// The things of which a user may use a route. `viewer` is the user in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// Of what belongs to the `{user}` of the path, who must be the user.
    Own,
    /// Everything that the user may see: the route reads on behalf of `viewer`.
    See,
}

/// What a route requires of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) needs: Needs,
    /// The things of which a user may use it, with a token or a session; `None` if it is closed for them.
    pub(crate) may: Option<May>,
    /// How a request of such a user is counted.
    pub(crate) usage: SessionUse,
    /// Whether the handler reads the query; otherwise one is refused.
    pub(crate) reads_query: bool,
}

impl Rule {
    /// Of paths and methods that are no routes, for which any key is enough.
    pub(crate) const NOWHERE: Self =
        Self { needs: Needs::Nowhere, may: None, usage: SessionUse::Change, reads_query: true };
    /// Of what everybody may use.
    pub(crate) const PUBLIC: Self = Self { needs: Needs::Nothing, ..Self::NOWHERE };
}
