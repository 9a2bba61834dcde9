//! Descriptions of extractors that several modules share. Extractors of one module are described there.

use feed::accounts::GrantId;
use feed::{NotificationId, PostId, StoryId, limits};
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::files::Name;
use crate::idempotency::{NoKey, Once};
use crate::input::{
    BODY_BYTES_MAX, Input, MayRead, OnePost, OneSample, OneStory, OneTag, OneUser, OrDefault,
    TwoUsers, UserAnd, WithoutKey,
};
use crate::page::{Asked, AskedFor, For};
use crate::route::{Inputs, Reads};

/// Raw bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes bodies")]
pub(crate) struct Binary(Vec<u8>);

/// Adds the user in the path.
pub(crate) fn user(inputs: &mut Inputs) {
    inputs.path("user", "The user: an id or `@handle`.", "0");
    inputs.errors(&["user_not_found", "bad_handle"]);
}

fn id(inputs: &mut Inputs) {
    inputs.path("id", "Decimal number of at most 63 bits.", "381482917519855616");
}

/// Adds the parameter that names the viewer.
pub(crate) fn viewer(inputs: &mut Inputs) {
    let text = "Id or `@handle` of the viewer. Data hidden from the viewer is omitted, or answered \
        with 404. Default: the application sees everything.";
    inputs.query("viewer", text);
    inputs.errors(&["user_not_found", "bad_handle"]);
}

/// Adds the maximum number of items per page.
pub(crate) fn limit(inputs: &mut Inputs) {
    let (text, default) = ("Maximum number of items on the page.", limits::PAGE_DEFAULT as u64);
    inputs.number_or("limit", text, 1..=limits::PAGE_MAX as u64, Some(default));
    inputs.error(ApiError::bad_limit(limits::PAGE_MAX));
}

/// Adds the page of a list.
pub(crate) fn page(inputs: &mut Inputs) {
    limit(inputs);
    inputs.query(
        "cursor",
        "`next` or `prev` of another page of this list; without it the first page.",
    );
    inputs.errors(&["bad_cursor"]);
}

fn key(inputs: &mut Inputs) {
    let text = "Retries with the same key return the first result. 1 to 255 characters.";
    inputs.header("Idempotency-Key", text);
    inputs.errors(&["bad_idempotency_key", "idempotency_key_reused"]);
}

/// Describes extractors.
macro_rules! reads {
    ($($extractor:ty => $describe:expr;)*) => {$(
        impl Reads for $extractor {
            fn describe(inputs: &mut Inputs) {
                let describe: fn(&mut Inputs) = $describe;
                describe(inputs);
            }
        }
    )*};
}

reads! {
    OneUser => user;
    TwoUsers => |inputs| {
        user(inputs);
        inputs.path("other", "The other user: an id or `@handle`.", "1");
    };
    OnePost => |inputs| {
        id(inputs);
        inputs.errors(&["post_not_found"]);
    };
    UserAnd<PostId> => |inputs| {
        user(inputs);
        id(inputs);
        inputs.errors(&["post_not_found"]);
    };
    UserAnd<NotificationId> => |inputs| {
        user(inputs);
        id(inputs);
        inputs.errors(&["notification_not_found"]);
    };
    UserAnd<GrantId> => |inputs| {
        user(inputs);
        id(inputs);
    };
    OneStory => |inputs| {
        id(inputs);
        inputs.errors(&["story_not_found"]);
    };
    UserAnd<StoryId> => |inputs| {
        user(inputs);
        id(inputs);
        inputs.errors(&["story_not_found"]);
    };
    OneSample => |inputs| {
        id(inputs);
        inputs.errors(&["sample_not_found"]);
    };
    OneTag => |inputs| {
        inputs.path("tag", "Hashtag without its `#`, case-insensitive.", "garden");
        inputs.errors(&["bad_tag"]);
    };
    For => viewer;
    Asked => page;
    AskedFor => |inputs| {
        Asked::describe(inputs);
        viewer(inputs);
    };
    Once => key;
    NoKey => |inputs| inputs.errors(&["idempotency_key_not_supported"]);
    Name => |_| ();
    MayRead => |_| ();
}

impl<T: ToSchema> Reads for WithoutKey<T> {
    fn describe(inputs: &mut Inputs) {
        NoKey::describe(inputs);
        json::<T>(inputs);
    }
}

impl<T: ToSchema> Reads for OrDefault<T> {
    fn describe(inputs: &mut Inputs) {
        Input::<T>::describe(inputs);
        inputs.body.iter_mut().for_each(|body| body.is_optional = true);
    }
}

fn json<T: ToSchema>(inputs: &mut Inputs) {
    inputs.json::<T>(BODY_BYTES_MAX);
    inputs.errors(&["bad_json"]);
}

impl<T: ToSchema> Reads for Input<T> {
    fn describe(inputs: &mut Inputs) {
        key(inputs);
        json::<T>(inputs);
    }
}
