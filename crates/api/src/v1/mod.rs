//! Routes of version 1, one module per noun.

/// Declares handlers that carry out one command with the items in the path.
macro_rules! changes {
    ($($name:ident: $input:ident $(<$of:ty>)? ($($part:ident),+) => $command:expr;)+) => {$(
        pub(crate) async fn $name(
            axum::extract::State(state): axum::extract::State<std::sync::Arc<crate::state::AppState>>,
            $input($($part),+): $input $(<$of>)?,
            crate::idempotency::Once(key): crate::idempotency::Once,
        ) -> Result<axum::response::Response, crate::error::ApiError> {
            state.carry_out($command, key).await
        }
    )+};
}

pub(crate) mod batch;
pub(crate) mod blocks;
pub(crate) mod buckets;
pub(crate) mod change_feed;
pub(crate) mod context;
pub(crate) mod events;
pub(crate) mod feed_definitions;
pub(crate) mod feeds;
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
pub(crate) mod tokens;
pub(crate) mod users;
