//! The pages on which people sign up, log in and decide about apps. Plain forms: they need no scripts.
//!
//! **Invariant:** a form changes something only if it contains the token that belongs to the cookie of the browser, so
//! that no page of another site can send it. **Invariant:** a page leads only to paths of this server, or to a redirect
//! URI that the app has registered.

pub(crate) mod consent;
pub(crate) mod log_in;
mod next;
pub(crate) mod own;
mod page;
mod session;
pub(crate) mod settings;
pub(crate) mod sign_up;

pub(crate) use session::of_page;
