//! OAuth 2: apps, their tokens, and the metadata of the server.

pub(crate) mod apps;
pub(crate) mod authorization;
pub(crate) mod client;
pub(crate) mod metadata;
pub(crate) mod token;
