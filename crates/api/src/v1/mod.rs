//! The routes of version 1, a module per noun.

pub(crate) mod batch;
pub(crate) mod blocks;
pub(crate) mod buckets;
pub(crate) mod context;
pub(crate) mod events;
pub(crate) mod follows;
pub(crate) mod friends;
pub(crate) mod history;
pub(crate) mod keys;
pub(crate) mod notifications;
pub(crate) mod posts;
pub(crate) mod reactions;
pub(crate) mod recognitions;
pub(crate) mod relations;
pub(crate) mod samples;
pub(crate) mod stories;
pub(crate) mod tags;
pub(crate) mod timelines;
pub(crate) mod users;

use crate::routes::Routes;

/// Adds the routes of all modules.
pub(crate) fn route(routes: &mut Routes<'_>) {
    users::route(routes);
    follows::route(routes);
    friends::route(routes);
    blocks::route(routes);
    relations::route(routes);
    posts::route(routes);
    context::route(routes);
    history::route(routes);
    reactions::route(routes);
    notifications::route(routes);
    timelines::route(routes);
    tags::route(routes);
    stories::route(routes);
    recognitions::route(routes);
    samples::route(routes);
    buckets::route(routes);
    keys::route(routes);
    events::route(routes);
    batch::route(routes);
}
