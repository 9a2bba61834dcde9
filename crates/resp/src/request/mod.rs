//! Requests of clients: commands, either as arrays of bulk strings or as inline text.

pub(crate) mod ahead;
pub(crate) mod command;
pub(crate) mod error;
pub(crate) mod inline;
pub(crate) mod limits;
pub(crate) mod parser;
