//! Pages for sign-up, log-in, and authorization of apps. They are plain forms without scripts.
//!
//! **Invariant:** a form changes something only with the token that belongs to the browser's cookie, so that no page of
//! another site can send it.
//! **Invariant:** a page leads only to paths of this server, or to a redirect URI that the app has registered.

pub(crate) mod consent;
pub(crate) mod log_in;
mod next;
pub(crate) mod own;
mod page;
mod session;
pub(crate) mod settings;
pub(crate) mod sign_up;

pub(crate) use session::of_page;
