//! Access rule of a route.

use edge::SessionUse;

use crate::auth::Needs;

/// Access of users to a route. If `viewer` is given, it must be the user who sends the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// Only items of the `{user}` in the path, who must be the user who sends the request.
    Own,
    /// Everything the user may see: the route reads on behalf of `viewer`.
    See,
}

/// Requirements of a route for its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) needs: Needs,
    /// Access of users with a token or a session; `None` if the route is closed to them.
    pub(crate) may: Option<May>,
    /// Kind of usage for which a user's request counts.
    pub(crate) usage: SessionUse,
    /// Whether the handler reads the query; otherwise a query is refused.
    pub(crate) reads_query: bool,
}

impl Rule {
    /// Rule for unknown paths and methods, for which any key suffices.
    pub(crate) const NOWHERE: Self =
        Self { needs: Needs::Nowhere, may: None, usage: SessionUse::Change, reads_query: true };
    /// Rule for routes without a key.
    pub(crate) const PUBLIC: Self = Self { needs: Needs::Nothing, ..Self::NOWHERE };
}
