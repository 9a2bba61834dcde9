//! Tests of the API and the pages over a real node, without a network.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod attacks;
mod blocks;
mod boosts;
mod choices;
mod client;
mod conversations;
mod endpoints;
mod filters;
mod flow;
mod for_you;
mod hidden;
mod hidden_items;
mod kept;
mod lists;
mod media;
mod pages;
mod polls;
mod push_out;
mod quotes;
mod reactions;
mod scopes;
mod server;
mod settings;
mod statuses;
mod streaming;
mod table;
mod tags;
mod user_lists;
mod visibility;
