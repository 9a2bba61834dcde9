//! Tests of the public interface of `feed`, in one binary: linking each file takes longer than most tests.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod accounts;
mod blocks;
mod boosts;
mod conversations;
mod deleted_users;
mod filters;
mod home;
mod indexes;
mod lists;
mod long_pages;
mod markers;
mod media;
mod mend;
mod notes;
mod notices;
mod polls;
mod quotes;
mod reactions;
mod relations;
mod requests;
mod rules;
mod samples;
mod scheduled;
mod stories;
mod support;
mod tags;
mod threads;
mod tokens;
mod versions;
mod visibility;
