//! Tests of the HTTP API through a real socket, over a real node. One file per noun of the URLs.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

mod access;
mod bad_input;
mod batch;
mod blocks;
mod buckets;
mod change_feed;
mod client;
mod conditions;
mod context;
mod events;
mod feeds;
mod follows;
mod friends;
mod legacy;
mod media;
mod openapi;
mod operations;
mod posts;
mod reactions;
mod recognitions;
mod rules;
mod stories;
mod timelines;
mod tokens;
mod upgrade;
mod users;
mod visibility;
mod web;
mod worst_cases;
