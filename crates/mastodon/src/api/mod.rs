//! Handlers of the API, by topic.

pub(crate) mod absent;
pub(crate) mod accounts;
pub(crate) mod conversations;
pub(crate) mod filters;
pub(crate) mod filters_v1;
pub(crate) mod instance;
pub(crate) mod links;
pub(crate) mod lists;
pub(crate) mod markers;
pub(crate) mod media;
pub(crate) mod notifications;
pub(crate) mod pictures;
pub(crate) mod polls;
pub(crate) mod profile;
pub(crate) mod reactions;
pub(crate) mod relations;
pub(crate) mod scheduled;
pub(crate) mod search;
pub(crate) mod statuses;
pub(crate) mod streaming;
pub(crate) mod tags;
pub(crate) mod timelines;
pub(crate) mod trends;
